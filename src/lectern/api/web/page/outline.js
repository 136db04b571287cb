// @ts-check
// The table of contents, as the title page and the contents show it.
import { node } from "../shared/dom.js";
import { t } from "../shared/strings.js";
import { lessonLink } from "./address.js";

/**
 * @param {any} outline
 * @param {{current?: string, open?: boolean, onOpen?: () => void}} [options] `current`: the lesson that is open
 */
export function outlineOf(outline, { current, open = true, onOpen } = {}) {
  const modules = outline.modules.map((/** @type {any} */ module) => moduleOf(outline.book_id, module, current, open, onOpen));
  return node("div", { class: "outline" }, ...modules);
}

/**
 * @param {string} book
 * @param {any} module
 * @param {string | undefined} current
 * @param {boolean} open
 * @param {(() => void) | undefined} onOpen
 */
function moduleOf(book, module, current, open, onOpen) {
  const link = (/** @type {any} */ lesson, /** @type {string} */ title) =>
    lessonLink({ book, lesson: lesson.parent_doc_id }, { "data-lesson": lesson.parent_doc_id, class: lesson.lesson === 0 && "overview", "aria-current": lesson.parent_doc_id === current && "page", onclick: () => onOpen?.() }, title);
  const chapters = module.chapters.map((/** @type {any} */ chapter) => {
    const items = chapter.lessons.map((/** @type {any} */ lesson) => node("li", {}, link(lesson, titleIn(module, chapter, lesson))));
    const named = chapter.title && chapter.title !== module.title && chapter.title !== chapter.lessons[0]?.title;
    return node("div", { class: "chapter" }, named && node("h4", {}, chapter.title), node("ol", {}, ...items));
  });
  return node("details", { class: "module", open }, node("summary", {}, module.title), ...chapters);
}

/**
 * A lesson's title below the heading of its module. The overview of the module would only repeat the heading.
 * @param {any} module
 * @param {any} chapter
 * @param {any} lesson
 */
function titleIn(module, chapter, lesson) {
  const repeats = chapter.chapter === 0 && lesson.lesson === 0 && lesson.title.toLowerCase().endsWith(module.title.toLowerCase());
  return repeats ? t("contents.overview") : lesson.title;
}

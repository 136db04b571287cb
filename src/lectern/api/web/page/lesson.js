// @ts-check
// The reader's view of a lesson: beside the conversation on wide screens, in its place on narrow ones.
import { byId, icon, iconButton, node, setSanitised } from "../shared/dom.js";
import { enhance } from "../shared/enhance.js";
import { read } from "../shared/api.js";
import { problemWords } from "../shared/problems.js";
import { t } from "../shared/strings.js";
import { conversationPlace, go, here, lessonLink } from "./address.js";
import { clearMarks, markQuote } from "../shared/quote.js";

export class LessonView {
  /** @param {{contents: () => void}} page */
  constructor(page) {
    this.page = page;
    this.pane = byId("lesson");
    /** @type {any} the lesson that is shown */
    this.lesson = null;
    this.book = "";
    this.body = node("div", { class: "prose lesson-body", "data-askable": true });
    this.pane.addEventListener("click", (/** @type {MouseEvent} */ event) => this.#follow(event));
  }

  /**
   * Shows what the address names; without a lesson there is none.
   * @param {import("./address.js").Place} place
   * @param {string} book
   */
  async show(place, book) {
    if (!place.lesson) {
      this.leave();
      return;
    }
    this.book = book;
    document.body.classList.add("reading");
    this.pane.hidden = false;
    if (this.lesson?.parent_doc_id !== place.lesson && !(await this.#load(place.lesson || "", book))) return;
    this.#scroll(place);
  }

  /** Shows the conversation alone. */
  leave() {
    document.body.classList.remove("reading");
    this.pane.hidden = true;
    clearMarks(this.pane);
    this.lesson = null;
  }

  /**
   * @param {string} id
   * @param {string} book
   */
  async #load(id, book) {
    this.pane.setAttribute("aria-busy", "true");
    try {
      const lesson = await read(`lessons/${encodeURIComponent(id)}/page?${new URLSearchParams({ book_id: book })}`);
      if (here().lesson !== id) return false; // the reader went on in the meantime
      this.lesson = lesson;
      this.#draw(lesson);
    } catch (error) {
      this.lesson = null;
      this.#drawError(error);
      return false;
    } finally {
      this.pane.removeAttribute("aria-busy");
    }
    return true;
  }

  /** @param {any} lesson */
  #draw(lesson) {
    setSanitised(this.body, lesson.html);
    enhance(this.body, lesson.book_id);
    const title = this.body.querySelector(":scope > h1:first-child") || node("h1", {}, lesson.title); // before the headings
    const stale = lesson.from === "index" && node("p", { class: "remark" }, t("lesson.from_index"));
    const site = /^https?:/.test(lesson.url) && node("a", { href: lesson.url, target: "_blank", rel: "noopener noreferrer" }, t("lesson.on_site"));
    this.pane.replaceChildren(
      this.#bar(lesson),
      node("div", { class: "lesson-page" }, node("p", { class: "breadcrumb" }, lesson.breadcrumb), title, stale, this.#headings(lesson), this.body, site && node("p", { class: "remark" }, site), this.#turning(lesson)),
    );
    this.pane.setAttribute("aria-label", lesson.title);
    this.pane.scrollTop = 0;
  }

  /** @param {any} lesson */
  #bar(lesson) {
    const step = (/** @type {any} */ target, /** @type {string} */ drawing, /** @type {string} */ label) =>
      iconButton(drawing, target ? `${label}: ${target.title}` : label, () => target && this.#open(target), { disabled: !target });
    return node(
      "div",
      { class: "lesson-bar", role: "toolbar", "aria-label": t("lesson.toolbar") },
      node("button", { type: "button", class: "text-button back", "aria-label": t(here().thread ? "lesson.back" : "lesson.to_book"), onclick: () => this.close() }, icon("back"), t(here().thread ? "conversations.current" : "empty.other_books")),
      node("span", { class: "bar-title" }, lesson.title),
      step(lesson.previous, "previous", t("lesson.previous")),
      step(lesson.next, "next", t("lesson.next")),
      iconButton("contents", t("contents.title"), () => this.page.contents()),
      iconButton("close", t("lesson.close"), () => this.close(), { class: "quiet-button close" }),
    );
  }

  /** @param {any} lesson */
  #headings(lesson) {
    const headings = lesson.headings.filter((/** @type {any} */ heading) => heading.level > 1 && heading.level < 4);
    if (headings.length < 2) return null;
    const items = headings.map((/** @type {any} */ { level, title, anchor }) =>
      node("li", { class: `level-${level}` }, node("a", { href: `#${encodeURIComponent(anchor)}`, "data-anchor": anchor }, title)),
    );
    return node("details", { class: "in-lesson" }, node("summary", {}, t("lesson.headings")), node("ol", {}, ...items));
  }

  /** @param {any} lesson */
  #turning({ previous, next, book_id: book }) {
    const link = (/** @type {any} */ target, /** @type {string} */ label, /** @type {string} */ rel) =>
      target && lessonLink({ book, lesson: target.parent_doc_id }, { class: `turn-page ${rel}`, rel }, node("small", {}, label), target.title);
    return node("nav", { class: "turning", "aria-label": t("lesson.turning") }, link(previous, t("lesson.previous"), "prev"), link(next, t("lesson.next"), "next"));
  }

  /** @param {unknown} error */
  #drawError(error) {
    const retry = node("button", { type: "button", class: "button", onclick: () => this.retry() }, t("turn.retry"));
    const close = node("button", { type: "button", class: "text-button", onclick: () => this.close() }, t("lesson.close"));
    const words = node("p", { class: "remark problem", role: "alert" }, `${t("lesson.failed")} ${problemWords(error)}`);
    this.pane.replaceChildren(node("div", { class: "lesson-page" }, words, node("p", { class: "choices" }, retry, close)));
  }

  /** Shows the lesson that could not be opened before. */
  retry() {
    if (here().lesson && !this.lesson) this.show(here(), this.book);
  }

  /** @param {any} target */
  #open(target) {
    const place = conversationPlace();
    go({ ...place, book: place.thread ? undefined : this.lesson.book_id, lesson: target.parent_doc_id });
  }

  /** Back to the conversation alone; at once, because what is not shown yet cannot take the focus. */
  close() {
    this.leave();
    go(conversationPlace());
    byId("question").focus({ preventScroll: true });
  }

  /** @param {import("./address.js").Place} place */
  #scroll({ lines, quote, anchor }) {
    const block = markQuote(this.body, lines, quote);
    const heading = anchor && document.getElementById(anchor);
    const target = block || heading;
    if (!target) return;
    const bar = this.pane.querySelector(".lesson-bar")?.offsetHeight || 0;
    const top = target.getBoundingClientRect().top - this.pane.getBoundingClientRect().top + this.pane.scrollTop;
    this.pane.scrollTop = top - bar - (block ? this.pane.clientHeight / 4 : 12);
  }

  /**
   * Links between lessons, and to headings of this one, stay in this view.
   * @param {MouseEvent} event
   */
  #follow(event) {
    const link = /** @type {any} */ (event.target).closest?.("a[data-lesson], a[data-anchor], a[href^='#']");
    if (!link || event.metaKey || event.ctrlKey || event.shiftKey || event.defaultPrevented) return;
    event.preventDefault();
    const place = here();
    const lesson = link.dataset.lesson || place.lesson;
    const anchor = link.dataset.anchor || decodeURIComponent(new URL(link.href).hash.slice(1)) || undefined;
    go({ thread: place.thread, book: place.thread ? undefined : this.lesson.book_id, lesson, anchor });
  }
}

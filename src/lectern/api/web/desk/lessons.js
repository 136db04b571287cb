// @ts-check
// The lessons of a book, and the chunks of one lesson as the index holds them.
import { node } from "../shared/dom.js";
import { read } from "../shared/api.js";
import { t } from "../shared/strings.js";
import { addressOf } from "./address.js";
import { body, count, failure, head, remark } from "./parts.js";

const PAGE_SIZE = 50;

/**
 * @param {import("./address.js").Place} place
 * @param {AbortSignal} signal
 */
export async function showLessons(place, signal) {
  const book = place.book || "";
  try {
    if (place.lesson) return await showChunks(book, place.lesson, signal);
    return drawOutline(book, await read(`books/${encodeURIComponent(book)}/outline`, signal));
  } catch (error) {
    return failure(error, "read");
  }
}

/**
 * One table; a chapter is a group of its rows.
 * @param {string} book
 * @param {any} outline
 */
function drawOutline(book, outline) {
  const headings = ["lesson", "file", "chunks"].map((name) => t(`desk.column.${name}`));
  const groups = outline.modules.flatMap((/** @type {any} */ module) => module.chapters.map((/** @type {any} */ chapter) => {
    const titles = [...new Set([module.title, chapter.title])].join(" › ");
    const rows = chapter.lessons.map((/** @type {any} */ lesson) => [
      node("a", { href: addressOf({ book, view: "lessons", lesson: lesson.parent_doc_id }) }, lesson.title),
      node("code", {}, lesson.source_file),
      count(lesson.chunk_count),
    ]);
    const group = body(headings, rows, [2]);
    group.prepend(node("tr", { class: "group" }, node("th", { colspan: headings.length, scope: "rowgroup" }, titles)));
    return group;
  }));
  return node("table", { class: "rows", "aria-label": t("desk.view.lessons") }, head(headings, [2]), ...groups);
}

/**
 * @param {string} book
 * @param {string} lesson
 * @param {AbortSignal} signal
 */
async function showChunks(book, lesson, signal) {
  const list = node("ol", { class: "chunks" });
  const more = node("button", { type: "button", class: "button", hidden: true }, t("desk.chunks.more"));
  let cursor = "";
  const load = async () => {
    const query = new URLSearchParams({ parent_doc_id: lesson, limit: String(PAGE_SIZE), ...(cursor && { cursor }) });
    const page = await read(`books/${encodeURIComponent(book)}/chunks?${query}`, signal);
    list.append(...page.chunks.map(drawChunk));
    cursor = page.next_cursor || "";
    more.hidden = !cursor;
    return page.chunks;
  };
  const chunks = await load();
  more.addEventListener("click", load);
  if (!chunks.length) return remark(t("desk.chunks.none"));
  const { lesson_title: title, source_file: file, total_chunks: total } = chunks[0].payload;
  const toReader = `../?${new URLSearchParams({ book, lesson })}`;
  return node(
    "article",
    {},
    node("p", { class: "to-books" }, node("a", { href: addressOf({ book, view: "lessons" }) }, t("desk.view.lessons"))),
    node("h2", { class: "lesson-title" }, title),
    node("p", { class: "remark" }, node("code", {}, file), ` · ${t("desk.chunk_count", { count: total, number: count(total) })} · `, node("a", { href: toReader }, t("desk.chunks.read"))),
    list,
    more,
  );
}

/** @param {{id: string, payload: Record<string, any>}} chunk */
function drawChunk({ id, payload }) {
  const facts = [
    t("desk.chunks.lines", { first: payload.line_start, last: payload.line_end }),
    t("desk.chunks.words", { count: payload.word_count, number: count(payload.word_count) }),
    t("desk.chunks.tokens", { number: count(payload.token_count) }),
  ];
  const fields = Object.entries(payload).filter(([name]) => name !== "text").map(([name, value]) => node(
    "div",
    {},
    node("dt", {}, name),
    node("dd", {}, typeof value === "string" ? value : JSON.stringify(value)),
  ));
  return node(
    "li",
    { id: `chunk-${id}`, class: "chunk" },
    node("p", { class: "chunk-head" }, node("span", { class: "chunk-number" }, String(payload.chunk_index + 1)), node("strong", {}, payload.section_title || payload.lesson_title), node("span", { class: "remark" }, facts.join(" · "))),
    node("p", { class: "chunk-text" }, payload.text),
    node("details", {}, node("summary", {}, t("desk.chunks.fields")), node("dl", { class: "stored" }, node("div", {}, node("dt", {}, "id"), node("dd", {}, id)), ...fields)),
  );
}

// @ts-check
// What readers asked a book and how it went, added up over all of them.
import { node } from "../shared/dom.js";
import { read } from "../shared/api.js";
import { t } from "../shared/strings.js";
import { addressOf } from "./address.js";
import { bar, dayChart } from "./charts.js";
import { count, failure, figures, remark, section } from "./parts.js";

const DAYS = [7, 30, 90, 365];

/**
 * @param {import("./address.js").Place} place
 * @param {AbortSignal} signal
 */
export async function showInsights(place, signal) {
  const book = place.book || "";
  const content = node("div", { class: "insights" });
  const days = node("select", {}, ...DAYS.map((number) => node("option", { value: number, selected: number === 30 }, t("desk.insights.last_days", { count: number }))));
  const load = async () => {
    try {
      const insights = await read(`books/${encodeURIComponent(book)}/insights?days=${days.value}`, signal);
      content.replaceChildren(...draw(book, insights));
    } catch (error) {
      if (!signal.aborted) content.replaceChildren(failure(error, "admin"));
    }
  };
  days.addEventListener("change", load);
  await load();
  if (content.querySelector(".forbidden")) return content;
  return node("div", {}, node("form", { class: "fields" }, node("label", { class: "field" }, t("desk.insights.days"), days)), content);
}

/**
 * @param {string} book
 * @param {any} insights
 */
function draw(book, insights) {
  const { thumbs } = insights;
  const totals = figures([
    [t("desk.insights.questions"), insights.turns],
    [t("desk.insights.answered"), insights.answered],
    [t("desk.insights.low"), insights.low],
    [t("desk.insights.refused"), insights.refused],
    [t("desk.insights.up"), thumbs.up],
    [t("desk.insights.down"), thumbs.down],
  ]);
  if (!insights.turns) return [totals, remark(t("desk.insights.none"))];
  return [
    totals,
    insights.more && remark(t("desk.insights.more", { number: count(insights.max_turns) })),
    dayChart(insights.per_day),
    node(
      "div",
      { class: "columns" },
      node("div", {}, groups(book, "refused_questions", insights.refused_questions), groups(book, "low_questions", insights.low_questions), reasons(thumbs)),
      node("div", {}, mostCited(book, insights.most_cited), neverCited(book, insights)),
    ),
  ].filter(Boolean);
}

/**
 * Questions by lesson, the largest group first; a group shows its questions if the operator lets it.
 * @param {string} book
 * @param {string} name
 * @param {{parent_doc_id: string | null, title: string, count: number, questions: string[] | null}[]} rows
 */
function groups(book, name, rows) {
  if (!rows.length) return null;
  const most = Math.max(...rows.map((row) => row.count));
  const items = rows.map((row) => node(
    "li",
    {},
    counted(row.count, most, row.parent_doc_id ? lessonLink(book, row.parent_doc_id, row.title) : t("desk.insights.no_lesson")),
    row.questions && node("ul", { class: "questions" }, ...row.questions.map((question) => node("li", {}, question))),
  ));
  const hidden = rows[0].questions === null && remark(t("desk.insights.hidden"));
  return section(t(`desk.insights.${name}`), remark(t(`desk.insights.${name}_remark`)), node("ol", { class: "counted" }, ...items), hidden);
}

/**
 * @param {{up: number, down: number, reasons: Record<string, number>, comments: string[] | null}} thumbs
 */
function reasons(thumbs) {
  const rows = Object.entries(thumbs.reasons);
  if (!rows.length && !thumbs.comments?.length) return null;
  const most = Math.max(...rows.map(([, number]) => number));
  const items = rows.map(([reason, number]) => node("li", {}, counted(number, most, t(`feedback.reason.${reason}`))));
  const comments = (thumbs.comments || []).map((comment) => node("li", {}, comment));
  return section(t("desk.insights.reasons"), node("ol", { class: "counted" }, ...items), comments.length > 0 && node("ul", { class: "questions" }, ...comments));
}

/**
 * @param {string} book
 * @param {{parent_doc_id: string, section: string, title: string, count: number}[]} rows
 */
function mostCited(book, rows) {
  if (!rows.length) return null;
  const items = rows.map((row) => node("li", {}, counted(row.count, rows[0].count, lessonLink(book, row.parent_doc_id, row.title), row.section)));
  return section(t("desk.insights.most_cited"), node("ol", { class: "counted" }, ...items));
}

/**
 * Sections that no answer cites, under their lessons.
 * @param {string} book
 * @param {any} insights
 */
function neverCited(book, insights) {
  /** @type {Map<string, {title: string, sections: string[]}>} */
  const lessons = new Map();
  for (const row of insights.never_cited) {
    /** @type {{title: string, sections: string[]}} */
    const lesson = lessons.get(row.parent_doc_id) || { title: row.title, sections: [] };
    lesson.sections.push(row.section);
    lessons.set(row.parent_doc_id, lesson);
  }
  const items = [...lessons].map(([id, lesson]) => node("li", {}, lessonLink(book, id, lesson.title), node("p", { class: "remark" }, lesson.sections.join(" · "))));
  const total = t("desk.insights.never_cited_count", { number: count(insights.never_cited_total), sections: count(insights.sections) });
  const list = node("details", { open: items.length <= 12 }, node("summary", {}, total), node("ul", { class: "never" }, ...items));
  return section(t("desk.insights.never_cited"), list);
}

/**
 * A row of a list that is ordered by a number.
 * @param {number} number
 * @param {number} most
 * @param {...(Node | string)} words
 */
function counted(number, most, ...words) {
  const [first, ...rest] = words;
  const text = node("span", { class: "counted-words" }, first, ...rest.map((word) => node("span", { class: "remark" }, word)));
  return node("div", { class: "counted-row" }, node("span", { class: "value" }, count(number)), bar(number / most), text);
}

/**
 * @param {string} book
 * @param {string} lesson
 * @param {string} title
 */
function lessonLink(book, lesson, title) {
  return node("a", { href: addressOf({ book, view: "lessons", lesson }) }, title || lesson);
}

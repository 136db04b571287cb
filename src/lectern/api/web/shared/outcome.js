// @ts-check
// What stands below a reply: how sure it is and why, the filters that applied, what can be done with it; below a refusal
// where to look and what else to ask.
import { send } from "./api.js";
import { copyText, icon, iconButton, node } from "./dom.js";
import { t } from "./strings.js";

const REASONS = ["wrong", "incomplete", "off_topic", "hard_to_read", "other"];

/** @param {import("./turn.js").Turn} turn */
export function colophonOf(turn) {
  const { reply } = turn;
  const filters = turn.hooks.describe(reply.filters);
  const line = node("div", { class: "colophon-line" });
  if (reply.should_answer) line.append(confidenceOf(reply));
  if (filters) line.append(node("p", { class: "applied" }, icon("filter"), filters));
  const copy = iconButton("copy", t("turn.copy"), async () => {
    await copyText(asText(turn));
    copy.replaceChildren(icon("done"));
    copy.setAttribute("aria-label", t("turn.copied"));
    copy.title = t("turn.copied");
  });
  const actions = node(
    "div",
    { class: "actions" },
    copy,
    iconButton("retry", t("turn.ask_again"), () => turn.hooks.ask(turn.question)),
    iconButton("edit", t("turn.edit"), () => turn.hooks.edit(turn.question)),
  );
  const footer = node("footer", { class: "colophon" }, line);
  const feedback = feedbackOf(turn, (form) => footer.append(form));
  actions.append(...feedback);
  line.append(actions);
  return footer;
}

/** @param {any} reply */
function confidenceOf(reply) {
  const verdicts = reply.statements.map((/** @type {any} */ statement) => statement.verdict);
  const count = (/** @type {string} */ verdict) => verdicts.filter((/** @type {string} */ each) => each === verdict).length;
  const reasons = [
    t("confidence.passages", { count: reply.retrieval_count || reply.metrics.num_chunks }),
    verdicts.length && t("confidence.supported", { count: count("supported"), all: verdicts.length }),
    count("doubtful") && t("confidence.doubtful", { count: count("doubtful") }),
    t("confidence.model", { model: reply.model }),
  ];
  const list = node("ul", {}, ...reasons.filter(Boolean).map((reason) => node("li", {}, reason)));
  return node("details", { class: "confidence" }, node("summary", {}, levelOf(reply)), list);
}

/** @param {any} reply */
function levelOf(reply) {
  return reply.lowered && reply.confidence_level === "low" ? t("confidence.low_claims") : t(`confidence.${reply.confidence_level}`);
}

/**
 * What is not there of the answer: it ended early, or something was hidden or removed.
 * @param {any} reply
 */
export function lacksOf(reply) {
  const { hidden, links } = reply.removed || {}; // an old conversation may have none
  const remarks = [
    reply.cut && t("turn.cut"),
    hidden && t("turn.hidden", { count: hidden }),
    reply.should_answer && links && t("turn.links", { count: links }),
  ];
  return remarks.filter(Boolean).map((remark) => node("p", { class: "remark" }, remark));
}

/**
 * The answer with its sources, as it can be pasted elsewhere.
 * @param {import("./turn.js").Turn} turn
 */
function asText({ reply }) {
  const sources = reply.sources.map((/** @type {any} */ source) => `[${source.number}] ${source.breadcrumb} (${source.url})`);
  return [reply.response, sources.join("\n")].filter(Boolean).join("\n\n");
}

/**
 * Where else the answer may be. Where the filters, or the choice of the book, hid it, that says more than what merely
 * comes near.
 * @param {import("./turn.js").Turn} turn
 */
export function refusalOf(turn) {
  const { reply } = turn;
  const box = node("div", { class: "ways-on" });
  if (reply.withdrawn) box.append(node("p", { class: "remark withdrawn" }, t("refusal.withdrawn")));
  if (reply.outside_scope.length) {
    const unfiltered = () => turn.hooks.ask(turn.question, { unfiltered: true });
    box.append(...lessonList(t("refusal.outside"), reply.outside_scope, turn));
    box.append(node("p", {}, node("button", { type: "button", class: "button", onclick: unfiltered }, t("refusal.unfiltered"))));
  } else if (reply.nearest.length) box.append(...lessonList(t("refusal.nearest"), reply.nearest, turn));
  for (const book of reply.other_books) {
    const elsewhere = () => turn.hooks.ask(turn.question, { book });
    box.append(node("p", {}, node("button", { type: "button", class: "text-button", onclick: elsewhere }, t("refusal.other_book", { title: turn.hooks.titleOf(book) }))));
  }
  const suggestions = (reply.suggestions.length ? reply.suggestions : turn.hooks.suggestions()).slice(0, 3);
  if (suggestions.length) box.append(node("h3", {}, t("refusal.suggestions")), suggestionList(suggestions, turn.hooks.ask));
  return box;
}

/**
 * @param {string} title
 * @param {any[]} lessons
 * @param {import("./turn.js").Turn} turn
 */
function lessonList(title, lessons, { book, hooks }) {
  const items = lessons.map((lesson) => node("li", {}, hooks.link({ book, lesson }, {}, lesson.title)));
  return [node("h3", {}, title), node("ul", { class: "lesson-list" }, ...items)];
}

/**
 * Questions that a click asks.
 * @param {string[]} questions
 * @param {(question: string) => void} ask
 */
export function suggestionList(questions, ask) {
  const items = questions.map((question) =>
    node("li", {}, node("button", { type: "button", class: "suggestion", onclick: () => ask(question) }, question)),
  );
  return node("ul", { class: "suggestions" }, ...items);
}

/**
 * Sends a rating; where that fails, the old one stays.
 * @param {string | null | undefined} thread
 * @param {import("./turn.js").Turn} turn
 * @param {object} rating
 */
export async function rate(thread, turn, rating) {
  const before = turn.feedback;
  turn.feedback = { ...rating };
  try {
    await send("POST", `threads/${thread}/feedback`, { turn: turn.number, ...rating });
  } catch (error) {
    turn.feedback = before;
    throw error;
  }
}

/**
 * Thumbs on a reply; a thumb down may say why.
 * @param {import("./turn.js").Turn} turn
 * @param {(form: Element) => void} addForm
 */
function feedbackOf(turn, addForm) {
  /** @type {Element | null} */
  let form = null;
  const up = iconButton("up", t("feedback.up"), () => choose("up"), { "aria-pressed": "false" });
  const down = iconButton("down", t("feedback.down"), () => choose("down"), { "aria-pressed": "false" });

  const show = () => {
    up.setAttribute("aria-pressed", String(turn.feedback?.rating === "up"));
    down.setAttribute("aria-pressed", String(turn.feedback?.rating === "down"));
  };
  const choose = async (/** @type {string} */ rating) => {
    const taken = turn.feedback?.rating === rating ? null : rating;
    form?.remove();
    form = null;
    await turn.hooks.rate(turn, { rating: taken });
    show();
    if (taken !== "down") return;
    const reasons = reasonForm(turn);
    form = reasons;
    addForm(reasons);
    reasons.scrollIntoView({ block: "nearest" });
  };
  show();
  return [up, down];
}

/** @param {import("./turn.js").Turn} turn */
function reasonForm(turn) {
  const name = `reason-${turn.number}`;
  const choices = REASONS.map((reason) =>
    node("label", { class: "choice" }, node("input", { type: "radio", name, value: reason }), t(`feedback.reason.${reason}`)),
  );
  const comment = node("textarea", { rows: 2, maxlength: 500, "aria-label": t("feedback.comment"), placeholder: t("feedback.comment") });
  const form = node(
    "form",
    { class: "reasons" },
    node("fieldset", {}, node("legend", {}, t("feedback.why")), ...choices),
    comment,
    node("button", { type: "submit", class: "button" }, t("feedback.send")),
  );
  form.addEventListener("submit", async (/** @type {SubmitEvent} */ event) => {
    event.preventDefault();
    const reason = new FormData(form).get(name);
    await turn.hooks.rate(turn, { rating: "down", reason, comment: comment.value.trim() });
    form.replaceWith(node("p", { class: "remark", role: "status" }, t("feedback.thanks")));
  });
  return form;
}

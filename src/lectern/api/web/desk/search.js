// @ts-check
// A search as readers' questions make it, with all scores: what a passage's place in the order comes from.
import { node } from "../shared/dom.js";
import { send } from "../shared/api.js";
import { t } from "../shared/strings.js";
import { addressOf } from "./address.js";
import { bar } from "./charts.js";
import { count, failure, remark } from "./parts.js";

const MODES = ["hybrid", "dense", "lexical", "reranked"];
const SCORES = /** @type {const} */ (["score", "similarity", "lexical"]);

/**
 * @param {import("./address.js").Place} place
 * @param {AbortSignal} signal
 */
export async function showSearch(place, signal) {
  const text = node("input", { type: "search", required: true, minlength: 3, maxlength: 1000, autocomplete: "off" });
  const mode = node("select", {}, ...MODES.map((name) => node("option", { value: name }, t(`desk.search.${name}`))));
  const limit = node("select", {}, ...[5, 10, 20].map((number) => node("option", { value: number }, String(number))));
  const results = node("div", { class: "results", "aria-live": "polite" });
  const onsubmit = async (/** @type {Event} */ event) => {
    event.preventDefault();
    const query = { book_id: place.book, text: text.value, mode: mode.value, limit: Number(limit.value) };
    try {
      results.replaceChildren(drawResults(place.book || "", await send("POST", "search", query, signal)));
    } catch (error) {
      if (!signal.aborted) results.replaceChildren(failure(error, "read"));
    }
  };
  const form = node(
    "form",
    { class: "fields", onsubmit, role: "search" },
    node("label", { class: "field wide" }, t("desk.search.text"), text),
    node("label", { class: "field" }, t("desk.search.mode"), mode),
    node("label", { class: "field" }, t("desk.search.limit"), limit),
    node("button", { type: "submit", class: "button" }, t("desk.search.button")),
  );
  for (const choice of [mode, limit]) choice.addEventListener("change", () => text.value && form.requestSubmit());
  return node("div", {}, form, remark(t("desk.search.remark")), results);
}

/**
 * @param {string} book
 * @param {any} response
 */
function drawResults(book, response) {
  if (!response.results.length) return remark(t("desk.search.none"));
  const found = t("desk.search.found", { number: count(response.total_found), time: Math.round(response.query_time_ms) });
  return node("div", {}, remark(found), node("ol", { class: "hits" }, ...response.results.map((/** @type {any} */ hit) => drawHit(book, hit))));
}

/**
 * @param {string} book
 * @param {any} hit
 */
function drawHit(book, hit) {
  const address = addressOf({ book, view: "lessons", lesson: hit.parent_doc_id }, `chunk-${hit.id}`);
  const scores = SCORES.map((name) => node(
    "div",
    { class: name === "score" ? "score fused" : "score" },
    node("dt", {}, t(`desk.search.${name}_score`)),
    node("dd", {}, bar(hit[name]), node("span", { class: "value" }, hit[name].toFixed(3))),
  ));
  return node(
    "li",
    { class: "hit" },
    node("div", { class: "hit-head" }, node("a", { href: address }, hit.breadcrumb), node("span", { class: "remark" }, `${hit.source_file}:${hit.line_start}–${hit.line_end}`)),
    node("dl", { class: "scores" }, ...scores),
    node("p", { class: "chunk-text" }, ...marked(hit.text, hit.marks)),
  );
}

/**
 * A text with its marks, which count characters as the server does: code points, not halves of them.
 * @param {string} text
 * @param {[number, number][]} marks
 */
function marked(text, marks) {
  const characters = Array.from(text);
  const parts = [];
  let at = 0;
  for (const [start, end] of marks) {
    parts.push(characters.slice(at, start).join(""), node("mark", {}, characters.slice(start, end).join("")));
    at = end;
  }
  return [...parts, characters.slice(at).join("")];
}

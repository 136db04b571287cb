// @ts-check
// Parts that several views are made of: tables that become lists on a phone, figures, times, and sentences for what a
// key may not do.
import { node } from "../shared/dom.js";
import { Problem } from "../shared/api.js";
import { problemWords } from "../shared/problems.js";
import { locale, t } from "../shared/strings.js";

export const KEY_NEEDED = "key-needed"; // the event after a request that needs another key

/** @typedef {Node | string | null} Cell */

/**
 * A table. On a narrow screen each row is a block, and each cell says its heading.
 * @param {string[]} headings
 * @param {Cell[][]} rows
 * @param {{numbers?: number[], label?: string}} [options] `numbers` are columns that are set to the right
 */
export function table(headings, rows, { numbers = [], label = "" } = {}) {
  return node("table", { class: "rows", "aria-label": label || null }, head(headings, numbers), body(headings, rows, numbers));
}

/**
 * @param {string[]} headings
 * @param {number[]} numbers
 */
export function head(headings, numbers) {
  const cells = headings.map((heading, column) => node("th", { scope: "col", class: numbers.includes(column) ? "number" : null }, heading));
  return node("thead", {}, node("tr", {}, ...cells));
}

/**
 * @param {string[]} headings
 * @param {Cell[][]} rows
 * @param {number[]} numbers
 */
export function body(headings, rows, numbers) {
  return node("tbody", {}, ...rows.map((cells) => node("tr", {}, ...cells.map((cell, column) => node(
    column ? "td" : "th",
    { scope: column ? null : "row", "data-label": column ? headings[column] : null, class: numbers.includes(column) ? "number" : null },
    cell ?? "",
  )))));
}

/**
 * Figures in a row, each with its name.
 * @param {[string, string | number][]} pairs
 */
export function figures(pairs) {
  const items = pairs.map(([name, value]) => node("div", {}, node("dt", {}, name), node("dd", {}, typeof value === "number" ? count(value) : value)));
  return node("dl", { class: "figures" }, ...items);
}

/** @param {number} value */
export function count(value) {
  return value.toLocaleString(locale());
}

/**
 * A moment as the author writes it.
 * @param {string | null | undefined} timestamp
 */
export function moment(timestamp) {
  if (!timestamp) return t("desk.never");
  const options = /** @type {const} */ ({ dateStyle: "medium", timeStyle: "short" });
  const text = new Date(timestamp).toLocaleString(locale(), options);
  return node("time", { datetime: timestamp }, text);
}

/**
 * @param {string} title
 * @param {...(Node | string | null | undefined | false)} children
 */
export function section(title, ...children) {
  return node("section", { class: "part" }, node("h2", {}, title), ...children);
}

/** @param {string} text */
export function remark(text) {
  return node("p", { class: "remark" }, text);
}

/**
 * What to show instead of something that failed; a key that lacks a right gets a plain sentence.
 * @param {unknown} error
 * @param {string} right what the request needs
 */
export function failure(error, right) {
  const status = error instanceof Problem ? error.status : 0;
  if (status === 403) return forbidden(right);
  if (status === 401) {
    dispatchEvent(new CustomEvent(KEY_NEEDED, { detail: error })); // whose form says it
    return node("div");
  }
  return node("p", { class: "failure", role: "alert" }, problemWords(error));
}

/** @param {string} right that the key lacks */
export function forbidden(right) {
  return node("p", { class: "remark forbidden" }, t(`desk.forbidden.${right}`));
}

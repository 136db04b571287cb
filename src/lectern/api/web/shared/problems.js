// @ts-check
// What went wrong, in the reader's language.
import { Problem, Unreachable } from "./api.js";
import { node } from "./dom.js";
import { t } from "./strings.js";

/**
 * The server's own words are English; they are shown where its code of the problem has no sentence.
 * @param {unknown} error
 */
export function problemWords(error) {
  if (!(error instanceof Problem || error instanceof Unreachable)) console.error(error); // a mistake of ours
  if (!(error instanceof Problem)) return t("problem.unreachable");
  const key = `problem.${error.code}`;
  const words = t(key);
  return words === key ? t("problem.other", { detail: error.message || String(error.status) }) : words;
}

/**
 * @param {unknown} error
 */
export function problemRemark(error) {
  return node("p", { class: "remark problem", role: "alert" }, problemWords(error));
}

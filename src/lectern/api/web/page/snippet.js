// @ts-check
// The part of a passage that a search found, in one paragraph. A passage is Markdown, whose signs only disturb here, and
// marks count its characters (not the halves of JavaScript's strings). So each sign is replaced by as many others.
import { node } from "../shared/dom.js";

const BEFORE = 80; // characters at most before the first word found
const SHOWN = 230; // characters at most
const LEAST = 120; // from here on the end of a sentence is the end
const SENTENCE_END = /[.!?:]["”’)]*$/;

/** @typedef {[number, number]} Span */

/**
 * @param {string} markdown
 * @param {Span[]} marks
 */
export function snippetOf(markdown, marks) {
  const text = plainText(markdown, marks);
  const first = marks[0]?.[0] ?? 0;
  const start = startBefore(text, first);
  const end = endAfter(text, start);
  const inside = marks.filter(([from, to]) => from >= start && to <= end);
  return { quote: Array.from(markdown).slice(start, end).join(""), parts: partsOf(text, start, end, inside) };
}

/**
 * The characters of a passage without Markdown's signs: a dot stands between cells and before items, a semicolon after a row, and headings are
 * left out unless words were found in them.
 * @param {string} markdown
 * @param {Span[]} marks
 */
function plainText(markdown, marks) {
  const blank = (/** @type {string} */ part) => " ".repeat(Array.from(part).length);
  const dotted = (/** @type {string} */ part) => (part.length > 1 ? `${blank(part.slice(2))}· ` : "·");
  let place = 0;
  const lines = markdown.split("\n").map((line) => {
    const length = Array.from(line).length;
    const found = marks.some(([from, to]) => from < place + length && to > place);
    place += length + 1;
    if (/^\s*(\|?[\s:|-]*-{3,}[\s:|-]*|:::.*|`{3,}.*)$/.test(line) || (/^#+ /.test(line) && !found)) return blank(line);
    return line
      .replace(/^\s*(?:#+|>+)\s/, blank)
      .replace(/^\s*(?:[-*+]|\d+[.)])\s/, dotted)
      .replace(/^\s*\|/, blank)
      .replace(/\|\s*$/, (part) => `;${blank(part.slice(1))}`)
      .replace(/[|]/g, "·")
      .replace(/\]\([^)\s]*\)/g, blank)
      .replace(/[*`[\]]/g, " ");
  });
  return Array.from(lines.join("\n"));
}

/**
 * Where the snippet begins: with a sentence, a cell or an item if one begins near, else with a word.
 * @param {string[]} text
 * @param {number} first
 */
function startBefore(text, first) {
  const least = Math.max(0, first - BEFORE);
  const before = text.slice(least, first).join("");
  const begin = before.search(/(?<=[.!?]\s+)(?=\p{Lu}[^.!?]*$)|(?<=[·;\n]\s*)(?=[^·;\s][^·;\n]*$)/u);
  if (begin >= 0) return least + Array.from(before.slice(0, begin)).length;
  if (!least) return 0;
  const space = text.indexOf(" ", least);
  return space >= 0 && space < first ? space + 1 : first;
}

/**
 * @param {string[]} text
 * @param {number} start
 */
function endAfter(text, start) {
  if (text.length <= start + SHOWN) return text.length;
  for (let end = start + SHOWN; end > start + LEAST; end -= 1) {
    if (/\s/.test(text[end]) && SENTENCE_END.test(text.slice(end - 4, end).join(""))) return end;
  }
  const space = text.lastIndexOf(" ", start + SHOWN);
  return space > start ? space : start + SHOWN;
}

/**
 * @param {string[]} text
 * @param {number} start
 * @param {number} end
 * @param {Span[]} marks
 */
function partsOf(text, start, end, marks) {
  const words = (/** @type {number} */ from, /** @type {number} */ to) =>
    text.slice(from, to).join("").replace(/\s+/g, " ").replace(/(?:· ?)+· /g, "· ").replace(/ ([.,;:!?])/g, "$1");
  const parts = [];
  let place = start;
  for (const [from, to] of marks) {
    parts.push(words(place, from), node("mark", {}, words(from, to)));
    place = to;
  }
  parts.push(words(place, end).replace(/[\s·;]+$/, ""));
  const [opening, ...rest] = parts;
  const cut = start > 0 && !/[.!?·;\n]\s*$/.test(text.slice(Math.max(0, start - 8), start).join(""));
  const closing = end < text.length && !SENTENCE_END.test(text.slice(0, end).join("").trimEnd()) ? " …" : "";
  return [cut ? "… " : "", typeof opening === "string" ? opening.replace(/^[\s·;]+/, "") : opening, ...rest, closing];
}

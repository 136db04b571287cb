// @ts-check
// The part of a passage that a search found, in one paragraph. A passage is Markdown, whose signs only disturb here, and
// marks count its characters (not the halves of JavaScript's strings). So each sign is replaced by as many others.
import { node } from "../shared/dom.js";

const BEFORE = 80; // characters at most before the first word found
const SHOWN = 230; // characters at most
const LEAST = 120; // from here on the end of a sentence is the end
const SENTENCE_END = /[.!?]["”’)]*$/;
const [OPEN, CLOSED] = ["\ue000", "\ue001"]; // around words found; private characters

/** @typedef {[number, number]} Span */

/**
 * @param {string} markdown
 * @param {Span[]} marks
 * @param {string[]} [titles] headings that stand above the snippet already
 */
export function snippetOf(markdown, marks, titles = []) {
  const text = plainText(markdown, marks, titles);
  const first = marks[0]?.[0] ?? 0;
  const start = startBefore(text, first);
  const end = endAfter(text, start);
  const inside = marks.filter(([from, to]) => from >= start && to <= end && text.slice(from, to).join("").trim());
  return { quote: Array.from(markdown).slice(start, end).join(""), parts: partsOf(text, start, end, inside) };
}

/**
 * The characters of a passage without Markdown's signs: a dot stands between cells and before items, a semicolon after a row, and headings are
 * left out unless words were found in them that are not shown already.
 * @param {string} markdown
 * @param {Span[]} marks
 * @param {string[]} titles
 */
function plainText(markdown, marks, titles) {
  const blank = (/** @type {string} */ part) => " ".repeat(Array.from(part).length);
  const dotted = (/** @type {string} */ part) => (part.length > 1 ? `${blank(part.slice(2))}· ` : "·");
  const headings = new Set(); // where their lines end
  let place = 0;
  const lines = markdown.split("\n").map((line) => {
    const length = Array.from(line).length;
    const found = marks.some(([from, to]) => from < place + length && to > place);
    place += length + 1;
    const heading = /^#+ +(.*)/.exec(line)?.[1].trimEnd();
    const isShown = heading === undefined || (found && !titles.includes(heading));
    if (!isShown || /^\s*(\|?[\s:|-]*-{3,}[\s:|-]*|:::.*|`{3,}.*)$/.test(line)) return blank(line);
    if (heading !== undefined) headings.add(place - 1);
    return line
      .replace(/^\s*(?:#+|>+)\s/, blank)
      .replace(/^\s*(?:[-*+]|\d+[.)])\s/, dotted)
      .replace(/^\s*\|/, blank)
      .replace(/\|\s*$/, (part) => `;${blank(part.slice(1))}`)
      .replace(/[|]/g, "·")
      .replace(/\]\([^)\s]*\)/g, blank)
      .replace(/[*`[\]]/g, " ");
  });
  return Array.from(lines.join("\n"), (sign, at) => (headings.has(at) ? "·" : sign));
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
  const signs = text.slice(start, end);
  for (const [from, to] of marks) {
    signs[from - start] = OPEN + signs[from - start];
    signs[to - start - 1] += CLOSED;
  }
  const words = signs
    .join("")
    .replace(/\s+/g, " ")
    .replace(/ ?(?:· ?)+/g, " · ")
    .replace(/ (?=[.,;:!?](?: |$))/g, "")
    .replace(/^[\s·;:.,]+|[\s·;]+$/g, "");
  const parts = words.split(CLOSED).flatMap((part) => {
    const [before, found] = part.split(OPEN);
    return found === undefined ? [before] : [before, node("mark", {}, found)];
  });
  const cut = start > 0 && !/[.!?·;\n]\s*$/.test(text.slice(Math.max(0, start - 8), start).join(""));
  const closing = end < text.length && !SENTENCE_END.test(words.replaceAll(CLOSED, "")) ? " …" : "";
  return [cut ? "… " : "", ...parts, closing];
}

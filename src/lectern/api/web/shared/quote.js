// @ts-check
// Quoted words: how they are shown, and where they are in a lesson, to be marked there. The quote is Markdown and the
// lesson is HTML, so words are compared, without signs; the lines of the passage say where to look first.

const WORD = /[\p{L}\p{N}]+/gu;
const NAME = "quote";
const ENOUGH = 0.5; // share of the quote's words that must match in a row before all of its words are marked
const LEAST_RUN = 4; // words in a row that are no coincidence

/**
 * A quote without Markdown's signs, where dots divide the cells of a table; a long one ends at a word.
 * @param {string} quote
 * @param {number} most characters
 */
export function wordsOf(quote, most) {
  const cells = quote.replace(/\s*\|\s*/g, " · ").replace(/^ · | · $/g, "");
  const text = cells.replace(/[`*]|\]\([^)]*\)|!?\[(?=[^\]]*\]\()/g, "");
  return text.length > most ? `${text.slice(0, text.lastIndexOf(" ", most)).replace(/[\s,;:·]+$/, "")} …` : text;
}

/** @typedef {{word: string, text: Text, start: number, end: number}} Token */

/**
 * The innermost blocks that were made of these lines.
 * @param {any} root
 * @param {string | undefined} lines such as `12-15`
 * @returns {any[]}
 */
export function blocksOf(root, lines) {
  const [first, last] = (lines || "").split("-").map(Number);
  if (!first || !last) return [];
  const blocks = [...root.querySelectorAll("[data-lines]")].filter((block) => {
    const [start, end] = block.dataset.lines.split("-").map(Number);
    return start <= last && end >= first;
  });
  return blocks.filter((block) => !blocks.some((other) => other !== block && block.contains(other)));
}

/**
 * The range of the quoted words in an element; null if they are not there.
 * @param {any[]} elements
 * @param {string} quote
 */
export function findQuote(elements, quote) {
  const tokens = elements.flatMap(tokensOf);
  const wanted = (quote.toLowerCase().match(WORD) || []).slice(0, 400);
  const { length, at, from } = longestRun(tokens.map(({ word }) => word), wanted);
  if (!length || length < Math.min(LEAST_RUN, wanted.length)) return null;
  const whole = length >= wanted.length * ENOUGH;
  const first = whole ? Math.max(0, at - from) : at;
  const last = whole ? Math.min(tokens.length, at - from + wanted.length) : at + length;
  const range = document.createRange();
  range.setStart(tokens[first].text, tokens[first].start);
  range.setEnd(tokens[last - 1].text, tokens[last - 1].end);
  return range;
}

/**
 * @param {Node} element
 * @returns {Token[]}
 */
function tokensOf(element) {
  const walker = document.createTreeWalker(element, NodeFilter.SHOW_TEXT);
  const tokens = [];
  for (let text = walker.nextNode(); text; text = walker.nextNode()) {
    if (text.parentElement?.closest("button")) continue;
    for (const match of (text.nodeValue || "").matchAll(WORD)) {
      tokens.push({ word: match[0].toLowerCase(), text: /** @type {Text} */ (text), start: match.index, end: match.index + match[0].length });
    }
  }
  return tokens;
}

/**
 * The longest run of words that both have: `length` words, from `at` in the text and from `from` in the quote.
 * @param {string[]} text
 * @param {string[]} quote
 */
function longestRun(text, quote) {
  let best = { length: 0, at: 0, from: 0 };
  let before = new Uint16Array(quote.length + 1);
  for (let at = 0; at < text.length; at += 1) {
    const now = new Uint16Array(quote.length + 1);
    for (let from = 0; from < quote.length; from += 1) {
      if (text[at] !== quote[from]) continue;
      now[from + 1] = before[from] + 1;
      if (now[from + 1] > best.length) best = { length: now[from + 1], at: at - now[from + 1] + 1, from: from - now[from + 1] + 1 };
    }
    before = now;
  }
  return best;
}

/**
 * Marks the quoted words and returns the element to scroll to; null if nothing is to be marked.
 * @param {any} root
 * @param {string | undefined} lines
 * @param {string | undefined} quote
 * @returns {any}
 */
export function markQuote(root, lines, quote) {
  clearMarks(root);
  const blocks = blocksOf(root, lines);
  const range = quote ? (blocks.length && findQuote(blocks, quote)) || findQuote([root], quote) : null;
  if (range && "highlights" in CSS) CSS.highlights.set(NAME, new Highlight(range));
  const inRange = range && range.startContainer.parentElement?.closest("[data-lines]");
  const marked = inRange && root.contains(inRange) ? [inRange] : blocks;
  for (const block of marked) block.classList.add("quoted");
  for (const block of marked) block.closest("details")?.setAttribute("open", "");
  return marked[0] || null;
}

/** @param {any} root */
export function clearMarks(root) {
  if ("highlights" in CSS) CSS.highlights.delete(NAME);
  for (const block of root.querySelectorAll(".quoted")) block.classList.remove("quoted");
}

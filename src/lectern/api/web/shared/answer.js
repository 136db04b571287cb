// @ts-check
// Draws an answer: its blocks as they come, and the verdict behind each claim.
import { icon, node, setSanitised } from "./dom.js";
import { enhance } from "./enhance.js";
import { wordsOf } from "./quote.js";
import { t } from "./strings.js";

const QUOTED = 400; // characters of the book's words behind a mark
const PIECE = 8; // milliseconds of drawing, after which the browser may do something else

/** @typedef {{claim: number, verdict: string, evidence: string, reason: string, chunk_id: string | null, citations: number[]}} Verdict */

/** The text of one answer. */
export class AnswerText {
  /**
   * @param {{book: () => string, onEvidence?: (verdict: Verdict) => void}} options
   */
  constructor({ book, onEvidence }) {
    this.element = node("div", { class: "prose answer-text" });
    this.book = book;
    this.onEvidence = onEvidence;
    /** @type {Element[][]} the elements of each block */
    this.blocks = [];
    /** @type {WeakMap<Element, Node>} each element as it came, before it was prepared */
    this.sources = new WeakMap();
    /** @type {Map<number, Verdict>} */
    this.verdicts = new Map();
  }

  /**
   * A block as it is now. The answer has `count` blocks: those that were there after them are no more.
   * @param {{index: number, html: string, count?: number}} block
   */
  block({ index, html, count = index + 1 }) {
    const elements = elementsOf(html);
    for (const element of elements) this.sources.set(element, element.cloneNode(true));
    for (const old of this.blocks.splice(count).flat()) old.remove();
    const following = this.blocks.slice(index + 1).flat()[0] || null;
    for (const old of this.blocks[index] || []) old.remove();
    this.blocks[index] = elements;
    for (const element of elements) {
      this.element.insertBefore(element, following);
      this.#prepare(element);
    }
  }

  /**
   * A later verdict on the same claim replaces the earlier one.
   * @param {Verdict} verdict
   */
  verdict(verdict) {
    const known = this.verdicts.get(verdict.claim);
    this.verdicts.set(verdict.claim, verdict);
    if (known && known.verdict === verdict.verdict && known.evidence === verdict.evidence && known.reason === verdict.reason) return;
    for (const place of this.element.querySelectorAll(`[data-claim="${verdict.claim}"]`)) this.#mark(place);
  }

  /**
   * Draws the blocks that the reply changes, a few at a time: a long answer holds up nothing.
   * @param {string} html of the reply
   */
  async correct(html) {
    const final = elementsOf(html);
    let end = performance.now() + PIECE;
    for (const block of this.blocks) {
      for (const [place, old] of block.entries()) {
        const element = final.shift();
        if (!element || this.sources.get(old)?.isEqualNode(element)) continue;
        this.sources.set(element, element.cloneNode(true));
        block[place] = element;
        old.replaceWith(element);
        this.#prepare(element);
        element.getBoundingClientRect(); // its layout is a part of the work
        if (performance.now() < end) continue;
        await new Promise((done) => setTimeout(done));
        end = performance.now() + PIECE;
      }
    }
  }

  /**
   * The reply replaces what was there. What it leaves as it was is not drawn again.
   * @param {{html: string, statements: Verdict[], should_answer: boolean, confidence_level: string}} reply
   */
  finish(reply) {
    reply.statements.forEach((statement, claim) => this.verdict({ ...statement, claim }));
    const drawn = this.blocks.flat();
    const final = elementsOf(reply.html);
    final.forEach((element, place) => {
      const old = drawn[place];
      if (old && this.sources.get(old)?.isEqualNode(element)) return;
      if (old) old.replaceWith(element);
      else this.element.append(element);
      this.#prepare(element);
    });
    for (const old of drawn.slice(final.length)) old.remove();
    this.blocks = [];
    const first = this.element.querySelector(":scope > p:first-child");
    const states = first?.querySelector("a.cite, .claim") || !reply.should_answer;
    if (reply.confidence_level === "low" && !states) first?.classList.add("disclaimer");
  }

  /** @param {Element} root */
  #prepare(root) {
    enhance(root, this.book());
    for (const marker of root.querySelectorAll("a.cite")) keepWithWord(marker);
    if (root.matches("p") && [...root.childNodes].every(isMarker)) root.classList.add("only-markers");
    const places = root.matches("[data-claim]") ? [root] : [];
    for (const place of [...places, ...root.querySelectorAll("[data-claim]")]) this.#mark(place);
  }

  /**
   * A quiet tick behind what the book says; behind what it contradicts a flag, which says why.
   * @param {Element} place
   */
  #mark(place) {
    const verdict = this.verdicts.get(Number(place.getAttribute("data-claim")));
    if (!verdict) return;
    const mark = place.matches("figure") ? markOfListing(place) : place;
    mark.replaceChildren();
    if (verdict.verdict === "supported") mark.append(this.#tick(verdict));
    if (verdict.verdict === "doubtful") mark.append(flag(verdict, place));
  }

  /** @param {Verdict} verdict */
  #tick(verdict) {
    const label = verdict.evidence ? t("claim.supported_by", { evidence: wordsOf(verdict.evidence, QUOTED) }) : t("claim.supported");
    const onclick = () => this.onEvidence?.(verdict);
    return node("span", { class: "tick", role: "img", "aria-label": label, title: label, onclick }, icon("done"));
  }
}

/** @param {string} html */
function elementsOf(html) {
  const template = document.createElement("template");
  setSanitised(template, html);
  return [...template.content.children];
}

/**
 * A marker stays on the line of the word before it; the last of several has the punctuation before them, as in print.
 * @param {Element} marker
 */
function keepWithWord(marker) {
  const before = marker.previousSibling;
  if (before instanceof Text) before.data = before.data.replace(/\s+$/, "\u202f");
  const after = marker.nextSibling;
  const [signs] = (after instanceof Text && /^[.,;:!?]+(?=\s|$)/.exec(after.data)) || [];
  const word = wordBefore(marker);
  if (!signs || !word || !(after instanceof Text)) return;
  after.data = after.data.slice(signs.length);
  word.data = word.data.replace(/(?=\s*$)/, signs);
}

/**
 * The text before a marker, and before the markers that it follows.
 * @param {Element} marker
 * @returns {Text | null}
 */
function wordBefore(marker) {
  for (let place = marker.previousSibling; place; place = place.previousSibling) {
    if (place instanceof Text && place.data.trim()) return place;
    if (!(place instanceof Text) && !(place instanceof Element && place.matches("a.cite"))) return null;
  }
  return null;
}

/** @param {Node} part */
function isMarker(part) {
  return part instanceof Element ? part.matches("a.cite, .claim") : !part.textContent?.trim();
}

/** @param {Element} figure */
function markOfListing(figure) {
  const caption = figure.querySelector(":scope > figcaption") || figure;
  const mark = caption.querySelector(".claim") || node("span", { class: "claim" });
  caption.querySelector(".copy")?.before(mark);
  return mark;
}

/**
 * @param {Verdict} verdict
 * @param {Element} place
 */
function flag(verdict, place) {
  const button = node("button", { type: "button", class: "flag", "aria-expanded": "false", title: verdict.reason }, icon("flag"));
  button.setAttribute("aria-label", t("claim.doubtful"));
  const words = verdict.evidence && t("claim.supported_by", { evidence: wordsOf(verdict.evidence, QUOTED) });
  const reason = node("span", { class: "doubt", role: "note" }, node("strong", {}, t("claim.doubtful_title")), " ", verdict.reason, " ", words);
  button.addEventListener("click", () => {
    const open = button.getAttribute("aria-expanded") !== "true";
    button.setAttribute("aria-expanded", String(open));
    if (open) (place.closest("p, li, td, th, dd, figure, blockquote") || place).append(reason);
    else reason.remove();
  });
  return button;
}

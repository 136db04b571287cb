// @ts-check
// The box for questions: several lines, the passage that a question is about, and a button that sends or stops. And
// "ask about this": a button beside words that the reader selected in a text.
import { icon, node } from "./dom.js";
import { wordsOf } from "./quote.js";
import { t } from "./strings.js";

const LIMIT = 1000; // characters of a question
const WARNING = 100; // characters left from which on the count is shown
const PASSAGE_LIMIT = 600;
const PASSAGE_SHOWN = 150; // characters, about three lines on a phone
const SHORTEST = 3; // characters that are worth a question

export class Composer {
  /**
   * @param {{form: any, box: any, button: any, count: any, passage: any, words: any, drop: any}} parts its elements
   * @param {{ask: (question: string) => boolean, stop: () => void}} owner
   */
  constructor(parts, owner) {
    this.parts = parts;
    this.owner = owner;
    this.passage = "";
    this.busy = false;
    parts.form.addEventListener("submit", (/** @type {Event} */ event) => {
      event.preventDefault();
      if (this.busy) owner.stop();
      else this.#send();
    });
    parts.box.addEventListener("keydown", (/** @type {KeyboardEvent} */ event) => {
      if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
      event.preventDefault();
      if (!this.busy) this.#send();
    });
    parts.box.addEventListener("input", () => this.#fit());
    parts.drop.addEventListener("click", () => this.about(""));
  }

  /** The text to be sent: with the passage that it is about. */
  get text() {
    const words = this.parts.box.value.trim();
    if (!this.passage) return words;
    return t("ask.about", { passage: this.passage, question: words || t("ask.explain") });
  }

  #send() {
    const { text } = this;
    if (!text || text.length > LIMIT || !this.owner.ask(text)) return;
    this.parts.box.value = "";
    this.about("");
    this.#fit();
  }

  /** Grows with its text, where the browser does not do it by itself, and shows how much room is left. */
  #fit() {
    if (!CSS.supports("field-sizing", "content")) {
      this.parts.box.style.setProperty("height", "auto");
      this.parts.box.style.setProperty("height", `${this.parts.box.scrollHeight}px`);
    }
    const left = LIMIT - this.text.length;
    this.parts.count.hidden = left > WARNING;
    this.parts.count.textContent = left >= 0 ? t("ask.left", { count: left }) : t("ask.too_long", { count: -left });
    this.parts.form.classList.toggle("too-long", left < 0);
  }

  /**
   * Puts a question into the box, to be changed and sent.
   * @param {string} question
   */
  edit(question) {
    this.parts.box.value = question;
    this.#fit();
    this.focus();
  }

  /** @param {string} passage words that the next question is about */
  about(passage) {
    const words = passage.replace(/\s+/g, " ").trim();
    this.passage = words.length > PASSAGE_LIMIT ? `${words.slice(0, PASSAGE_LIMIT)}…` : words;
    this.parts.passage.hidden = !this.passage;
    this.parts.words.textContent = wordsOf(this.passage, PASSAGE_SHOWN);
    this.#fit();
    if (this.passage) this.focus();
  }

  focus() {
    this.parts.box.focus({ preventScroll: true });
    this.parts.box.setSelectionRange(this.parts.box.value.length, this.parts.box.value.length);
  }

  /** @param {boolean} busy a question is on its way */
  showBusy(busy) {
    this.busy = busy;
    const { button } = this.parts;
    const label = t(busy ? "ask.stop" : "ask.send");
    button.setAttribute("aria-label", label);
    button.title = label;
    button.replaceChildren(icon(busy ? "stop" : "send"));
    button.classList.toggle("stopping", busy);
  }
}

/**
 * @param {(words: string) => void} onAsk
 * @param {string} [askable] selector of texts that questions may be about
 * @param {Element} [parent] of the button
 */
export function offerQuestions(onAsk, askable = "[data-askable], .answer-text", parent = document.body) {
  const button = node("button", { type: "button", class: "ask-selection", hidden: true });
  parent.append(button);
  // the click must not take the selection away before it is read
  button.addEventListener("pointerdown", (/** @type {Event} */ event) => event.preventDefault());
  button.addEventListener("click", () => {
    const words = selectedWords(askable);
    button.hidden = true;
    document.getSelection()?.removeAllRanges();
    if (words) onAsk(words);
  });
  let frame = 0;
  document.addEventListener("selectionchange", () => {
    cancelAnimationFrame(frame);
    frame = requestAnimationFrame(() => place(button, askable));
  });
  document.addEventListener("scroll", () => place(button, askable), { capture: true, passive: true });
  window.addEventListener("resize", () => place(button, askable));
}

/** @param {string} askable */
function selectedWords(askable) {
  const selection = document.getSelection();
  if (!selection || selection.isCollapsed || !selection.rangeCount) return "";
  const { commonAncestorContainer: inside } = selection.getRangeAt(0);
  const element = inside instanceof Element ? inside : inside.parentElement;
  const words = selection.toString().trim();
  return element?.closest(askable) && words.length >= SHORTEST ? words : "";
}

/**
 * @param {any} button
 * @param {string} askable
 */
function place(button, askable) {
  button.hidden = true;
  if (!selectedWords(askable)) return;
  const box = /** @type {Selection} */ (document.getSelection()).getRangeAt(0).getBoundingClientRect();
  if (box.bottom < 0 || box.top > window.innerHeight) return; // scrolled away
  button.hidden = false;
  button.replaceChildren(icon("quote"), t("ask.selection"));
  const { offsetWidth: width, offsetHeight: height } = button;
  const left = Math.min(Math.max(8, box.left + box.width / 2 - width / 2), window.innerWidth - width - 8);
  const above = box.top - height - 8;
  button.style.setProperty("left", `${left}px`);
  button.style.setProperty("top", `${above > 8 ? above : Math.min(box.bottom + 8, window.innerHeight - height - 8)}px`);
}

// @ts-check
// One turn, on the page and in the widget: the question as a heading, the answer as it grows, its notes, and what can be done with it.
import { node } from "./dom.js";
import { AnswerText } from "./answer.js";
import { t } from "./strings.js";
import { Problem } from "./api.js";
import { connectMarkers, notesOf, placeNotes } from "./notes.js";
import { colophonOf, lacksOf, refusalOf } from "./outcome.js";

/**
 * What a link leads to: the words of a source, or a lesson.
 * @typedef {{book: string, source?: any, words?: string, lesson?: any}} Target
 */

/**
 * What a turn can ask of the conversation.
 * @typedef {{
 *   ask: (question: string, options?: {book?: string, unfiltered?: boolean}) => void,
 *   edit: (question: string) => void,
 *   rate: (turn: Turn, rating: object) => Promise<void>,
 *   language: () => string,
 *   link: (target: Target, attributes: Record<string, any>, ...children: any[]) => any,
 *   describe: (filters: Record<string, any>) => string,
 *   explain: (error: unknown) => string,
 *   titleOf: (book: string) => string,
 *   suggestions: () => string[],
 * }} Hooks
 */

/**
 * A question, with the passage that it is about above it. The dash between them is for those who cannot see that.
 * @param {string} question
 */
function partsOf(question) {
  const [before, after] = t("ask.about", { question: "" }).split("{passage}");
  const end = question.startsWith(before) ? question.lastIndexOf(after) : -1;
  if (end < 0) return [question];
  const [quoted, asked] = [end + after.trimEnd().indexOf(" "), end + after.length];
  const dash = node("span", { class: "visually-hidden" }, question.slice(quoted, asked));
  return [node("span", { class: "question-passage" }, question.slice(0, quoted), dash), question.slice(asked)];
}

export class Turn {
  /**
   * @param {string} question
   * @param {string} book
   * @param {Hooks} hooks
   */
  constructor(question, book, hooks) {
    this.question = question;
    this.book = book;
    this.hooks = hooks;
    /** @type {number | null} its number in the conversation, once it has a reply */
    this.number = null;
    /** @type {any} */
    this.reply = null;
    /** @type {any} */
    this.feedback = null;
    this.text = new AnswerText({ book: () => this.book, onEvidence: (verdict) => this.#openEvidence(verdict) });
    this.text.element.lang = hooks.language();
    this.spread = node("div", { class: "spread" }, this.text.element);
    this.status = node("p", { class: "turn-status", role: "status" }, t("turn.looking"));
    this.element = node(
      "article",
      { class: "turn pending", "aria-busy": "true" },
      node("h2", { class: "question" }, ...partsOf(question)),
      this.spread,
      this.status,
    );
    connectMarkers(this.spread);
  }

  /**
   * @param {string} name
   * @param {any} data
   */
  show(name, data) {
    if (name === "block") {
      this.text.block(data);
      this.#say(t("turn.writing"));
    }
    if (name === "verdict") {
      this.text.verdict(data);
      this.#say(t("turn.checking"));
    }
  }

  /** @param {boolean} reachable whether the server is there */
  wait(reachable) {
    this.#say(t(reachable ? "turn.looking" : "turn.waiting"));
  }

  /** @param {string} words */
  #say(words) {
    if (this.status.textContent !== words) this.status.textContent = words;
  }

  /**
   * The reply to a question that was followed.
   * @param {any} reply
   * @param {AbortSignal} signal
   */
  async conclude(reply, signal) {
    await this.text.correct(reply.html);
    signal.throwIfAborted();
    this.finish(reply);
  }

  /** @param {any} reply */
  finish(reply) {
    this.reply = reply;
    this.book = reply.book_id;
    const answered = reply.should_answer;
    this.#settle(answered ? "answer" : "refusal");
    this.text.finish(reply);
    if (answered && reply.sources.length) this.spread.append(notesOf(reply, this.hooks));
    this.spread.append(...lacksOf(reply));
    if (!answered) this.element.append(refusalOf(this));
    this.element.append(colophonOf(this));
    this.arrange();
  }

  /** The notes' places depend on the width. */
  arrange() {
    placeNotes(this.spread);
  }

  /** The reader stopped it: what was written stays. */
  stop() {
    this.#end("stopped", t("turn.stopped"));
  }

  /** @param {unknown} error */
  fail(error) {
    if (error instanceof Problem && error.status === 429) this.#wait(error.retryAfter || 1);
    else this.#end("failed", this.hooks.explain(error));
  }

  /**
   * @param {string} outcome
   * @param {string} words
   */
  #end(outcome, words) {
    this.#settle(outcome);
    const message = node("p", { class: "remark", role: "alert" }, words);
    const retry = node("button", { type: "button", class: "button", onclick: () => this.#again() }, t("turn.retry"));
    const edit = node("button", { type: "button", class: "text-button", onclick: () => this.hooks.edit(this.question) }, t("turn.edit"));
    const choices = node("p", { class: "choices" }, retry, edit);
    this.element.append(message, choices);
    choices.scrollIntoView({ block: "nearest" }); // a long answer may end far below
    return { message, retry };
  }

  /**
   * Too many requests: says when the next attempt makes sense.
   * @param {number} seconds
   */
  #wait(seconds) {
    const { message, retry } = this.#end("failed", t("turn.limited", { count: seconds }));
    retry.disabled = true;
    const until = Date.now() + seconds * 1000;
    const timer = setInterval(() => {
      const left = Math.ceil((until - Date.now()) / 1000);
      message.setAttribute("aria-live", left > 0 ? "off" : "assertive"); // not every second is read out
      message.textContent = left > 0 ? t("turn.limited", { count: left }) : t("turn.limit_over");
      retry.disabled = left > 0;
      if (left <= 0 || !message.isConnected) clearInterval(timer);
    }, 500);
  }

  #again() {
    this.element.remove();
    this.hooks.ask(this.question);
  }

  /** @param {string} outcome */
  #settle(outcome) {
    this.element.className = `turn ${outcome}`;
    this.element.removeAttribute("aria-busy");
    this.status.remove();
  }

  /** @param {import("./answer.js").Verdict} verdict */
  #openEvidence(verdict) {
    const source = this.reply?.sources.find((/** @type {any} */ each) => each.chunk_id === verdict.chunk_id);
    if (source) this.hooks.link({ book: this.book, source, words: verdict.evidence }, {}).click();
  }
}

// @ts-check
// A conversation: its turns, the question that is on its way, and what is needed to take it up again after a reload.
import { node } from "../shared/dom.js";
import { Problem, follow, pendingQuestion, read, send, watchConnection } from "../shared/api.js";
import { rate } from "../shared/outcome.js";
import { problemWords } from "../shared/problems.js";
import { t } from "../shared/strings.js";
import { Turn } from "../shared/turn.js";
import { bookId, currentBook, titleOf } from "./library.js";
import { describeFilters, requestFields } from "./filters.js";
import { go, here, lessonLink } from "./address.js";

/** @typedef {import("../shared/api.js").Pending & {question: string, book: string, failed?: boolean}} PendingTurn */

const STORED = "pending";

/** Questions of this tab whose replies have not come yet, and those that failed and were not asked again. */
const waiting = {
  /** @returns {PendingTurn[]} */
  all() {
    return JSON.parse(sessionStorage.getItem(STORED) || "[]");
  },
  /** @param {PendingTurn} pending */
  keep(pending) {
    sessionStorage.setItem(STORED, JSON.stringify([...this.all().filter(({ key }) => key !== pending.key), pending]));
  },
  /** @param {PendingTurn} pending */
  drop(pending) {
    sessionStorage.setItem(STORED, JSON.stringify(this.all().filter(({ key }) => key !== pending.key)));
  },
  /** @param {string | undefined} thread */
  of(thread) {
    return this.all().find((pending) => (thread ? pending.thread === thread || pending.body.session_id === thread : !pending.thread && !pending.body.session_id));
  },
};

export class Conversation {
  /**
   * @param {any} element
   * @param {{edit: (question: string) => void, changed: () => void, failed: (error: unknown) => void}} page
   */
  constructor(element, page) {
    this.element = element;
    this.page = page;
    /** @type {string | undefined} */
    this.thread = undefined;
    this.title = "";
    this.busy = false;
    /** @type {import("./filters.js").Chosen} */
    this.filters = {};
    /** @type {Turn[]} */
    this.turns = [];
    /** @type {PendingTurn | null} */
    this.pending = null;
    this.controller = new AbortController();
    watchConnection((reachable) => this.busy && this.turns.at(-1)?.wait(reachable));
    new ResizeObserver(() => this.turns.forEach((turn) => turn.arrange())).observe(element);
  }

  /** Leaves what is shown; a run that is under way goes on at the server. */
  clear() {
    this.controller.abort();
    this.controller = new AbortController();
    Object.assign(this, { thread: undefined, title: "", busy: false, filters: {}, turns: [], pending: null });
    this.element.replaceChildren();
    this.page.changed();
  }

  /**
   * Shows a conversation, and what is still on its way.
   * @param {any} stored the conversation as the server has it; null if it has no reply yet
   * @param {string | undefined} thread
   */
  open(stored, thread) {
    this.clear();
    this.thread = thread;
    this.title = stored?.title || "";
    this.filters = stored?.filters || {};
    for (const { question, reply, feedback, number } of stored?.turns || []) {
      const turn = this.#add(question, stored.book_id);
      turn.feedback = feedback;
      turn.number = number;
      turn.finish(reply);
    }
    const pending = waiting.of(thread);
    const replied = pending && stored?.turns.some((/** @type {any} */ turn) => turn.run_id === pending.run);
    if (pending && replied) waiting.drop(pending);
    else if (pending && !pending.failed) this.#run(this.#add(pending.question, pending.book), pending);
    this.page.changed();
    if (pending?.failed) this.page.edit(pending.question);
  }

  /** Whether a question of this tab is on its way that no conversation has yet. */
  static hasUnsent() {
    return Boolean(waiting.of(undefined));
  }

  /** @param {string | undefined} thread */
  static isWaiting(thread) {
    return Boolean(waiting.of(thread));
  }

  /**
   * Asks once, however often it is clicked.
   * @param {string} question
   * @param {{book?: string, unfiltered?: boolean}} [options]
   */
  ask(question, { book, unfiltered } = {}) {
    if (this.busy || !question.trim()) return false;
    const failed = waiting.of(this.thread);
    if (failed) waiting.drop(failed);
    if (book && book !== bookId()) this.#leaveFor(book);
    if (unfiltered) this.filters = {};
    const about = book || currentBook()?.book_id || "";
    const where = this.thread ? { session_id: this.thread } : about ? { book_id: about } : {};
    const fields = requestFields(this.filters, Boolean(this.thread));
    /** @type {PendingTurn} */
    const pending = { ...pendingQuestion({ message: question.trim(), ...where, ...fields }), question: question.trim(), book: about };
    waiting.keep(pending);
    this.#run(this.#add(pending.question, about), pending);
    return true;
  }

  /** @param {string} book a conversation is about one book */
  #leaveFor(book) {
    this.clear();
    go({ book }, { quiet: true });
  }

  async stop() {
    const { pending } = this;
    if (!pending) return;
    this.turns.at(-1)?.stop();
    waiting.drop(pending);
    this.controller.abort();
    this.controller = new AbortController();
    this.#idle();
    if (pending.run) await send("POST", `chat/runs/${pending.run}/cancel`).catch(() => {}); // it may have ended by itself
  }

  /**
   * @param {string} question
   * @param {string} book
   */
  #add(question, book) {
    const turn = new Turn(question, book, {
      ask: (text, options) => this.ask(text, options),
      edit: this.page.edit,
      rate: (rated, rating) => rate(this.thread, rated, rating).catch(this.page.failed),
      language: () => currentBook()?.language || "",
      link: (target, attributes, ...children) => lessonLink(placeOf(target), attributes, ...children),
      describe: describeFilters,
      explain: (error) => (error instanceof Problem && error.status === 401 ? t("turn.needs_key") : problemWords(error)),
      titleOf,
      suggestions: () => currentBook()?.suggestions || [],
    });
    this.turns.push(turn);
    this.element.append(turn.element);
    return turn;
  }

  /**
   * @param {Turn} turn
   * @param {PendingTurn} pending
   */
  async #run(turn, pending) {
    const { signal } = this.controller;
    Object.assign(this, { busy: true, pending });
    this.page.changed();
    turn.element.scrollIntoView({ block: "start" });
    try {
      const reply = await follow(pending, (name, data) => {
        if (name === "status" && data.run_id) this.#begun(pending);
        turn.show(name, data);
      }, signal);
      waiting.drop(pending);
      this.#begun({ ...pending, thread: reply.session_id });
      turn.number = Math.max(0, ...this.turns.map(({ number }) => number || 0)) + 1;
      await turn.conclude(reply, signal);
      this.#announce(reply);
      this.#idle();
    } catch (error) {
      if (signal.aborted) return;
      this.#keepFailed(pending);
      turn.fail(error);
      this.#idle();
      if (error instanceof Problem && error.status === 401) this.page.failed(error); // the turn says everything else
    }
  }

  /**
   * The question stays until another is asked here. A conversation without any reply does not exist for the server.
   * @param {PendingTurn} pending
   */
  #keepFailed({ run, thread, ...pending }) {
    waiting.keep({ ...pending, failed: true });
    if (!this.thread || this.turns.some(({ reply }) => reply)) return;
    this.thread = undefined;
    const { lesson, lines, anchor, quote } = here();
    go({ book: pending.book, lesson, lines, anchor, quote }, { replace: true, quiet: true });
  }

  /**
   * The server has begun the turn: from now on the conversation has an address.
   * @param {PendingTurn} pending
   */
  #begun(pending) {
    if (pending.run) waiting.all().some(({ key }) => key === pending.key) && waiting.keep(pending);
    if (this.thread) return;
    this.thread = pending.thread;
    this.title = pending.question;
    const { lesson, lines, anchor, quote } = here();
    go({ thread: this.thread, lesson, lines, anchor, quote }, { quiet: true });
    this.page.changed();
  }

  #idle() {
    Object.assign(this, { busy: false, pending: null });
    this.page.changed();
  }

  /** @param {any} reply */
  #announce(reply) {
    const words = reply.should_answer ? t("turn.ready", { count: reply.sources.length }) : reply.response;
    document.getElementById("announcement")?.replaceChildren(node("span", {}, words));
  }
}

/**
 * @param {import("../shared/turn.js").Target} target
 * @returns {import("./address.js").Place}
 */
function placeOf({ book, source, words, lesson }) {
  if (!source) return { book, lesson: lesson.parent_doc_id };
  const lines = source.line_start ? `${source.line_start}-${source.line_end}` : undefined;
  return { book, lesson: source.parent_doc_id, lines, quote: words || source.chunk_text };
}

/**
 * A conversation as the server has it; null if it has none under this id, or none yet, because its first question is
 * still on its way.
 * @param {string} thread
 */
export async function readConversation(thread) {
  const pending = waiting.of(thread);
  if (pending && !pending.body.session_id) return null;
  try {
    return await read(`threads/${encodeURIComponent(thread)}/export?html=true`);
  } catch (error) {
    if (error instanceof Problem && [404, 422].includes(error.status)) return null;
    throw error;
  }
}

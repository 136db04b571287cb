// @ts-check
// The reader's conversation: it goes on from page to page, also in the middle of an answer.
import { Problem, follow, pendingQuestion, read, send, watchConnection } from "../shared/api.js";
import { rate } from "../shared/outcome.js";
import { t } from "../shared/strings.js";
import { Turn } from "../shared/turn.js";

/** @typedef {import("../shared/api.js").Pending & {question: string}} PendingTurn */

export class Conversation {
  /** @param {import("./panel.js").Panel} panel */
  constructor(panel) {
    this.panel = panel;
    this.widget = panel.widget;
    this.store = panel.widget.store;
    /** @type {Turn[]} */
    this.turns = [];
    this.busy = false;
    /** @type {PendingTurn | null} */
    this.pending = null;
    this.controller = new AbortController();
    watchConnection((reachable) => this.busy && this.turns.at(-1)?.wait(reachable));
  }

  /** @returns {string | null} */
  get thread() {
    return this.store.browser.get("thread");
  }

  set thread(id) {
    this.store.browser.set("thread", id);
  }

  /** Shows what was asked before, and follows what is still on its way. */
  async restore() {
    if (this.store.needsRenewal) this.store.browser.set("reader", (await send("POST", "readers")).reader_token);
    /** @type {PendingTurn | null} */
    const pending = this.store.tab.get("pending");
    const first = pending && !pending.body.session_id; // the conversation is stored with its first reply
    const stored = this.thread && !first ? await this.#stored(this.thread) : null;
    this.turns = [];
    for (const { question, reply, feedback, number } of stored?.turns || []) {
      const turn = this.#add(question);
      Object.assign(turn, { feedback, number });
      turn.finish(reply);
    }
    const replied = pending && stored?.turns.some((/** @type {any} */ { run_id: run }) => run === pending.run);
    if (pending && !replied) this.#run(this.#add(pending.question), pending);
    else this.store.tab.set("pending", null);
    this.panel.changed();
  }

  /** @param {string} thread */
  async #stored(thread) {
    try {
      return await read(`threads/${encodeURIComponent(thread)}/export?html=true`);
    } catch (error) {
      if (!(error instanceof Problem) || error.status !== 404) throw error;
      this.thread = null; // deleted, or another reader's
      return null;
    }
  }

  /** Begins a new conversation; the old one stays on the server. */
  clear() {
    this.controller.abort();
    this.controller = new AbortController();
    this.store.tab.set("pending", null);
    this.thread = null;
    Object.assign(this, { turns: [], busy: false, pending: null });
    this.panel.changed();
  }

  /**
   * Asks once, however often it is clicked.
   * @param {string} question
   * @param {{unfiltered?: boolean}} [options]
   */
  ask(question, { unfiltered } = {}) {
    if (this.busy || !question.trim()) return false;
    if (unfiltered) this.panel.onlyPage.checked = false;
    const pending = { ...pendingQuestion(this.#request(question.trim())), question: question.trim() };
    this.store.tab.set("pending", pending);
    this.#run(this.#add(pending.question), pending);
    return true;
  }

  /**
   * In a conversation the server keeps the filters of the last turn, so one that was removed is sent as null.
   * @param {string} message
   */
  #request(message) {
    const { thread } = this;
    const lesson = this.panel.chosenLesson?.parent_doc_id;
    if (thread) return { message, session_id: thread, parent_doc_id: lesson || null };
    const { book } = this.widget.settings;
    return {
      message,
      metadata: { page_url: this.widget.host.pageUrl },
      ...(book && { book_id: book }),
      ...(lesson && { parent_doc_id: lesson }),
    };
  }

  async stop() {
    const { pending } = this;
    if (!pending) return;
    this.turns.at(-1)?.stop();
    this.controller.abort();
    this.controller = new AbortController();
    this.#idle();
    if (pending.run) await send("POST", `chat/runs/${pending.run}/cancel`).catch(() => {}); // it may have ended by itself
  }

  /** @param {string} question */
  #add(question) {
    const { panel, widget } = this;
    const turn = new Turn(question, widget.settings.book || "", {
      ask: (text, options) => this.ask(text, options),
      edit: (text) => panel.composer.edit(text),
      rate: (rated, rating) => rate(this.thread, rated, rating).catch(() => {}), // the old rating is shown
      language: () => panel.book?.language || "",
      link: ({ source, words, lesson }, attributes, ...children) => {
        const place = source ? { url: source.url, fragment: source.fragment_url, words: words || source.chunk_text } : lesson;
        return widget.host.link(place, attributes, ...children);
      },
      describe: (filters) => (filters.parent_doc_id ? t("widget.only_page") : ""),
      explain: (error) => panel.explain(error),
      titleOf: (book) => book,
      suggestions: () => panel.book?.suggestions || [],
    });
    this.turns.push(turn);
    panel.show(turn);
    return turn;
  }

  /**
   * @param {Turn} turn
   * @param {PendingTurn} pending
   */
  async #run(turn, pending) {
    const { signal } = this.controller;
    Object.assign(this, { busy: true, pending });
    this.panel.changed();
    try {
      const reply = await follow(pending, (name, data) => {
        if (name === "status" && data.run_id) this.#begun(pending);
        turn.show(name, data);
      }, signal);
      this.thread = reply.session_id;
      turn.number = Math.max(0, ...this.turns.map(({ number }) => number || 0)) + 1;
      await turn.conclude({ ...reply, other_books: [] }, signal); // they are on other sites
      this.#idle();
      this.panel.announce(reply);
    } catch (error) {
      if (signal.aborted) return;
      if (error instanceof Problem && error.status === 404) this.thread = null; // the next attempt begins a new one
      turn.fail(error);
      this.#idle();
    }
  }

  /** @param {PendingTurn} pending its run has an id, under which it can be followed from the next page */
  #begun(pending) {
    this.thread = pending.thread || null;
    this.store.tab.set("pending", pending);
  }

  #idle() {
    this.store.tab.set("pending", null);
    Object.assign(this, { busy: false, pending: null });
    this.panel.changed();
  }
}

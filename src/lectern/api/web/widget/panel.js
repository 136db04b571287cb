// @ts-check
// The panel: the conversation, the box for questions, and what there is to say before the first question.
import { Problem, read, watchConnection } from "../shared/api.js";
import { Composer } from "../shared/composer.js";
import { iconButton, node } from "../shared/dom.js";
import { suggestionList } from "../shared/outcome.js";
import { problemWords } from "../shared/problems.js";
import { t } from "../shared/strings.js";
import { adoptStyles } from "./appearance.js";
import { Conversation } from "./conversation.js";

const STYLES = ["style/text.css", "widget/panel.css"];
const FOCUSABLE = "button:not(:disabled), a[href], textarea, input, summary, [tabindex='0']";
const SUGGESTIONS = 4;

/** @param {import("./main.js").Widget} widget */
export async function makePanel(widget) {
  await adoptStyles(widget.root, STYLES);
  return new Panel(widget);
}

export class Panel {
  /** @param {import("./main.js").Widget} widget */
  constructor(widget) {
    this.widget = widget;
    /** @type {"closed" | "loading" | "ready" | "failed"} */
    this.state = "closed";
    this.waiting = ""; // a question that was asked before the book was loaded
    /** @type {any} what is needed of the book */
    this.book = null;
    this.onlyPage = node("input", { type: "checkbox" });
    this.choice = node("label", { class: "choice only-page", hidden: true }, this.onlyPage, node("span", {}, t("widget.only_page")));
    this.composer = this.#makeComposer();
    this.composer.showBusy(false);
    this.conversation = new Conversation(this);
    this.#build();
    window.addEventListener("resize", () => this.#fit());
    watchConnection((reachable) => reachable && this.state === "failed" && this.isOpen && this.#load());
  }

  /** The box for questions, with the choice to ask about this page only. */
  #makeComposer() {
    const parts = {
      box: node("textarea", { rows: 1, autocomplete: "off", placeholder: t("ask.placeholder"), "aria-label": t("ask.label") }),
      button: node("button", { type: "submit", class: "send" }),
      count: node("p", { class: "count", role: "status", hidden: true }),
      words: node("span"),
      drop: iconButton("close", t("ask.drop_passage"), () => {}),
    };
    const passage = node("p", { class: "asked-passage", hidden: true }, parts.words, parts.drop);
    const form = node("form", { class: "ask" }, passage, node("div", { class: "ask-line" }, parts.box, parts.button), parts.count, this.choice);
    return new Composer({ ...parts, passage, form }, { ask: (question) => this.#ask(question), stop: () => this.conversation.stop() });
  }

  #build() {
    const dialog = this.widget.mode === "panel";
    this.title = node("h2", { class: "sheet-title", id: "title" }, this.widget.label);
    this.fresh = iconButton("add", t("widget.new"), () => this.#startAgain(), { hidden: true });
    const close = dialog && iconButton("close", t("dialog.close"), () => this.close());
    this.welcome = node("div", { class: "welcome" });
    this.turns = node("div", { class: "turns" });
    this.scroller = node("div", { class: "scroller", tabindex: 0, role: "region", "aria-label": t("conversations.current") }, this.welcome, this.turns);
    this.announcement = node("div", { class: "visually-hidden", role: "status" });
    this.element = node(
      "section",
      { class: "sheet", role: dialog && "dialog", "aria-labelledby": "title", hidden: true },
      node("header", { class: "sheet-head" }, this.title, this.fresh, close),
      this.scroller,
      this.composer.parts.form,
      this.announcement,
    );
    this.element.addEventListener("keydown", (/** @type {KeyboardEvent} */ event) => this.#onKey(event));
    this.widget.frame.append(this.element);
  }

  get isOpen() {
    return !this.element.hidden;
  }

  /** @param {{about?: string, quiet?: boolean}} options */
  open({ about, quiet }) {
    this.element.hidden = false;
    this.widget.element.toggleAttribute("data-open", true);
    this.#fit();
    this.#offerPage();
    if (about) this.composer.about(about);
    if (!quiet) this.composer.focus();
    if (this.state === "closed") this.#load();
  }

  #fit() {
    if (!this.isOpen) return;
    this.element.setAttribute("aria-modal", String(this.widget.narrow));
    this.scroller.style.setProperty("--scrollbar", `${this.scroller.offsetWidth - this.scroller.clientWidth}px`);
    if (this.widget.mode === "panel") this.widget.host.makeRoom(this.element.offsetWidth);
  }

  close() {
    if (this.widget.mode !== "panel") return;
    this.element.hidden = true;
    this.widget.element.toggleAttribute("data-open", false);
    this.widget.host.makeRoom(0);
    this.widget.closed();
  }

  async #load() {
    this.state = "loading";
    this.welcome.replaceChildren();
    try {
      this.book = await this.widget.store.cached("book", () => this.#readBook());
      this.#offerPage();
      this.turns.replaceChildren();
      await this.conversation.restore();
      this.#welcome();
      this.state = "ready";
      if (this.waiting) this.conversation.ask(this.waiting);
    } catch (error) {
      this.state = "failed";
      this.#showFailure(error);
      if (this.waiting) this.composer.edit(this.waiting);
    }
    this.waiting = "";
  }

  /** @param {string} question */
  #ask(question) {
    if (this.state === "ready") return this.conversation.ask(question);
    this.waiting = question;
    if (this.state === "failed") this.#load();
    return true;
  }

  /** What is needed of the book, which does not change while a tab is open. */
  async #readBook() {
    const path = `books/${encodeURIComponent(this.widget.settings.book || (await this.#defaultBook()))}`;
    const [{ title, language, suggestions }, outline] = await Promise.all([read(path), read(`${path}/outline`)]);
    const chapters = outline.modules.flatMap((/** @type {any} */ module) => module.chapters);
    const lessons = chapters.flatMap((/** @type {any} */ chapter) => chapter.lessons);
    return {
      title,
      language,
      suggestions: suggestions.slice(0, SUGGESTIONS),
      lessons: lessons.map((/** @type {any} */ lesson) => ({ parent_doc_id: lesson.parent_doc_id, title: lesson.title, url: lesson.url })),
    };
  }

  async #defaultBook() {
    const books = await read("books");
    return (books.find((/** @type {any} */ book) => book.default) || books[0])?.book_id || "";
  }

  /** The lesson that the page shows, if the reader asks about it only. */
  get chosenLesson() {
    return this.onlyPage.checked ? this.widget.host.lessonHere(this.book?.lessons || []) : null;
  }

  #offerPage() {
    const lesson = this.widget.host.lessonHere(this.book?.lessons || []);
    this.choice.hidden = !lesson;
    this.choice.title = lesson?.title || "";
  }

  #welcome() {
    const { title, suggestions } = this.book;
    this.welcome.replaceChildren(node("p", { class: "welcome-title" }, title), node("p", { class: "remark" }, t("widget.welcome")));
    if (suggestions.length) this.welcome.append(node("h3", {}, t("empty.suggestions")), suggestionList(suggestions, (question) => this.#ask(question)));
  }

  /**
   * What went wrong, in words that a reader of the site understands.
   * @param {unknown} error
   */
  explain(error) {
    if (error instanceof Problem && error.status === 401) return t("widget.bad_key");
    if (error instanceof Problem && error.code === "wrong_origin") return t("widget.wrong_origin", { origin: location.origin });
    return problemWords(error);
  }

  /** @param {unknown} error */
  #showFailure(error) {
    const retry = node("button", { type: "button", class: "button", onclick: () => this.#load() }, t("turn.retry"));
    this.welcome.replaceChildren(node("p", { class: "remark", role: "alert" }, this.explain(error)), node("p", { class: "choices" }, retry));
    this.welcome.hidden = false;
  }

  #startAgain() {
    this.turns.replaceChildren();
    this.conversation.clear();
    this.composer.focus();
  }

  /** @param {import("../shared/turn.js").Turn} turn */
  show(turn) {
    this.turns.append(turn.element);
    this.welcome.hidden = true;
    this.scroller.scrollTop = turn.element.offsetTop - this.scroller.offsetTop + 2; // below the line between turns
  }

  changed() {
    const { busy, turns } = this.conversation;
    this.composer.showBusy(busy);
    this.welcome.hidden = turns.length > 0;
    this.fresh.hidden = !turns.length;
  }

  /** @param {any} reply */
  announce(reply) {
    const words = reply.should_answer ? t("turn.ready", { count: reply.sources.length }) : reply.response;
    this.announcement.replaceChildren(node("span", {}, words));
  }

  /**
   * Escape closes the panel; Tab stays in it.
   * @param {KeyboardEvent} event
   */
  #onKey(event) {
    if (this.widget.mode !== "panel") return;
    if (event.key === "Escape") {
      event.stopPropagation();
      this.close();
    }
    if (event.key !== "Tab") return;
    const parts = [...this.element.querySelectorAll(FOCUSABLE)].filter((part) => part.checkVisibility());
    const last = parts.at(event.shiftKey ? 0 : -1);
    if (this.widget.root.activeElement !== last) return;
    event.preventDefault();
    parts.at(event.shiftKey ? -1 : 0).focus();
  }
}

// @ts-check
// Contents and search: the outline of the book, and beside it what is found while the reader types.
import { byId, node } from "../shared/dom.js";
import { send } from "../shared/api.js";
import { problemRemark } from "../shared/problems.js";
import { t } from "../shared/strings.js";
import { here, lessonLink } from "./address.js";
import { bookId, loadOutline } from "./library.js";
import { outlineOf } from "./outline.js";
import { snippetOf } from "./snippet.js";

const PAUSE = 120; // milliseconds without a key before a search is sent
const SHORTEST = 3; // characters

export class Contents {
  constructor() {
    this.dialog = byId("contents");
    this.box = byId("search");
    this.results = byId("results");
    this.outline = byId("outline");
    this.timer = 0;
    this.controller = new AbortController();
    this.box.addEventListener("input", () => {
      clearTimeout(this.timer);
      this.timer = setTimeout(() => this.#search(), PAUSE);
    });
    this.box.addEventListener("keydown", (/** @type {KeyboardEvent} */ event) => {
      if (event.key === "Enter") this.results.querySelector("a")?.click();
      if (event.key === "ArrowDown") {
        event.preventDefault();
        (this.results.querySelector("a") || this.outline.querySelector("a"))?.focus();
      }
    });
  }

  async open() {
    if (!bookId()) return;
    if (!this.dialog.open) this.dialog.showModal();
    this.box.focus();
    this.box.select();
    try {
      this.outline.replaceChildren(outlineOf(await loadOutline(), { current: here().lesson, onOpen: () => this.dialog.close() }));
    } catch (error) {
      this.outline.replaceChildren(problemRemark(error));
    }
    await this.#search();
    this.outline.querySelector("[aria-current]")?.scrollIntoView({ block: "center" });
  }

  async #search() {
    this.controller.abort();
    this.controller = new AbortController();
    const text = this.box.value.trim();
    this.dialog.classList.toggle("searching", text !== "");
    if (text.length < SHORTEST) {
      this.#show([], text);
      return;
    }
    try {
      const { results } = await send("POST", "search", { text, limit: 12, book_id: bookId() }, this.controller.signal);
      this.#show(results, text);
    } catch (error) {
      if (!(error instanceof DOMException)) this.results.replaceChildren(problemRemark(error));
    }
  }

  /**
   * @param {any[]} results
   * @param {string} text
   */
  #show(results, text) {
    const items = results.map((result) => node("li", { class: "result" }, this.#result(result)));
    const nothing = text.length >= SHORTEST ? t("search.nothing", { text }) : t("search.hint");
    this.results.replaceChildren(items.length ? node("ol", { class: "result-list" }, ...items) : node("p", { class: "remark" }, nothing));
    byId("search-count").textContent = items.length ? t("search.count", { count: items.length }) : "";
    const lessons = new Set(results.map((result) => result.parent_doc_id));
    for (const link of this.outline.querySelectorAll("a[data-lesson]")) link.classList.toggle("found", lessons.has(link.dataset.lesson));
  }

  /** @param {any} result */
  #result(result) {
    const { section_title: section, lesson_title: lesson } = result;
    const { quote, parts } = snippetOf(result.text, result.marks, [lesson, section]);
    const place = { book: bookId(), lesson: result.parent_doc_id, lines: `${result.line_start}-${result.line_end}`, quote };
    const title = section && section !== lesson ? [lesson, node("span", { class: "result-section" }, section)] : [lesson];
    return lessonLink(place, { onclick: () => this.dialog.close() }, node("span", { class: "result-title" }, ...title), node("span", { class: "snippet" }, ...parts));
  }
}

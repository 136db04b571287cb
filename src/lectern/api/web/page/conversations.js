// @ts-check
// The reader's conversations: find one again, rename, export, share or delete it.
import { byId, copyText, icon, iconButton, node } from "../shared/dom.js";
import { read, request, send } from "../shared/api.js";
import { problemRemark } from "../shared/problems.js";
import { dayOf, t, timeOf } from "../shared/strings.js";
import { go, here, hrefOf } from "./address.js";
import { bookId, titleOf } from "./library.js";

const PAUSE = 150; // milliseconds without a key before a search is sent
const PAGE = 30;

export class ConversationList {
  /** @param {{gone: (thread: string) => void, renamed: (thread: string, title: string) => void}} page */
  constructor(page) {
    this.page = page;
    this.dialog = byId("conversations");
    this.box = byId("conversation-search");
    this.list = byId("conversation-list");
    /** @type {string | null} */
    this.cursor = null;
    this.controller = new AbortController();
    let timer = 0;
    this.box.addEventListener("input", () => {
      clearTimeout(timer);
      timer = setTimeout(() => this.#load(), PAUSE);
    });
  }

  open() {
    if (!this.dialog.open) this.dialog.showModal();
    this.box.value = "";
    this.box.focus();
    this.#load();
  }

  async #load() {
    this.controller.abort();
    this.controller = new AbortController();
    this.cursor = null;
    await this.#attempt(this.list, () => this.#more(true));
  }

  /**
   * Does something; where that fails, the place says why.
   * @param {any} place
   * @param {() => Promise<void>} work
   */
  async #attempt(place, work) {
    place.querySelector(":scope > .problem")?.remove();
    try {
      await work();
    } catch (error) {
      if (!(error instanceof DOMException)) place.append(problemRemark(error));
    }
  }

  /** @param {boolean} fresh */
  async #more(fresh) {
    const query = new URLSearchParams({ limit: String(PAGE) });
    if (this.cursor) query.set("cursor", this.cursor);
    if (this.box.value.trim()) query.set("query", this.box.value.trim());
    const { threads, next_cursor: cursor } = await read(`threads?${query}`, this.controller.signal);
    this.cursor = cursor;
    if (fresh) this.list.replaceChildren();
    this.list.querySelector(".more")?.remove();
    if (fresh && !threads.length) this.list.append(node("p", { class: "remark" }, t(this.box.value ? "conversations.none_found" : "conversations.none")));
    for (const thread of threads) this.#add(thread);
    if (cursor) this.list.append(node("button", { type: "button", class: "text-button more", onclick: () => this.#attempt(this.list, () => this.#more(false)) }, t("conversations.more")));
  }

  /** @param {any} thread */
  #add(thread) {
    const day = dayOf(thread.updated_at);
    let group = this.list.querySelector("section:last-of-type");
    if (group?.dataset.day !== day) {
      group = node("section", { "data-day": day }, node("h3", {}, day), node("ul", {}));
      this.list.append(group);
    }
    group.querySelector("ul").append(this.#item(thread));
  }

  /** @param {any} thread */
  #item(thread) {
    const id = thread.thread_id;
    const details = [timeOf(thread.updated_at), t("conversations.turns", { count: thread.turn_count }), thread.book_id !== bookId() && titleOf(thread.book_id)];
    const link = node(
      "a",
      { href: hrefOf({ thread: id }), "aria-current": here().thread === id ? "page" : null, onclick: (/** @type {MouseEvent} */ event) => this.#go(event, id) },
      node("span", { class: "conversation-title" }, thread.title),
      node("small", {}, details.filter(Boolean).join(" · ")),
    );
    const item = node("li", { class: "conversation-item" }, link);
    item.append(node("div", { class: "actions" },
      iconButton("edit", t("conversations.rename"), () => this.#rename(item, thread)),
      iconButton("link", t("conversations.link"), (event) => this.#copyLink(event, id)),
      iconButton("save", t("conversations.export"), () => this.#attempt(item, () => exportThread(thread))),
      iconButton("remove", t("conversations.delete"), () => this.#confirm(item, thread)),
    ));
    return item;
  }

  /**
   * @param {MouseEvent} event
   * @param {string} thread
   */
  #go(event, thread) {
    if (event.metaKey || event.ctrlKey || event.shiftKey) return;
    event.preventDefault();
    this.dialog.close();
    go({ thread });
  }

  /**
   * @param {MouseEvent} event
   * @param {string} thread
   */
  async #copyLink(event, thread) {
    const button = /** @type {Element} */ (event.currentTarget);
    await copyText(new URL(hrefOf({ thread }), location.href).href);
    button.replaceChildren(icon("done"));
    button.setAttribute("aria-label", t("conversations.link_copied"));
    button.setAttribute("title", t("conversations.link_copied"));
  }

  /**
   * @param {any} item
   * @param {any} thread
   */
  #rename(item, thread) {
    const box = node("input", { type: "text", maxlength: 200, "aria-label": t("conversations.new_title"), value: thread.title });
    const form = node("form", {}, box, node("button", { type: "submit", class: "button" }, t("conversations.save")));
    const place = node("li", { class: "rename" }, form);
    const restore = () => {
      const fresh = this.#item(thread);
      place.replaceWith(fresh);
      fresh.querySelector("button").focus();
    };
    const save = async () => {
      const title = box.value.trim();
      if (title && title !== thread.title) {
        Object.assign(thread, await send("PATCH", `threads/${thread.thread_id}`, { title }));
        this.page.renamed(thread.thread_id, title);
      }
      restore();
    };
    form.addEventListener("submit", (/** @type {Event} */ event) => {
      event.preventDefault();
      this.#attempt(place, save);
    });
    form.addEventListener("keydown", (/** @type {KeyboardEvent} */ event) => {
      if (event.key !== "Escape") return;
      event.preventDefault();
      event.stopPropagation();
      restore();
    });
    item.replaceWith(place);
    box.select();
  }

  /**
   * @param {any} item
   * @param {any} thread
   */
  #confirm(item, thread) {
    const yes = node("button", { type: "button", class: "button" }, t("conversations.delete"));
    const no = node("button", { type: "button", class: "text-button" }, t("conversations.keep"));
    const words = node("p", {}, t("conversations.delete_question", { title: thread.title }));
    const question = node("div", { class: "confirm", role: "alertdialog", "aria-label": t("conversations.delete") }, words, yes, no);
    const place = node("li", {}, question);
    no.addEventListener("click", () => {
      place.replaceWith(item);
      item.querySelector("a").focus();
    });
    const remove = async () => {
      await send("DELETE", `threads/${thread.thread_id}`);
      place.remove();
      this.box.focus();
      this.page.gone(thread.thread_id);
    };
    yes.addEventListener("click", () => this.#attempt(question, remove));
    item.replaceWith(place);
    no.focus();
  }
}

/** @param {any} thread */
async function exportThread(thread) {
  const response = await request(`threads/${thread.thread_id}/export?format=markdown`);
  const address = URL.createObjectURL(await response.blob());
  const name = thread.title.replace(/[^\p{L}\p{N}]+/gu, "-").replace(/^-|-$/g, "").slice(0, 60) || "conversation";
  node("a", { href: address, download: `${name}.md` }).click();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}

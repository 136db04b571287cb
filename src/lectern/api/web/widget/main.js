// @ts-check
// The widget on a page: a button, a shortcut and "ask about this". The panel is loaded when it is first needed, and
// nothing is asked of the server before.
import { credentials } from "../shared/api.js";
import { icon, node } from "../shared/dom.js";
import { offerQuestions } from "../shared/composer.js";
import { t, useLanguage } from "../shared/strings.js";
import { adoptStyles, followTheme, measureText } from "./appearance.js";
import { HostPage } from "./host.js";
import { Store } from "./store.js";

/**
 * The attributes of the script's element, without `data-`.
 * @typedef {{key?: string, book?: string, mode?: string, target?: string, theme?: string, lang?: string,
 *   shortcut?: string, title?: string, page?: string, site?: string}} Settings `page`, `site`: of what is around a frame
 */

const FIRST_STYLES = ["widget/button.css", "style/ground.css"]; // the first resets
const NARROW = "(max-width: 40rem)"; // the panel covers the page
const SHORTCUT = "mod+i"; // `mod` is the command key on a Mac and the control key elsewhere
const MAC = /Mac|iPhone|iPad/.test(navigator.platform);

/** @param {Settings} settings */
export async function start(settings) {
  const widget = new Widget(settings);
  await widget.prepare();
  return widget;
}

export class Widget {
  /** @param {Settings} settings */
  constructor(settings) {
    this.settings = settings;
    this.store = new Store(settings);
    this.host = new HostPage(this);
    this.mode = settings.mode || "panel";
    this.element = node("lectern-widget", { "data-mode": this.mode });
    this.root = this.element.attachShadow({ mode: "open" });
    this.frame = node("div", { class: "lectern" });
    this.root.append(this.frame);
    /** @type {Promise<import("./panel.js").Panel> | null} */
    this.loading = null;
    credentials.storage = this.store.credentials;
  }

  /** The words on the button. */
  get label() {
    return this.settings.title || t("widget.button");
  }

  /** Whether the panel covers the page. */
  get narrow() {
    return this.mode === "panel" && matchMedia(NARROW).matches;
  }

  async prepare() {
    const language = this.settings.lang || document.documentElement.lang || navigator.language;
    await Promise.all([adoptStyles(this.root, FIRST_STYLES), useLanguage(language, this.root, "../widget/strings")]);
    (this.settings.target && document.querySelector(this.settings.target) || document.body).append(this.element);
    measureText(this.element, this.frame);
    followTheme(this.element, this.settings.theme);
    if (this.mode === "panel") this.#addButton();
    if (this.mode !== "frame") offerQuestions((words) => this.open({ about: words }), this.host.askable, this.frame);
    if (this.mode === "inline") this.#openWhenSeen();
    else if (this.mode === "frame" || (this.store.tab.get("open") && !this.narrow)) await this.open({ quiet: true });
    this.host.markArrival(); // the open panel has moved the page
  }

  #addButton() {
    const shortcut = listen(this.settings.shortcut || SHORTCUT, () => this.toggle());
    const title = shortcut ? `${this.label} (${shortcut})` : this.label;
    this.button = node("button", { type: "button", class: "launcher", "aria-expanded": "false", title, onclick: () => this.open() });
    this.button.append(icon("book"), node("span", {}, this.label));
    this.frame.append(this.button);
  }

  /** A widget in the text asks the server once a reader comes near it. */
  #openWhenSeen() {
    const observer = new IntersectionObserver((entries) => {
      if (!entries.some((entry) => entry.isIntersecting)) return;
      observer.disconnect();
      this.open({ quiet: true });
    }, { rootMargin: "200px" });
    observer.observe(this.element);
  }

  /**
   * Opens the panel, to ask about selected words if there are any.
   * @param {{about?: string, quiet?: boolean}} [options] `quiet`: the reader did not ask for it, so the focus stays
   */
  async open({ about, quiet } = {}) {
    this.loading ||= import("./panel.js").then(({ makePanel }) => makePanel(this));
    this.store.tab.set("open", true);
    const panel = await this.loading;
    this.button?.setAttribute("aria-expanded", "true");
    panel.open({ about, quiet });
  }

  async toggle() {
    const panel = await this.loading;
    if (panel?.isOpen && this.root.activeElement) panel.close();
    else await this.open();
  }

  /** The panel was closed. */
  closed() {
    this.store.tab.set("open", null);
    this.button?.setAttribute("aria-expanded", "false");
    this.button?.focus();
  }
}

/**
 * Listens for a shortcut such as `mod+shift+i`; its name as readers write it, or nothing if it is `none`.
 * @param {string} text
 * @param {() => void} onPress
 */
function listen(text, onPress) {
  const parts = text.toLowerCase().split("+");
  const key = parts.pop() || "";
  if (key === "none") return "";
  const [mod, alt, shift] = ["mod", "alt", "shift"].map((name) => parts.includes(name));
  document.addEventListener("keydown", (event) => {
    const target = /** @type {HTMLElement} */ (event.target);
    if (target.isContentEditable || target.closest?.("input, textarea, select")) return; // keys mean something else there
    const pressed = event.key.toLowerCase() === key || event.code.toLowerCase() === `key${key}`; // Alt changes the sign
    if (!pressed || (MAC ? event.metaKey : event.ctrlKey) !== mod || event.altKey !== alt || event.shiftKey !== shift) return;
    event.preventDefault();
    onPress();
  });
  const names = [mod && (MAC ? "⌘" : "Ctrl"), alt && (MAC ? "⌥" : "Alt"), shift && (MAC ? "⇧" : "Shift"), key.toUpperCase()];
  return names.filter(Boolean).join(MAC ? "" : "+");
}

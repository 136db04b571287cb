// @ts-check
// What the widget remembers in the browser, under the origin of the page that it is on: for good the reader's token and
// the conversation, for as long as the tab is open what is under way.

const HALF_LIFE = 15 * 24 * 3600; // seconds; a token is valid for twice as long

/** Values by name. Where the browser stores nothing, they are kept until the page is left. */
class StoredValues {
  /**
   * @param {"localStorage" | "sessionStorage"} kind
   * @param {string} prefix
   */
  constructor(kind, prefix) {
    this.prefix = prefix;
    /** @type {Map<string, string>} */
    this.values = new Map();
    try {
      this.storage = window[kind];
    } catch {
      this.storage = null; // blocked by the browser, or in a frame without an origin
    }
  }

  /**
   * @param {string} name
   * @returns {any}
   */
  get(name) {
    try {
      const text = this.storage ? this.storage.getItem(this.prefix + name) : this.values.get(name);
      return text ? JSON.parse(text) : null;
    } catch {
      return null; // something else wrote it
    }
  }

  /**
   * @param {string} name
   * @param {any} value null removes it
   */
  set(name, value) {
    const text = JSON.stringify(value);
    this.values.set(name, text);
    try {
      if (value === null) this.storage?.removeItem(this.prefix + name);
      else this.storage?.setItem(this.prefix + name, text);
    } catch {
      this.storage = null; // full
    }
  }
}

export class Store {
  /** @param {{key?: string, book?: string}} settings */
  constructor({ key = "", book = "" }) {
    const [, keyId = "local"] = key.split("_"); // the part of a key that is no secret
    this.browser = new StoredValues("localStorage", `lectern-${keyId}-${book}-`);
    this.tab = new StoredValues("sessionStorage", `lectern-${keyId}-${book}-`);
    const { browser } = this;
    this.credentials = {
      getItem: (/** @type {string} */ name) => (name === "key" ? key || null : browser.get(name)),
      setItem: (/** @type {string} */ name, /** @type {string} */ value) => browser.set(name, value),
      removeItem: (/** @type {string} */ name) => browser.set(name, null),
    };
    if (this.secondsLeft <= 0) this.forget();
  }

  /** How long the reader's token is still valid; it says so itself. */
  get secondsLeft() {
    const [, expires] = (this.browser.get("reader") || "").split(".");
    return expires ? Number(expires) - Date.now() / 1000 : Infinity;
  }

  /** Whether a reader who comes back later would find no conversation if the token is not renewed now. */
  get needsRenewal() {
    return this.secondsLeft < HALF_LIFE;
  }

  /** The reader is gone, and so is what only this reader could see. */
  forget() {
    this.browser.set("reader", null);
    this.browser.set("thread", null);
    this.tab.set("pending", null);
  }

  /**
   * A value that is loaded once for a tab.
   * @param {string} name
   * @param {() => Promise<any>} load
   */
  async cached(name, load) {
    const value = this.tab.get(name) || (await load());
    this.tab.set(name, value);
    return value;
  }
}

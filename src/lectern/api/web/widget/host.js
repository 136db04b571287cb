// @ts-check
// The page around the widget: which lesson it shows, links to lessons, and marking the quoted words where a link leads.
import { node } from "../shared/dom.js";
import { findQuote } from "../shared/quote.js";

const TEXT = ["article", "main", "[role=main]", "#content", ".content"];
const NAME = "lectern-quote";
const TRIES = 12;
const PAUSE = 250; // milliseconds; a page that draws its text with a script needs some
const WIDE = "(min-width: 64rem)"; // page and panel stand side by side
const GAP = 24; // pixels between them
const STEPS = 5; // a centred text moves less than the page
const EDGE = 90; // pixels at the top and bottom of the window where words are easily missed

/** @typedef {{url: string, fragment?: string, words?: string}} Place `fragment` is the link that a browser marks itself */

export class HostPage {
  /** @param {import("./main.js").Widget} widget */
  constructor(widget) {
    this.widget = widget;
    this.room = adoptedSheet();
    this.colours = adoptedSheet();
    /** @type {string | undefined} the site's own origin, where this page is a copy of it on another host: a preview */
    this.published = undefined;
  }

  /** Where the reader is; in a frame it is where the page around it is. */
  get address() {
    return new URL(this.widget.settings.page || this.widget.settings.site || location.href);
  }

  /** What is sent of it: neither its query nor its anchor, which may be personal. */
  get pageUrl() {
    return this.address.origin + this.address.pathname;
  }

  /** The texts that a reader may select words of: the page's own, or all of it. */
  get askable() {
    return TEXT.some((selector) => document.querySelector(selector)) ? TEXT.join(", ") : "body";
  }

  /** @returns {Element} */
  get text() {
    return TEXT.map((selector) => document.querySelector(selector)).find((element) => element !== null) || document.body;
  }

  /**
   * The lesson that the page shows, if it is one of the book's.
   * @param {{parent_doc_id: string, title: string, url: string}[]} lessons
   */
  lessonHere(lessons) {
    if (this.widget.settings.site && !this.widget.settings.page) return null; // which page of the site is not known
    const lesson = lessons.find(({ url }) => plainPath(this.#absolute(url)) === plainPath(this.address)) || null;
    // any site has a page at its root, so that alone does not tell a preview
    if (lesson && this.address.pathname !== "/") this.published = new URL(lesson.url, this.address).origin;
    return lesson;
  }

  /**
   * A book without a `base_url` has addresses from the root of its site. Links on a preview stay on its host, and what is
   * no address of the web, such as a script, leads nowhere.
   * @param {string} url
   */
  #absolute(url) {
    const target = URL.canParse(url, this.address.href) ? new URL(url, this.address) : this.address;
    if (!/^https?:$/.test(target.protocol)) return this.address;
    return target.origin === this.published ? new URL(target.pathname + target.search + target.hash, this.address) : target;
  }

  /**
   * A link to a place of the book on its site. A plain click also marks the words; in a new tab the browser does.
   * @param {Place} place
   * @param {Record<string, any>} attributes
   * @param {...any} children
   */
  link(place, attributes, ...children) {
    const href = this.#absolute(place.fragment || place.url).href;
    const framed = this.widget.mode === "frame";
    const link = node("a", { href, target: framed && "_top", ...attributes }, ...children);
    link.addEventListener("click", (/** @type {MouseEvent} */ event) => {
      if (framed || event.metaKey || event.ctrlKey || event.shiftKey || event.button) return;
      event.preventDefault();
      this.visit(place);
    });
    return link;
  }

  /** @param {Place} place */
  visit({ url, fragment, words }) {
    const target = this.#absolute(url);
    if (this.widget.narrow) this.widget.loading?.then((panel) => panel.close());
    if (plainPath(target) === plainPath(new URL(location.href)) && target.origin === location.origin) {
      if (target.hash && target.hash !== location.hash) location.hash = target.hash;
      if (words) this.mark(words);
    } else if (target.origin === location.origin && "highlights" in CSS) {
      this.widget.store.tab.set("arrival", { path: plainPath(target), words });
      location.assign(target);
    } else location.assign(this.#absolute(fragment || url));
  }

  /** Marks what the link that led here was about. */
  async markArrival() {
    const { tab } = this.widget.store;
    const arrival = tab.get("arrival");
    tab.set("arrival", null);
    if (!arrival?.words || arrival.path !== plainPath(new URL(location.href))) return;
    for (let attempt = 0; attempt < TRIES && !this.mark(arrival.words); attempt += 1) await new Promise((wake) => setTimeout(wake, PAUSE));
  }

  /**
   * Marks words in the page's text and brings them into view; whether they are there.
   * @param {string} words
   */
  mark(words) {
    const range = findQuote([this.text], words);
    if (!range) return false;
    for (let part = range.startContainer.parentElement; part; part = part.parentElement) if (part instanceof HTMLDetailsElement) part.open = true;
    if ("highlights" in CSS) {
      this.#setColours();
      CSS.highlights.set(NAME, new Highlight(range));
    }
    const { top, bottom } = range.getBoundingClientRect();
    if (top < EDGE || bottom > window.innerHeight - EDGE) range.startContainer.parentElement?.scrollIntoView({ block: "center" });
    return true;
  }

  /**
   * Moves the page aside where the window is wide enough, as far as it takes for the panel to hide nothing of its text.
   * @param {number} width of the panel; 0 without it
   */
  makeRoom(width) {
    const move = (/** @type {number} */ distance) =>
      this.room.replaceSync(distance ? `html { padding-inline-end: var(--lectern-room, ${Math.ceil(distance)}px); }` : "");
    move(0);
    if (!width || !matchMedia(WIDE).matches) return;
    const hidden = () => this.text.getBoundingClientRect().right + GAP - (window.innerWidth - width);
    let distance = 0;
    for (let step = 0; step < STEPS && hidden() > 1 && distance < width + GAP; step += 1) {
      distance = Math.min(width + GAP, distance + hidden());
      move(distance);
    }
  }

  #setColours() {
    const [paper, ink] = this.widget.element.dataset.theme === "dark" ? ["#5d4a17", "#fff6dd"] : ["#fbe3a8", "#211e1a"];
    this.colours.replaceSync(`::highlight(${NAME}) { background-color: var(--lectern-mark, ${paper}); color: ${ink}; }`);
  }
}

function adoptedSheet() {
  const sheet = new CSSStyleSheet();
  document.adoptedStyleSheets = [...document.adoptedStyleSheets, sheet];
  return sheet;
}

/**
 * A page's path in one spelling: `/guide/index.html`, `/guide.html` and `/guide/` are one page.
 * @param {URL} url
 */
function plainPath(url) {
  const path = url.pathname.replace(/(^|\/)index\.html?$/, "$1").replace(/\.html?$/, "");
  try {
    return decodeURIComponent(path.replace(/\/+$/, ""));
  } catch {
    return path; // not encoded as UTF-8
  }
}

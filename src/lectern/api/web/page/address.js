// @ts-check
// Where the reader is, as the address says it: a conversation, and beside it a lesson. Back and forward work, because
// everything that is shown follows the address.
import { node } from "../shared/dom.js";

/**
 * `lines` are those of the quoted passage in the lesson's file; `quote` are its words, which are stored with the entry of
 * the history and not in the address.
 * `at` is the address of a lesson on the site of its book.
 * @typedef {{thread?: string, book?: string, lesson?: string, lines?: string, anchor?: string, quote?: string, at?: string}} Place
 */

/** @returns {Place} */
export function here() {
  const parameters = new URLSearchParams(location.search);
  const value = (/** @type {string} */ name) => parameters.get(name) || undefined;
  return {
    thread: value("thread"),
    book: value("book"),
    lesson: value("lesson"),
    lines: value("lines"),
    at: value("at"),
    anchor: decodeURIComponent(location.hash.slice(1)) || undefined,
    quote: history.state?.quote,
  };
}

/**
 * The address of a place.
 * @param {Place} place
 */
export function hrefOf({ thread, book, lesson, lines, anchor }) {
  const parameters = new URLSearchParams();
  for (const [name, value] of Object.entries({ thread, book, lesson, lines })) if (value) parameters.set(name, value);
  const query = parameters.toString();
  return `${query ? `?${query}` : "./"}${anchor ? `#${encodeURIComponent(anchor)}` : ""}`;
}

/** @type {() => void} */
let moved = () => {};

/**
 * @param {() => void} listener called after every change of the address
 */
export function onMove(listener) {
  moved = listener;
  window.addEventListener("popstate", listener);
}

/**
 * Goes to a place.
 * @param {Place} place
 * @param {{replace?: boolean, quiet?: boolean}} [options] `quiet`: what is shown is this place already
 */
export function go(place, { replace = false, quiet = false } = {}) {
  const state = place.quote ? { quote: place.quote } : null;
  history[replace ? "replaceState" : "pushState"](state, "", hrefOf(place));
  if (!quiet) moved();
}

/**
 * The part of the address that says which conversation or book the reader is in.
 * @returns {Place}
 */
export function conversationPlace() {
  const { thread, book } = here();
  return thread ? { thread } : { book };
}

/**
 * A link to a place; it also opens in a new tab. `place` may be a function: of the moment of the click.
 * @param {Place} place of the lesson, beside the conversation that is open when it is clicked
 * @param {Record<string, any>} attributes
 * @param {...any} children
 */
export function lessonLink(place, attributes, ...children) {
  const link = node("a", { href: hrefOf(place), ...attributes }, ...children);
  link.addEventListener("click", (/** @type {MouseEvent} */ event) => {
    if (event.metaKey || event.ctrlKey || event.shiftKey || event.button) return;
    event.preventDefault();
    const { thread } = here();
    go(thread ? { ...place, thread, book: undefined } : place);
  });
  return link;
}

// @ts-check
// Where in the desk the author is: a book, one of its views, and in the lessons' view a lesson. The address says it, so
// a place can be reloaded, bookmarked and left with the browser's own button.

/** @typedef {{book: string | null, view: string, lesson: string | null, source: string | null}} Place */

export const BOOK_CHANGED = "book-changed"; // the event after an ingestion: the head of the page shows old numbers
export const VIEWS = ["lessons", "ingest", "search", "insights"];

/** @returns {Place} */
export function currentPlace() {
  const query = new URLSearchParams(location.search);
  const view = query.get("view") || "";
  return {
    book: query.get("book"),
    view: VIEWS.includes(view) ? view : VIEWS[0],
    lesson: query.get("lesson"),
    source: query.get("source"),
  };
}

/**
 * The address of a place, relative to the desk.
 * @param {Partial<Place>} place
 * @param {string} [anchor] the id of an element
 */
export function addressOf(place, anchor = "") {
  const query = new URLSearchParams();
  for (const name of /** @type {const} */ (["book", "view", "lesson", "source"])) {
    const value = place[name];
    if (value) query.set(name, value);
  }
  const text = query.toString();
  return `${text ? `?${text}` : "./"}${anchor ? `#${anchor}` : ""}`;
}

/**
 * Calls back whenever the author goes to another place. A plain click on a link within the desk loads nothing again.
 * @param {() => void} onMove
 */
export function watchAddress(onMove) {
  addEventListener("popstate", onMove);
  document.addEventListener("click", (event) => {
    const link = /** @type {Element} */ (event.target).closest?.("a[href]");
    if (!(link instanceof HTMLAnchorElement) || link.target || event.defaultPrevented) return;
    if (event.button || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
    const here = new URL("./", location.href);
    if (link.origin !== location.origin || link.pathname !== here.pathname) return;
    if (link.search === location.search && link.hash) return;
    event.preventDefault();
    history.pushState(null, "", link.href);
    onMove();
  });
}

/** @param {Partial<Place>} place */
export function goTo(place) {
  history.pushState(null, "", addressOf(place));
  dispatchEvent(new PopStateEvent("popstate"));
}

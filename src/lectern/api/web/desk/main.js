// @ts-check
// The author's page: shows the place that the address names, and asks for a key where the server needs one.
import { byId, node } from "../shared/dom.js";
import { read } from "../shared/api.js";
import { likelyLanguage, t, useLanguage } from "../shared/strings.js";
import { prepareTheme } from "../page/theme.js";
import { showConnection, showFailure } from "../page/notice.js";
import { BOOK_CHANGED, VIEWS, addressOf, currentPlace, watchAddress } from "./address.js";
import { showBooks } from "./books.js";
import { showIngest } from "./ingest.js";
import { showInsights } from "./insights.js";
import { showLessons } from "./lessons.js";
import { KEY_NEEDED, count, failure, forbidden, moment } from "./parts.js";
import { showSearch } from "./search.js";

/** @typedef {import("./address.js").Place} Place */
/** @typedef {{book_id: string, title: string, total_chunks: number, last_full_ingest: string | null, last_incremental_update: string | null, fingerprint: string}} Book */

/** @type {Record<string, (place: Place, signal: AbortSignal) => Promise<Node>>} */
const SHOW = { lessons: showLessons, ingest: showIngest, search: showSearch, insights: showInsights };
/** @type {AbortController} what the view before this one still does */
let leaving = new AbortController();

/** Shows the current place; a view that is left ends what it still does. */
async function show() {
  leaving.abort();
  leaving = new AbortController();
  const { signal } = leaving;
  const place = currentPlace();
  const view = byId("view");
  view.setAttribute("aria-busy", "true");
  try {
    const { content, book, known } = await draw(place, signal);
    if (signal.aborted) return;
    drawHead(known ? place : { ...place, book: null }, book); // now, or two titles would be there for a moment
    const title = known ? [] : [node("h1", { class: "visually-hidden" }, t("desk.name"))]; // every view has its own
    view.replaceChildren(...title, content);
    goToAnchor();
  } catch (error) {
    if (!signal.aborted) view.replaceChildren(failure(error, "admin"));
  } finally {
    if (!signal.aborted) view.removeAttribute("aria-busy");
  }
}

/**
 * What to show, and the book it is about; `known` is false where the key may not see books.
 * @param {Place} place
 * @param {AbortSignal} signal
 * @returns {Promise<{content: Node, book?: Book, known: boolean}>}
 */
async function draw(place, signal) {
  let books;
  try {
    if (!(await read("caller", signal)).rights.includes("admin")) return { content: forbidden("admin"), known: false };
    books = await read("books", signal);
  } catch (error) {
    return { content: failure(error, "read"), known: false };
  }
  const book = books.find((/** @type {Book} */ listed) => listed.book_id === place.book);
  if (!place.book) return { content: await showBooks(books), known: true };
  if (!book && place.view !== "ingest") {
    const words = t("desk.unknown_book", { book: place.book });
    return { content: node("p", { class: "failure", role: "alert" }, words), known: true };
  }
  return { content: await SHOW[place.view](place, signal), book, known: true };
}

/** Shows the numbers of the book after an ingestion, and for a new book the links to its views. */
async function refreshHead() {
  const place = currentPlace();
  const books = await read("books", leaving.signal).catch(() => null); // the view says what is wrong
  if (books) drawHead(place, books.find((/** @type {Book} */ listed) => listed.book_id === place.book));
}

/**
 * The title of the book and the links to its views.
 * @param {Place} place
 * @param {Book | undefined} book
 */
function drawHead(place, book) {
  const head = byId("book-head");
  head.hidden = !place.book;
  byId("to-reader").href = book ? `../?${new URLSearchParams({ book: book.book_id })}` : "../";
  document.title = [book?.title || place.book, t("desk.name"), "Lectern"].filter(Boolean).join(" · ");
  if (!place.book) return;
  const id = place.book;
  const links = VIEWS.filter((view) => book || view === "ingest").map((view) => node(
    "a",
    { href: addressOf({ book: id, view }), "aria-current": view === place.view ? "page" : null },
    t(`desk.view.${view}`),
  ));
  head.replaceChildren(
    node("p", { class: "to-books" }, node("a", { href: "./" }, t("desk.books"))),
    node("h1", {}, book?.title || id),
    book ? facts(book) : node("p", { class: "remark" }, t("desk.not_indexed")),
    node("nav", { class: "views", "aria-label": t("desk.views") }, ...links),
  );
}

/** @param {Book} book */
function facts(book) {
  const updated = [book.last_full_ingest, book.last_incremental_update].filter(Boolean).sort().pop();
  const chunks = t("desk.chunk_count", { count: book.total_chunks, number: count(book.total_chunks) });
  return node("p", { class: "remark" }, node("code", {}, book.book_id), ` · ${chunks} · `, moment(updated));
}

function goToAnchor() {
  const target = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (target) target.scrollIntoView();
  else scrollTo(0, 0);
}

await useLanguage(likelyLanguage());
prepareTheme();
showConnection(show);
addEventListener(KEY_NEEDED, (event) => showFailure(/** @type {CustomEvent} */ (event).detail, show));
watchAddress(show);
addEventListener(BOOK_CHANGED, refreshHead);
await show();

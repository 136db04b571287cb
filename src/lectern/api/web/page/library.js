// @ts-check
// The books of this server, and the one that the reader is in.
import { read } from "../shared/api.js";

/**
 * @typedef {{module: string, title: string}} ModuleValue
 * @typedef {{module: string, chapter: number, title: string}} ChapterValue
 * @typedef {{hardware_tiers: number[], proficiency_levels: string[], layers: string[], modules: ModuleValue[], chapters: ChapterValue[]}} FilterValues
 * @typedef {{book_id: string, title: string, default: boolean, description: string, language: string, lessons: number, filters: FilterValues, suggestions: string[]}} Book
 */

/** @type {any[]} */
let books = [];
/** @type {Book | null} */
let current = null;
/** @type {Map<string, Promise<any>>} */
const outlines = new Map();

/** Whether the author's page is for this reader. */
export async function mayOpenDesk() {
  return (await read("caller")).rights.includes("admin");
}

/** The books that this reader may ask. */
export async function loadBooks() {
  books = await read("books");
  return books;
}

export function allBooks() {
  return books;
}

export function currentBook() {
  return current;
}

/** The id of the book that the reader is in; empty where no book is indexed. */
export function bookId() {
  return current?.book_id || "";
}

/**
 * Opens a book; without an id, or with an unknown one, the default.
 * @param {string | undefined} id
 */
export async function openBook(id) {
  const entry = books.find((book) => book.book_id === id) || books.find((book) => book.default) || books[0];
  if (!entry) current = null;
  else if (entry.book_id !== current?.book_id) current = await read(`books/${encodeURIComponent(entry.book_id)}`);
  return current;
}

/**
 * A book's title.
 * @param {string} id
 */
export function titleOf(id) {
  return books.find((book) => book.book_id === id)?.title || id;
}

/**
 * The lesson with this address on the site of its book.
 * @param {string} address
 * @param {string | undefined} book the only one to look in
 */
export async function lessonAt(address, book) {
  const ids = books.toSorted((one, other) => other.default - one.default).map((entry) => entry.book_id);
  for (const id of ids) {
    if (book && book !== id) continue;
    const { modules } = await loadOutline(id);
    const lessons = modules.flatMap((/** @type {any} */ module) => module.chapters.flatMap((/** @type {any} */ chapter) => chapter.lessons));
    const lesson = lessons.find((/** @type {any} */ { url }) => plainPath(url) === plainPath(address));
    if (lesson) return { book: id, lesson: lesson.parent_doc_id };
  }
  return null;
}

/** @param {string} url */
function plainPath(url) {
  const path = url.replace(/(^|\/)index\.html$/, "$1").replace(/\.html$/, "").replace(/\/+$/, "");
  try {
    return decodeURIComponent(path);
  } catch {
    return path; // not encoded as UTF-8
  }
}

/** The table of contents of a book; without an id, of the one that the reader is in. */
export function loadOutline(id = bookId()) {
  const loading = outlines.get(id) || read(`books/${encodeURIComponent(id)}/outline`);
  outlines.set(id, loading);
  loading.catch(() => outlines.delete(id));
  return loading;
}

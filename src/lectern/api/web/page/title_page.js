// @ts-check
// What a reader sees first: the book's title, what it is about, questions to begin with, and its contents.
import { node } from "../shared/dom.js";
import { t } from "../shared/strings.js";
import { allBooks, currentBook, loadOutline, mayOpenDesk } from "./library.js";
import { suggestionList } from "../shared/outcome.js";
import { outlineOf } from "./outline.js";
import { go } from "./address.js";

/**
 * @param {any} element
 * @param {(question: string) => void} ask
 */
export async function showTitlePage(element, ask) {
  const book = currentBook();
  if (!book) {
    element.replaceChildren(node("h1", {}, "Lectern"), node("p", { class: "lead" }, t("empty.no_book")), node("pre", {}, node("code", {}, "lectern ingest FOLDER")));
    await offerDesk(element, "");
    return;
  }
  const parts = [node("h1", {}, book.title), leadOf(book), bookChoice(book)];
  if (book.suggestions.length) parts.push(node("h2", {}, t("empty.suggestions")), suggestionList(book.suggestions, ask));
  const contents = node("section", { class: "contents-place", "aria-label": t("contents.title") });
  element.replaceChildren(...parts.filter(Boolean), contents);
  const outline = await loadOutline();
  const lessons = outline.modules.flatMap((/** @type {any} */ module) => module.chapters.flatMap((/** @type {any} */ chapter) => chapter.lessons));
  if (currentBook() === book) contents.replaceChildren(node("h2", {}, t("empty.contents", { count: lessons.length })), outlineOf(outline, { open: window.innerWidth > 700 }));
  await offerDesk(contents, `?${new URLSearchParams({ book: book.book_id })}`);
}

/**
 * A link to the author's page, for those who may open it.
 * @param {any} element
 * @param {string} query
 */
async function offerDesk(element, query) {
  if (await mayOpenDesk()) element.append(node("p", { class: "remark" }, node("a", { href: `desk/${query}` }, t("empty.desk"))));
}

/**
 * The title page while the server does not say which books it has.
 * @param {any} element
 */
export function showUnknownBook(element) {
  element.replaceChildren(node("h1", {}, "Lectern"), node("p", { class: "lead" }, t("empty.unknown")));
}

/**
 * What the book is about: its first sentence, and the others where there is room for them.
 * @param {import("./library.js").Book} book
 */
function leadOf({ description, language }) {
  if (!description) return null;
  const [first] = new Intl.Segmenter(language, { granularity: "sentence" }).segment(description);
  const rest = description.slice(first.segment.length);
  return node("p", { class: "lead" }, first.segment, rest && node("span", { class: "more" }, rest));
}

/** @param {import("./library.js").Book} book */
function bookChoice(book) {
  const books = allBooks();
  if (books.length < 2) return null;
  const select = node("select", { id: "book" }, ...books.map((each) => node("option", { value: each.book_id }, each.title)));
  select.value = book.book_id;
  select.addEventListener("change", () => go({ book: select.value }));
  return node("label", { class: "field book-choice" }, node("span", {}, t("empty.other_books")), select);
}

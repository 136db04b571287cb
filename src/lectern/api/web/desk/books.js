// @ts-check
// All books, and a form that begins with another.
import { node } from "../shared/dom.js";
import { t } from "../shared/strings.js";
import { addressOf, goTo } from "./address.js";
import { count, moment, remark, section, table } from "./parts.js";

/** @param {import("./main.js").Book[]} books */
export async function showBooks(books) {
  const rows = books.map((book) => [
    node("a", { href: addressOf({ book: book.book_id, view: "lessons" }) }, book.title),
    node("code", {}, book.book_id),
    count(book.total_chunks),
    moment([book.last_full_ingest, book.last_incremental_update].filter(Boolean).sort().pop()),
    node("code", {}, book.fingerprint),
  ]);
  const headings = ["title", "id", "chunks", "updated", "embedder"].map((name) => t(`desk.column.${name}`));
  return node(
    "div",
    {},
    node("h1", {}, t("desk.books")),
    rows.length ? table(headings, rows, { numbers: [2], label: t("desk.books") }) : remark(t("desk.no_books")),
    section(t("desk.add.title"), remark(t("desk.add.remark")), addForm()),
  );
}

/** A new book is a folder of the server, under an id; what would happen is shown before anything is done. */
function addForm() {
  const id = node("input", { type: "text", required: true, maxlength: 64, autocomplete: "off", spellcheck: "false" });
  const folder = node("input", { type: "text", required: true, maxlength: 1024, autocomplete: "off", spellcheck: "false" });
  const onsubmit = (/** @type {Event} */ event) => {
    event.preventDefault();
    goTo({ book: id.value.trim(), view: "ingest", source: folder.value.trim() });
  };
  return node(
    "form",
    { class: "fields", onsubmit },
    node("label", { class: "field" }, t("desk.add.id"), id),
    node("label", { class: "field wide" }, t("desk.add.folder"), folder),
    node("button", { type: "submit", class: "button" }, t("desk.add.next")),
  );
}

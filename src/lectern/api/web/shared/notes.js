// @ts-check
// The citations of an answer. Where the column has a margin they are notes beside the words that cite them; where it has
// none they are footnotes, which unfold below the paragraph.
import { node, setSanitised } from "./dom.js";
import { enhance } from "./enhance.js";
import { wordsOf } from "./quote.js";
import { t } from "./strings.js";

const GAP = 20; // pixels between two notes in the margin
const GIST = 140; // characters of the cited words that a note shows

/** @type {WeakMap<Element, () => Element>} what draws the passage of a note: most are never unfolded */
const passages = new WeakMap();
/** @type {WeakMap<Element, (claim: number) => boolean>} shows what a note is cited for by a claim; whether that is other than before */
const claims = new WeakMap();

/**
 * The list of the sources of a reply.
 * @param {any} reply
 * @param {import("./turn.js").Hooks} hooks
 */
export function notesOf(reply, hooks) {
  const list = node("ol", { class: "notes", "aria-label": t("sources.title") });
  for (const source of reply.sources) list.append(note(source, reply, hooks));
  return list;
}

/**
 * The words that a claim cites a source for, as far as the judge found them.
 * @param {any} source
 * @param {any} statement
 * @returns {string}
 */
function citedWords(source, statement) {
  const isOfSource = statement?.citations.includes(source.number) && statement.chunk_id === source.chunk_id;
  return isOfSource ? statement.evidence : "";
}

/**
 * Whether a heading says nothing but the other one; an empty one does.
 * @param {string} heading
 * @param {string} other
 */
function isSame(heading, other) {
  return !heading || heading.toLowerCase() === other.toLowerCase();
}

/**
 * @param {any} source
 * @param {any} reply
 * @param {import("./turn.js").Hooks} hooks
 */
function note(source, reply, hooks) {
  const first = reply.statements.map((/** @type {any} */ each) => citedWords(source, each)).find(Boolean) || "";
  const title = isSame(source.section, source.page_title) ? source.page_title : `${source.page_title} › ${source.section}`;
  const toggle = node(
    "button",
    { type: "button", class: "note-title", "aria-expanded": "false" },
    node("span", { class: "note-number" }, String(source.number)),
    node("span", {}, title),
  );
  // the lines of a source are those of the first claim that cites it; the words of another are looked for in the lesson
  const linkTo = (/** @type {string} */ words) => {
    const place = words === first ? source : { ...source, line_start: null, line_end: null };
    return hooks.link({ book: reply.book_id, source: place, words }, { class: "note-link" }, t("sources.open"));
  };
  const gist = first && node("p", { class: "note-gist" }, wordsOf(first, GIST));
  let [shown, link] = [first, linkTo(first)];
  const item = node("li", { class: "note", "data-source": source.number }, toggle, gist, node("div", { class: "note-body" }), link);
  passages.set(item, () => passageOf(source, reply.book_id));
  claims.set(item, (claim) => {
    const words = citedWords(source, reply.statements[claim]) || first;
    if (words === shown) return false;
    const next = linkTo(words);
    link.replaceWith(next);
    [shown, link] = [words, next];
    if (gist) gist.textContent = wordsOf(words, GIST);
    return true;
  });
  toggle.addEventListener("click", () => setOpen(item, toggle.getAttribute("aria-expanded") !== "true"));
  return item;
}

/**
 * The quoted passage.
 * @param {any} source
 * @param {string} book
 */
function passageOf(source, book) {
  const passage = node("blockquote", { class: "prose passage" });
  setSanitised(passage, source.html);
  for (const part of passage.querySelectorAll("[id]")) part.removeAttribute("id"); // the lesson itself has these anchors
  const heading = passage.querySelector(":scope > :is(h1, h2, h3, h4, h5, h6):first-child");
  if (heading && (isSame(heading.textContent, source.section) || isSame(heading.textContent, source.page_title))) heading.remove(); // the note's title says it
  enhance(passage, book);
  return passage;
}

/**
 * @param {any} item
 * @param {boolean} open
 */
function setOpen(item, open) {
  passageIn(item);
  item.classList.toggle("open", open);
  item.querySelector(".note-title").setAttribute("aria-expanded", String(open));
  const spread = item.closest(".spread");
  if (spread) placeNotes(spread);
}

/**
 * The passage of a note, which is drawn when it is first needed.
 * @param {any} item
 */
function passageIn(item) {
  const body = item.querySelector(".note-body");
  if (!body.firstChild) body.append(/** @type {() => Element} */ (passages.get(item))());
  return body.firstChild;
}

/**
 * Connects the markers in a text with its notes.
 * @param {any} spread
 */
export function connectMarkers(spread) {
  spread.addEventListener("click", (/** @type {MouseEvent} */ event) => {
    const marker = /** @type {Element} */ (event.target).closest?.("a.cite");
    if (!marker) return;
    event.preventDefault();
    const item = noteOf(spread, marker);
    if (item) showNote(spread, marker, item);
  });
  for (const [name, lit] of /** @type {const} */ ([["mouseover", true], ["mouseout", false], ["focusin", true], ["focusout", false]])) {
    spread.addEventListener(name, (/** @type {Event} */ event) => {
      const marker = /** @type {Element} */ (event.target).closest?.("a.cite");
      if (marker) noteOf(spread, marker)?.classList.toggle("lit", lit);
    });
  }
}

/**
 * @param {any} spread
 * @param {Element} marker
 */
function noteOf(spread, marker) {
  return spread.querySelector(`.note[data-source="${Number(marker.getAttribute("data-source"))}"]`);
}

/**
 * The number of the claim that a marker belongs to: the place of a claim's verdict is behind its markers.
 * @param {any} spread
 * @param {Element} marker
 */
function claimOf(spread, marker) {
  const isBehind = (/** @type {Element} */ place) => marker.compareDocumentPosition(place) & Node.DOCUMENT_POSITION_FOLLOWING;
  const place = [...spread.querySelectorAll("[data-claim]")].find(isBehind);
  return place ? Number(place.getAttribute("data-claim")) : -1;
}

/** @param {any} spread */
function hasMargin(spread) {
  return getComputedStyle(spread.querySelector(".notes")).position === "absolute";
}

/**
 * @param {any} spread
 * @param {Element} marker
 * @param {any} item
 */
function showNote(spread, marker, item) {
  const isOther = claims.get(item)?.(claimOf(spread, marker));
  if (hasMargin(spread)) {
    setOpen(item, isOther || !item.classList.contains("open"));
    return;
  }
  const paragraph = marker.closest("p, li, .table, figure, blockquote, h2, h3, h4") || marker;
  const inside = paragraph.matches("li, blockquote");
  const shown = inside ? paragraph.querySelector(":scope > .footnote") : paragraph.nextElementSibling?.matches(".footnote") && paragraph.nextElementSibling;
  const same = shown && shown.getAttribute("data-source") === item.dataset.source;
  if (shown) shown.remove();
  marker.setAttribute("aria-expanded", String(!same));
  if (same) return;
  const footnote = footnoteOf(item, marker);
  if (inside) paragraph.append(footnote);
  else paragraph.after(footnote);
  footnote.scrollIntoView({ block: "nearest" });
}

/**
 * A note, unfolded below the paragraph.
 * @param {any} item
 * @param {Element} marker
 */
function footnoteOf(item, marker) {
  const footnote = node("aside", { class: "footnote", "data-source": item.dataset.source, "aria-label": t("sources.note", { number: item.dataset.source }) });
  const gist = item.querySelector(".note-gist");
  const title = node("p", { class: "footnote-title" }, node("span", { class: "note-number" }, item.dataset.source), item.querySelector(".note-title").lastChild.textContent);
  const words = gist ? gist.cloneNode(true) : passageIn(item).cloneNode(true);
  const open = node("button", { type: "button", class: "note-link", onclick: () => item.querySelector(".note-link").click() }, t("sources.open"));
  const close = node("button", { type: "button", class: "note-link", onclick: () => {
    footnote.remove();
    marker.setAttribute("aria-expanded", "false");
    /** @type {HTMLElement} */ (marker).focus();
  } }, t("sources.fold"));
  footnote.append(title, words, node("p", { class: "footnote-links" }, open, close));
  return footnote;
}

/**
 * Puts each note of the margin beside the first marker that cites it, and none over another.
 * @param {any} spread
 */
export function placeNotes(spread) {
  const list = spread.querySelector(".notes");
  if (!list) return;
  const turn = spread.closest(".turn");
  if (!hasMargin(spread)) {
    turn?.style.removeProperty("--notes");
    return;
  }
  for (const footnote of spread.querySelectorAll(".footnote")) footnote.remove();
  for (const marker of spread.querySelectorAll("a.cite[aria-expanded]")) marker.removeAttribute("aria-expanded");
  const top = spread.getBoundingClientRect().top;
  const wanted = [...list.children].map((item) => {
    const marker = spread.querySelector(`a.cite[data-source="${item.dataset.source}"]`);
    return { item, place: marker ? marker.getBoundingClientRect().top - top : 0, height: item.offsetHeight };
  });
  let free = 0;
  for (const { item, place, height } of wanted.sort((one, other) => one.place - other.place)) {
    const at = Math.max(free, place);
    item.style.setProperty("top", `${at}px`);
    free = at + height + GAP;
  }
  turn?.style.setProperty("--notes", `${top - turn.getBoundingClientRect().top + free}px`); // the next turn begins below
}

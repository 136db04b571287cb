// @ts-check
// The page: everything that is shown follows the address.
import { byId, icon } from "../shared/dom.js";
import { offerQuestions } from "../shared/composer.js";
import { currentLanguage, likelyLanguage, supported, t, useLanguage } from "../shared/strings.js";
import { conversationPlace, go, here, onMove } from "./address.js";
import { bookId, currentBook, lessonAt, loadBooks, openBook } from "./library.js";
import { PageComposer } from "./composer.js";
import { Contents } from "./contents.js";
import { Conversation, readConversation } from "./conversation.js";
import { ConversationList } from "./conversations.js";
import { LessonView } from "./lesson.js";
import { showConnection, showFailure, showNotice } from "./notice.js";
import { prepareTheme, show as showTheme } from "./theme.js";
import { showTitlePage, showUnknownBook } from "./title_page.js";

let started = false;
let moves = 0;

const composer = new PageComposer({
  ask: (question) => ask(question),
  stop: () => conversation.stop(),
  filter: (chosen) => {
    conversation.filters = chosen;
    showState();
  },
});
const conversation = new Conversation(byId("turns"), {
  edit: (question) => composer.edit(question),
  changed: () => showState(),
  failed: (error) => showFailure(error, () => restart()),
});
const contents = new Contents();
const lesson = new LessonView({ contents: () => contents.open() });
const conversations = new ConversationList({
  gone: (thread) => thread === conversation.thread && go({ book: bookId() }),
  renamed: (thread, title) => {
    if (thread !== conversation.thread) return;
    conversation.title = title;
    showState();
  },
});

/** @param {string} question */
function ask(question) {
  const asked = conversation.ask(question);
  if (asked) composer.showFilters(false);
  if (asked && document.body.classList.contains("reading") && isNarrow()) go(conversationPlace());
  return asked;
}

/** Whether a lesson takes the conversation's place. */
function isNarrow() {
  return getComputedStyle(byId("conversation")).display === "none";
}

function showState() {
  if (!started) return;
  composer.show(conversation.busy, conversation.filters);
  const empty = !conversation.turns.length && !conversation.thread;
  byId("title-page").hidden = !empty;
  const book = currentBook();
  byId("open-contents").disabled = !book;
  byId("open-conversations").disabled = false;
  byId("new-conversation").disabled = empty;
  byId("running-title").textContent = book?.title || "Lectern";
  byId("running-title").hidden = empty; // the title page has it
  document.title = [!empty && conversation.title, book?.title || "Lectern"].filter(Boolean).join(" · ");
}

/** Shows what the address names. */
async function render() {
  const move = (moves += 1);
  const place = here();
  try {
    const changed = place.thread !== conversation.thread || !place.thread;
    const stored = place.thread && changed ? await readConversation(place.thread) : null;
    if (move !== moves) return; // the reader went on in the meantime
    const book = await openBook(stored?.book_id || (place.thread && !changed ? bookId() : place.book));
    await useLanguage(supported(book?.language || currentLanguage()));
    showTheme();
    if (move !== moves) return;
    const first = !started;
    started = true;
    if (changed) await showConversation(place.thread, stored);
    showState();
    if (first) performance.mark("interactive"); // for those who measure
    await lesson.show(place, bookId());
  } catch (error) {
    fail(error);
  }
}

/** @param {unknown} error */
function fail(error) {
  if (!started) showUnknownBook(byId("title-page"));
  showFailure(error, () => restart(), { isEmpty: !started });
}

/**
 * @param {string | undefined} thread
 * @param {any} stored
 */
async function showConversation(thread, stored) {
  if (thread && !stored && !Conversation.isWaiting(thread)) {
    conversation.clear();
    go({ ...here(), thread: undefined }, { replace: true, quiet: true });
    showNotice(t("problem.unknown_thread"));
  } else if (thread || Conversation.hasUnsent()) {
    conversation.open(stored, thread);
    byId("conversation").scrollTop = byId("conversation").scrollHeight;
    conversation.turns.at(-1)?.element.scrollIntoView({ block: "start" });
  } else if (conversation.turns.length || !conversation.thread) conversation.clear();
  if (!conversation.turns.length) showTitlePage(byId("title-page"), (question) => ask(question)).catch(() => {}); // the notice says it
}

/** Turns an address on the site of a book into that of the lesson here. An anchor alone is one of the site's first page. */
async function openSiteAddress() {
  const { at, anchor, book, lesson, thread } = here();
  if (lesson || thread || !(at || (anchor && !document.getElementById(anchor)))) return;
  const place = await lessonAt(at || "/", book);
  if (place) go({ ...place, anchor }, { replace: true, quiet: true });
  else if (at) showNotice(t("problem.unknown_lesson"));
}

async function restart() {
  const last = conversation.turns.at(-1);
  try {
    await loadBooks();
    await openSiteAddress();
    conversation.thread = undefined; // what is shown may be another reader's
    await render();
    if (last && !last.reply) composer.edit(last.question); // it was not answered yet
  } catch (error) {
    fail(error);
  }
}

function prepareButtons() {
  for (const [id, drawing] of [["open-contents", "search"], ["open-conversations", "talks"], ["new-conversation", "add"]]) byId(id).prepend(icon(drawing));
  for (const close of document.querySelectorAll("dialog .close")) {
    close.append(icon("close"));
    close.addEventListener("click", () => /** @type {HTMLDialogElement} */ (close.closest("dialog")).close());
  }
  for (const dialog of document.querySelectorAll("dialog")) {
    dialog.addEventListener("click", (event) => event.target === dialog && dialog.close()); // beside it
  }
  byId("drop-passage").append(icon("close"));
  byId("open-contents").addEventListener("click", () => contents.open());
  byId("open-conversations").addEventListener("click", () => conversations.open());
  byId("new-conversation").addEventListener("click", () => {
    go({ book: bookId() });
    composer.focus();
  });
  document.addEventListener("keydown", (event) => {
    const typing = /** @type {Element} */ (event.target).closest?.("input, textarea, select, dialog");
    if (event.key === "/" && !typing && !event.metaKey && !event.ctrlKey) {
      event.preventDefault();
      contents.open();
    }
    if (event.key === "Escape" && !typing && here().lesson) lesson.close();
  });
}

await useLanguage(likelyLanguage());
prepareTheme();
prepareButtons();
showConnection(() => (started ? lesson.retry() : restart()));
offerQuestions((words) => {
  if (isNarrow()) lesson.close();
  composer.about(words);
});
onMove(render);
await restart();

// The plain page: asks a question, shows the reply with its numbered citations, opens a lesson. Text from the book or the
// model only ever becomes text nodes, so nothing in it can act.
"use strict";

const talk = document.getElementById("talk");
const lessonPane = document.getElementById("lesson");
const form = document.getElementById("ask");
const input = document.getElementById("question");
const button = form.querySelector("button");
const shelf = document.getElementById("book");
const fresh = document.getElementById("fresh");
const keyForm = document.getElementById("key");

function node(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

// A published page opens there; a book without an address opens here.
function linkOf(source) {
  const published = /^https?:\/\//.test(source.url);
  if (published) return source.url;
  const query = new URLSearchParams({ book: shelf.value, lesson: source.parent_doc_id });
  return `?${query}#${encodeURIComponent(source.chunk_id || "")}`;
}

function openIn(source) {
  return { href: linkOf(source), target: "_blank", rel: "noopener noreferrer" };
}

function replyText(text, sources) {
  const box = node("div", { class: "reply" });
  for (const part of text.split(/(`+[^`\n]*`+|\[\d+\](?!\())/)) {  // code cites nothing
    const marker = /^\[(\d+)\]$/.exec(part);
    const source = marker && sources[Number(marker[1]) - 1];
    if (source) box.append(node("a", { class: "cite", title: source.breadcrumb, ...openIn(source) }, part));
    else box.append(part);
  }
  return box;
}

function sourceList(sources) {
  const list = node("ol", { class: "sources" });
  for (const source of sources) {
    list.append(node("li", {}, node("a", openIn(source), source.breadcrumb), node("blockquote", {}, source.chunk_text)));
  }
  return list;
}

// A turn as it grows: the question, then checked text, then the reply, which replaces what was there.
function begin(question) {
  const turn = node("div", { class: "turn" }, node("h2", {}, question));
  const text = node("div", { class: "reply", "aria-busy": "true" }, "…");
  turn.append(text);
  talk.append(turn);
  turn.scrollIntoView({ block: "start" });
  let shown = "";
  return {
    add(more) {
      shown += more;
      text.textContent = shown;
    },
    finish(reply) {
      turn.replaceChildren(node("h2", {}, question), ...parts(reply));
      turn.className = reply.should_answer ? "turn answer" : "turn refusal";
    },
    fail(message) {
      turn.className = "turn error";
      turn.replaceChildren(node("h2", {}, question), node("div", { class: "reply", role: "alert" }, message));
    },
  };
}

function parts(reply) {
  const shown = [replyText(reply.response, reply.sources)];
  if (reply.should_answer) {
    shown.push(node("p", { class: "quiet" }, node("span", { class: "level" }, `${reply.confidence_level} confidence`), ` · ${reply.model}`));
    shown.push(sourceList(reply.sources));
    return shown;
  }
  // Where the filters, or the choice of the book, hid the answer, that says more than what merely comes near.
  if (reply.outside_scope.length) shown.push(lessonLine("Outside your filters the book has it: ", reply.outside_scope));
  else if (reply.nearest.length) shown.push(lessonLine("Nearest lessons: ", reply.nearest));
  if (reply.other_books.length) shown.push(node("p", { class: "quiet" }, `Another book covers it: ${reply.other_books.join(", ")}`));
  return shown;
}

function lessonLine(said, lessons) {
  const line = node("p", { class: "quiet" }, said);
  lessons.forEach((lesson, i) => line.append(i ? " · " : "", node("a", openIn(lesson), lesson.title)));
  return line;
}

async function ask(question) {
  button.disabled = true;
  const turn = begin(question);
  try {
    const body = { message: question };
    if (session()) body.session_id = session();
    else if (shelf.value) body.book_id = shelf.value;
    const reply = await follow(body, (name, data) => name === "delta" && turn.add(data.text));
    turn.finish(reply);
    remember(reply.session_id);
    input.value = "";
  } catch (problem) {
    turn.fail(`That did not work: ${problem.message}. Your question is still in the box; try again.`);
    if (problem.status === 401) askForKey();
  } finally {
    button.disabled = false;
    input.focus();
  }
}

// The conversation lives as long as the tab; the server keeps it longer.
function session() {
  return sessionStorage.getItem("session");
}

function remember(id) {
  if (id) sessionStorage.setItem("session", id);
  else sessionStorage.removeItem("session");
  fresh.hidden = !id;
}

async function takeUp() {
  if (!session()) return;
  try {
    const thread = await call(`threads/${session()}/export`);
    shelf.value = thread.book_id;
    for (const turn of thread.turns) begin(turn.question).finish(turn.reply);
    remember(session());
  } catch {
    remember(null); // gone, or another key's: begin anew
  }
}

function askForKey() {
  keyForm.hidden = false;
  keyForm.querySelector("input").focus();
}

async function openLesson(id, book) {
  lessonPane.hidden = false;
  try {
    const asked = book ? `?${new URLSearchParams({ book_id: book })}` : "";
    const lesson = await call(`lessons/${encodeURIComponent(id)}${asked}`);
    const cited = decodeURIComponent(location.hash.slice(1));
    lessonPane.append(node("h2", {}, lesson.title), node("p", { class: "quiet" }, lesson.breadcrumb));
    for (const piece of lesson.chunks) {
      const shown = node("div", { class: piece.id === cited ? "piece cited" : "piece", id: piece.id }, piece.text);
      lessonPane.append(shown);
      if (piece.id === cited) shown.scrollIntoView({ block: "center" });
    }
  } catch (problem) {
    lessonPane.append(node("p", { role: "alert" }, `This lesson cannot be opened: ${problem.message}.`));
  }
}

form.addEventListener("submit", (event) => {
  event.preventDefault();
  const question = input.value.trim();
  if (question && !button.disabled) ask(question);
});

fresh.addEventListener("click", () => {
  remember(null);
  talk.replaceChildren();
  input.focus();
});

shelf.addEventListener("change", () => fresh.click());  // a conversation is about one book

keyForm.addEventListener("submit", (event) => {
  event.preventDefault();
  sessionStorage.setItem("key", new FormData(keyForm).get("key").trim());
  location.reload();
});

// One book needs no choice; of several the reader picks one, or comes with ?book=ID.
async function openShelf(wanted) {
  const books = await call("books");
  for (const book of books) shelf.append(node("option", { value: book.book_id }, book.title));
  if (books.some((book) => book.book_id === wanted)) shelf.value = wanted;
  shelf.hidden = books.length < 2;
  document.getElementById("title").textContent = books.length === 1 ? books[0].title : books.length ? "" : "No book is indexed yet.";
}

const given = new URLSearchParams(location.search);
openShelf(given.get("book")).then(takeUp).catch((problem) => {
  begin("").fail(`The books cannot be listed: ${problem.message}.`);
  if (problem.status === 401) askForKey();
});
if (given.get("lesson")) openLesson(given.get("lesson"), given.get("book"));

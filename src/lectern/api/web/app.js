// The plain page: asks a question, shows the reply with its numbered citations, opens a lesson. Text from the book or the
// model only ever becomes text nodes, so nothing in it can act.
"use strict";

const talk = document.getElementById("talk");
const lessonPane = document.getElementById("lesson");
const form = document.getElementById("ask");
const input = document.getElementById("question");
const button = form.querySelector("button");
const shelf = document.getElementById("book");

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

function show(question, reply) {
  const turn = node("div", { class: reply.should_answer ? "turn answer" : "turn refusal" }, node("h2", {}, question));
  turn.append(replyText(reply.response, reply.sources));
  if (reply.should_answer) {
    turn.append(node("p", { class: "quiet" }, node("span", { class: "level" }, `${reply.confidence_level} confidence`), ` · ${reply.model}`));
    turn.append(sourceList(reply.sources));
  } else if (reply.nearest.length) {
    const near = node("p", { class: "quiet" }, "Nearest lessons: ");
    reply.nearest.forEach((lesson, i) => near.append(i ? " · " : "", node("a", openIn(lesson), lesson.title)));
    turn.append(near);
  }
  talk.append(turn);
  turn.scrollIntoView({ block: "start" });
}

function showError(question, message) {
  talk.append(node("div", { class: "turn error" }, node("h2", {}, question), node("div", { class: "reply", role: "alert" }, message)));
}

async function call(path, options) {
  const response = await fetch(path, options);
  const body = await response.json();
  if (!response.ok) throw new Error(body.detail || response.statusText);
  return body;
}

async function ask(question) {
  button.disabled = true;
  try {
    const body = JSON.stringify({ message: question, book_id: shelf.value || null });
    show(question, await call("chat/run", { method: "POST", headers: { "Content-Type": "application/json" }, body }));
    input.value = "";
  } catch (problem) {
    showError(question, `That did not work: ${problem.message}. Your question is still in the box; try again.`);
  } finally {
    button.disabled = false;
    input.focus();
  }
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

// One book needs no choice; of several the reader picks one, or comes with ?book=ID.
async function openShelf(wanted) {
  const books = await call("books");
  for (const book of books) shelf.append(node("option", { value: book.book_id }, book.title));
  if (books.some((book) => book.book_id === wanted)) shelf.value = wanted;
  shelf.hidden = books.length < 2;
  document.getElementById("title").textContent = books.length === 1 ? books[0].title : books.length ? "" : "No book is indexed yet.";
}

const given = new URLSearchParams(location.search);
openShelf(given.get("book")).catch((problem) => showError("", `The books cannot be listed: ${problem.message}.`));
if (given.get("lesson")) openLesson(given.get("lesson"), given.get("book"));

// The plain page: asks a question, shows the reply with its numbered citations, opens a lesson. Text from the book or the
// model only ever becomes text nodes, so nothing in it is run.
"use strict";

const conversationPane = document.getElementById("conversation");
const lessonPane = document.getElementById("lesson");
const form = document.getElementById("ask");
const input = document.getElementById("question");
const button = form.querySelector("button");
const bookSelect = document.getElementById("book");
const newConversation = document.getElementById("new-conversation");
const keyForm = document.getElementById("key");

function node(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

// A published page opens there; a book without an address opens here.
function linkOf(source) {
  const published = /^https?:\/\//.test(source.url);
  if (published) return source.url;
  const query = new URLSearchParams({ book: bookSelect.value, lesson: source.parent_doc_id });
  return `?${query}#${encodeURIComponent(source.chunk_id || "")}`;
}

function openIn(source) {
  return { href: linkOf(source), target: "_blank", rel: "noopener noreferrer" };
}

function citedText(text, sources) {
  return text.split(/(`+[^`\n]*`+|\[\d+\](?!\())/).map((part) => {  // code cites nothing
    const marker = /^\[(\d+)\]$/.exec(part);
    const source = marker && sources[Number(marker[1]) - 1];
    return source ? node("a", { class: "cite", title: source.breadcrumb, ...openIn(source) }, part) : part;
  });
}

// The text as it was written; behind each claim a quiet tick, or a flag with what the book says.
function replyText(text, sources, statements) {
  const box = node("div", { class: "reply" });
  const characters = Array.from(text);  // positions count characters, not the halves of JavaScript's strings
  let place = 0;
  for (const statement of (statements || []).filter(({ end }) => Number.isInteger(end))) {  // older replies have none
    box.append(...citedText(characters.slice(place, statement.end).join(""), sources), ...verdictMark(statement));
    place = Math.max(place, statement.end);
  }
  box.append(...citedText(characters.slice(place).join(""), sources));
  return box;
}

function verdictMark(statement) {
  const words = statement.evidence ? `The book: “${statement.evidence}”` : "";
  if (statement.verdict === "supported") {
    const label = words || "The book says this.";
    return [node("span", { class: "verdict supported", title: label, role: "img", "aria-label": label }, "\u2009✓")];
  }
  if (statement.verdict !== "doubtful") return [];
  const flag = node("summary", { "aria-label": "Doubtful: show why", title: statement.reason }, "⚑");
  return [node("details", { class: "verdict doubtful" }, flag, ` ${statement.reason} ${words} `)];
}

function sourceList(sources) {
  const list = node("ol", { class: "sources" });
  for (const source of sources) {
    list.append(node("li", {}, node("a", openIn(source), source.breadcrumb), node("blockquote", {}, source.chunk_text)));
  }
  return list;
}

// A turn as it grows: the question, the text as it comes, verdicts, then the reply, which replaces what was there.
function begin(question) {
  const turn = node("div", { class: "turn" }, node("h2", {}, question));
  const textBox = node("div", { class: "reply", "aria-busy": "true" }, "…");
  turn.append(textBox);
  conversationPane.append(turn);
  turn.scrollIntoView({ block: "start" });
  let written = "";
  const statements = [];
  return {
    add(text) {
      written += text;
      textBox.textContent = written;
    },
    judge(statement) {
      statements[statement.claim] = statement;
      textBox.replaceChildren(...replyText(written, [], statements.filter(Boolean)).childNodes);
    },
    finish(reply) {
      turn.replaceChildren(node("h2", {}, question), ...replyParts(reply));
      turn.className = reply.should_answer ? "turn answer" : "turn refusal";
    },
    fail(message) {
      turn.className = "turn error";
      turn.replaceChildren(node("h2", {}, question), node("div", { class: "reply", role: "alert" }, message));
    },
  };
}

function replyParts(reply) {
  const elements = [replyText(reply.response, reply.sources, reply.statements)];
  if (reply.cut) elements.push(node("p", { class: "quiet" }, "The model stopped early: the answer is not complete."));
  if (reply.should_answer) {
    elements.push(node("p", { class: "quiet" }, node("span", { class: "level" }, `${reply.confidence_level} confidence`), ` · ${reply.model}`));
    elements.push(sourceList(reply.sources));
    return elements;
  }
  // Where the filters, or the choice of the book, hid the answer, that says more than what merely comes near.
  if (reply.outside_scope.length) elements.push(lessonLine("Outside your filters the book has it: ", reply.outside_scope));
  else if (reply.nearest.length) elements.push(lessonLine("Nearest lessons: ", reply.nearest));
  if (reply.other_books.length) elements.push(node("p", { class: "quiet" }, `Another book covers it: ${reply.other_books.join(", ")}`));
  return elements;
}

function lessonLine(label, lessons) {
  const line = node("p", { class: "quiet" }, label);
  lessons.forEach((lesson, i) => line.append(i ? " · " : "", node("a", openIn(lesson), lesson.title)));
  return line;
}

async function ask(question) {
  button.disabled = true;
  const turn = begin(question);
  try {
    const body = { message: question };
    if (session()) body.session_id = session();
    else if (bookSelect.value) body.book_id = bookSelect.value;
    const reply = await follow(body, (name, data) => {
      if (name === "delta") turn.add(data.text);
      if (name === "verdict") turn.judge(data);
    });
    turn.finish(reply);
    storeSession(reply.session_id);
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

function storeSession(id) {
  if (id) sessionStorage.setItem("session", id);
  else sessionStorage.removeItem("session");
  newConversation.hidden = !id;
}

async function resumeConversation() {
  if (!session()) return;
  try {
    const thread = await call(`threads/${session()}/export`);
    bookSelect.value = thread.book_id;
    for (const turn of thread.turns) begin(turn.question).finish(turn.reply);
    storeSession(session());
  } catch {
    storeSession(null); // it was deleted, or belongs to another key
  }
}

function askForKey() {
  keyForm.hidden = false;
  keyForm.querySelector("input").focus();
}

async function openLesson(id, book) {
  lessonPane.hidden = false;
  try {
    const query = book ? `?${new URLSearchParams({ book_id: book })}` : "";
    const lesson = await call(`lessons/${encodeURIComponent(id)}${query}`);
    const cited = decodeURIComponent(location.hash.slice(1));
    lessonPane.append(node("h2", {}, lesson.title), node("p", { class: "quiet" }, lesson.breadcrumb));
    for (const piece of lesson.chunks) {
      const pieceBox = node("div", { class: piece.id === cited ? "piece cited" : "piece", id: piece.id }, piece.text);
      lessonPane.append(pieceBox);
      if (piece.id === cited) pieceBox.scrollIntoView({ block: "center" });
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

newConversation.addEventListener("click", () => {
  storeSession(null);
  conversationPane.replaceChildren();
  input.focus();
});

bookSelect.addEventListener("change", () => newConversation.click());  // a conversation is about one book

keyForm.addEventListener("submit", (event) => {
  event.preventDefault();
  sessionStorage.setItem("key", new FormData(keyForm).get("key").trim());
  location.reload();
});

// One book needs no choice; of several the reader picks one, or comes with ?book=ID.
async function listBooks(preferred) {
  const books = await call("books");
  for (const book of books) bookSelect.append(node("option", { value: book.book_id }, book.title));
  if (books.some((book) => book.book_id === preferred)) bookSelect.value = preferred;
  bookSelect.hidden = books.length < 2;
  document.getElementById("title").textContent = books.length === 1 ? books[0].title : books.length ? "" : "No book is indexed yet.";
}

const parameters = new URLSearchParams(location.search);
listBooks(parameters.get("book")).then(resumeConversation).catch((problem) => {
  begin("").fail(`The books cannot be listed: ${problem.message}.`);
  if (problem.status === 401) askForKey();
});
if (parameters.get("lesson")) openLesson(parameters.get("lesson"), parameters.get("book"));

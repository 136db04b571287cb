// The plain page: asks a question, shows the reply with its numbered citations, opens a lesson. Text from the book or the
// model only ever becomes text nodes, so nothing in it can act.
"use strict";

const talk = document.getElementById("talk");
const lessonPane = document.getElementById("lesson");
const form = document.getElementById("ask");
const input = document.getElementById("question");
const button = form.querySelector("button");

function node(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

// A published page opens there; a book without an address opens here.
function linkOf(source) {
  const published = /^https?:\/\//.test(source.url);
  return published ? source.url : `?lesson=${encodeURIComponent(source.parent_doc_id)}#${encodeURIComponent(source.chunk_id || "")}`;
}

function openIn(source) {
  return { href: linkOf(source), target: "_blank", rel: "noopener noreferrer" };
}

function replyText(text, sources) {
  const box = node("div", { class: "reply" });
  for (const part of text.split(/(\[\d+\])/)) {
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
    const body = JSON.stringify({ message: question });
    show(question, await call("chat/run", { method: "POST", headers: { "Content-Type": "application/json" }, body }));
    input.value = "";
  } catch (problem) {
    showError(question, `That did not work: ${problem.message}. Your question is still in the box; try again.`);
  } finally {
    button.disabled = false;
    input.focus();
  }
}

async function openLesson(id) {
  lessonPane.hidden = false;
  try {
    const lesson = await call(`lessons/${encodeURIComponent(id)}`);
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

call("books").then((books) => {
  document.getElementById("book").textContent = books.map((book) => book.title).join(" · ") || "No book is indexed yet.";
});

const wanted = new URLSearchParams(location.search).get("lesson");
if (wanted) openLesson(wanted);

// The client of the API: sends the key, reads Server-Sent Events, and resumes a broken stream where it broke. A run belongs
// to the server, so no question is asked twice.
"use strict";

const TRIES = 5;

class Refused extends Error {
  constructor(status, detail) {
    super(detail);
    this.status = status;
  }
}

// The key is stored until the tab is closed, and is never part of an address.
function headersWith(extra) {
  const key = sessionStorage.getItem("key");
  return key ? { ...extra, Authorization: `Bearer ${key}` } : extra;
}

async function request(path, options = {}) {
  const response = await fetch(path, { ...options, headers: headersWith(options.headers || {}) });
  if (response.ok) return response;
  let detail = response.statusText;
  try {
    detail = (await response.json()).detail || detail;
  } catch {
    // the body is no JSON: the status text is shown
  }
  throw new Refused(response.status, detail);
}

async function call(path, options) {
  return (await request(path, options)).json();
}

// Calls `onEvent(name, body, id)` for every event; ends with the stream.
async function readEvents(response, onEvent) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    rest += value;
    const blocks = rest.split("\n\n");
    rest = blocks.pop();
    for (const block of blocks) {
      const event = { name: "message", data: "", id: "" };
      for (const line of block.split("\n")) {
        const colon = line.indexOf(": ");
        if (colon > 0) event[{ event: "name", data: "data", id: "id" }[line.slice(0, colon)] || "ignored"] = line.slice(colon + 2);
      }
      if (event.data) onEvent(event.name, JSON.parse(event.data), event.id);
    }
  }
}

// Asks a question and returns its reply. A connection that breaks is opened again.
async function follow(body, onEvent) {
  const key = crypto.randomUUID();
  let run = null, lastId = "", reply = null, error = null;
  const handleEvent = (name, data, id) => {
    lastId = id || lastId;
    if (name === "status" && data.run_id) run = data.run_id;
    if (name === "reply") reply = data;
    else if (name === "error") error = new Refused(data.status, data.detail);
    else onEvent(name, data);
  };
  for (let tries = 0; !reply && !error; tries += 1) {
    try {
      const response = run
        ? await request(`chat/stream/${run}`, { headers: { "Last-Event-ID": lastId } })
        : await request("chat/stream", {
            method: "POST",
            headers: { "Content-Type": "application/json", "Idempotency-Key": key },
            body: JSON.stringify(body),
          });
      await readEvents(response, handleEvent);
    } catch (problem) {
      if (problem instanceof Refused || tries >= TRIES) throw problem;
    }
    if (!reply && !error) {
      if (tries >= TRIES) throw new Error("the connection broke off");
      await new Promise((wake) => setTimeout(wake, 300 * 2 ** tries));
    }
  }
  if (error) throw error;
  return reply;
}

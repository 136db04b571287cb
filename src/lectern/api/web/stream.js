// Talks to the API: one place that knows the key, reads Server-Sent Events, and takes a broken stream up again where it
// broke. A run belongs to the server, so nothing is asked twice.
"use strict";

const TRIES = 5;

class Refused extends Error {
  constructor(status, detail) {
    super(detail);
    this.status = status;
  }
}

// A key lives as long as the tab, and never in an address.
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
    // a proxy's page says less than the status does
  }
  throw new Refused(response.status, detail);
}

async function call(path, options) {
  return (await request(path, options)).json();
}

// Calls `seen(name, body, id)` for every event; ends with the stream.
async function readEvents(response, seen) {
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
        const at = line.indexOf(": ");
        if (at > 0) event[{ event: "name", data: "data", id: "id" }[line.slice(0, at)] || "other"] = line.slice(at + 2);
      }
      if (event.data) seen(event.name, JSON.parse(event.data), event.id);
    }
  }
}

// Asks a question and follows it to its reply, whatever the network does in between.
async function follow(body, seen) {
  const key = crypto.randomUUID();
  let run = null, last = "", reply = null, failed = null;
  const note = (name, data, id) => {
    last = id || last;
    if (name === "status" && data.run_id) run = data.run_id;
    if (name === "reply") reply = data;
    else if (name === "error") failed = new Refused(data.status, data.detail);
    else seen(name, data);
  };
  for (let tries = 0; !reply && !failed; tries += 1) {
    try {
      const response = run
        ? await request(`chat/stream/${run}`, { headers: { "Last-Event-ID": last } })
        : await request("chat/stream", {
            method: "POST",
            headers: { "Content-Type": "application/json", "Idempotency-Key": key },
            body: JSON.stringify(body),
          });
      await readEvents(response, note);
    } catch (problem) {
      if (problem instanceof Refused || tries >= TRIES) throw problem;
    }
    if (!reply && !failed) {
      if (tries >= TRIES) throw new Error("the connection broke off");
      await new Promise((wake) => setTimeout(wake, 300 * 2 ** tries));
    }
  }
  if (failed) throw failed;
  return reply;
}

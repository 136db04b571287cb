// @ts-check
// The client of the API: sends the key, reads Server-Sent Events, and resumes a broken stream where it broke. A run
// belongs to the server, so no question is asked twice. Addresses are relative to the folder that serves these files.

const ROOT = new URL("../", import.meta.url);
const FIRST_WAIT = 300;
const LONGEST_WAIT = 4000; // milliseconds between two attempts to reach the server
const ATTEMPTS = 90; // about five minutes
const AWAY = [502, 503, 504]; // a proxy whose server is gone, or a server that is just starting

/** An error that the server reported. */
export class Problem extends Error {
  /**
   * @param {number} status
   * @param {string} detail
   * @param {number | null} retryAfter seconds
   * @param {string | null} code
   */
  constructor(status, detail, retryAfter = null, code = null) {
    super(detail);
    this.status = status;
    this.retryAfter = retryAfter;
    this.code = code;
  }
}

/** The server could not be reached. */
export class Unreachable extends Error {}

/** @type {Set<(reachable: boolean) => void>} */
const watchers = new Set();
let reachable = true;

/**
 * Calls back when the server is lost, and when it is there again.
 * @param {(reachable: boolean) => void} watcher
 */
export function watchConnection(watcher) {
  watchers.add(watcher);
}

/** @param {boolean} now */
function setReachable(now) {
  if (now === reachable) return;
  reachable = now;
  for (const watcher of watchers) watcher(now);
  if (!now) lookForServer();
}

async function lookForServer() {
  for (let wait = FIRST_WAIT; !reachable; wait = Math.min(wait * 2, LONGEST_WAIT)) {
    await sleep(wait);
    try {
      const response = await fetch(new URL("health/live", ROOT), { cache: "no-store" });
      if (response.ok) setReachable(true);
    } catch {
      // still away
    }
  }
}

/**
 * Waits; the browser's word that it is online again ends the wait.
 * @param {number} milliseconds
 * @param {AbortSignal} [signal]
 */
function sleep(milliseconds, signal) {
  return new Promise((wake) => {
    const timer = setTimeout(done, milliseconds);
    function done() {
      clearTimeout(timer);
      window.removeEventListener("online", done);
      signal?.removeEventListener("abort", done);
      wake(undefined);
    }
    window.addEventListener("online", done);
    signal?.addEventListener("abort", done);
  });
}

// The key is stored until the tab is closed, and is never part of an address. A widget brings a storage of its own.
export const credentials = {
  /** @type {Pick<Storage, "getItem" | "setItem" | "removeItem"> | null} */
  storage: null,
  get items() {
    return this.storage || sessionStorage;
  },
  get key() {
    return this.items.getItem("key");
  },
  /** @param {string} key */
  use(key) {
    this.items.setItem("key", key);
    this.items.removeItem("reader");
  },
};

/** @param {Record<string, string>} extra */
async function headersWith(extra) {
  const { key } = credentials;
  if (!key) return extra;
  const headers = { ...extra, Authorization: `Bearer ${key}` };
  if (!key.startsWith("lp_")) return headers;
  return { ...headers, "X-Reader-Token": await readerToken(key) };
}

/**
 * A publishable key is shared by many browsers; the token makes this one a reader with conversations of its own.
 * @param {string} key
 */
async function readerToken(key) {
  const stored = credentials.items.getItem("reader");
  if (stored) return stored;
  const response = await reach("readers", { method: "POST", headers: { Authorization: `Bearer ${key}` } });
  if (!response.ok) throw await problemOf(response);
  const token = (await response.json()).reader_token;
  credentials.items.setItem("reader", token);
  return token;
}

/**
 * @param {string} path
 * @param {RequestInit} options
 */
async function reach(path, options) {
  try {
    const response = await fetch(new URL(path, ROOT), options);
    setReachable(true);
    return response;
  } catch (error) {
    if (error instanceof DOMException && error.name === "AbortError") throw error;
    if (await refusesOrigin()) throw new Problem(403, "", null, "wrong_origin");
    setReachable(false);
    throw new Unreachable();
  }
}

// Whether the server is there and refuses pages of this origin only. The browser does not tell: it is so if a file that
// every page may load comes, and an answer of the API does not.
async function refusesOrigin() {
  if (ROOT.origin === location.origin) return false;
  const comes = (/** @type {string} */ path) => fetch(new URL(path, ROOT), { cache: "no-store" }).then(({ ok }) => ok, () => false);
  return (await comes("widget.js")) && !(await comes("health/live"));
}

/** @param {Response} response */
async function problemOf(response) {
  const wait = Number(response.headers.get("Retry-After"));
  let detail = response.statusText;
  let code = null;
  try {
    const body = await response.json();
    detail = body.detail || detail;
    code = body.code || null;
  } catch {
    // the body is no JSON: the status text is shown
  }
  return new Problem(response.status, detail, Number.isFinite(wait) && wait > 0 ? wait : null, code);
}

/**
 * A response, or a `Problem`.
 * @param {string} path
 * @param {{method?: string, headers?: Record<string, string>, body?: string, signal?: AbortSignal}} [options]
 */
export async function request(path, options = {}) {
  const response = await reach(path, { ...options, headers: await headersWith(options.headers || {}) });
  if (response.ok) return response;
  if (response.status === 401) credentials.items.removeItem("reader"); // it may have expired
  throw await problemOf(response);
}

/**
 * The JSON at an address.
 * @param {string} path
 * @param {AbortSignal} [signal]
 * @returns {Promise<any>}
 */
export async function read(path, signal) {
  return (await request(path, { signal })).json();
}

/**
 * Sends JSON; the answer's JSON, or null where there is none.
 * @param {string} method
 * @param {string} path
 * @param {object} [body]
 * @param {AbortSignal} [signal]
 * @returns {Promise<any>}
 */
export async function send(method, path, body, signal) {
  const headers = { "Content-Type": "application/json" };
  const response = await request(path, { method, headers, body: body && JSON.stringify(body), signal });
  return response.status === 204 ? null : response.json();
}

/**
 * Calls `onEvent(name, data, id)` for every event; ends with the stream.
 * @param {Response} response
 * @param {(name: string, data: any, id: string) => void} onEvent
 */
export async function readEvents(response, onEvent) {
  if (!response.body) return;
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    rest += value;
    const frames = rest.split("\n\n");
    rest = frames.pop() || "";
    for (const frame of frames) {
      const fields = { event: "message", data: "", id: "" };
      for (const line of frame.split("\n")) {
        const [, name, text] = /^(event|data|id): ?(.*)$/.exec(line) || [];
        if (name) fields[/** @type {"event"} */ (name)] = text;
      }
      if (fields.data) onEvent(fields.event, JSON.parse(fields.data), fields.id);
    }
  }
}

/**
 * A question on its way. With it a stream can be resumed, also after the page was loaded again.
 * @typedef {{body: Record<string, any>, key: string, run?: string, thread?: string}} Pending
 */

/**
 * A question, ready to be sent once however often the attempt is repeated.
 * @param {Record<string, any>} body
 * @returns {Pending}
 */
export function pendingQuestion(body) {
  return { body: { ...body, html: true }, key: uniqueId() };
}

/** `crypto.randomUUID` exists on secure pages alone. */
function uniqueId() {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/**
 * Asks a question and returns its reply. A connection that breaks is opened again, where it broke.
 * @param {Pending} pending
 * @param {(name: string, data: any) => void} onEvent
 * @param {AbortSignal} [signal] ends following; the run goes on
 * @returns {Promise<any>}
 */
export async function follow(pending, onEvent, signal) {
  let lastId = "";
  /** @type {any} */
  let reply = null;
  /** @type {Problem | null} */
  let problem = null;
  const handle = (/** @type {string} */ name, /** @type {any} */ data, /** @type {string} */ id) => {
    lastId = id || lastId;
    if (name === "status" && data.run_id) Object.assign(pending, { run: data.run_id, thread: data.session_id });
    if (name === "reply") reply = data;
    else if (name === "error") problem = new Problem(data.status, data.detail, null, data.code);
    else onEvent(name, data);
  };
  for (let attempt = 0; !reply && !problem; attempt += 1) {
    if (attempt) await sleep(Math.min(FIRST_WAIT * 2 ** (attempt - 1), LONGEST_WAIT), signal);
    if (signal?.aborted) throw new DOMException("", "AbortError");
    try {
      await readEvents(await openStream(pending, lastId, signal), handle);
    } catch (error) {
      if (!isPassing(error, pending) || attempt >= ATTEMPTS) throw error;
      if (!(error instanceof Problem)) setReachable(false);
    }
  }
  if (problem) throw problem;
  return reply;
}

/**
 * @param {Pending} pending
 * @param {string} lastId
 * @param {AbortSignal} [signal]
 */
function openStream(pending, lastId, signal) {
  if (pending.run) {
    /** @type {Record<string, string>} */
    const headers = lastId ? { "Last-Event-ID": lastId } : {};
    return request(`chat/stream/${pending.run}?html=true`, { headers, signal });
  }
  const headers = { "Content-Type": "application/json", "Idempotency-Key": pending.key };
  return request("chat/stream", { method: "POST", headers, body: JSON.stringify(pending.body), signal });
}

/**
 * Whether another attempt may succeed: the connection broke, or what stands before the server says that it is away.
 * @param {unknown} error
 * @param {Pending} pending
 */
function isPassing(error, pending) {
  if (error instanceof Problem) return Boolean(pending.run) && AWAY.includes(error.status);
  return error instanceof Unreachable || error instanceof TypeError; // a stream that breaks is a TypeError
}

// @ts-check
// A job that runs: its progress from Server-Sent Events, and a button that cancels it.
import { node } from "../shared/dom.js";
import { Problem, read, readEvents, request, send } from "../shared/api.js";
import { t, timeOf } from "../shared/strings.js";
import { count } from "./parts.js";

const WAIT = 1000; // milliseconds before a broken stream is opened again

/** @param {{status: string}} job */
export function isOpen(job) {
  return job.status === "queued" || job.status === "running";
}

/** The state of one job as it changes. */
export class JobView {
  /**
   * @param {any} job
   * @param {AbortSignal} signal ends following; the job itself goes on
   */
  constructor(job, signal) {
    this.job = job;
    this.signal = signal;
    this.lastId = "";
    this.words = node("p", { class: "job-words", role: "status" }, t("desk.status.queued"));
    this.progress = node("progress", { "aria-label": t("desk.ingest.progress") });
    this.cancel = node("button", { type: "button", class: "button", onclick: () => this.#cancel() }, t("desk.ingest.cancel"));
    this.element = node("div", { class: "job" }, node("h2", {}, t("desk.ingest.job", { number: job.job_id })), this.words, this.progress, this.cancel);
  }

  /** Follows the job to its end, over as many connections as it takes; the job as it ended. */
  async follow() {
    while (isOpen(this.job) && !this.signal.aborted) {
      try {
        /** @type {Record<string, string>} */
        const headers = this.lastId ? { "Last-Event-ID": this.lastId } : {};
        const response = await request(`ingestions/${this.job.job_id}/events`, { headers, signal: this.signal });
        await readEvents(response, (name, data, id) => this.#handle(name, data, id));
      } catch (error) {
        if (this.signal.aborted || (error instanceof Problem && error.status < 500)) throw error;
      }
      if (!isOpen(this.job)) break;
      await new Promise((wake) => setTimeout(wake, WAIT));
    }
    return this.signal.aborted ? this.job : read(`ingestions/${this.job.job_id}`, this.signal);
  }

  /**
   * @param {string} name
   * @param {any} data
   * @param {string} id
   */
  #handle(name, data, id) {
    this.lastId = id || this.lastId;
    if (data.job) this.job = data.job;
    if (name === "planned") {
      const { new: added, modified, moved, deleted, unchanged } = data.files;
      this.words.textContent = t("desk.ingest.planned", { added, modified, moved, deleted, unchanged });
    }
    if (name === "progress" && data.total !== undefined) {
      this.progress.max = Math.max(1, data.total);
      this.progress.value = data.done;
      const { waiting_since: since, waiting_for: reason } = this.job;
      this.words.textContent = since
        ? t("desk.ingest.waiting", { time: timeOf(since), reason })
        : t("desk.ingest.done_of", { done: count(data.done), total: count(data.total) });
    }
  }

  async #cancel() {
    this.cancel.disabled = true;
    this.cancel.textContent = t("desk.ingest.cancelling");
    try {
      await send("POST", `ingestions/${this.job.job_id}/cancel`);
    } catch {
      this.cancel.disabled = false;
      this.cancel.textContent = t("desk.ingest.cancel");
    }
  }
}

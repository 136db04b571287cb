// @ts-check
// Brings a book's index up to date: what would happen, the job while it runs, its report, and the jobs before it.
import { byId, node } from "../shared/dom.js";
import { read, send } from "../shared/api.js";
import { t } from "../shared/strings.js";
import { BOOK_CHANGED } from "./address.js";
import { JobView, isOpen } from "./job.js";
import { count, failure, moment, section, table } from "./parts.js";
import { drawPlan, drawReport } from "./report.js";

const MODES = ["incremental", "full", "recreate"];
const JOBS = 10;

/**
 * @param {import("./address.js").Place} place
 * @param {AbortSignal} signal
 */
export async function showIngest(place, signal) {
  const view = new IngestView(place, signal);
  try {
    await view.loadJobs();
  } catch (error) {
    return failure(error, "ingest");
  }
  view.followOpenJob();
  return view.element;
}

/** The form, what it led to, and the list of jobs. */
class IngestView {
  /**
   * @param {import("./address.js").Place} place
   * @param {AbortSignal} signal
   */
  constructor(place, signal) {
    this.book = place.book || "";
    this.signal = signal;
    this.mode = node("select", {}, ...MODES.map((mode) => node("option", { value: mode }, t(`desk.ingest.${mode}`))));
    this.source = node("input", { type: "text", maxlength: 1024, autocomplete: "off", spellcheck: "false", placeholder: t("desk.ingest.same_folder"), value: place.source });
    this.replace = node("input", { type: "checkbox" });
    this.outcome = node("div", { class: "outcome" });
    this.jobs = node("div", {});
    /** @type {any[]} */
    this.listed = [];
    this.dryRun = node("button", { type: "button", class: "button", onclick: () => this.#plan() }, t("desk.ingest.dry_run"));
    this.start = node("button", { type: "submit", class: "button main-button" }, t("desk.ingest.start"));
    this.element = node("div", {}, this.#form(), this.outcome, section(t("desk.ingest.jobs"), this.jobs));
  }

  #form() {
    const onsubmit = (/** @type {Event} */ event) => {
      event.preventDefault();
      this.#start();
    };
    return node(
      "form",
      { class: "fields", onsubmit },
      node("label", { class: "field" }, t("desk.ingest.mode"), this.mode),
      node("label", { class: "field wide" }, t("desk.ingest.source"), this.source),
      node("label", { class: "choice" }, this.replace, t("desk.ingest.replace")),
      node("div", { class: "buttons" }, this.dryRun, this.start),
    );
  }

  /** @param {boolean} dryRun */
  #order(dryRun) {
    const source = this.source.value.trim();
    return { mode: this.mode.value, replace: this.replace.checked, dry_run: dryRun, ...(source && { source }) };
  }

  async #plan() {
    await this.#attempt(async () => {
      this.outcome.replaceChildren(node("p", { class: "remark", role: "status" }, t("desk.ingest.reading")));
      this.outcome.replaceChildren(drawPlan(await send("POST", this.#path(), this.#order(true), this.signal)));
    });
  }

  async #start() {
    await this.#attempt(async () => {
      const job = await send("POST", this.#path(), this.#order(false), this.signal);
      await this.#follow(job);
    });
  }

  /** @param {() => Promise<void>} work */
  async #attempt(work) {
    this.dryRun.disabled = this.start.disabled = true;
    try {
      await work();
    } catch (error) {
      if (!this.signal.aborted) this.outcome.replaceChildren(failure(error, "ingest"));
    } finally {
      this.dryRun.disabled = this.start.disabled = false;
    }
  }

  #path() {
    return `books/${encodeURIComponent(this.book)}/ingestions`;
  }

  /** A job that was running when the page was opened is followed. */
  followOpenJob() {
    const open = this.listed.find(isOpen);
    if (open) this.#attempt(() => this.#follow(open));
  }

  /** @param {any} job */
  async #follow(job) {
    const view = new JobView(job, this.signal);
    this.outcome.replaceChildren(view.element);
    const last = await view.follow();
    if (this.signal.aborted) return;
    this.outcome.replaceChildren(drawReport(last));
    byId("announcement").textContent = t(`desk.status.${last.status}`);
    dispatchEvent(new Event(BOOK_CHANGED));
    await this.loadJobs();
  }

  async loadJobs() {
    const query = new URLSearchParams({ book_id: this.book, limit: String(JOBS) });
    this.listed = (await read(`ingestions?${query}`, this.signal)).jobs;
    const headings = ["job", "status", "started", "files", "added", "removed", "seconds"].map((name) => t(`desk.column.${name}`));
    const rows = this.listed.map((job) => [
      node("button", { type: "button", class: "text-button", onclick: () => this.#showReport(job.job_id) }, t("desk.ingest.job", { number: job.job_id })),
      `${t(`desk.status.${job.status}`)} · ${t(`desk.ingest.${job.mode}`)}`,
      moment(job.started_at || job.queued_at),
      count(job.files_processed),
      count(job.chunks_created),
      count(job.chunks_deleted),
      job.duration_seconds === null ? "" : count(Math.round(job.duration_seconds * 10) / 10),
    ]);
    const nothing = node("p", { class: "remark" }, t("desk.ingest.no_jobs"));
    this.jobs.replaceChildren(rows.length ? table(headings, rows, { numbers: [3, 4, 5, 6] }) : nothing);
  }

  /** @param {number} id */
  async #showReport(id) {
    await this.#attempt(async () => {
      const job = await read(`ingestions/${id}`, this.signal);
      if (isOpen(job)) return this.#follow(job);
      this.outcome.replaceChildren(drawReport(job));
      this.outcome.scrollIntoView({ block: "nearest" });
    });
  }
}

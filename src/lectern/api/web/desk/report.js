// @ts-check
// What an ingestion would do, and what one did: numbers, files, and what is wrong with each file.
import { node } from "../shared/dom.js";
import { locale, t } from "../shared/strings.js";
import { count, figures, remark } from "./parts.js";

/** @typedef {{file: string, line: number | null, message: string, severity: "warning" | "error"}} FileProblem */

const LISTS = /** @type {const} */ (["new", "modified", "deleted"]);

/**
 * The plan of a dry run.
 * @param {any} plan
 */
export function drawPlan(plan) {
  const lists = LISTS.map((name) => fileList(name, plan[name]));
  const moved = fileList("moved", plan.moved.map((/** @type {[string, string]} */ pair) => pair.join(" → ")));
  const changes = [...LISTS, "moved"].some((name) => plan[name].length);
  return node(
    "div",
    { class: "plan" },
    node("h2", {}, t("desk.plan.title")),
    figures([
      ...LISTS.map((name) => /** @type {[string, number]} */ ([t(`desk.plan.${name}`), plan[name].length])),
      [t("desk.plan.moved"), plan.moved.length],
      [t("desk.plan.unchanged"), plan.unchanged.length],
      [t("desk.plan.add"), plan.chunks.add],
      [t("desk.plan.keep"), plan.chunks.keep],
      [t("desk.plan.remove"), plan.chunks.remove],
    ]),
    !changes && remark(t("desk.plan.nothing")),
    ...lists,
    moved,
    drawProblems(plan.errors, plan.warnings),
  );
}

/**
 * @param {string} name
 * @param {string[]} files
 */
function fileList(name, files) {
  if (!files.length) return null;
  const items = files.map((file) => node("li", {}, node("code", {}, file)));
  const summary = `${t(`desk.plan.${name}`)} (${count(files.length)})`;
  return node("details", { open: files.length <= 10 }, node("summary", {}, summary), node("ul", { class: "files" }, ...items));
}

/**
 * The report of a job that has ended.
 * @param {any} job
 */
export function drawReport(job) {
  const seconds = job.duration_seconds === null ? "–" : job.duration_seconds.toLocaleString(locale(), { maximumFractionDigits: 1 });
  return node(
    "div",
    { class: `report ${job.status}` },
    node("h2", {}, `${t("desk.ingest.job", { number: job.job_id })}: ${t(`desk.status.${job.status}`)}`),
    job.error_message && node("p", { class: "failure", role: "alert" }, job.error_message),
    figures([
      [t("desk.report.processed"), job.files_processed],
      [t("desk.report.skipped"), job.files_skipped],
      [t("desk.report.failed"), job.files_failed],
      [t("desk.report.deleted"), job.files_deleted],
      [t("desk.report.created"), job.chunks_created],
      [t("desk.report.kept"), job.chunks_kept],
      [t("desk.report.removed"), job.chunks_deleted],
      [t("desk.report.seconds"), seconds],
    ]),
    drawProblems(job.errors, job.warnings),
  );
}

/**
 * Errors and warnings, under their files; files with errors first.
 * @param {FileProblem[]} errors
 * @param {FileProblem[]} warnings
 */
function drawProblems(errors, warnings) {
  if (!errors.length && !warnings.length) return remark(t("desk.report.no_problems"));
  /** @type {Map<string, FileProblem[]>} */
  const files = new Map();
  for (const problem of [...errors, ...warnings]) files.set(problem.file, [...(files.get(problem.file) || []), problem]);
  const title = t("desk.report.problems", { errors: count(errors.length), warnings: count(warnings.length) });
  const items = [...files].map(([file, problems]) => node("li", {}, node("h4", {}, node("code", {}, file)), node("ul", {}, ...problems.map(drawProblem))));
  return node("div", { class: "problems" }, node("h3", {}, title), node("ul", {}, ...items));
}

/** @param {FileProblem} problem */
function drawProblem(problem) {
  const line = problem.line && node("span", { class: "remark" }, t("desk.report.line", { number: problem.line }));
  return node("li", { class: problem.severity }, node("span", { class: "severity" }, t(`desk.report.${problem.severity}`)), line, node("span", {}, problem.message));
}

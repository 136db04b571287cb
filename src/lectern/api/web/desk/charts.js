// @ts-check
// Charts as inline SVG. Shapes stretch with the page; words stand beside them as text.
import { node } from "../shared/dom.js";
import { locale, t } from "../shared/strings.js";
import { count, table } from "./parts.js";

const SVG = "http://www.w3.org/2000/svg";
const HEIGHT = 100;
const SHORTEST = 7; // days; those before the first question are left out
const DAY = 10; // the width of a day in the drawing, of which a fifth is the gap
const DAY_WIDTH = 2.5; // rem on the page, at most
const NARROWEST = 24; // rem

/**
 * @param {string} tag
 * @param {Record<string, string | number>} attributes
 * @param {...Node} children
 */
function shape(tag, attributes, ...children) {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, String(value));
  element.append(...children);
  return element;
}

/**
 * A share of 0 to 1 as a bar.
 * @param {number} share
 */
export function bar(share) {
  const width = Math.max(0, Math.min(1, share)) * 100;
  return shape(
    "svg",
    { viewBox: "0 0 100 8", preserveAspectRatio: "none", class: "bar", "aria-hidden": "true" },
    shape("rect", { class: "bar-ground", width: 100, height: 8 }),
    shape("rect", { class: "bar-value", width, height: 8 }),
  );
}

/**
 * Questions of each day: answered ones, and refused ones on top.
 * @param {{day: string, answered: number, refused: number}[]} all
 */
export function dayChart(all) {
  const days = all.slice(Math.min(all.findIndex((day) => day.answered + day.refused), all.length - SHORTEST));
  const most = Math.max(1, ...days.map((day) => day.answered + day.refused));
  const bars = days.flatMap((day, place) => {
    const answered = (day.answered / most) * HEIGHT;
    const refused = (day.refused / most) * HEIGHT;
    const column = { x: place * DAY + DAY / 10, width: DAY * 0.8 };
    const words = `${dateOf(day.day)}: ${t("desk.insights.day", { answered: day.answered, refused: day.refused })}`;
    return [
      shape("rect", { class: "answered", ...column, y: HEIGHT - answered, height: answered }),
      shape("rect", { class: "refused", ...column, y: HEIGHT - answered - refused, height: refused }),
      shape("rect", { class: "whole-day", x: place * DAY, width: DAY, y: 0, height: HEIGHT }, title(words)),
    ];
  });
  const label = t("desk.insights.chart");
  const width = `${Math.max(NARROWEST, days.length * DAY_WIDTH)}rem`;
  const svg = shape("svg", { viewBox: `0 0 ${days.length * DAY} ${HEIGHT}`, preserveAspectRatio: "none", class: "day-chart", role: "img", "aria-label": label }, ...bars);
  const chart = node(
    "figure",
    { class: "chart" },
    node("div", { class: "chart-top", "aria-hidden": "true" }, node("span", {}, t("desk.insights.most", { count: most, number: count(most) })), legend()),
    svg,
    node("div", { class: "chart-axis", "aria-hidden": "true" }, node("span", {}, dateOf(days[0].day)), node("span", {}, dateOf(days[days.length - 1].day))),
    dayTable(days),
  );
  chart.style.setProperty("max-width", width); // a few days make no wide columns
  return chart;
}

function legend() {
  const items = ["answered", "refused"].map((name) => node("span", { class: `legend ${name}` }, t(`desk.insights.${name}`)));
  return node("span", { class: "legends" }, ...items);
}

/**
 * The chart's numbers, for those who do not see it or want them exactly.
 * @param {{day: string, answered: number, refused: number}[]} days
 */
function dayTable(days) {
  const rows = days.filter((day) => day.answered + day.refused).map((day) => [dateOf(day.day), count(day.answered), count(day.refused)]);
  const headings = [t("desk.insights.date"), t("desk.insights.answered"), t("desk.insights.refused")];
  return node("details", {}, node("summary", {}, t("desk.insights.numbers")), table(headings, rows, { numbers: [1, 2] }));
}

/** @param {string} words */
function title(words) {
  const element = shape("title", {});
  element.textContent = words;
  return element;
}

/** @param {string} day */
function dateOf(day) {
  return new Date(`${day}T12:00:00Z`).toLocaleDateString(locale(), { day: "numeric", month: "short", timeZone: "UTC" });
}

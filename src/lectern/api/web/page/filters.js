// @ts-check
// What a question is narrowed to: only filters that the book has several values for, kept with the conversation.
import { node } from "../shared/dom.js";
import { t } from "../shared/strings.js";
import { currentBook } from "./library.js";

export const FIELDS = ["hardware_tier_filter", "proficiency_levels", "layer_filter", "module_filter", "chapter_min", "chapter_max"];

/** @typedef {Record<string, any>} Chosen */

/**
 * Whether the book has anything to filter by.
 */
export function hasFilters() {
  const book = currentBook();
  return Boolean(book) && Object.values(book?.filters || {}).some((values) => values.length > 1);
}

/**
 * The fields of a request. In a conversation the server keeps the filters of the last turn, so one that was removed is
 * sent as null.
 * @param {Chosen} chosen
 * @param {boolean} continued
 */
export function requestFields(chosen, continued) {
  const fields = FIELDS.map((field) => [field, chosen[field] ?? null]);
  return Object.fromEntries(continued ? fields : fields.filter(([, value]) => value !== null));
}

/**
 * Filters in words; empty without any. A tier that leaves out nothing is none.
 * @param {Chosen} [chosen]
 */
export function describeFilters(chosen = {}) {
  const values = currentBook()?.filters;
  const highest = Math.max(0, ...(values?.hardware_tiers || []));
  const parts = [];
  if (chosen.hardware_tier_filter && chosen.hardware_tier_filter < highest) parts.push(t("filters.tier_upto", { tier: chosen.hardware_tier_filter }));
  if (chosen.proficiency_levels?.length) parts.push(t("filters.levels", { levels: chosen.proficiency_levels.join(", ") }));
  if (chosen.layer_filter) parts.push(t("filters.layer_is", { layer: chosen.layer_filter }));
  if (chosen.module_filter) {
    const title = values?.modules.find((each) => each.module === chosen.module_filter)?.title;
    parts.push(title || chosen.module_filter);
  }
  const [first, last] = [chosen.chapter_min, chosen.chapter_max];
  if (first != null && first === last) parts.push(t("filters.chapter", { chapter: first }));
  else if (first != null || last != null) parts.push(t("filters.chapters", { first: first ?? "", last: last ?? "" }));
  return parts.join(" · ");
}

/**
 * The form. Each change is reported at once.
 * @param {Chosen} chosen
 * @param {(chosen: Chosen) => void} onChange
 */
export function filterForm(chosen, onChange) {
  const values = currentBook()?.filters;
  const form = node("div", { class: "filter-form", role: "group", "aria-label": t("filters.title") });
  if (!values) return form;
  const set = (/** @type {string} */ field, /** @type {any} */ value) => onChange({ ...chosen, [field]: value });
  const select = (/** @type {string} */ field, /** @type {string} */ label, /** @type {[any, string][]} */ options) => {
    if (options.length < 2) return;
    const box = node("select", { name: field }, node("option", { value: "" }, t("filters.any")), ...options.map(([value, text]) => node("option", { value }, text)));
    box.value = chosen[field] ?? "";
    const numeric = typeof options[0][0] === "number";
    box.addEventListener("change", () => set(field, box.value === "" ? null : numeric ? Number(box.value) : box.value));
    form.append(node("label", { class: `field ${field}` }, node("span", {}, label), box));
  };
  select("hardware_tier_filter", t("filters.tier"), values.hardware_tiers.map((tier) => [tier, t("filters.tier_upto", { tier })]));
  select("layer_filter", t("filters.layer"), values.layers.map((layer) => [layer, layer]));
  select("module_filter", t("filters.module"), values.modules.map(({ module, title }) => [module, title]));
  const chapters = values.chapters
    .filter(({ module }) => !chosen.module_filter || module === chosen.module_filter)
    .map(({ chapter, title }) => /** @type {[number, string]} */ ([chapter, title]));
  select("chapter_min", t("filters.chapter_min"), chapters);
  select("chapter_max", t("filters.chapter_max"), chapters);
  if (values.proficiency_levels.length > 1) form.append(levelBoxes(values.proficiency_levels, chosen, set));
  return form;
}

/**
 * @param {string[]} levels
 * @param {Chosen} chosen
 * @param {(field: string, value: any) => void} set
 */
function levelBoxes(levels, chosen, set) {
  const boxes = levels.map((level) => {
    const box = node("input", { type: "checkbox", value: level });
    box.checked = chosen.proficiency_levels?.includes(level) || false;
    return node("label", { class: "choice" }, box, level);
  });
  const group = node("fieldset", { class: "field" }, node("legend", {}, t("filters.level")), ...boxes);
  group.addEventListener("change", () => {
    const ticked = [...group.querySelectorAll("input:checked")].map((box) => box.value);
    set("proficiency_levels", ticked.length ? ticked : null);
  });
  return group;
}

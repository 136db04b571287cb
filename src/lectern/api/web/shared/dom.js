// @ts-check
// Building elements. Text from a book, a model or a reader becomes text nodes here, so nothing in it is run; HTML comes
// from the server alone, which has sanitised it, and passes through `setSanitised`.

/** @typedef {string | number | boolean | null | undefined | ((event: any) => unknown)} Value */

/**
 * An element with attributes and children. A function is a listener (`onclick`), `true` an empty attribute; what is
 * null or false is left out.
 * @param {string} tag
 * @param {Record<string, Value>} [attributes]
 * @param {...(Node | string | null | undefined | false)} children
 * @returns {any}
 */
export function node(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") element.addEventListener(name.replace(/^on/, ""), value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) element.setAttribute(name, String(value));
  }
  for (const child of children) if (child || child === "") element.append(child);
  return element;
}

/**
 * The one place where HTML enters the page: a field that the server rendered and sanitised.
 * @param {Element} element
 * @param {string} html
 */
export function setSanitised(element, html) {
  element.innerHTML = trusted(html);
}

/** @type {any} */
let policy = null;

/**
 * Where the page with a widget demands Trusted Types, its policy has to name ours.
 * @param {string} html
 */
function trusted(html) {
  const types = /** @type {any} */ (window).trustedTypes;
  if (!types) return html;
  policy ||= types.createPolicy("lectern", { createHTML: (/** @type {string} */ sanitised) => sanitised });
  return policy.createHTML(html);
}

/**
 * The element with this id, which the page has.
 * @param {string} id
 * @returns {any}
 */
export function byId(id) {
  const element = document.getElementById(id);
  if (!element) throw new Error(`the page has no #${id}`);
  return element;
}

const SVG = "http://www.w3.org/2000/svg";
/** @type {Record<string, string>} */
const PATHS = {
  contents: "M4 6h16M4 12h16M4 18h10",
  search: "M10.5 4a6.5 6.5 0 1 1 0 13 6.5 6.5 0 0 1 0-13zM15.5 15.5L20 20",
  talks: "M4 5h16v11H10l-4 4v-4H4z",
  add: "M12 5v14M5 12h14",
  close: "M6 6l12 12M18 6L6 18",
  theme: "M12 4a8 8 0 1 0 0 16zM12 4a8 8 0 0 1 0 16",
  send: "M12 19V5M6 11l6-6 6 6",
  stop: "M7 7h10v10H7z",
  copy: "M9 9h10v11H9zM5 15V4h10",
  retry: "M19 12a7 7 0 1 1-2-5l2 2M19 4v5h-5",
  edit: "M4 20l1-4L16 5l3 3L8 19z",
  up: "M7 11v9H4v-9zM7 11l4-7c2 0 2 1 2 2l-1 4h6c1 0 2 1 2 2l-2 7c0 1-1 1-2 1H7",
  down: "M7 13V4H4v9zM7 13l4 7c2 0 2-1 2-2l-1-4h6c1 0 2-1 2-2l-2-7c0-1-1-1-2-1H7",
  filter: "M4 6h16M7 12h10M10 18h4",
  remove: "M5 7h14M10 7V4h4v3M7 7l1 13h8l1-13",
  link: "M10 14a4 4 0 0 0 6 0l3-3a4 4 0 0 0-6-6l-1 1M14 10a4 4 0 0 0-6 0l-3 3a4 4 0 0 0 6 6l1-1",
  save: "M12 4v11M7 11l5 5 5-5M5 20h14",
  previous: "M14 6l-6 6 6 6",
  next: "M10 6l6 6-6 6",
  back: "M20 12H5M11 6l-6 6 6 6",
  quote: "M5 12h4v5H5zv-2c0-2 1-4 4-4M14 12h4v5h-4zv-2c0-2 1-4 4-4",
  done: "M5 13l4 4L19 7",
  flag: "M6 21V4h11l-2 4 2 4H6",
  book: "M4 6c3-1 6-1 8 1 2-2 5-2 8-1v12c-3-1-6-1-8 1-2-2-5-2-8-1zM12 7v12",
};

/**
 * A line drawing, which says nothing to a screen reader: its button has a name.
 * @param {string} name
 */
export function icon(name) {
  const svg = document.createElementNS(SVG, "svg");
  svg.setAttribute("viewBox", "0 0 24 24");
  svg.setAttribute("class", "icon");
  svg.setAttribute("aria-hidden", "true");
  const path = document.createElementNS(SVG, "path");
  path.setAttribute("d", PATHS[name]);
  svg.append(path);
  return svg;
}

/**
 * A button with a drawing and a name, which is also its tooltip.
 * @param {string} drawing
 * @param {string} label
 * @param {(event: MouseEvent) => unknown} onclick
 * @param {Record<string, Value>} [attributes]
 */
export function iconButton(drawing, label, onclick, attributes = {}) {
  return node("button", { type: "button", class: "quiet-button", "aria-label": label, title: label, onclick, ...attributes }, icon(drawing));
}

/**
 * Copies a text; pages that are not served securely have no clipboard, only the old command.
 * @param {string} text
 */
export async function copyText(text) {
  if (navigator.clipboard) return navigator.clipboard.writeText(text);
  const box = node("textarea", { class: "visually-hidden" });
  box.value = text;
  document.body.append(box);
  box.select();
  document.execCommand("copy");
  box.remove();
}

// @ts-check
// The words of the interface: one file per language, chosen by the book's language.

export const LANGUAGES = ["en", "de"];
const STORED = "lectern-language";
const DAY = 86_400_000; // milliseconds
/** @type {Record<string, string>} */
let words = {};
let language = "en";

/**
 * A text of the interface, with its `{names}` filled in. `key.one` is used in place of `key` where `count` is 1.
 * @param {string} key
 * @param {Record<string, string | number>} [values]
 */
export function t(key, values = {}) {
  const text = (values.count === 1 && words[`${key}.one`]) || words[key] || key;
  return text.replace(/\{(\w+)\}/g, (whole, name) => (name in values ? String(values[name]) : whole));
}

/** The language of the words in use. */
export function currentLanguage() {
  return language;
}

/**
 * The language to begin with: that of the last book, else the browser's.
 */
export function likelyLanguage() {
  return supported(localStorage.getItem(STORED) || navigator.language);
}

/**
 * A language that there are words for.
 * @param {string | null | undefined} code such as `de` or `de-AT`
 */
export function supported(code) {
  const [main] = (code || "").toLowerCase().split("-");
  return LANGUAGES.includes(main) ? main : "en";
}

/**
 * Loads the words of a language and puts them into every element that names one with `data-t` (its text) or with
 * `data-t-label`, `data-t-title` or `data-t-placeholder` (that attribute). In a document it is also stored.
 * @param {string} code
 * @param {ParentNode} [root] a widget has no document of its own
 * @param {string} [folder] of the files
 */
export async function useLanguage(code, root = document, folder = "../strings") {
  const chosen = supported(code);
  if (chosen !== language || !Object.keys(words).length) {
    const response = await fetch(new URL(`${folder}/${chosen}.json`, import.meta.url));
    words = await response.json();
    language = chosen;
  }
  if (root === document) {
    localStorage.setItem(STORED, chosen);
    document.documentElement.lang = chosen;
  }
  translate(root);
}

/**
 * @param {ParentNode} root
 */
export function translate(root) {
  for (const element of root.querySelectorAll("[data-t]")) element.textContent = t(element.getAttribute("data-t") || "");
  for (const [data, attribute] of [["label", "aria-label"], ["title", "title"], ["placeholder", "placeholder"]]) {
    for (const element of root.querySelectorAll(`[data-t-${data}]`)) {
      element.setAttribute(attribute, t(element.getAttribute(`data-t-${data}`) || ""));
    }
  }
}

/** How dates and numbers are written: as the browser's language does, if that is the language of the words. */
export function locale() {
  return navigator.languages.find((each) => supported(each) === language && each.startsWith(language)) || language;
}

/**
 * A time of day.
 * @param {string} timestamp
 */
export function timeOf(timestamp) {
  return new Date(timestamp).toLocaleTimeString(locale(), { timeStyle: "short" });
}

/**
 * A day as readers say it: today, yesterday, else its date; the year only where it is another one.
 * @param {string} timestamp
 */
export function dayOf(timestamp) {
  const date = new Date(timestamp);
  const ago = Math.round((new Date().setHours(0, 0, 0, 0) - new Date(timestamp).setHours(0, 0, 0, 0)) / DAY);
  if (ago === 0 || ago === 1) return capitalised(new Intl.RelativeTimeFormat(locale(), { numeric: "auto" }).format(-ago, "day"));
  const year = date.getFullYear() === new Date().getFullYear() ? undefined : "numeric";
  return date.toLocaleDateString(locale(), { day: "numeric", month: "long", year });
}

/** @param {string} word */
function capitalised(word) {
  return word[0].toLocaleUpperCase(locale()) + word.slice(1);
}

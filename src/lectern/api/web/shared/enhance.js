// @ts-check
// What rendered Markdown needs to be used: copy buttons, tabs, images of the book, folded sources of diagrams.
import { request } from "./api.js";
import { copyText, node } from "./dom.js";
import { t } from "./strings.js";

/**
 * Makes rendered Markdown usable: listings can be copied, tabs switched, images of the book are loaded with the key.
 * @param {Element} root
 * @param {string} book
 */
export function enhance(root, book) {
  for (const figure of matching(root, "figure.listing")) addCopyButton(figure);
  for (const tabs of matching(root, ".tabs")) makeTabs(tabs);
  for (const image of matching(root, "img[data-file]")) showImage(/** @type {HTMLImageElement} */ (image), book);
  for (const formula of matching(root, 'math[display="block"]')) formula.setAttribute("tabindex", "0"); // it may scroll
  for (const diagram of matching(root, ".diagram")) foldSource(diagram);
  for (const task of matching(root, ".task")) {
    task.setAttribute("role", "img");
    task.setAttribute("aria-label", t(task.classList.contains("done") ? "task.done" : "task.open"));
  }
}

/**
 * @param {Element} root
 * @param {string} selector
 */
function matching(root, selector) {
  return [...(root.matches(selector) ? [root] : []), ...root.querySelectorAll(selector)];
}

/**
 * The source of a diagram that can be read as a list is folded.
 * @param {Element} diagram
 */
function foldSource(diagram) {
  const source = diagram.querySelector(":scope > pre");
  if (!source || diagram.children.length < 2) return;
  const fold = node("details", {}, node("summary", {}, t("diagram.source")));
  source.replaceWith(fold);
  source.setAttribute("tabindex", "0");
  fold.append(source);
}

/** @param {Element} figure */
function addCopyButton(figure) {
  let caption = figure.querySelector("figcaption");
  if (!caption) {
    caption = node("figcaption", {}, figure.getAttribute("data-language") || "");
    figure.prepend(/** @type {Node} */ (caption));
  }
  const button = node("button", { type: "button", class: "copy" }, t("listing.copy"));
  button.addEventListener("click", async () => {
    await copyText(figure.querySelector("pre")?.textContent || "");
    button.textContent = t("listing.copied");
    button.addEventListener("blur", () => (button.textContent = t("listing.copy")), { once: true });
  });
  caption?.append(button);
  figure.querySelector("pre")?.setAttribute("tabindex", "0");
}

let tabsMade = 0;

/** @param {Element} tabs */
function makeTabs(tabs) {
  const panels = [...tabs.querySelectorAll(":scope > .tab")];
  if (!panels.length || tabs.querySelector(":scope > [role=tablist]")) return;
  const list = node("div", { role: "tablist", class: "tab-list" });
  const buttons = panels.map((panel, place) => {
    const id = `tab-${(tabsMade += 1)}`;
    panel.id = `${id}-panel`;
    panel.setAttribute("role", "tabpanel");
    panel.setAttribute("aria-labelledby", id);
    const label = panel.getAttribute("data-label") || String(place + 1);
    return list.appendChild(node("button", { type: "button", role: "tab", id, "aria-controls": panel.id }, label));
  });
  const choose = (/** @type {number} */ chosen) => {
    panels.forEach((panel, place) => panel.toggleAttribute("hidden", place !== chosen));
    buttons.forEach((button, place) => {
      button.setAttribute("aria-selected", String(place === chosen));
      button.setAttribute("tabindex", place === chosen ? "0" : "-1");
    });
  };
  buttons.forEach((button, place) => {
    button.addEventListener("click", () => choose(place));
    button.addEventListener("keydown", (/** @type {KeyboardEvent} */ event) => {
      const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (!step) return;
      const target = (place + step + buttons.length) % buttons.length;
      choose(target);
      buttons[target].focus();
    });
  });
  choose(0);
  tabs.prepend(list);
}

/** @type {Map<string, Promise<string>>} */
const images = new Map();

/**
 * @param {HTMLImageElement} image
 * @param {string} book
 */
async function showImage(image, book) {
  const path = (image.dataset.file || "").split("/").map(encodeURIComponent).join("/");
  const address = `books/${encodeURIComponent(book)}/files/${path}`;
  const loading = images.get(address) || request(address).then(async (response) => URL.createObjectURL(await response.blob()));
  images.set(address, loading);
  image.classList.add("loading");
  try {
    image.src = await loading;
  } catch {
    images.delete(address);
    image.replaceWith(node("span", { class: "missing-image" }, image.alt || image.dataset.file || ""));
  }
  image.classList.remove("loading");
}

// @ts-check
// The page's box for questions, with the filters below it.
import { Composer } from "../shared/composer.js";
import { byId, icon, iconButton, node } from "../shared/dom.js";
import { t } from "../shared/strings.js";
import { describeFilters, filterForm, hasFilters } from "./filters.js";
import { currentBook } from "./library.js";

export class PageComposer extends Composer {
  /**
   * @param {{ask: (question: string) => boolean, stop: () => void, filter: (chosen: Record<string, any>) => void}} page
   */
  constructor(page) {
    const ids = { form: "ask", box: "question", button: "send", count: "count", passage: "passage", words: "passage-text", drop: "drop-passage" };
    super(/** @type {any} */ (Object.fromEntries(Object.entries(ids).map(([name, id]) => [name, byId(id)]))), page);
    this.page = page;
    byId("filters-toggle").addEventListener("click", () => this.showFilters(byId("filter-panel").hidden));
    const place = /** @type {HTMLElement} */ (this.parts.form.parentElement);
    const root = document.documentElement;
    new ResizeObserver(() => root.style.setProperty("--composer", `${place.offsetHeight}px`)).observe(place);
  }

  /**
   * @param {boolean} busy a question is on its way
   * @param {Record<string, any>} filters
   */
  show(busy, filters) {
    this.parts.form.hidden = !currentBook();
    this.showBusy(busy);
    byId("filters").hidden = !hasFilters();
    const words = describeFilters(filters);
    byId("filters-toggle").replaceChildren(icon("filter"), node("span", {}, words || t("filters.title")));
    byId("filters-toggle").classList.toggle("active", Boolean(words));
    const clear = node("button", { type: "button", class: "text-button", disabled: !words, onclick: () => this.page.filter({}) }, t("filters.clear"));
    const close = iconButton("close", t("filters.close"), () => this.showFilters(false));
    const form = filterForm(filters, (chosen) => this.page.filter(chosen));
    byId("filter-panel").replaceChildren(node("div", { class: "filter-head" }, clear, close), form);
  }

  /** @param {boolean} shown */
  showFilters(shown) {
    const toggle = byId("filters-toggle");
    const panel = byId("filter-panel");
    if (!shown && panel.contains(document.activeElement)) toggle.focus(); // else the focus would be lost
    panel.hidden = !shown;
    toggle.setAttribute("aria-expanded", String(shown));
  }
}

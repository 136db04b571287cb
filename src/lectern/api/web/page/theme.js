// @ts-check
// Light, dark, or as the system has it. The choice is stored in the browser.
import { byId, icon } from "../shared/dom.js";
import { t } from "../shared/strings.js";

const STORED = "lectern-theme";
const THEMES = ["system", "light", "dark"];

export function prepareTheme() {
  const button = byId("theme");
  button.addEventListener("click", () => {
    const next = THEMES[(THEMES.indexOf(current()) + 1) % THEMES.length];
    localStorage.setItem(STORED, next);
    show();
  });
  button.replaceChildren(icon("theme"));
  show();
}

function current() {
  const stored = localStorage.getItem(STORED) || "";
  return THEMES.includes(stored) ? stored : "system";
}

export function show() {
  const theme = current();
  document.documentElement.dataset.theme = theme;
  const label = t(`theme.${theme}`);
  byId("theme").setAttribute("aria-label", label);
  byId("theme").title = label;
}

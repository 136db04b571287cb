// @ts-check
// How the widget looks. It has the page's style sheets in a shadow root. They are adopted and not linked, so a page whose
// policy allows no styles of other hosts can have the widget. `rem` is a length of the page around the widget, so it
// becomes one of our own; each variable `--x` can be set from outside as `--lectern-x`.

const SETTLED = 400; // milliseconds after which a page that fades between colours has arrived
const SERVER = new URL("../", import.meta.url);

/**
 * @param {ShadowRoot} root
 * @param {string[]} files
 */
export async function adoptStyles(root, files) {
  const sheets = await Promise.all(files.map(sheetOf));
  root.adoptedStyleSheets = [...root.adoptedStyleSheets, ...sheets];
}

/** @param {string} file */
async function sheetOf(file) {
  const response = await fetch(new URL(file, SERVER));
  if (!response.ok) throw new Error(`${file}: ${response.status}`);
  const sheet = new CSSStyleSheet();
  sheet.replaceSync(adapted(await response.text()));
  return sheet;
}

/** @param {string} text */
function adapted(text) {
  return text
    .replace(/:root(\[[^\]]+\])/g, ":host($1)")
    .replace(/:root/g, ":host")
    .replace(/^body\b/gm, ".lectern")
    .replace(/(\s--)([\w-]+): ([^;]+);/g, "$1$2: var(--lectern-$2, $3);")
    .replace(/@(?:media|container)[^{]*|(-?[\d.]+)rem\b/g, (whole, count) => (count ? `calc(${count} * var(--rem))` : whole));
}

/**
 * The size of text that the reader's browser is set to, whatever the page makes of it.
 * @param {HTMLElement} element
 * @param {Element} frame inside, where the page's styles do not reach
 */
export function measureText(element, frame) {
  const probe = frame.appendChild(document.createElement("div"));
  probe.style.setProperty("font-size", "medium");
  element.style.setProperty("--rem", `var(--lectern-size, ${getComputedStyle(probe).fontSize})`);
  probe.remove();
}

/**
 * Light or dark, as the page around the widget is: many have a switch of their own.
 * @param {HTMLElement} element
 * @param {string | undefined} theme `light`, `dark`, or `auto`
 */
export function followTheme(element, theme) {
  const show = () => (element.dataset.theme = theme === "light" || theme === "dark" ? theme : pageIsDark() ? "dark" : "light");
  const look = () => {
    show();
    setTimeout(show, SETTLED);
  };
  const observer = new MutationObserver(look);
  for (const part of [document.documentElement, document.body]) observer.observe(part, { attributes: true });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", look);
  look();
}

/** Whether the page's background is darker than the middle; without one, whether the browser's is dark for this page. */
function pageIsDark() {
  for (const part of [document.body, document.documentElement]) {
    const [red, green, blue, alpha = 1] = (getComputedStyle(part).backgroundColor.match(/[\d.]+/g) || []).map(Number);
    if (alpha > 0.5 && blue !== undefined) return 0.3 * red + 0.6 * green + 0.1 * blue < 128;
  }
  const { colorScheme } = getComputedStyle(document.documentElement);
  return colorScheme.includes("dark") && (!colorScheme.includes("light") || matchMedia("(prefers-color-scheme: dark)").matches);
}

// @ts-check
// The script of a page that has the widget: <script src="…/widget.js" data-key="lp_…" data-book="…" async></script>.
// It reads the attributes of its own element and loads the rest from the server.
(() => {
  const script = /** @type {HTMLScriptElement} */ (document.currentScript);
  const server = new URL(`${(script.dataset.server || ".").replace(/\/+$/, "")}/`, script.src);
  const start = async () => (await import(new URL("widget/main.js", server).href)).start({ ...script.dataset });
  const report = (/** @type {unknown} */ error) => console.warn(`The widget of ${server.host} could not be loaded.`, error);
  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", () => start().catch(report));
  else start().catch(report);
})();

// @ts-check
// The widget as a page for iframes. Its key comes in the fragment of the address, which is never sent to a server, or in
// a message of the page around it: `frame.contentWindow.postMessage({ lectern: { key, page } }, server)`.
import { start } from "../widget/main.js";

const query = new URLSearchParams(location.search);
const fragment = new URLSearchParams(location.hash.slice(1));
history.replaceState(null, "", location.pathname + location.search); // the key is not left where it can be copied from

/** @param {{key?: string, page?: string}} given */
function begin({ key, page }) {
  const { book, theme, title, lang = navigator.language } = Object.fromEntries(query);
  document.documentElement.lang = lang;
  start({ mode: "frame", key, page: pageAddress(page), site: pageAddress(document.referrer), book, theme, lang, title });
}

/** @param {string} [text] */
function pageAddress(text) {
  try {
    return /^https?:$/.test(new URL(text || "").protocol) ? text : undefined;
  } catch {
    return undefined;
  }
}

/** @param {MessageEvent} event */
function receive({ source, data }) {
  if (source !== window.parent || typeof data?.lectern !== "object") return;
  window.removeEventListener("message", receive);
  begin({ key: String(data.lectern.key || ""), page: String(data.lectern.page || "") });
}

if (fragment.has("key") || window.parent === window) begin({ key: fragment.get("key") || undefined });
else {
  window.addEventListener("message", receive);
  window.parent.postMessage({ lectern: "ready" }, "*"); // the page around it answers with the key
}

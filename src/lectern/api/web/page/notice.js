// @ts-check
// States of the whole page: the server is lost and back, and the server needs a key.
import { byId, node } from "../shared/dom.js";
import { Problem, credentials, watchConnection } from "../shared/api.js";
import { problemWords } from "../shared/problems.js";
import { t } from "../shared/strings.js";

const SHOWN = 3000; // milliseconds that good news stay

/** @param {() => void} onBack called when the server can be reached again */
export function showConnection(onBack) {
  const notice = byId("notice");
  let timer = 0;
  watchConnection((reachable) => {
    clearTimeout(timer);
    notice.hidden = false;
    notice.className = reachable ? "notice back" : "notice lost";
    notice.textContent = t(reachable ? "connection.back" : "connection.lost");
    if (!reachable) return;
    timer = setTimeout(() => (notice.hidden = true), SHOWN);
    onBack();
  });
}

/**
 * Says what went wrong outside of a turn; asks for a key if that is what is missing.
 * @param {unknown} error
 * @param {() => void} again called when there is a key to try
 * @param {{isEmpty?: boolean}} [options] whether the page shows nothing yet: then another attempt is offered
 */
export function showFailure(error, again, { isEmpty = false } = {}) {
  if (error instanceof Problem && error.status === 401) askForKey(again);
  else if (error instanceof Problem) showNotice(problemWords(error), isEmpty ? again : undefined); // the connection has its own notice
}

/**
 * @param {string} words
 * @param {() => void} [again]
 */
export function showNotice(words, again) {
  const notice = byId("notice");
  const onclick = () => {
    notice.hidden = true;
    again?.();
  };
  const close = node("button", { type: "button", class: "text-button", onclick }, t(again ? "turn.retry" : "notice.close"));
  notice.className = "notice";
  notice.hidden = false;
  notice.replaceChildren(node("span", {}, words), close);
}

/** @param {() => void} onKey */
function askForKey(onKey) {
  const form = byId("key-form");
  const wrong = Boolean(credentials.key);
  const title = document.querySelector(".title-page:not([hidden])");
  if (title) title.after(form); // else a reader without a conversation would look for it at the bottom
  else document.querySelector(".composer")?.prepend(form);
  form.hidden = false;
  const remark = byId("key-remark");
  remark.textContent = t(wrong ? "key.wrong" : "key.remark");
  remark.classList.toggle("problem", wrong);
  if (wrong) remark.setAttribute("role", "alert");
  form.onsubmit = (/** @type {Event} */ event) => {
    event.preventDefault();
    credentials.use(byId("api-key").value.trim());
    byId("api-key").value = "";
    form.hidden = true;
    onKey();
  };
  byId("api-key").focus();
}

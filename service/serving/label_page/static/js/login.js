/** The form to log in with. */

import { logIn } from "./api.js";
import { h } from "./dom.js";

const WORDS = /** @type {Record<string, string>} */ ({
  unauthorized: "This token is not valid.",
  "not-found": "The vendor of this token does not use the labelling page.",
  "annotator-needed": "Several people label each item: enter your name.",
  "too-many-logins": "Too many attempts from this address. Try again in a few seconds.",
});

/** @param {() => void} entered called after a login */
export function loginView(entered) {
  return h(
    "form",
    { class: "panel login", onsubmit: (/** @type {SubmitEvent} */ event) => submit(event, entered) },
    h("h1", {}, "Label items"),
    h("label", { for: "token" }, "Token"),
    h("input", { id: "token", type: "password", required: true, autocomplete: "current-password", "aria-describedby": "token-note" }),
    h("p", { id: "token-note", class: "note" }, "Whoever operates Credence gave it to your team."),
    h("label", { for: "annotator" }, "Your name"),
    h("input", { id: "annotator", type: "text", maxlength: 128, autocomplete: "username", "aria-describedby": "annotator-note" }),
    h(
      "p",
      { id: "annotator-note", class: "note" },
      "A pseudonym, always the same, that nobody else in your team uses. It may be empty if one person labels each item.",
    ),
    h("p", { id: "login-problem", class: "fails", role: "alert" }),
    h("button", { class: "button", type: "submit" }, "Log in"),
  );
}

/** @param {SubmitEvent} event @param {() => void} entered */
async function submit(event, entered) {
  event.preventDefault();
  const form = /** @type {HTMLFormElement} */ (event.target);
  const field = (/** @type {string} */ id) => /** @type {HTMLInputElement} */ (form.querySelector(`#${id}`));
  const problem = /** @type {HTMLElement} */ (form.querySelector("#login-problem"));
  const button = /** @type {HTMLButtonElement} */ (form.querySelector("button"));
  problem.textContent = "";
  if (!isSecureContext) {
    problem.textContent = "Browsers keep this login only over HTTPS. Open the page at its https:// address.";
    return;
  }
  button.disabled = true;
  try {
    await logIn(field("token").value.trim(), field("annotator").value.trim());
    field("token").value = "";
    entered();
  } catch (error) {
    const { word, message } = /** @type {any} */ (error);
    problem.textContent = WORDS[word] ?? `Log in failed: ${message}`;
    field(word === "annotator-needed" ? "annotator" : "token").focus();
  } finally {
    button.disabled = false;
  }
}

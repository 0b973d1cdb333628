/** What is at the top of the page: which model, the grid, the keys, and who labels. */

import { h, update } from "./dom.js";
import { count } from "./format.js";
import { KEYS } from "./keys.js";

const SHORTCUTS = "credence-label-shortcuts";

/** Whether single keys choose classes: people who talk to their machine may not want that. */
export const areShortcutsOn = () => localStorage.getItem(SHORTCUTS) !== "off";

/**
 * @param {object} of
 * @param {any} of.session @param {any[]} of.models @param {string | null} of.model @param {boolean} of.isGrid
 * @param {boolean} of.hasImages
 * @param {(model: string | null) => void} of.choose @param {() => void} of.turnGrid @param {() => void} of.leave
 */
export function toolsView({ session, models, model, isGrid, hasImages, choose, turnGrid, leave }) {
  const quiet = { type: "button", class: "button quiet" };
  return [
    models.length > 1 && modelChoice(models, model, choose),
    (hasImages || isGrid) && h("button", { ...quiet, key: "grid", "aria-pressed": isGrid ? "true" : "false", onclick: turnGrid }, "Grid"),
    h("button", { ...quiet, key: "help", onclick: showHelp }, "Keys"),
    h("span", { key: "who", class: "who note" }, [session.vendor, session.annotator].filter(Boolean).join(" · ")),
    h("button", { ...quiet, key: "leave", onclick: leave }, "Log out"),
  ];
}

/** @param {any[]} models @param {string | null} model @param {(model: string | null) => void} choose */
function modelChoice(models, model, choose) {
  const options = models.map((one) =>
    h("option", { value: one.model, selected: model === one.model }, `${one.model} (${count(one.waiting)})`),
  );
  return [
    h("label", { key: "model-label", for: "model", class: "visually-hidden" }, "Model"),
    h(
      "select",
      { key: "model", id: "model", onchange: (/** @type {any} */ event) => choose(event.target.value || null) },
      h("option", { value: "", selected: model === null }, "All models"),
      options,
    ),
  ];
}

/** Shows the keys, and whether they are used. */
export function showHelp() {
  const dialog = /** @type {HTMLDialogElement} */ (document.getElementById("help"));
  const turn = (/** @type {any} */ event) => localStorage.setItem(SHORTCUTS, event.target.checked ? "on" : "off");
  const isOn = areShortcutsOn();
  update(
    dialog,
    h("h2", { id: "help-title" }, "Keys"),
    h("dl", {}, KEYS.map(([key, words]) => [h("dt", {}, key), h("dd", {}, words)])),
    h("p", {}, h("label", {}, h("input", { id: "shortcuts", type: "checkbox", onchange: turn }), " Single keys are shortcuts")),
    h("button", { class: "button", type: "button", onclick: () => dialog.close() }, "Close"),
  );
  /** @type {HTMLInputElement} */ (document.getElementById("shortcuts")).checked = isOn;
  dialog.showModal();
}

/** Whether to log out although answers were not sent yet. @param {number} unsent @returns {Promise<boolean>} */
export function askToLeave(unsent) {
  const dialog = /** @type {HTMLDialogElement} */ (document.getElementById("leaving"));
  const answers = unsent === 1 ? "1 answer" : `${count(unsent)} answers`;
  const close = (/** @type {any} */ event) => dialog.close(event.target.value);
  dialog.returnValue = "";
  update(
    dialog,
    h("h2", { id: "leaving-title" }, `${answers} not sent yet`),
    h("p", {}, "Credence cannot take them now. If you stay, they are sent as soon as it can."),
    h("button", { class: "button", type: "button", value: "stay", onclick: close }, "Stay"),
    " ",
    h("button", { class: "button quiet", type: "button", value: "leave", onclick: close }, `Leave and lose ${answers}`),
  );
  dialog.showModal();
  // Escape is to stay.
  return new Promise((resolve) => {
    dialog.onclose = () => resolve(dialog.returnValue === "leave");
  });
}

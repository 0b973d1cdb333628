/** The keyboard: classes by their keys, and everything else that has one. */

import { areMany, keysOf } from "./classes.js";

/**
 * @typedef {object} Actions
 * @property {(name: string) => void} choose
 * @property {() => void} skip
 * @property {() => void} undo
 * @property {() => void} keep what was to be undone
 * @property {(step: number) => void} option to another one of the list
 * @property {(key: string) => void} move to another image of the grid
 * @property {() => string | null} activeOption
 * @property {() => void} help
 */

const ARROWS = ["ArrowUp", "ArrowDown", "ArrowLeft", "ArrowRight"];

export const KEYS = /** @type {Array<[string, string]>} */ ([
  ["1 to 9", "Choose the class with this number. Classes of one letter or digit have that as their key."],
  ["Letters", "Find a class by its name, if there are more than nine. Enter chooses the first, arrows another one."],
  ["−", "Skip an item that cannot be labelled."],
  ["Backspace", "Show the last item again, to change its label. Escape keeps it. Also Ctrl+Z."],
  ["Arrows", "Move between the images of the grid."],
  ["?", "Show these keys."],
]);

/** @param {KeyboardEvent} event @param {string[]} classes of the item shown @param {boolean} isGrid @param {Actions} actions */
export function press(event, classes, isGrid, actions) {
  const target = /** @type {HTMLElement} */ (event.target);
  const finder = target.id === "find" ? /** @type {HTMLInputElement} */ (target) : null;
  const isField = !finder && target.matches("input:not([type=checkbox]), select, textarea");
  if (isField || document.querySelector("dialog[open]") || event.altKey || event.isComposing) return;
  const isTyped = Boolean(finder?.value);
  if (event.ctrlKey || event.metaKey) {
    if (event.key.toLowerCase() === "z" && !event.shiftKey && !isTyped) act(event, actions.undo);
    return;
  }
  if (event.key === "Escape") return act(event, actions.keep);
  if (ARROWS.includes(event.key)) return arrow(event, Boolean(finder), isTyped, isGrid, actions);
  if (event.repeat || isTyped) {
    if (event.key === "Enter" && !event.repeat) chooseActive(event, actions);
    return;
  }
  const byKey = new Map([...keysOf(classes)].map(([name, key]) => [key, name]));
  const named = byKey.get(event.key.toLowerCase());
  if (named !== undefined) act(event, () => actions.choose(named));
  else if (event.key === "Backspace") act(event, actions.undo);
  else if (event.key === "-") act(event, actions.skip);
  else if (event.key === "?") act(event, actions.help);
  else if (event.key === "Enter" && finder) chooseActive(event, actions);
  else if (areMany(classes) && event.key.length === 1 && event.key !== " ") document.getElementById("find")?.focus();
}

/** @param {KeyboardEvent} event @param {() => void} action */
function act(event, action) {
  event.preventDefault();
  action();
}

/** @param {KeyboardEvent} event @param {Actions} actions */
function chooseActive(event, actions) {
  const name = actions.activeOption();
  if (name !== null) act(event, () => actions.choose(name));
}

/** @param {KeyboardEvent} event @param {boolean} isFinder @param {boolean} isTyped @param {boolean} isGrid
 * @param {Actions} actions */
function arrow(event, isFinder, isTyped, isGrid, actions) {
  const isVertical = event.key === "ArrowUp" || event.key === "ArrowDown";
  if (isGrid && !isTyped) act(event, () => actions.move(event.key));
  else if (isFinder && isVertical) act(event, () => actions.option(event.key === "ArrowDown" ? 1 : -1));
}

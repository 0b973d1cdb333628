/** The classes to choose from: buttons with keys, or a list to find one in by typing. */

import { areMany, keysOf, matches } from "./classes.js";
import { h } from "./dom.js";
import { count } from "./format.js";

const MOST_SHOWN = 60;

/**
 * @typedef {object} Choice
 * @property {string[]} classes
 * @property {string} query what was typed
 * @property {number} active index of the option that Enter takes
 * @property {string | null} before the class that was chosen before
 * @property {(name: string) => void} choose
 * @property {(query: string) => void} type
 */

/** The options that a query leaves, as many as are shown. @param {Choice} choice */
export const shownOptions = (choice) => matches(choice.classes, choice.query).slice(0, MOST_SHOWN);

/** @param {Choice} choice */
export function picker(choice) {
  return areMany(choice.classes) ? finder(choice) : buttons(choice);
}

/** @param {Choice} choice */
function buttons({ classes, before, choose }) {
  const keys = keysOf(classes);
  return h(
    "div",
    { key: "buttons", class: "classes", role: "group", "aria-label": "Classes" },
    classes.map((name) =>
      h(
        "button",
        { key: name, type: "button", class: name === before ? "class before" : "class", onclick: () => choose(name) },
        keys.has(name) && h("kbd", { "aria-hidden": "true" }, keys.get(name)),
        h("span", { class: "name" }, name),
        name === before && h("span", { class: "note" }, " your answer"),
      ),
    ),
  );
}

/** @param {Choice} choice */
function finder(choice) {
  const { classes, query, active, before, choose, type } = choice;
  const found = matches(classes, query);
  const shown = found.slice(0, MOST_SHOWN);
  const keys = query ? new Map() : keysOf(classes);
  const input = {
    id: "find",
    type: "text",
    role: "combobox",
    "aria-expanded": "true",
    "aria-controls": "found",
    "aria-autocomplete": "list",
    "aria-activedescendant": shown.length ? `option-${active}` : null,
    autocomplete: "off",
    autocapitalize: "none",
    spellcheck: "false",
    placeholder: `Type to find one of ${count(classes.length)} classes`,
    oninput: (/** @type {any} */ event) => type(event.target.value),
  };
  return h(
    "div",
    { key: "finder", class: "finder" },
    h("label", { for: "find", class: "visually-hidden" }, "Class"),
    h("input", input),
    h(
      "ul",
      { id: "found", role: "listbox", "aria-label": "Classes" },
      shown.map((name, index) =>
        h(
          "li",
          {
            key: name,
            id: `option-${index}`,
            role: "option",
            class: name === before ? "class before" : "class",
            "aria-selected": index === active ? "true" : "false",
            onclick: () => choose(name),
          },
          keys.has(name) && h("kbd", { "aria-hidden": "true" }, keys.get(name)),
          h("span", { class: "name" }, name),
          name === before && h("span", { class: "note" }, " your answer"),
        ),
      ),
    ),
    h("p", { class: "note", role: "status" }, summary(found.length, shown.length)),
  );
}

/** @param {number} found @param {number} shown */
function summary(found, shown) {
  if (!found) return "No class matches.";
  return found > shown ? `${count(shown)} of ${count(found)} classes; type to narrow` : `${count(found)} found`;
}

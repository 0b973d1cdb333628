/** Error rates of groups: a table with the rates of every group, and how far apart they are. */

import { h } from "./dom.js";
import { percent, pluralize, points, threshold } from "./format.js";

/** All but the true positive rate, which is 1 minus the false negative rate. */
const SHOWN = new Map([
  ["false_positive_rate", "False positives"],
  ["false_negative_rate", "False negatives"],
  ["precision", "Precision"],
  ["selection_rate", "Selected"],
]);

/** @param {{ positive_class: string, rates: any[], groups: any[] }} found */
export function errorRates({ positive_class, rates, groups }) {
  const shown = rates.filter(({ rate }) => SHOWN.has(rate));
  return h(
    "table",
    { class: "ranking members rates" },
    h("caption", { class: "visually-hidden" }, `Error rates by group, for ${positive_class} against the rest`),
    h(
      "thead",
      {},
      h(
        "tr",
        {},
        ["Group", ...shown.map(({ rate }) => SHOWN.get(rate) ?? rate)].map((title) =>
          h("th", { scope: "col" }, title),
        ),
      ),
    ),
    h(
      "tbody",
      {},
      groups.map((group) => row(group, shown)),
      line("Difference", shown, ({ difference }) => difference && interval(difference, apart)),
      line("Ratio", shown, ({ ratio }) => ratio && interval(ratio, percent)),
      shown.some(({ limit }) => limit !== null) &&
        line("Limit", shown, ({ limit }) => limit !== null && threshold(limit)),
    ),
  );
}

/** A difference, which is never negative. @param {number} ratio */
const apart = (ratio) => points(ratio).replace("+", "");

/** @param {any} group @param {any[]} shown */
function row(group, shown) {
  return h(
    "tr",
    { key: group.group },
    h("th", { scope: "row" }, group.group, h("span", { class: "bounds" }, pluralize(Math.round(group.labels), "label"))),
    shown.map(({ rate }) => {
      const found = group.rates[rate];
      const isBeyond = group.violated.includes(rate);
      return h(
        "td",
        { class: "number" },
        found && interval(found, percent),
        isBeyond && h("strong", {}, "beyond limit"),
      );
    }),
  );
}

/** A row about all groups. @param {string} title @param {any[]} shown @param {(rate: any) => any} text */
function line(title, shown, text) {
  return h(
    "tr",
    { key: `all ${title}`, class: "all" },
    h("th", { scope: "row" }, title),
    shown.map((rate) => h("td", { class: "number" }, text(rate))),
  );
}

/** @param {{ lower: number, mean: number, upper: number }} found @param {(ratio: number) => string} text */
function interval({ lower, mean, upper }, text) {
  const bounds = `[${(100 * lower).toFixed(1)}, ${(100 * upper).toFixed(1)}]`;
  return [`${text(mean)} `, h("span", { class: "bounds" }, bounds)];
}

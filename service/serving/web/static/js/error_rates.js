/** Error rates of groups: a table with the rates of every group, and how far apart they are. */

import { h } from "./dom.js";
import { percent, pluralize, points, threshold } from "./format.js";

const TITLES = new Map([
  ["false_positive_rate", "False positives"],
  ["false_negative_rate", "False negatives"],
  ["true_positive_rate", "True positives"],
  ["precision", "Precision"],
  ["selection_rate", "Selected"],
]);

/** Rates whose limit is a minimum. */
const LEAST = new Set(["true_positive_rate", "precision"]);

/** Whether a rate has a limit of any kind. @param {any} rate @param {any[]} groups */
const isLimited = ({ rate, max_difference, min_ratio }, groups) =>
  max_difference !== null || min_ratio !== null || groups.some((one) => rate in one.limits);

/** All but one of the two rates that add up to 1. @param {any[]} rates @param {any[]} groups */
function chosen(rates, groups) {
  const truePositives = rates.find(({ rate }) => rate === "true_positive_rate");
  const left = isLimited(truePositives, groups) ? "false_negative_rate" : "true_positive_rate";
  return rates.filter((one) => one.rate !== left || isLimited(one, groups));
}

/** @param {{ positive_class: string, rates: any[], groups: any[] }} found */
export function errorRates({ positive_class, rates, groups }) {
  const shown = chosen(rates, groups);
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
        ["Group", ...shown.map(({ rate }) => TITLES.get(rate) ?? rate)].map((title) =>
          h("th", { scope: "col" }, title),
        ),
      ),
    ),
    h(
      "tbody",
      {},
      groups.map((group) => row(group, shown)),
      line("Difference", shown, ({ difference, max_difference, differs_too_much, difference_confirmed }) => [
        difference && interval(difference, apart),
        target("at most", max_difference, differs_too_much, difference_confirmed),
      ]),
      line("Ratio", shown, ({ ratio, min_ratio, ratio_too_low, ratio_confirmed }) => [
        ratio && interval(ratio, percent),
        target("at least", min_ratio, ratio_too_low, ratio_confirmed),
      ]),
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
        rate in group.limits && target(LEAST.has(rate) ? "at least" : "at most", group.limits[rate], isBeyond, group.confirmed.includes(rate)),
      );
    }),
  );
}

/** What is wanted; in red where it is missed. @param {string} end @param {number | null} limit @param {boolean} isMissed
 * @param {boolean} isConfirmed */
const target = (end, limit, isMissed, isConfirmed) =>
  limit !== null &&
  h(isMissed ? "strong" : "span", { class: "bounds" }, `${end} ${threshold(limit)}${isConfirmed ? ": confirmed" : ""}`);

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

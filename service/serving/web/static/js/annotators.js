/** Vendors and people who label, where labels may be wrong: how often they are right, and agree. */

import { h } from "./dom.js";
import { bounds, count, duration, percent, probability } from "./format.js";
import { annotatorsHelp, help } from "./help.js";

const SHOWN = 10;

/** @param {any} state */
export function annotatorsView(state) {
  const vendors = state.vendors.filter((/** @type {any} */ one) => one.vendor);
  const people = state.annotators.filter((/** @type {any} */ one) => one.annotator);
  const omitted = people.length - SHOWN;
  return [
    h("div", { class: "title" }, h("h2", { id: "annotators-title" }, "Annotators"), help(annotatorsHelp(state))),
    state.label_agreement && h("p", { class: "note" }, state.label_agreement.sentence),
    state.label_errors && h("p", { class: "note" }, state.label_errors.sentence),
    vendors.length > 0 && table("Vendors", vendors, (/** @type {any} */ one) => one.vendor),
    people.length > 0 &&
      table("People", people.slice(0, SHOWN), (/** @type {any} */ one) =>
        one.vendor ? `${one.annotator} (${one.vendor})` : one.annotator,
      ),
    omitted > 0 && h("p", { class: "note" }, `${count(omitted)} more people are not shown.`),
    !vendors.length && !people.length && table("All labels", state.vendors, () => "without a name"),
  ];
}

/** @param {string} title @param {any[]} rows @param {(one: any) => string} name */
function table(title, rows, name) {
  const limited = rows.some((one) => one.below !== null);
  const gold = rows.some((one) => one.gold_labels > 0);
  const headings = [
    ...["Reliability", ...(limited ? ["Below threshold"] : []), "Agreement", "Labels", "Median time"],
    ...(gold ? ["Gold labels", "Wrong about gold"] : []),
  ];
  return h(
    "div",
    { key: title, class: "scroll", tabindex: 0, role: "region", "aria-label": title },
    h(
      "table",
      { class: "ranking annotators" },
      h("caption", {}, `${title}, sorted by the lower end of reliability`),
      h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "Name"), headings.map((one) => h("th", { scope: "col" }, one)))),
      h(
        "tbody",
        {},
        rows.map((one) =>
          h(
            "tr",
            {},
            // Isolated, so that marks of direction in a name change nothing beside it.
            h("th", { scope: "row" }, h("bdi", {}, name(one))),
            h("td", { class: "number" }, estimate(one.reliability)),
            limited && h("td", { class: "number" }, one.below === null ? "" : probability(one.below)),
            h("td", { class: "number" }, one.agreement === null ? "no shared items" : estimate(one.agreement)),
            h("td", { class: "number" }, count(one.labels)),
            h("td", { class: "number" }, one.answer_seconds === null ? "" : duration(one.answer_seconds)),
            gold && h("td", { class: "number" }, count(one.gold_labels)),
            gold && h("td", { class: "number" }, one.gold_wrong === null ? "" : estimate(one.gold_wrong)),
          ),
        ),
      ),
    ),
  );
}

/** @param {import("./format.js").Interval} of */
const estimate = (of) => [`${percent(of.mean)} `, h("span", { class: "bounds" }, bounds(of))];

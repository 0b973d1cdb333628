/** The model in six numbers. */

import { h } from "./dom.js";
import { bounds, count, pluralize, duration, percent, short, when } from "./format.js";

/** @param {any} state */
export function vitalsView(state) {
  const budgets = state.assessments.map((/** @type {any} */ assessment) => assessment.budget);
  const total = budgets.reduce((/** @type {number} */ sum, /** @type {any} */ budget) => sum + budget.labels, 0);
  const left = budgets.reduce((/** @type {number} */ sum, /** @type {any} */ budget) => sum + budget.remaining, 0);
  const open = state.assessments.reduce(
    (/** @type {number} */ sum, /** @type {any} */ a) => sum + a.open_requests,
    0,
  );
  const renewals = budgets.map((/** @type {any} */ budget) => budget.renews_at).filter(Boolean);
  return h(
    "dl",
    { class: "vitals" },
    vital("Overall accuracy", measured(state.accuracy), state.accuracy ? bounds(state.accuracy) : "no traffic yet"),
    vital("Calibration error (ECE)", measured(state.ece), state.ece ? bounds(state.ece) : "no traffic yet"),
    vital(
      "Labels",
      short(state.outcomes),
      state.last_label_at === null ? "none yet" : ["last ", when(state.last_label_at)],
    ),
    vital(
      "Budget left",
      count(left),
      [
        `of ${pluralize(total, "label")}`,
        renewals.length > 0 && [", renews ", when(Math.min(...renewals), "until")],
      ].flat(2),
    ),
    vital(
      "Open requests",
      count(open),
      state.outbox_size ? `${count(state.outbox_size)} to be published` : "label requests",
    ),
    vital("Predictions", short(state.predictions), [
      `${short(state.pool_items)} pooled`,
      state.pool_item_age_seconds !== null && `, ${duration(state.pool_item_age_seconds)} old`,
    ]),
  );
}

/** @param {import("./format.js").Interval | null} value */
const measured = (value) => (value ? percent(value.mean) : "–");

/** @param {string} term @param {string} value @param {any} note */
const vital = (term, value, note) =>
  h(
    "div",
    {},
    h("dt", {}, term),
    h("dd", {}, h("span", { class: "figure" }, value), " ", h("span", { class: "note" }, note)),
  );

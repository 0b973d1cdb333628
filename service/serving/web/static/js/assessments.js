/** Assessments with their results, budgets and next requests. */

import { h, s } from "./dom.js";
import { errorRates } from "./error_rates.js";
import { count, duration, percent, pluralize, points, probability, threshold, when } from "./format.js";
import { ASSESSMENTS_HELP, help } from "./help.js";

const SHOWN = 6;
const METRICS = { precision_recall: "precision and recall" };
/** Those of assessments that have none of their own; all other names are the user's. */
const GROUPINGS = new Map([
  ["__votes__", "votes"],
  ["__challenge__", "agreement"],
  ["positive_score", "positive score"],
]);

/** @param {any} state */
export function assessmentsView(state) {
  return [
    h(
      "div",
      { class: "title" },
      h("h2", { id: "assessments-title" }, "Assessments"),
      help(ASSESSMENTS_HELP),
    ),
    h(
      "div",
      { class: `cards${state.assessments.length < 3 ? " few" : ""}` },
      state.assessments.map((/** @type {any} */ assessment) => card(assessment)),
    ),
    missing(state.unanswered),
  ];
}

/** How many requests ended without a label, and what that does to intervals. @param {any} unanswered */
function missing({ ended, skipped, expired, worst_case_share }) {
  if (skipped + expired === 0) return null;
  const allowed =
    worst_case_share > 0
      ? `. Estimates allow for any true class of these items, so accuracy intervals are wider (${points(worst_case_share)})`
      : ", and estimates take these items for like the others";
  return h(
    "p",
    { class: "note" },
    `Of ${pluralize(ended, "request")} that ended, ${count(skipped)} were skipped and ${count(expired)} expired`,
    `${allowed}.`,
  );
}

/** @param {any} assessment */
function card(assessment) {
  const { budget } = assessment;
  const used = budget.labels - budget.remaining;
  return h(
    "article",
    { key: assessment.name, class: "card" },
    h(
      "p",
      { class: "eyebrow" },
      `${assessment.name} · ${about(assessment)} · by ${GROUPINGS.get(assessment.grouping) ?? assessment.grouping}`,
    ),
    h("h3", {}, assessment.question),
    assessment.found && h("p", { class: "result" }, assessment.found),
    assessment.ranking.length > 0 && ranking(assessment.ranking),
    assessment.comparison && comparison(assessment.comparison),
    assessment.members.length > 0 && members(assessment.members),
    assessment.challenge.length > 0 && challenge(assessment.challenge),
    assessment.error_rates && errorRates(assessment.error_rates),
    assessment.next.length > 0 && nextGroups(assessment),
    h(
      "div",
      { class: "budget" },
      bar([["used", used / Math.max(1, budget.labels)]], `${pluralize(used, "label")} of ${count(budget.labels)} used`),
      h(
        "p",
        { class: "note" },
        budget.remaining === 0
          ? h("strong", {}, `Budget exhausted: all ${pluralize(budget.labels, "label")} spent`)
          : `${pluralize(budget.remaining, "label")} of ${count(budget.labels)} left`,
        budget.renews_at !== null && ", renews ",
        budget.renews_at !== null && when(budget.renews_at, "until"),
        budget.seconds_per_label !== null && `, about one label every ${duration(budget.seconds_per_label)} until then`,
        budget.reserve > 0 && `, ${count(budget.reserve)} reserved for suspected groups`,
        ` · ${count(assessment.open_requests)} open of at most ${count(assessment.max_in_flight)}`,
        assessment.oldest_request_at !== null && ", oldest ",
        assessment.oldest_request_at !== null && when(assessment.oldest_request_at),
      ),
      h(
        "p",
        { class: "note" },
        `Requests: ${events(assessment.events)} · ${chooser(assessment)}`,
      ),
    ),
  );
}

/** Its task and metric. @param {any} assessment */
function about({ task, metric }) {
  const measured = METRICS[metric] ?? metric.replaceAll("_", " ");
  if (task === "error_rates") return measured;
  if (task === "challenge") return `${measured} of a challenger`;
  return task === "ensemble" ? `${measured} of an ensemble` : `${task} of ${measured}`;
}

/** What chooses the group of the next label: a policy, or the plan of an ensemble. @param {any} assessment */
const chooser = ({ policy }) => (policy === "planned" ? policy : `policy ${policy.replaceAll("_", " ")}`);

/** @param {Record<string, number>} counts */
function events(counts) {
  const present = Object.entries(counts).filter(([, number]) => number);
  return present.map(([event, number]) => `${count(number)} ${event}`).join(", ") || "none yet";
}

/** Stretches of one bar, each a part of 1. @param {Array<[string, number]>} parts @param {string} label */
function bar(parts, label) {
  let left = 0;
  const stretches = parts.map(([kind, part]) => {
    const rect = s("rect", { class: kind, x: `${100 * left}%`, width: `${100 * part}%`, y: 0, height: "100%" });
    left += part;
    return rect;
  });
  return s(
    "svg",
    { class: "bar-chart", role: "img", "aria-label": label },
    s("rect", { class: "rest", width: "100%", height: "100%" }),
    stretches,
  );
}

/** @param {any[]} ranked */
function ranking(ranked) {
  return h(
    "table",
    { class: "ranking" },
    h("caption", { class: "visually-hidden" }, "Groups by probability of being in the top m"),
    h(
      "thead",
      {},
      h(
        "tr",
        {},
        ["Group", "Probability", "", "Rank"].map((title) =>
          h("th", { scope: "col" }, title || h("span", { class: "visually-hidden" }, "Drawn")),
        ),
      ),
    ),
    h(
      "tbody",
      {},
      ranked
        .slice(0, SHOWN)
        .map((entry) =>
          h(
            "tr",
            {},
            h("th", { scope: "row" }, entry.group),
            h("td", { class: "number" }, probability(entry.probability)),
            h("td", { class: "drawn" }, bar([["likely", entry.probability]], probability(entry.probability))),
            h(
              "td",
              { class: "number" },
              `${entry.rank.mean.toFixed(1)} `,
              h("span", { class: "bounds" }, `[${Math.round(entry.rank.lower)}, ${Math.round(entry.rank.upper)}]`),
            ),
          ),
        ),
    ),
  );
}

/** @param {any[]} rows */
function members(rows) {
  const targeted = rows.some((one) => one.missed !== null);
  return h(
    "table",
    { class: "ranking members" },
    h("caption", { class: "visually-hidden" }, "The ensemble and its members by their precision"),
    h(
      "thead",
      {},
      h(
        "tr",
        {},
        ["Member", "Precision", "Labels", "Predicted positive", ...(targeted ? ["Target missed"] : [])].map((title) =>
          h("th", { scope: "col" }, title),
        ),
      ),
    ),
    h(
      "tbody",
      {},
      rows.map((one) =>
        h(
          "tr",
          {},
          h("th", { scope: "row" }, one.member),
          h(
            "td",
            { class: "number" },
            `${percent(one.precision.mean)} `,
            h(
              "span",
              { class: "bounds" },
              `[${(100 * one.precision.lower).toFixed(1)}, ${(100 * one.precision.upper).toFixed(1)}]`,
            ),
          ),
          h("td", { class: "number" }, count(Math.round(one.labels))),
          h("td", { class: "number" }, percent(one.share)),
          targeted && h("td", { class: "number" }, one.missed === null ? "no label" : probability(one.missed)),
        ),
      ),
    ),
  );
}

/** Challenger less model, in points. @param {any[]} rows */
function challenge(rows) {
  return h(
    "table",
    { class: "ranking members challenge" },
    h("caption", { class: "visually-hidden" }, "Accuracy of the challenger minus that of the model"),
    h(
      "thead",
      {},
      h(
        "tr",
        {},
        ["Group", "Difference", "Labels", "Disagree", "Better", "Worse"].map((title) =>
          h("th", { scope: "col" }, title),
        ),
      ),
    ),
    h(
      "tbody",
      {},
      rows.map((one) =>
        h(
          "tr",
          {},
          h("th", { scope: "row" }, one.overall ? "all traffic" : one.group),
          h(
            "td",
            { class: "number" },
            `${points(one.difference.mean)} `,
            h(
              "span",
              { class: "bounds" },
              `[${(100 * one.difference.lower).toFixed(1)}, ${(100 * one.difference.upper).toFixed(1)}]`,
            ),
          ),
          h("td", { class: "number" }, count(one.labels)),
          h("td", { class: "number" }, percent(one.disagreement)),
          h("td", { class: "number" }, probability(one.better)),
          h("td", { class: "number" }, probability(one.worse)),
        ),
      ),
    ),
  );
}

/** @param {any} compared */
function comparison(compared) {
  const { first, second, below, within, above } = compared;
  const parts = /** @type {Array<[string, string, number]>} */ ([
    ["below", `${first} is less accurate`, below],
    ["within", `they differ by at most ${threshold(compared.region)}`, within],
    ["above", `${first} is more accurate`, above],
  ]);
  const label =
    `${first} compared with ${second}: ` + parts.map(([, words, p]) => `${words} ${probability(p)}`).join(", ");
  return h(
    "div",
    { class: "comparison" },
    bar(
      parts.map(([kind, , part]) => [kind, part]),
      label,
    ),
    h(
      "ul",
      {},
      parts.map(([kind, words, part]) =>
        h(
          "li",
          {},
          h("span", { class: `swatch ${kind}`, "aria-hidden": "true" }),
          h("strong", {}, probability(part)),
          ` ${words}`,
        ),
      ),
    ),
  );
}

/** @param {any} assessment */
function nextGroups(assessment) {
  return h(
    "details",
    { class: "next-groups", open: true },
    h("summary", {}, "Next label requests"),
    h(
      "ul",
      {},
      assessment.next
        .slice(0, 4)
        .map((/** @type {any} */ entry) =>
          h(
            "li",
            {},
            h("strong", {}, entry.group),
            ` ${percent(entry.probability)}`,
            h(
              "span",
              { class: "note" },
              ` · ${entry.why} (${pluralize(entry.labels, "label")}${entry.in_flight ? `, ${count(entry.in_flight)} open` : ""})`,
            ),
          ),
        ),
    ),
  );
}

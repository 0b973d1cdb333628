/** Columns of the table of groups: what a cell says, and what sorts by it. */

import { h } from "./dom.js";
import { forestRow } from "./forest.js";
import { bounds, count, pluralize, duration, percent, plain, points, probability, threshold } from "./format.js";

/** @typedef {import("./place.js").Place} Place @typedef {(changes: Partial<Place>, remember?: boolean) => void} Go */

const FIRST_ORDER = { group: "asc", accuracy: "asc" };
const VERDICTS = { meets: ["✓", "meets"], fails: ["▼", "fails"], open: ["?", "open"], none: ["–", "none"] };

const DRIFTED = "Recent traffic differs from the reference, which needs no labels to detect.";

/** From so large a share on, missed traffic is shown: the terminal does the same. */
const PARTIAL = 0.01;

/** The accuracies that groups must have, ascending, each once. @param {any[]} groups @returns {number[]} */
export function accuracyTargets(groups) {
  const targets = groups.map((group) => group.min_accuracy).filter((target) => target !== null);
  return [...new Set(targets)].sort((one, other) => one - other);
}

/** Whether a grouping is configured by people, rather than one that every model has. @param {any} grouping */
export const isConfigured = (grouping) => grouping.has_threshold && grouping.by !== "all";

/** Columns, in their order. @param {any} state @param {any} table @param {import("./forest.js").Axis} axis */
export function columns(state, table, axis) {
  const targets = accuracyTargets(table.groups);
  const costs = table.groups.some((/** @type {any} */ group) => group.cost);
  const all = [
    { key: "group", sort: "group", title: "Group", cell: null },
    {
      key: "plot",
      sort: "uncertainty",
      title: `${threshold(state.interval)} interval`,
      cell: (/** @type {any} */ g) => forestRow(g, axis),
    },
    {
      key: "accuracy",
      sort: "accuracy",
      title: "Accuracy",
      cell: (/** @type {any} */ g) => [...measured(g.accuracy), !targets.length && badge(g)],
    },
    targets.length > 1 && {
      key: "target",
      sort: null,
      title: "Target",
      cell: (/** @type {any} */ g) => (g.min_accuracy === null ? "–" : threshold(g.min_accuracy)),
    },
    targets.length > 0 && {
      key: "below",
      sort: "evidence",
      title: `P(below ${targets.length === 1 ? threshold(targets[0]) : "target"})`,
      cell: (/** @type {any} */ g) => (g.accuracy_below === null ? "–" : probability(g.accuracy_below)),
    },
    targets.length > 0 && { key: "verdict", sort: null, title: "Verdict", cell: verdict },
    { key: "ece", sort: "ece", title: "ECE", cell: (/** @type {any} */ g) => measured(g.ece) },
    { key: "gap", sort: "gap", title: "Gap", cell: (/** @type {any} */ g) => points(g.calibration_gap) },
    { key: "share", sort: "share", title: "Traffic", cell: traffic },
    { key: "labels", sort: "labels", title: "Labels", cell: labels },
    costs && { key: "cost", sort: "cost", title: "Cost", cell: cost },
  ];
  return all.filter((column) => column !== false);
}

/** @param {import("./format.js").Interval} value */
const measured = (value) => [
  h("span", { class: "value" }, percent(value.mean)),
  " ",
  h("span", { class: "bounds" }, bounds(value)),
];

/** @param {any} group */
function cost(group) {
  if (!group.cost) return "–";
  const { lower, mean, upper } = group.cost;
  return [
    h("span", { class: "value" }, plain(mean)),
    " ",
    h("span", { class: "bounds" }, `[${plain(lower)}, ${plain(upper)}]`),
  ];
}

/** @param {any} group */
const traffic = (group) => [
  percent(group.share),
  group.drifted && h("span", { class: "drifted", title: DRIFTED }, "drifted"),
  group.missed_traffic >= PARTIAL &&
    h(
      "span",
      { class: "partial", title: `Up to ${percent(group.missed_traffic)} of its traffic is counted in __other__.` },
      "partial",
    ),
];

/** @param {any} group */
function labels(group) {
  const all = group.labels_correct + group.labels_incorrect;
  const missing = group.unanswered > 0 ? `; ${percent(group.unanswered)} of its requests ended without a label` : "";
  const title = `${pluralize(all, "label")}: ${count(group.labels_correct)} correct, ${count(group.labels_incorrect)} incorrect${missing}`;
  return h(
    "span",
    { title },
    h("span", { class: "value" }, count(all)),
    " ",
    h("span", { class: "bounds" }, `${count(group.labels_correct)}✓ ${count(group.labels_incorrect)}✗`),
  );
}

/** What evidence confirms, in a word. @param {any} group */
function badge(group) {
  const claims = group.evidence?.claims ?? [];
  const is = (/** @type {string} */ kind) =>
    claims.some((/** @type {any} */ claim) => claim.kind === kind && claim.confirmed);
  const declined = group.evidence?.change || is("declined") ? "declined" : null;
  const word = is("below_threshold") ? "confirmed" : declined;
  return word && h("span", { class: "confirmed", title: "by anytime-valid evidence" }, word);
}

/** @param {any} group */
const verdict = (group) => [...openVerdict(group), badge(group)];

/** Time until a verdict, if a budget renews. @param {any} group */
function untilVerdict(group) {
  if (group.verdict_affordable === false) return ", not at this budget";
  return group.verdict_seconds === null ? "" : `, ${duration(group.verdict_seconds)}`;
}

/** @param {any} group */
function openVerdict(group) {
  const [mark, word] = VERDICTS[group.verdict];
  const needed = group.verdict === "open" && group.verdict_labels ? `~${pluralize(group.verdict_labels, "label")}` : "";
  const time = needed && untilVerdict(group);
  return [
    h("span", { class: `verdict ${group.verdict}` }, h("span", { "aria-hidden": "true" }, mark), word),
    needed &&
      h(
        "span",
        { class: "needed", title: "labels needed until a verdict (median), and the time until then" },
        `${needed}${time}`,
      ),
  ];
}

/** @param {string} sort @param {string | null} order */
const orderOf = (sort, order) => order ?? FIRST_ORDER[sort] ?? "desc";

/** @param {any} column @param {Place} place @param {Go} go @param {any} extra */
export function header(column, place, go, extra) {
  const current = (place.sort ?? "evidence") === column.sort;
  const order = orderOf(column.sort, place.order);
  const flip = () =>
    go(
      { sort: column.sort, order: current ? (order === "asc" ? "desc" : "asc") : orderOf(column.sort, null) },
      false,
    );
  const direction = order === "asc" ? "ascending" : "descending";
  const arrow = h("span", { class: "arrow", "aria-hidden": "true" }, current ? (order === "asc" ? "↑" : "↓") : "↕");
  return h(
    "th",
    { key: column.key, class: column.key, scope: "col", "aria-sort": column.sort && current ? direction : null },
    column.sort
      ? h("button", { type: "button", "data-sort": column.sort, onclick: flip }, column.title, arrow)
      : h("span", {}, column.title),
    extra,
  );
}

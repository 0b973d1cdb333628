/** Details of one group: what to do next, history, calibration and drift. */

import { h } from "./dom.js";
import { pluralize, duration, interval, moment, percent, points, probability, threshold, when } from "./format.js";
import { driftView } from "./drift.js";
import { reliabilityView } from "./reliability.js";
import { timelineView } from "./timeline.js";

const NARROW = 760;

/** From this share on, the estimate is described as coming from the group's own labels alone. */
const OWN_LABELS_ALONE = 0.995;

/** @param {any} group @param {any} detail timeline and reliability, once they are there @param {any} data */
export function detailView(group, detail, data) {
  const { state, table } = data;
  const wide = data.width > NARROW;
  const inside = data.width - 48;
  return h(
    "div",
    { class: "detail-grid", id: "detail" },
    h(
      "div",
      { class: "next" },
      h("h3", {}, "What to do next"),
      advice(group, state, table.grouping).map((words) => h("p", {}, words)),
      estimateSource(group),
    ),
    detail && !detail.missing
      ? [
          timelineView(detail.timeline, group.min_accuracy, group.evidence?.change, wide ? inside * 0.56 : inside),
          reliabilityView(detail.reliability, wide ? inside * 0.4 : inside),
          detail.drift && driftView(detail.drift, wide ? inside * 0.56 : inside),
        ]
      : h("p", { class: "empty" }, detail?.missing ?? "Loading …"),
  );
}

/** Raw and estimated accuracy, and where the estimate comes from. @param {any} group */
function estimateSource(group) {
  if (group.own_rate === null)
    return h("p", { class: "estimate-source" }, "It has no labels of its own: the estimate comes from scores and other groups.");
  const estimate = `Raw ${percent(group.own_rate)}, estimate ${percent(group.accuracy.mean)}. `;
  const rest =
    group.own_share > OWN_LABELS_ALONE
      ? "The estimate comes from its own labels, weighted by the current scores of its traffic."
      : `${percent(group.own_share)} of the estimate comes from its own labels, the rest from scores and other groups.`;
  return h("p", { class: "estimate-source" }, estimate + rest);
}

/** @param {any} group @param {any} state @param {string} grouping @returns {any[]} paragraphs */
function advice(group, state, grouping) {
  const { min_accuracy: wanted, max_ece: most } = group;
  const partition = state.groupings.find((/** @type {any} */ one) => one.name === grouping);
  const sentences = [];
  if (group.verdict === "fails") sentences.push(...failing(group, state, grouping));
  if (group.verdict === "open") sentences.push(undecided(group, wanted));
  if (group.verdict === "meets") {
    sentences.push(
      `No action for accuracy: it is ${threshold(wanted)} or more with a probability of ${probability(1 - group.accuracy_below)}.`,
    );
  }
  if (group.verdict === "none") {
    sentences.push(
      `Accuracy is ${interval(group.accuracy)}. ` +
        (partition?.has_threshold
          ? "It has no threshold (alerts.min_accuracy), so no alert fires if it is too low."
          : "Groups by score or votes have no accuracy target, because low scores are expected to be less accurate."),
    );
  }
  if (group.miscalibrated) {
    sentences.push([
      `Do not trust its scores: they are ${group.calibration_gap > 0 ? "too high" : "off"}, by ${points(Math.abs(group.calibration_gap)).slice(1)} on average, and the ` +
        `calibration error is above ${threshold(most)} with a probability of ${probability(group.ece_above)}. Recalibrate the model, or raise the decision threshold. `,
      runbook("Miscalibrated", grouping),
    ]);
  }
  if (group.change_point) sentences.push(changePointSentence(group.change_point));
  sentences.push(...evidenceSentences(group.evidence));
  if (group.certificate_labels === 0) sentences.push(`Shown to meet ${threshold(wanted)}, valid at every moment.`);
  else if (group.certificate_labels)
    sentences.push(`About ${pluralize(group.certificate_labels, "more label")} until it is shown to meet ${threshold(wanted)}.`);
  const next = state.assessments.flatMap((/** @type {any} */ a) =>
    a.grouping === grouping ? a.next.map((/** @type {any} */ n) => ({ ...n, name: a.name })) : [],
  );
  const entry = next.find((/** @type {any} */ one) => one.group === group.group);
  if (entry)
    sentences.push(
      `The next label request of assessment ${entry.name} goes here with a probability of ${probability(entry.probability)}: ${entry.why}.`.replace(
        /\.\.$/,
        ".",
      ),
    );
  return sentences;
}

/** @param {any} evidence */
function evidenceSentences(evidence) {
  if (!evidence) return [];
  const sentences = evidence.sentences.length ? [evidence.sentences.join(" ")] : [];
  if (evidence.change) {
    const { at, earliest, latest, labels } = evidence.change;
    sentences.push(
      `It has been less accurate since about ${moment(at)}, probably between ${moment(earliest)} and ${moment(latest)}: ` +
        `${pluralize(labels, "label")} ago.`,
    );
  }
  return sentences;
}

/** @param {any} group @param {any} state @param {string} grouping */
function failing(group, state, grouping) {
  const missed = state.accuracy
    ? (group.share * (1 - group.accuracy.mean)) / Math.max(1e-9, 1 - state.accuracy.mean)
    : null;
  return [
    [
      `Act: accuracy is below ${threshold(group.min_accuracy)} with a probability of ${probability(group.accuracy_below)}`,
      group.low_since === null
        ? ""
        : [", for ", when(group.low_since, "since"), group.low_since_or_earlier ? " or longer" : ""],
      ". ",
      runbook("AccuracyLow", grouping),
    ].flat(),
    `The group is ${percent(group.share)} of the traffic` +
      (missed === null
        ? "."
        : ` and about ${percent(Math.min(1, missed))} of all mistakes. Until it is fixed, have people review its predictions, or use another model.`),
  ];
}

/** @param {any} change the change point of the group */
function changePointSentence(change) {
  return [
    "Its accuracy has changed, probably with predictions of ",
    when(change.since),
    `: the ${pluralize(change.labels_before, "label")} from before the change point are down-weighted to ${percent(change.kept)} or less.`,
  ];
}

/** @param {any} group @param {number} wanted */
function undecided(group, wanted) {
  const words = `Undecided: accuracy is below ${threshold(wanted)} with a probability of ${probability(group.accuracy_below)}. `;
  if (!group.verdict_labels) return `${words}The number of labels needed cannot be estimated.`;
  const needed = `About ${pluralize(group.verdict_labels, "label")} more will probably decide it`;
  if (group.verdict_affordable === false) return `${words}${needed}, but not at this budget: it would take over ten years.`;
  if (group.verdict_seconds === null) return `${words}${needed}. No budget renews.`;
  return `${words}${needed}, in about ${duration(group.verdict_seconds)} at the current budgets.`;
}

/** @param {"accuracy_low" | "miscalibrated"} kind @param {string} grouping */
const runbook = (kind, grouping) => 
  h("a", { href: `/docs/runbooks/Credence${grouping === "all" ? "Model" : "Group"}${kind}` }, "Runbook");

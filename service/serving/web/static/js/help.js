/** Terms of the page, explained in one sentence each. */

import { h } from "./dom.js";
import { threshold } from "./format.js";

/** @param {Array<[string, string]>} words */
export function help(words) {
  return h(
    "details",
    { class: "help" },
    h("summary", {}, h("span", { class: "question", "aria-hidden": "true" }, "?"), "How to read this"),
    h(
      "dl",
      {},
      words.map(([term, meaning]) => h("div", {}, h("dt", {}, term), h("dd", {}, meaning))),
    ),
  );
}

/** @param {any} state */
export function groupsHelp(state) {
  const sure = threshold(state.thresholds.confidence);
  return help([
    [
      "Credible interval",
      `Given the labels, the accuracy is inside with a probability of ${threshold(state.interval)}; more labels make it narrower.`,
    ],
    [
      "Verdict",
      `Whether the group meets the accuracy target: “meets” and “fails” have a probability of at least ${sure}, “open” needs more labels.`,
    ],
    [
      "~40 labels, 2 d",
      "Below “open”: labels needed until a verdict (median), and the time until then with the current budgets.",
    ],
    [
      "Confirmed, declined",
      "Anytime-valid evidence confirms that the group is below its accuracy target, or less accurate than in its reference.",
    ],
    [
      "ECE",
      "Expected calibration error: how far the model's scores are from its accuracy, averaged over score bins.",
    ],
    ["Gap", "Mean score minus mean accuracy: positive if the model is overconfident."],
    ["Traffic", "The group's share of the predictions; recent ones count more."],
    [
      "partial",
      "Some of the group's traffic is counted in “__other__”: its attribute has too many values, and this one was rare at first.",
    ],
    [
      "drifted",
      "The distribution of its recent scores, predicted classes or attributes differs from the reference. This does not prove mistakes; a share of the label requests goes here.",
    ],
  ]);
}

/** @param {any} state */
export function annotatorsHelp(state) {
  const limit = state.thresholds.min_reliability;
  return /** @type {Array<[string, string]>} */ ([
    [
      "Reliability",
      "Share of the model's items about which the labels of a person, or of a vendor's people, are right, with a credible interval. It is estimated from everybody's labels.",
    ],
    ...(limit === null
      ? []
      : [["Below threshold", `Probability that the reliability is below alerts.min_reliability (${threshold(limit)}).`]]),
    [
      "Agreement",
      "Probability that somebody else gives an item the same label. Items on which the first label is the predicted class are labelled twice less often, and count more.",
    ],
    ["Median time", "From the request for a label to the label, including the time until somebody takes it."],
    [
      "Wrong about gold",
      "Share of the first labels about gold items that are wrong, with an interval. The true classes of gold items are known.",
    ],
  ]);
}

export const CONFUSION_HELP = /** @type {Array<[string, string]>} */ ([
  [
    "Row",
    "The predicted class; the cells of a row are the probabilities of the true class, and add up to 100% over all classes.",
  ],
  ["Cell", "The posterior mean in percent and, below it, the credible interval."],
]);

export const ASSESSMENTS_HELP = /** @type {Array<[string, string]>} */ ([
  ["Assessment", "A question about the model that Credence answers continuously, with labels within a budget."],
  [
    "Next",
    "The next label request goes to a group drawn with these probabilities, so that labels go where they are most informative.",
  ],
  ["Rank", "Rank of the group (1 is the most extreme), with its credible interval."],
]);

export const PERFORMANCE_HELP = /** @type {Array<[string, string]>} */ ([
  ["Figures", "Posterior medians, and credible intervals in brackets. Misclassified items and costs are posterior means."],
  ["Precision", "The share of predicted positives that are positive."],
  ["Recall", "The share of positive items that are predicted positive."],
  ["F1", "The harmonic mean of precision and recall."],
  ["False positive rate", "The share of negative items that are predicted positive."],
  ["P(all targets met)", "The probability that precision, recall and other measures meet all their targets at this threshold."],
  ["Threshold", "Items are predicted positive if their score of the positive class is at least this. The slider changes only the view."],
  [
    "Best",
    "The threshold with the highest probability of meeting all targets. Ties go to the lowest cost if error costs are configured, otherwise to the highest F1.",
  ],
  [
    "Score models",
    "Curves from scores to probabilities. calibrated: scores are nearly calibrated probabilities. lapsing: likewise, but the highest scores all mean the same. informed: as a mixture of one distribution per class expects. ranked: only the order of scores matters. The estimate averages all four by how well each predicts the labels.",
  ],
  [
    "Maps",
    "A calibration map from a score to the probability that the item is positive, with its interval, by Platt scaling, beta calibration or isotonic regression. The file explains how to apply it.",
  ],
]);

/** Words that a reader may not know, in one sentence each. */

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
      `Given the labels, the accuracy lies inside with a probability of ${threshold(state.interval)}; more labels make it narrower.`,
    ],
    [
      "Verdict",
      `Whether the group is as accurate as wanted: “meets” and “fails” are at least ${sure} sure, “open” is not sure yet.`,
    ],
    [
      "~40 labels, 2 d",
      "Below “open”: how many more labels a verdict will take (the median), and how long the budgets need to pay for them.",
    ],
    [
      "Confirmed, declined",
      "What evidence says that may be looked at any time: below the wanted accuracy, or less accurate than in its reference.",
    ],
    [
      "ECE",
      "Expected calibration error: how far the model's scores are from its accuracy, averaged over score bins.",
    ],
    ["Gap", "Mean score less mean accuracy: positive where the model promises more than it keeps."],
    ["Traffic", "The group's share of the predictions; recent ones count more."],
    [
      "partial",
      "Some of the group's traffic is counted in “__other__”: its attribute has more values than are told apart, and this one was rare at first.",
    ],
    [
      "drifted",
      "Its recent scores, predicted classes or attributes are not what they were in the reference. That is no proof of mistakes; a share of the labels is asked here.",
    ],
  ]);
}

export const CONFUSION_HELP = /** @type {Array<[string, string]>} */ ([
  [
    "Row",
    "What the model predicted; the cells of a row tell what it truly is, and add up to 100 % over all classes.",
  ],
  ["Cell", "The posterior probability in percent and, below it, its credible interval."],
]);

export const ASSESSMENTS_HELP = /** @type {Array<[string, string]>} */ ([
  ["Assessment", "A standing question about the model; it asks people for labels within its budget."],
  [
    "Next",
    "Where the policy asks next: groups are drawn with these probabilities, so that labels go where they tell most.",
  ],
  ["Rank", "Place of the group, counted from 1 at the end that is looked for, with its credible interval."],
]);

export const PERFORMANCE_HELP = /** @type {Array<[string, string]>} */ ([
  ["Precision", "Of the items that are called positive, the share that is."],
  ["Recall", "Of the items that are positive, the share that is called so."],
  ["F1", "The harmonic mean of precision and recall."],
  ["False positive rate", "Of the items that are negative, the share that is called positive."],
  ["P(all targets met)", "The probability that precision, recall and whatever else has a target reach them all, at this threshold."],
  ["Threshold", "Items of which the positive class's score is this or more are called positive. Moving the slider changes nothing but what is shown."],
  [
    "Best",
    "The threshold that meets all targets most probably; of equally good ones the cheapest where error costs are configured, else the one of the highest F1.",
  ],
  [
    "How the scores are seen",
    "calibrated: as about right probabilities. mixture: as those of two classes, each with a distribution. informed: as a curve like the mixture's. ranked: by their order alone. All four are averaged by how well each foretold the labels.",
  ],
  [
    "Maps",
    "A map tells the probability that an item of a score is positive, with its interval: as Platt's logistic curve, by beta calibration, or as any rising steps. The file says how to apply it elsewhere.",
  ],
]);

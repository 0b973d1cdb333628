/** How a binary classifier does at its threshold, and would at every other one. */

import { modelPath } from "./api.js";
import { h } from "./dom.js";
import { pluralize, probability, when } from "./format.js";
import { help, PERFORMANCE_HELP } from "./help.js";
import { curveView } from "./precision_recall.js";
import { pickedOf, pickerView } from "./threshold_picker.js";

const WIDE = 900;
const CURVE_SHARE = 0.56;

const WAYS = {
  calibrated: "Scores are nearly calibrated probabilities",
  lapsing: "Scores are nearly calibrated, but the highest all mean the same",
  informed: "The probability rises with the score as in the mixture",
  ranked: "Only the order of scores matters",
  average: "No model has most of the weight",
};

const MAPS = [
  ["platt", "Platt"],
  ["beta", "Beta"],
  ["isotonic", "Isotonic"],
];

/** Measures whose targets are missed. @param {any} summary */
const missedOf = (summary) =>
  summary.measures.filter((/** @type {any} */ measure) => measure.verdict === "fails");

/** @param {any} data @param {() => void} redraw draws this section alone */
export function performanceView(data, redraw) {
  return [
    h("div", { class: "title" }, h("h2", { id: "performance-title" }, "Performance"), help(PERFORMANCE_HELP)),
    data.state.performances.map((/** @type {any} */ summary) => one(summary, data, redraw)),
  ];
}

/** @param {any} summary @param {any} data @param {() => void} redraw */
function one(summary, data, redraw) {
  const performance = data.performances.find((/** @type {any} */ each) => each.assessment === summary.name);
  const missed = missedOf(summary).length > 0;
  return h(
    "article",
    { key: summary.name, class: `performance${missed ? " missed" : ""}` },
    h(
      "p",
      { class: "eyebrow" },
      summary.name,
      performance && ` · ${pluralize(performance.labels, "label")} and ${pluralize(performance.scores, "unlabelled score")} · estimated `,
      performance && when(performance.taken_at),
    ),
    h("h3", {}, `Finding ${summary.positive_class}`),
    h("p", { class: "summary" }, missed && mark(), summary.sentence),
    performance && thresholdDetails(performance, data, redraw),
  );
}

const mark = () => h("span", { class: "fails", "aria-hidden": "true" }, "▼ ");

/** @param {any} performance @param {any} data @param {() => void} redraw */
function thresholdDetails(performance, data, redraw) {
  const picked = pickedOf(performance);
  const width = data.width > WIDE ? data.width * CURVE_SHARE : data.width - 40;
  return [
    h("div", { class: "side-by-side" }, h("div", {}, curveView({ performance, picked, width })), pickerView(performance, picked, redraw)),
    h(
      "div",
      { class: "under" },
      h("div", { class: "score-models" }, h("h4", {}, "Score models (posterior weights)"), scoreModels(performance.seeing)),
      h("div", { class: "maps" }, h("h4", {}, "Maps from scores to probabilities, as JSON"), downloads(performance)),
    ),
  ];
}

/** @param {any} models */
function scoreModels(models) {
  const weights = /** @type {Array<[string, number]>} */ (Object.entries(models.weights)).sort((a, b) => b[1] - a[1]);
  const listed = weights.map(([way, weight]) => `${way} ${probability(weight)}`).join(", ");
  return [
    h("p", {}, `${WAYS[models.way] ?? models.way}: ${listed}.`),
    models.misfit &&
      h(
        "p",
        { class: "hint" },
        `The mixture does not fit the scores well (p-value ${probability(models.misfit_p_value)}). ` +
          "Unlabelled scores have less weight, so intervals of the same width need more labels.",
      ),
  ];
}

/** @param {any} performance */
function downloads(performance) {
  const path = `/api/v1${modelPath(performance.model)}/performance/${encodeURIComponent(performance.assessment)}/recalibration`;
  return h(
    "p",
    { class: "actions" },
    MAPS.map(([form, title]) =>
      h(
        "a",
        { class: "button quiet", href: `${path}/${form}`, download: true },
        h("span", { class: "visually-hidden" }, "Download "),
        title,
      ),
    ),
  );
}

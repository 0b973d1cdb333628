/** What the true class is, given the predicted one. */

import { h } from "./dom.js";
import { bounds, interval, percent } from "./format.js";
import { CONFUSION_HELP, help } from "./help.js";

const LEVELS = 6;
const MISTAKES = 8;

/** @param {any} matrix */
export function confusionView(matrix) {
  const omitted = matrix.omitted ? ` ${matrix.omitted} classes that are confused least are not shown.` : "";
  return [
    h("div", { class: "title" }, h("h2", { id: "confusion-title" }, "Confusion"), help(CONFUSION_HELP)),
    h(
      "div",
      { class: "beside" },
      h(
        "div",
        { class: "scroll", tabindex: 0, role: "region", "aria-label": "Confusion matrix" },
        h(
          "table",
          { class: "confusion" },
          h("caption", {}, `Probability of each true class, in percent.${omitted}`),
          h(
            "thead",
            {},
            h(
              "tr",
              {},
              h("th", { scope: "col" }, "predicted ↓  true →"),
              matrix.classes.map((/** @type {string} */ name) => h("th", { scope: "col" }, name)),
            ),
          ),
          h(
            "tbody",
            {},
            matrix.rows.map((/** @type {any} */ row) => matrixRow(row, matrix.classes)),
          ),
        ),
      ),
      h("div", { class: "mistakes" }, h("h3", {}, "Most frequent mistakes"), mistakes(matrix)),
    ),
  ];
}

/** @param {any} row @param {string[]} classes */
function matrixRow(row, classes) {
  return h(
    "tr",
    {},
    h("th", { scope: "row", title: `${percent(row.share)} of the traffic` }, row.predicted),
    row.classes.map((/** @type {import("./format.js").Interval} */ cell, /** @type {number} */ i) => {
      const right = classes[i] === row.predicted;
      // Mistakes are rarer by far than hits: on the same scale they would all look alike.
      const level = Math.min(LEVELS, Math.round(LEVELS * (right ? cell.mean : Math.sqrt(cell.mean / 0.3))));
      const title = `Predicted ${row.predicted}, truly ${classes[i]}: ${interval(cell)}`;
      const value = h("span", { class: "value" }, (100 * cell.mean).toFixed(1));
      return h(
        "td",
        { class: `${right ? "right" : "wrong"} level-${level}`, title },
        value,
        h("span", { class: "bounds" }, bounds(cell)),
      );
    }),
  );
}

/** @param {any} matrix */
function mistakes(matrix) {
  if (!matrix.mistakes.length) return h("p", { class: "empty" }, "None so far.");
  return h(
    "ol",
    {},
    matrix.mistakes
      .slice(0, MISTAKES)
      .map((/** @type {any} */ mistake) =>
        h(
          "li",
          {},
          h(
            "span",
            { class: "pair" },
            h("strong", {}, mistake.true),
            " predicted as ",
            h("strong", {}, mistake.predicted),
          ),
          h("span", { class: "value" }, interval(mistake.probability)),
          h(
            "span",
            { class: "note" },
            `of predictions of ${mistake.predicted}; ${percent(mistake.frequency)} of all traffic`,
          ),
        ),
      ),
  );
}

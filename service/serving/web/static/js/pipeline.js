/** The health of what estimates come from: consumers, their lag, the leader, Redis. */

import { h } from "./dom.js";
import { MARKS, runbook } from "./problems.js";

/** @param {any} pipeline */
export function pipelineView(pipeline) {
  return [
    h("p", { class: "note" }, h("strong", {}, "Pipeline "), pipeline.sentence),
    pipeline.problems.length > 0 &&
      h("ol", { class: "problems" }, pipeline.problems.map((/** @type {any} */ problem) => card(problem))),
  ];
}

/** @param {any} problem */
function card(problem) {
  return h(
    "li",
    { key: problem.key, class: `problem ${problem.severity}` },
    h(
      "div",
      { class: "claim" },
      h(
        "p",
        { class: "sentence" },
        h("span", { class: "mark", "aria-hidden": "true" }, MARKS[problem.severity]),
        ` ${problem.sentence} `,
        h("span", { class: "severity" }, problem.severity),
      ),
      h("p", { class: "actions" }, runbook(problem)),
    ),
  );
}

/** The state of a model in a line, and everything that is wrong with it. */

import { h } from "./dom.js";
import { span } from "./forest.js";
import { count, interval, percent, pluralize, probability, threshold, when } from "./format.js";
import { address, follow } from "./place.js";

const SHOWN = 6;
export const MARKS = { critical: "▼", warning: "▽", info: "•" };
const MEASURES = {
  accuracy_low: "Accuracy",
  less_accurate: "Accuracy",
  miscalibrated: "ECE",
  performance_target_missed: "Estimate",
  member_target_missed: "Precision",
};
const UNKNOWN_STATE = "Until this is fixed, the state of the model is unknown.";
const NO_ANSWER = { status: "no_estimates", title: "State unknown", detail: "Credence does not answer.", problem_count: 0 };

/** The headline, or an unknown state if the last response is old. @param {any} headline @param {boolean} unreachable */
export const currentHeadline = (headline, unreachable) => (unreachable && !headline.problem_count ? NO_ANSWER : headline);

/** The badge beside a model's name. @param {any} headline */
export function badge(headline) {
  const problems = headline.problem_count + (headline.pipeline_problem_count ?? 0);
  if (problems) return { kind: headline.status === "info" ? "noted" : "fails", text: count(problems) };
  return headline.status === "ok" ? { kind: "meets", text: "✓" } : { kind: "waiting", text: "…" };
}

/** @param {any} state @param {boolean} unreachable @param {(grouping: string, group: string) => void} go */
export function problemsView(state, unreachable, go) {
  const headline = currentHeadline(state.headline, unreachable);
  const card = (/** @type {any} */ problem) => problemCard(state, problem, go);
  const title = h("h1", { id: "model-name", class: "visually-hidden" }, `State of ${state.model}`);
  if (!headline.problem_count)
    return [
      title,
      h(
        "div",
        { class: headline.status === "ok" ? "panel ok" : "panel" },
        h("h2", {}, headline.title),
        h("p", {}, headline.pipeline_problem_count ? UNKNOWN_STATE : headline.detail),
      ),
      notes(state, card),
    ];
  const more = headline.problem_count - SHOWN;
  const rest = state.problems.slice(SHOWN);
  return [
    title,
    h("h2", { class: headline.status === "info" ? "noted" : "alarm" }, headline.title),
    h("ol", { class: "problems" }, state.problems.slice(0, SHOWN).map(card)),
    rest.length > 0 &&
      h(
        "details",
        { class: "more" },
        h("summary", {}, `${count(more)} more`),
        h("ol", { class: "problems" }, rest.map(card)),
        more > rest.length && h("p", { class: "note" }, "The others are in the tables of groups below."),
      ),
    notes(state, card),
  ];
}

/** What evidence confirms, and no alert fires about. @param {any} state @param {(note: any) => any} card */
const notes = ({ notes }, card) =>
  notes.length > 0 &&
  h(
    "details",
    { class: "more" },
    h("summary", {}, pluralize(notes.length, "note")),
    h("ol", { class: "problems" }, notes.map(card)),
  );

/** @param {any} state @param {any} problem @param {(grouping: string, group: string) => void} go */
function problemCard(state, problem, go) {
  const { severity, grouping, group } = problem;
  return h(
    "li",
    { key: `${problem.kind} ${problem.severity} ${problem.title}`, class: `problem ${severity}` },
    h(
      "div",
      { class: "claim" },
      h(
        "h3",
        {},
        h("span", { class: "mark", "aria-hidden": "true" }, MARKS[severity]),
        h("strong", {}, problem.title),
        h("span", { class: "severity" }, problem.alert ? severity : "note"),
      ),
      h("p", { class: "sentence" }, problem.sentence),
      h("p", { class: "action" }, problem.action),
      h("p", { class: "actions" }, runbook(problem), grouping && details(state, grouping, group, go)),
    ),
    facts(problem),
  );
}

/** @param {any} problem */
export const runbook = (problem) =>
  problem.alert &&
  h(
    "a",
    { class: problem.severity === "critical" ? "button" : "button quiet", href: `/docs/runbooks/${problem.alert}` },
    "Runbook",
    h("span", { class: "visually-hidden" }, ` of ${problem.alert}`),
  );

/** @param {any} state @param {string} grouping @param {string} group @param {(grouping: string, group: string) => void} go */
const details = (state, grouping, group, go) =>
  h(
    "a",
    {
      class: "button quiet",
      href: address({ model: state.model, grouping, group }),
      onclick: follow(() => go(grouping, group)),
    },
    "Details",
    h("span", { class: "visually-hidden" }, ` at ${grouping} ${group}`),
  );

/** @param {any} problem */
function facts(problem) {
  const measure = MEASURES[problem.kind];
  return h(
    "dl",
    { class: "facts" },
    problem.probability !== null && fact("Probability", probability(problem.probability)),
    fact("Since", [when(problem.since), problem.since_or_earlier ? " or earlier" : ""]),
    problem.share !== null && fact("Traffic", percent(problem.share)),
    problem.labels !== null && fact("Labels", count(problem.labels)),
    measure &&
      problem.value &&
      problem.threshold !== null &&
      h(
        "div",
        { class: "drawn" },
        h("dt", {}, `${measure}, threshold ${threshold(problem.threshold)}`),
        h("dd", {}, interval(problem.value), span(problem.value, problem.threshold, "fails")),
      ),
  );
}

/** @param {string} term @param {any} value */
const fact = (term, value) => h("div", {}, h("dt", {}, term), h("dd", {}, value));

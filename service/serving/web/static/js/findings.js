/** Groups that violate a threshold, in sentences. */

import { isConfigured } from "./columns.js";
import { h } from "./dom.js";
import { span } from "./forest.js";
import { count, pluralize, interval, percent, probability, threshold, when } from "./format.js";
import { hasTargets, missedCount, missedView } from "./performance.js";
import { address, follow } from "./place.js";
import { runbookPath } from "./runbooks.js";

const SHOWN = 6;
const NO_THRESHOLD = "Set alerts.min_accuracy or alerts.max_ece to list groups that violate it here.";

/** @param {any} finding */
const what = (finding) => (finding.kind === "accuracy_low" ? "below the accuracy target" : "miscalibrated");

/** @param {any} state @param {(grouping: string, group: string) => void} go */
export function findingsView(state, go) {
  const found = state.findings;
  const title = h("h1", { id: "model-name", class: "visually-hidden" }, `State of ${state.model}`);
  if (!found.length) return [title, missedView(state), noFindings(state)];
  const rest = found.slice(SHOWN);
  const more = state.finding_count - SHOWN;
  const card = (/** @type {any} */ finding) => findingCard(state, finding, go);
  return [
    title,
    h("h2", { class: "alarm" }, pluralize(state.finding_count, "problem")),
    h("ol", { class: "findings" }, found.slice(0, SHOWN).map(card)),
    rest.length > 0 &&
      h(
        "details",
        { class: "more" },
        h("summary", {}, `${count(more)} more`),
        h("ol", { class: "findings" }, rest.map(card)),
        more > rest.length && h("p", { class: "note" }, "The others are in the tables of groups below."),
      ),
    missedView(state),
  ];
}

/** @param {any} state @param {any} finding @param {(grouping: string, group: string) => void} go */
function findingCard(state, finding, go) {
  const { grouping, group } = finding;
  const low = finding.kind === "accuracy_low";
  const measure = low ? "Accuracy" : "ECE";
  return h(
    "li",
    { key: `${finding.kind} ${grouping} ${group}`, class: "finding" },
    h(
      "div",
      { class: "claim" },
      h(
        "h3",
        {},
        h("span", { class: "mark", "aria-hidden": "true" }, low ? "▼" : "≠"),
        grouping === "all" ? null : h("span", { class: "grouping" }, grouping),
        h("strong", {}, grouping === "all" ? "All traffic" : group),
        h("span", { class: "what" }, ` is ${what(finding)}`),
        finding.confirmed &&
          h("span", { class: "confirmed", title: "by anytime-valid evidence" }, "confirmed"),
      ),
      h("p", { class: "sentence" }, finding.sentence),
      h(
        "p",
        { class: "actions" },
        h(
          "a",
          { class: "button", href: runbookPath(finding.kind, grouping) },
          "Runbook",
          h("span", { class: "visually-hidden" }, ": runbook"),
        ),
        h(
          "a",
          {
            class: "button quiet",
            href: address({ model: state.model, grouping, group }),
            onclick: follow(() => go(grouping, group)),
          },
          "Details",
          h("span", { class: "visually-hidden" }, ` at ${grouping} ${group}`),
        ),
      ),
    ),
    h(
      "dl",
      { class: "facts" },
      fact("Probability", probability(finding.probability)),
      fact("Known", since(finding)),
      fact("Traffic", percent(finding.share)),
      fact("Labels", count(finding.labels)),
      h(
        "div",
        { class: "drawn" },
        h("dt", {}, `${measure}, ${low ? "at least" : "at most"} ${threshold(finding.threshold)} wanted`),
        h("dd", {}, interval(finding.value), span(finding.value, finding.threshold, "fails")),
      ),
    ),
  );
}

/** @param {string} term @param {Node | string | Array<Node | string>} value */
const fact = (term, value) => h("div", {}, h("dt", {}, term), h("dd", {}, value));

/** @param {any} finding */
function since(finding) {
  return ["for ", when(finding.since, "since"), finding.since_or_earlier ? " or longer" : ""];
}

/** @param {any} state */
function noFindings(state) {
  const { min_accuracy: accuracy, max_ece: ece } = state.thresholds;
  const missed = missedCount(state) > 0;
  const unwatched = accuracy === null && ece === null;
  const groups = state.groupings.reduce((/** @type {number} */ sum, /** @type {any} */ g) => sum + g.groups, 0);
  if (!groups)
    return h(
      "div",
      { class: "panel" },
      h("h2", {}, "No traffic yet"),
      h("p", {}, "Estimates appear here once predictions of this model arrive."),
    );
  if (unwatched && missed) return null;
  if (unwatched && hasTargets(state))
    return h(
      "div",
      { class: "panel ok" },
      h("h2", {}, "No target of performance is missed"),
      h("p", {}, NO_THRESHOLD),
    );
  return h(
    "div",
    { class: unwatched || missed ? "panel" : "panel ok" },
    h("h2", {}, unwatched ? "No threshold is configured" : missed ? "No group violates a threshold" : "No problems"),
    h(
      "p",
      {},
      unwatched
        ? NO_THRESHOLD
        : `None of ${pluralize(groups, "group")} violates a threshold (${threshold(state.thresholds.confidence)} confidence). ` +
            undecidedSentence(state),
    ),
  );
}

/** What people have configured; the others are the same traffic again. @param {any} state */
function undecidedSentence(state) {
  const undecided = state.groupings.filter((/** @type {any} */ g) => g.open && isConfigured(g));
  if (!undecided.length) return "";
  const parts = undecided.map((/** @type {any} */ g) => `${count(g.open)} of ${count(g.groups)} by ${g.name}`).join(", ");
  return `Undecided, more labels needed: ${parts}.`;
}

/** Path of the runbook; alerts on all traffic have their own. */

const NAMES = { accuracy_low: "AccuracyLow", miscalibrated: "Miscalibrated" };

/** @param {"accuracy_low" | "miscalibrated"} kind @param {string} grouping */
export const runbookPath = (kind, grouping) =>
  `/docs/runbooks/Credence${grouping === "all" ? "Model" : "Group"}${NAMES[kind]}`;

/** Models with their state, and how fresh the beliefs are. */

import { h } from "./dom.js";
import { pluralize, duration, moment, now } from "./format.js";
import { address, follow } from "./place.js";

const STALE_TICKS = 3;

/** Links to all models. @param {any} overview @param {string | null} shown @param {(model: string) => void} go */
export function modelLinks(overview, shown, go) {
  return overview.models.map((/** @type {any} */ summary) => {
    const wrong = summary.finding_count + summary.missed_targets;
    const state = wrong ? "fails" : summary.taken_at !== null && summary.watched && summary.accuracy ? "meets" : "waiting";
    const words = wrong ? pluralize(wrong, "finding") : state === "meets" ? "no findings" : "no findings possible yet";
    return h(
      "a",
      {
        key: summary.model,
        href: address({ model: summary.model }),
        "aria-current": summary.model === shown ? "page" : null,
        onclick: follow(() => go(summary.model)),
      },
      h("span", { class: "model" }, summary.model),
      h("span", { class: `badge ${state}`, title: words }, wrong || (state === "meets" ? "✓" : "…")),
      h("span", { class: "visually-hidden" }, words),
    );
  });
}

/** @param {number | null} takenAt @param {number} tick @returns {{text: string, title: string, stale: boolean}} */
export function freshness(takenAt, tick) {
  if (takenAt === null) return { text: "No estimates yet", title: "The first round has not finished.", stale: false };
  const age = now() - takenAt;
  const stale = age > STALE_TICKS * tick;
  return {
    text: stale ? `Stale: updated ${duration(age)} ago` : `Updated ${duration(age)} ago`,
    title: `Computed at ${moment(takenAt)}; a round is due every ${duration(tick)}.`,
    stale,
  };
}

/** @param {any} overview */
export function footer(overview) {
  return [
    h("span", {}, `Credence ${overview.version}`),
    h("a", { href: "/docs/runbooks/" }, "Runbooks"),
    h("a", { href: "/api/v1/openapi.json" }, "API"),
    h("a", { href: "/metrics" }, "Metrics"),
  ];
}

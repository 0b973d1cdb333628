/** Models with their state, and how fresh the estimates are. */

import { h } from "./dom.js";
import { duration, moment, now } from "./format.js";
import { address, follow } from "./place.js";
import { badge, currentHeadline } from "./problems.js";

const STALE_TICKS = 3;

/** Links to all models. @param {any} overview @param {string | null} shown @param {boolean} unreachable
 * @param {(model: string) => void} go */
export function modelLinks(overview, shown, unreachable, go) {
  return overview.models.map((/** @type {any} */ summary) => {
    const headline = currentHeadline(summary.headline, unreachable);
    const { kind, text } = badge(headline);
    return h(
      "a",
      {
        key: summary.model,
        href: address({ model: summary.model }),
        "aria-current": summary.model === shown ? "page" : null,
        onclick: follow(() => go(summary.model)),
      },
      h("span", { class: "model" }, summary.model),
      h("span", { class: `badge ${kind}`, title: headline.title }, text),
      h("span", { class: "visually-hidden" }, headline.title),
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

/** Recent labels and label requests. */

import { h } from "./dom.js";
import { count, duration, percent, when } from "./format.js";
import { flowView } from "./flow.js";

/** @param {any} activity @param {number} width */
export function activityView(activity, width) {
  const { labels, requests, flow } = activity;
  // Labellers must not see predictions here, unless the assessment reveals them.
  const revealed = requests.some((/** @type {any} */ request) => request.predicted_class !== null);
  return [
    h("div", { class: "title" }, h("h2", { id: "activity-title" }, "Recent labels")),
    flowView(flow, width),
    h(
      "div",
      { class: "beside even" },
      folded("Labels", labels, ["Labelled", "Group", "Predicted", "True", "Score", "After"], (label) => [
        when(label.given_at),
        label.group,
        label.predicted_class,
        h("span", { class: label.correct ? "meets" : "fails" }, `${label.correct ? "✓" : "✗"} ${label.true_class}`),
        percent(label.score),
        duration(label.delay_seconds),
      ]),
      folded(
        "Open requests",
        requests,
        revealed
          ? ["Requested", "Group", "Assessment", "Attempt", "Predicted", "Score"]
          : ["Requested", "Group", "Assessment", "Attempt"],
        (request) => [
          when(request.requested_at),
          request.group ?? "hidden",
          request.assessment,
          count(request.attempt),
          ...(revealed ? [request.predicted_class ?? "", request.score === null ? "" : percent(request.score)] : []),
        ],
      ),
    ),
  ];
}

/** A table that can be folded away. @param {string} title @param {any[]} entries @param {string[]} titles
 * @param {(entry: any) => any[]} cells */
function folded(title, entries, titles, cells) {
  return h(
    "details",
    { class: "folded", key: title, open: matchMedia("(min-width: 720px)").matches },
    h("summary", {}, h("h3", {}, `${title} (${count(entries.length)})`)),
    entries.length === 0
      ? h("p", { class: "empty" }, "None.")
      : h(
          "div",
          { class: "scroll tall", tabindex: 0, role: "region", "aria-label": title },
          h(
            "table",
            { class: "plain" },
            h(
              "thead",
              {},
              h(
                "tr",
                {},
                titles.map((name) => h("th", { scope: "col" }, name)),
              ),
            ),
            h(
              "tbody",
              {},
              entries.map((entry) =>
                h(
                  "tr",
                  { key: entry.request_id },
                  cells(entry).map((cell) => h("td", {}, cell)),
                ),
              ),
            ),
          ),
        ),
  );
}

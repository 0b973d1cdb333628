/** The groups of one grouping: a table that is a forest plot. */

import { accuracyTargets, columns, header, isConfigured } from "./columns.js";
import { detailView } from "./detail.js";
import { h } from "./dom.js";
import { axisOf, axisView, forestLegend } from "./forest.js";
import { count, pluralize } from "./format.js";
import { groupsHelp } from "./help.js";
import { address, follow } from "./place.js";

/** @typedef {import("./place.js").Place} Place @typedef {(changes: Partial<Place>, remember?: boolean) => void} Go */

/** @param {any} data @param {Place} place @param {Go} go @param {() => void} more */
export function groupsView(data, place, go, more) {
  const { state, table, detail } = data;
  const rows =
    detail?.pinned && detail.grouping === table.grouping && detail.group === place.group
      ? [detail.pinned, ...table.groups]
      : table.groups;
  const targets = accuracyTargets(rows);
  const axis = axisOf(rows.flatMap((/** @type {any} */ g) => [g.accuracy.lower, g.score_mean]).concat(targets));
  const shown = columns(state, table, axis);
  const grouping = state.groupings.find((/** @type {any} */ one) => one.name === table.grouping);
  return [
    h("div", { class: "title" }, h("h2", { id: "groups-title" }, "Groups"), groupsHelp(state)),
    h(
      "nav",
      { class: "tabs", "aria-label": "Groupings" },
      configuredFirst(state.groupings).map((grouping) => tab(grouping, state, table, go)),
    ),
    tools(data, shown, place, go),
    grouping?.weakest && h("p", { class: "note" }, grouping.weakest.sentence),
    grouping?.certificate && h("p", { class: "note" }, grouping.certificate.sentence),
    state.drift && h("p", { class: "note" }, state.drift.sentence),
    state.reference?.incomplete_groups > 0 && h("p", { class: "note" }, state.reference.sentence),
    state.waiting && h("p", { class: "note" }, state.waiting.sentence),
    h(
      "div",
      { class: "scroll", tabindex: 0, role: "region", "aria-label": "Table of groups" },
      h(
        "table",
        { class: `groups${shown.some((column) => column.key === "cost") ? " costly" : ""}` },
        h("caption", { class: "visually-hidden" }, `Groups by ${table.grouping}: accuracy, calibration, traffic and labels`),
        h(
          "thead",
          {},
          h(
            "tr",
            {},
            shown.map((column) => header(column, place, go, column.key === "plot" && axisView(axis, targets))),
          ),
        ),
        h(
          "tbody",
          {},
          rows.flatMap((/** @type {any} */ group) => groupRows(group, shown, data, place, go)),
        ),
      ),
    ),
    !rows.length &&
      h("p", { class: "empty" }, place.search ? `No group has “${place.search}” in its name.` : "No traffic yet."),
    h(
      "div",
      { class: "under" },
      forestLegend(targets, state.interval),
      table.groups.length < table.total &&
        h(
          "button",
          { type: "button", class: "button quiet", onclick: more },
          `Show more: ${count(table.groups.length)} of ${count(table.total)}`,
        ),
    ),
  ];
}

/** What people have configured, before what every model has. @param {any[]} groupings */
function configuredFirst(groupings) {
  return [...groupings.filter(isConfigured), ...groupings.filter((grouping) => !isConfigured(grouping))];
}

/** @param {any} grouping @param {any} state @param {any} table @param {Go} go */
function tab(grouping, state, table, go) {
  const { name, groups, problems } = grouping;
  return h(
    "a",
    {
      key: name,
      href: address({ model: state.model, grouping: name }),
      "aria-current": name === table.grouping ? "true" : null,
      onclick: follow(() => go({ grouping: name, group: null, search: null })),
    },
    name.replaceAll("_", " "),
    h("span", { class: "number", title: pluralize(groups, "group") }, count(groups)),
    problems > 0 &&
      h(
        "span",
        { class: "badge fails" },
        count(problems),
        h("span", { class: "visually-hidden" }, pluralize(problems, " problem")),
      ),
  );
}

/** Search, and for narrow screens, where no column has a header, sorting. @param {any} data @param {any[]} shown
 * @param {Place} place @param {Go} go */
function tools(data, shown, place, go) {
  const search = (/** @type {InputEvent} */ event) =>
    go({ search: /** @type {HTMLInputElement} */ (event.target).value || null }, false);
  const sort = (/** @type {Event} */ event) =>
    go({ sort: /** @type {HTMLSelectElement} */ (event.target).value, order: null }, false);
  const current = place.sort ?? "evidence";
  const options = shown.filter((column) => column.sort);
  return h(
    "div",
    { class: "tools" },
    h(
      "label",
      { class: "search" },
      h("span", { class: "visually-hidden" }, "Search groups"),
      h("input", {
        id: "search",
        type: "search",
        placeholder: "Search groups",
        autocomplete: "off",
        value: place.search ?? "",
        oninput: search,
      }),
    ),
    h(
      "label",
      { class: "sorting" },
      "Sort by ",
      h(
        "select",
        { id: "sorting", onchange: sort },
        options.map((column) => h("option", { value: column.sort, selected: column.sort === current }, column.title)),
      ),
    ),
    h(
      "span",
      { class: "note" },
      place.search ? `${count(data.table.total)} found` : pluralize(data.table.total, "group"),
    ),
  );
}

/** Whether the detail that is loaded is this group's, and not that of the one opened before.
 * @param {any} group @param {any} table @param {any} detail */
const isOf = (group, table, detail) => detail?.group === group.group && detail.grouping === table.grouping;

/** @param {any} group @param {any[]} shown @param {any} data @param {Place} place @param {Go} go */
function groupRows(group, shown, data, place, go) {
  const { table, state } = data;
  const open = place.group === group.group && (place.grouping ?? table.grouping) === table.grouping;
  const toggle = () => go({ grouping: table.grouping, group: open ? null : group.group });
  const href = address({ model: state.model, grouping: table.grouping, group: open ? null : group.group });
  const name = h(
    "th",
    { scope: "row", class: "group" },
    h(
      "a",
      { href, "aria-expanded": String(open), onclick: follow(toggle) },
      h("span", { class: "chevron", "aria-hidden": "true" }, "›"),
      h("span", { class: "name" }, group.group),
    ),
  );
  const cells = shown
    .slice(1)
    .map((column) => h("td", { class: column.key, "data-title": column.title }, column.cell(group)));
  // Who marks a number to copy it does not want the row to fold.
  const row = h(
    "tr",
    {
      key: `g ${group.group}`,
      class: `row ${group.verdict}${open ? " expanded" : ""}`,
      onclick: () => getSelection()?.isCollapsed && toggle(),
    },
    name,
    cells,
  );
  if (!open) return [row];
  return [
    row,
    h(
      "tr",
      { key: "detail", class: "detail" },
      h(
        "td",
        { colspan: shown.length },
        detailView(group, isOf(group, table, data.detail) ? data.detail : null, data),
      ),
    ),
  ];
}

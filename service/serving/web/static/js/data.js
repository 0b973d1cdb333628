/** Everything that one view shows, read from the API. */

import { get, Missing, modelPath } from "./api.js";
import { isConfigured } from "./columns.js";

export const PAGE = 100;

/** @typedef {import("./place.js").Place} Place */

/** @param {Place} place @param {number} pages how many pages of groups are shown */
export async function load(place, pages) {
  const overview = await get("/models");
  const summary =
    overview.models.find((/** @type {any} */ model) => model.model === place.model) ?? overview.models[0];
  const unknown = place.model && summary?.model !== place.model ? `Unknown model “${place.model}”.` : null;
  if (!summary || summary.taken_at === null) return { overview, summary, unknown };
  const path = modelPath(summary.model);
  const state = await get(path);
  const linked = unknown ? null : place.grouping;
  const grouping = groupingOf(state, linked);
  const missing =
    linked && grouping !== linked ? `${summary.model} has no grouping “${linked}”, or no traffic in it yet.` : null;
  const group = missing || unknown || !grouping ? null : place.group;
  const [table, confusion, activity, performances] = await Promise.all([
    grouping ? tableOf(path, grouping, place, pages) : null,
    state.has_confusion ? get(`${path}/confusion`, { classes: 12 }).catch(nothing) : null,
    get(`${path}/activity`),
    performancesOf(path, state),
  ]);
  const detail = group ? await detailOf(path, grouping, group, table, state) : null;
  return { overview, summary, unknown: unknown ?? missing, state, table, confusion, activity, performances, detail };
}

/** The grouping in the address, else one with a problem. @param {any} state @param {string | null} wanted */
function groupingOf(state, wanted) {
  const names = state.groupings.map((/** @type {any} */ grouping) => grouping.name);
  if (names.includes(wanted)) return wanted;
  const problem = state.problems.find(
    (/** @type {any} */ one) => one.grouping !== "all" && names.includes(one.grouping),
  );
  return problem?.grouping ?? state.groupings.find(isConfigured)?.name ?? names[0] ?? null;
}

/** @param {string} path @param {string} grouping @param {Place} place @param {number} pages */
async function tableOf(path, grouping, place, pages) {
  const { sort, order, search } = place;
  const parts = await Promise.all(
    Array.from({ length: pages }, (_, page) =>
      get(`${path}/groups`, { grouping, sort, order, search, limit: PAGE, offset: page * PAGE }),
    ),
  );
  // A group that moved between two pages while they were read must appear once.
  const groups = new Map(
    parts.flatMap((part) => part.groups).map((/** @type {any} */ group) => [group.group, group]),
  );
  return { ...parts[0], groups: [...groups.values()] };
}

/** @param {string} path @param {string} grouping @param {string} group @param {any} table @param {any} state */
async function detailOf(path, grouping, group, table, state) {
  try {
    const [timeline, reliability, drift, pinned] = await Promise.all([
      get(`${path}/timeline`, { grouping, group }),
      get(`${path}/reliability`, { grouping, group }),
      state.drift?.reference_predictions ? get(`${path}/drift`, { grouping, group }).catch(nothing) : null,
      table.groups.some((/** @type {any} */ row) => row.group === group) ? null : lookUp(path, grouping, group),
    ]);
    return { grouping, group, timeline, reliability, drift, pinned };
  } catch (error) {
    if (error instanceof Missing) return { grouping, group, missing: error.message };
    throw error;
  }
}

/** @param {string} path @param {any} state */
async function performancesOf(path, state) {
  const estimated = state.performances.filter((/** @type {any} */ summary) => summary.taken_at !== null);
  const found = await Promise.all(
    estimated.map((/** @type {any} */ summary) =>
      get(`${path}/performance/${encodeURIComponent(summary.name)}`).catch(nothing),
    ),
  );
  return found.filter(Boolean);
}

/** A group that is linked to, but not on the pages shown. @param {string} path @param {string} grouping @param {string} group */
async function lookUp(path, grouping, group) {
  return (await get(`${path}/groups`, { grouping, group })).groups[0] ?? null;
}

/** @param {unknown} error */
function nothing(error) {
  if (error instanceof Missing) return null;
  throw error;
}

/** The status page: loads, renders, and refreshes every round. */

import { activityView } from "./activity.js";
import { annotatorsView } from "./annotators.js";
import { assessmentsView } from "./assessments.js";
import { confusionView } from "./confusion.js";
import { load } from "./data.js";
import { keepInPlace, update } from "./dom.js";
import { moment, now, tickTimes } from "./format.js";
import { groupsView } from "./groups.js";
import { footer, freshness, modelLinks } from "./header.js";
import { performanceView } from "./performance.js";
import { pipelineView } from "./pipeline.js";
import { readPlace, writePlace } from "./place.js";
import { problemsView } from "./problems.js";
import { vitalsView } from "./vitals.js";

/** @typedef {import("./place.js").Place} Place */

const TYPING_MS = 150;
const MOST_SECONDS = 60;

let place = readPlace();
let pages = 1;
/** @type {any} */
let data = null;
let turn = 0;
/** @type {number | undefined} */
let timer;
/** @type {number | null} */
let unreachableSince = null;
let problem = "";
let toGroup = place.group !== null;
/** @type {string | null} */
let announced = null;

/** @param {string} id */
const part = (id) => /** @type {HTMLElement} */ (document.getElementById(id));

/** Goes to another place. @param {Partial<Place>} changes @param {boolean} [remember] whether Back returns
 * @param {boolean} [jump] whether to scroll to the group opened */
function go(changes, remember = true, jump = false) {
  toGroup = jump;
  const before = place;
  place = { ...place, model: data?.summary?.model ?? place.model, ...changes };
  if (["model", "grouping", "sort", "order", "search"].some((name) => before[name] !== place[name])) pages = 1;
  writePlace(place, remember);
  if (data?.state && data.summary.model === place.model) show();
  refresh("search" in changes ? TYPING_MS : 0);
}

/** Refreshes now, or after a delay; what was loading for another place is not shown. @param {number} [delay] */
function refresh(delay = 0) {
  clearTimeout(timer);
  turn += 1;
  timer = setTimeout(round, delay, turn);
}

/** @param {number} mine */
async function round(mine) {
  try {
    const loaded = await load(place, pages);
    if (mine !== turn) return;
    data = loaded;
    unreachableSince = null;
    problem = "";
    show();
  } catch (error) {
    if (mine !== turn) return;
    unreachableSince ??= now();
    problem = error instanceof SyntaxError || !(error instanceof Error) ? "" : error.message;
    if (data) show();
    else notice();
  } finally {
    if (mine === turn && !document.hidden) {
      timer = setTimeout(round, 1000 * Math.min(MOST_SECONDS, Math.max(1, data?.overview.tick_seconds ?? 1)), turn);
    }
  }
}

function show() {
  keepInPlace(draw);
  if (data.state) afterDraw(data.state);
}

function draw() {
  const { overview, summary, state, table, confusion, activity } = data;
  update(
    part("models"),
    modelLinks(overview, summary?.model ?? null, unreachableSince !== null, (model) =>
      go({ model, grouping: null, group: null, search: null }),
    ),
  );
  update(part("footer"), footer(overview));
  notice();
  for (const section of document.querySelectorAll("main > section"))
    /** @type {HTMLElement} */ (section).hidden = !state;
  section("pipeline", overview.pipeline && pipelineView(overview.pipeline));
  if (!state) return;
  data.width = part("groups").clientWidth;
  update(
    part("problems"),
    problemsView(state, unreachableSince !== null, (grouping, group) => go({ grouping, group, search: null }, true, true)),
  );
  update(part("vitals"), vitalsView(state));
  performance();
  section(
    "groups",
    table &&
      groupsView(data, place, go, () => {
        pages += 1;
        refresh();
      }),
  );
  section("assessments", state.assessments.length > 0 && assessmentsView(state));
  section("annotators", state.vendors.length > 0 && annotatorsView(state));
  section("confusion", confusion && confusionView(confusion));
  section("activity", activityView(activity, data.width));
}

function performance() {
  section("performance", data.state.performances.length > 0 && performanceView(data, performance));
}

/** @param {string} id @param {any} content */
function section(id, content) {
  part(id).hidden = !content;
  if (content) update(part(id), content);
}

/** Updates title, announcements and focus after drawing. @param {any} state */
function afterDraw(state) {
  const { problem_count: wrong, title } = state.headline;
  document.title = `${wrong ? `(${wrong}) ` : ""}${state.model} · Credence`;
  if (announced !== null && announced !== title) part("announcer").textContent = title;
  announced = title;
  const search = /** @type {HTMLInputElement | null} */ (document.getElementById("search"));
  if (search && search !== document.activeElement) search.value = place.search ?? "";
  const row = document.querySelector("tr.row.expanded");
  if (toGroup && row && data.detail?.group === place.group) {
    toGroup = false;
    const isMotionReduced = matchMedia("(prefers-reduced-motion: reduce)").matches;
    row.scrollIntoView({ block: "start", behavior: isMotionReduced ? "auto" : "smooth" });
    /** @type {HTMLElement} */ (row.querySelector("a")).focus({ preventScroll: true });
  }
}

/** Problems of the page itself, and the age of the estimates. */
function notice() {
  const words =
    unreachableSince === null
      ? noticeText()
      : `Credence has not answered since ${moment(unreachableSince)}. ${data ? "The page shows the last data. " : ""}${problem ? `(${problem})` : ""}`;
  const box = part("notice");
  box.hidden = !words;
  box.classList.toggle("mild", unreachableSince === null);
  if (box.textContent !== words) box.textContent = words;
  if (!data) return;
  const age = freshness(data.summary?.taken_at ?? null, data.overview.tick_seconds);
  const fresh = part("freshness");
  fresh.textContent = unreachableSince === null ? age.text : `Unreachable: ${age.text.toLowerCase()}`;
  fresh.title = age.title;
  fresh.classList.toggle("stale", age.stale || unreachableSince !== null);
}

function noticeText() {
  if (!data) return "";
  if (data.unknown) return data.unknown;
  if (!data.summary) return "No model is configured.";
  if (!data.state)
    return `No estimates of ${data.summary.model} yet: the first round has not finished.`;
  return data.detail?.missing && data.detail.group === place.group
    ? `${place.grouping} “${place.group}”: ${data.detail.missing}`
    : "";
}

addEventListener("popstate", () => {
  place = readPlace();
  pages = 1;
  refresh();
});
document.addEventListener("visibilitychange", () => (document.hidden ? clearTimeout(timer) : refresh()));
addEventListener("resize", () => data?.state && requestAnimationFrame(show));
document.addEventListener("keydown", (event) => {
  if (event.key !== "Escape") return;
  for (const details of document.querySelectorAll("details.help[open]")) details.removeAttribute("open");
});
setInterval(() => {
  tickTimes();
  notice();
}, 1000);
refresh();

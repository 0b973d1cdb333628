/** The labelling page: logs in, claims requests, shows them, and sends answers. */

import { logOut, readModels, readSession, useSession } from "./api.js";
import { Desk } from "./desk.js";
import { update } from "./dom.js";
import { tickTimes } from "./format.js";
import { press } from "./keys.js";
import { loginView } from "./login.js";
import { forget, hasUnsent, open, recall, remember } from "./memory.js";
import { Outbox } from "./outbox.js";
import { progressView } from "./progress.js";
import { Screen } from "./screen.js";
import { areShortcutsOn, askToLeave, showHelp, toolsView } from "./tools.js";
import { Work } from "./work.js";

const REFRESH_MS = 10_000;
const NOTICE_MS = 12_000;
const LEAVING_MS = 3_000;
const ENDED = "Your session has ended. Log in again: what you have labelled is kept.";

/** @type {any} */
let session = null;
/** @type {any[]} */
let models = [];
let isReloading = false;
let notice = "";
/** @type {number | undefined} */
let noticeTimer;

/** @param {string} id */
const part = (id) => /** @type {HTMLElement} */ (document.getElementById(id));

const outbox = new Outbox({
  changed: () => draw(),
  refused: (answer, error) => work.refused(answer, error),
  loggedOut: checkSession,
});
const desk = new Desk({
  changed: () => {
    work.fill();
    draw();
  },
  claimed: () => refresh(),
  lost: (claim) => work.lost(claim),
  loggedOut: checkSession,
  isAnswered: (requestId) => outbox.has(requestId),
});
const work = new Work(desk, outbox, {
  changed: () => {
    screen.find("");
    draw();
  },
  say: (words) => {
    part("announcer").textContent = words;
  },
  warn,
});
const screen = new Screen(work);

/** @param {string} words */
function warn(words) {
  notice = words;
  clearTimeout(noticeTimer);
  noticeTimer = setTimeout(() => {
    notice = "";
    draw();
  }, NOTICE_MS);
  draw();
}

/** Begins, or goes on after a reload. */
async function start() {
  try {
    session = await readSession();
  } catch (error) {
    const refused = /** @type {any} */ (error);
    warn(`${refused.message}. Trying again …`);
    setTimeout(start, 1000 * (refused.retrySeconds ?? 3));
    return;
  }
  if (session === null) return showLogin("");
  useSession(session.id);
  // Two tabs of one session have the same claims: only one of them works.
  navigator.locks.request("credence-label", { ifAvailable: true }, (lock) => {
    if (lock) return begin();
    warn("This page is open in another tab. Close that one to label here.");
    navigator.locks.request("credence-label", begin);
  });
}

/** @returns {Promise<never>} the lock is held until the tab is closed */
async function begin() {
  open(JSON.stringify([session.vendor, session.annotator]));
  desk.leaseSeconds = session.lease_seconds;
  desk.mostClaims = session.most_claims;
  desk.model = recall("model", null);
  outbox.open();
  work.open(session.image_origins);
  await refresh();
  await openDesk();
  setInterval(refresh, REFRESH_MS);
  setInterval(() => {
    tickTimes();
    desk.tick();
  }, 1000);
  return new Promise(() => {});
}

async function openDesk() {
  try {
    await desk.open();
  } catch (error) {
    const refused = /** @type {any} */ (error);
    if (refused.status === 401) return checkSession();
    warn(`${refused.message}. Trying again …`);
    setTimeout(openDesk, 1000 * (refused.retrySeconds ?? 3));
  }
}

/** Reads how many requests wait, and whether the session is still the same. */
async function refresh() {
  if (!session || document.hidden) return;
  try {
    const [found, state] = await Promise.all([readModels(), readSession()]);
    if (state?.id !== session?.id) return checkSession();
    models = found;
    session = state;
  } catch (error) {
    if (/** @type {any} */ (error).status === 401) checkSession();
    return;
  }
  draw();
}

/** The session has ended, or another tab has begun one: then this tab goes on in that one, with its own answers. */
async function checkSession() {
  const state = await readSession().catch(() => null);
  if (state !== null && state.id !== session?.id) reload();
  else showLogin(ENDED);
}

/** Nobody is asked whether to leave: the tab keeps what is unsent. */
function reload() {
  isReloading = true;
  location.reload();
}

/** @param {string} words why */
function showLogin(words) {
  session = null;
  if (words) warn(words);
  if (!part("login").firstChild) update(part("login"), loginView(reload));
  draw();
}

/** Sends what is left, lets others have what was claimed, and logs out. */
async function leave() {
  const until = Date.now() + LEAVING_MS;
  while (outbox.answers.length && Date.now() < until) await new Promise((resolve) => setTimeout(resolve, 50));
  if (outbox.answers.length && !(await askToLeave(outbox.answers.length))) return;
  desk.model = null;
  await desk.close();
  try {
    await logOut();
  } catch (error) {
    warn(`You are still logged in: ${/** @type {any} */ (error).message}.`);
    return openDesk();
  }
  forget();
  reload();
}

/** @param {string | null} model */
async function chooseModel(model) {
  remember("model", model);
  work.items = [];
  work.revised = null;
  desk.model = model;
  await desk.close();
  await openDesk();
}

function draw() {
  part("login").hidden = session !== null;
  for (const id of ["progress", "work"]) part(id).hidden = session === null;
  const words = notice || desk.trouble;
  part("notice").hidden = !words;
  if (part("notice").textContent !== words) part("notice").textContent = words;
  update(part("tools"), session && tools());
  if (!session) return;
  update(part("progress"), progress());
  screen.draw(nothing());
}

function tools() {
  return toolsView({
    session,
    models,
    model: desk.model,
    isGrid: work.isGrid,
    hasImages: work.shown !== null && work.hasImage(work.shown.request),
    choose: chooseModel,
    turnGrid: () => {
      work.setGrid(!work.isGrid);
      draw();
    },
    leave,
  });
}

function progress() {
  const chosen = models.filter((one) => desk.model === null || one.model === desk.model);
  return progressView({
    answered: work.counts.answered,
    skipped: work.counts.skipped,
    left: chosen.reduce((sum, one) => sum + one.waiting, desk.claims.length),
    unsent: outbox.answers.length,
    isBlocked: outbox.isBlocked,
    labels: Object.fromEntries(chosen.map((one) => [one.model, work.counts.models[one.model] ?? 0])),
  });
}

function nothing() {
  if (!desk.isUsed) return "You have been away, and your items went back. Press a key or tap to go on.";
  return desk.isWaiting ? "No requests are waiting. New ones appear here by themselves." : "Loading …";
}

document.addEventListener("keydown", (event) => {
  desk.use();
  if (!session || !areShortcutsOn()) return;
  press(event, work.shown?.request.classes ?? [], work.isGridShown, {
    choose: (name) => work.choose(name),
    skip: () => work.skip(),
    undo: () => work.undo(),
    keep: () => {
      if (screen.query) type("");
      else work.keep();
    },
    option: (step) => screen.step(step),
    move: (key) => screen.move(key),
    activeOption: () => screen.activeOption,
    help: showHelp,
  });
});

/** @param {string} text */
function type(text) {
  screen.find(text);
  screen.drawChoice();
}

addEventListener("beforeunload", (event) => {
  // The browser asks first: a tab that is closed takes its unsent answers with it.
  if (!isReloading && hasUnsent()) event.preventDefault();
});

for (const kind of ["pointerdown", "visibilitychange"]) document.addEventListener(kind, () => desk.use());
start();

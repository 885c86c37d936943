// The live page: asks the server for its state, listens for changes, and asks again. Names from outside are text, never markup.

import { ask, credentials, get, keepToken } from "./api.js";
import { drawCluster, drawUse, startCluster } from "./cluster.js";
import { at, h, shown } from "./dom.js";
import { drawHealth } from "./health.js";
import { followAddress, loadJob } from "./job.js";
import { drawStatuses, loadJobs, startJobs } from "./jobs.js";
import { submitForm } from "./question.js";
import { listen } from "./stream.js";
import { count, exactly, hasDates, moment, number, setClock, zone } from "./words.js";

/** Milliseconds: between two looks at the health of the daemon, and the fewest between two drawings of all nodes. */
const HEALTH_EVERY = 15_000, NODES_EVERY = 4_000;

let version = null, isAsking = false, isWanted = false, nodesAt = -NODES_EVERY, nodesTimer = 0;

/** Ask for everything that has changed; while one question is on its way, at most one more waits. */
async function refresh() {
  if (isAsking) { isWanted = true; return; }
  isAsking = true;
  try {
    const state = await get("v1/state");
    const isNew = state.version !== version, isFirst = version === null;
    version = state.version;
    drawState(state);
    if (isNew) {
      await Promise.all([loadJobs(), isFirst ? followAddress() : loadJob()]);
      scheduleNodes();
    }
    say(null);
  } catch (error) { complain(error); }
  isAsking = false;
  if (isWanted) { isWanted = false; refresh(); }
}

function drawState(state) {
  setClock(state);
  document.title = shown(`${state.name}: ${state.counts.running} running, ${state.counts.waiting} waiting`);
  at("name").textContent = shown(state.name);
  at("subtitle").replaceChildren(`${count(state.cluster.nodes, "node")}, ${number(state.counts.running)} running, ${number(state.counts.waiting)} waiting`,
    ...(hasDates() ? [" · as of ", h("time", { title: exactly(state.now) }, moment(state.now))] : []));
  at("zone").textContent = zone();
  drawHealth(state);
  drawStatuses(state.counts);
  drawUse(state.cluster);
  drawSight(state.viewer);
  at("chart").hidden = !state.viewer.sees_all;
  document.body.classList.remove("starting");
  if (!at("try-form").firstChild) at("try-form").append(submitForm(state.viewer.user));
}

const HIDDEN = {
  own: "Jobs are listed for their owners only; the counts and the map are of all jobs. ",
  anonymous: "Jobs of others have other names here, and no user, group or project. ",
};

/** Say what the list leaves out; who reads without a token may give one. */
function drawSight({ visibility, user }) {
  const seen = at("seen"), key = `${visibility} ${user ?? ""}`;
  seen.hidden = visibility === "all";
  if (seen.hidden || seen.dataset.key === key) return; // what is the same is not drawn anew: its button may have the focus
  seen.dataset.key = key;
  const button = () => h("button", { type: "button", click: () => { at("entry").hidden = false; at("token").focus(); } }, "Give a token");
  seen.replaceChildren(HIDDEN[visibility], ...(user === null ? [button()] : []));
}

/** The nodes of a large machine are a megabyte: they are asked for seldom, and last. */
function scheduleNodes() {
  clearTimeout(nodesTimer);
  nodesTimer = setTimeout(async () => {
    nodesAt = performance.now();
    try { drawCluster(await get("v1/nodes")); } catch (error) { complain(error); }
  }, Math.max(0, nodesAt + NODES_EVERY - performance.now()));
}

function complain(error) {
  if (error.status === 401) { at("entry").hidden = false; return; }
  if (error.status === 0) return; // the state of the connection says it
  if (error.status === 503 && version === null) at("loading").textContent = "There is nothing to show yet: the daemon has not ended its first cycle. This page waits for it.";
  else say(`The server refuses: ${error.message}`);
}

function say(text) {
  at("fault").hidden = text === null;
  at("fault").textContent = text === null ? "" : shown(text);
}

let countdown = 0;
function showConnection(state, { seconds, error } = {}) {
  clearInterval(countdown);
  const link = at("link"), words = { connecting: "connecting …", live: "live" };
  link.dataset.state = state;
  at("retry").hidden = state !== "lost";
  if (state !== "lost") { link.textContent = words[state]; return; }
  if (error?.status === 401) { complain(error); link.textContent = "a token is needed"; return; }
  let left = Math.round(seconds);
  const tick = () => { link.textContent = left > 0 ? `connection lost, retrying in ${left} s` : "connection lost, retrying …"; left -= 1; };
  tick();
  countdown = setInterval(tick, 1000);
}

/** Save the chart where a token is needed: the browser would ask for it without one. */
async function saveChart(event) {
  if (!credentials().Authorization) return;
  event.preventDefault();
  const page = await (await ask("v1/gantt")).blob(), link = h("a", { download: "gantt.html" });
  link.href = URL.createObjectURL(page);
  link.click();
  URL.revokeObjectURL(link.href);
}

startJobs();
startCluster();
for (const event of ["hashchange", "popstate"]) addEventListener(event, () => { if (version !== null) followAddress(); });
at("chart").addEventListener("click", (event) => saveChart(event).catch(complain));
refresh();
const retry = listen("v1/events", {
  onEvent: ({ event }) => { if (event !== "heartbeat") refresh(); },
  onState: (state, detail) => {
    showConnection(state, detail);
    if (state === "live") refresh();
  },
});
at("retry").addEventListener("click", retry);
at("entry").addEventListener("submit", (event) => {
  event.preventDefault();
  keepToken(at("token").value.trim());
  at("token").value = "";
  at("entry").hidden = true;
  version = null; // another reader: everything is asked for anew
  refresh();
  retry();
});
setInterval(() => { if (!document.hidden) refresh(); }, HEALTH_EVERY);
addEventListener("visibilitychange", () => { if (!document.hidden) refresh(); });

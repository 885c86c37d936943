// The table of jobs, page by page: the server searches and sorts, so that ten thousand jobs cost no more than fifty.

import { get } from "./api.js";
import { at, h, settled } from "./dom.js";
import { movesDrawing, movesWords } from "./moves.js";
import { count, duration, exactly, hasDates, moment, now, number, relative } from "./words.js";

/** Jobs on a page of the list; fewer where the cluster's map is below it. */
const page = () => (matchMedia("(max-width: 700px)").matches ? 15 : 25);
export const STATUSES = { "": "All", running: "Running", planned: "Planned", waiting_room: "No start" };
const STATUS_WORDS = { running: "running", planned: "planned", waiting_room: "no start" };

/** Name, label, whether it can be sorted by, and the class by which narrow screens leave it out. */
const COLUMNS = [
  ["id", "Job", true, "id"], ["user", "User", true, "wide"], ["queue", "Queue", true, "wide"], ["request", "Request", false, "wider"],
  ["walltime", "Walltime", true, "wide"], ["status", "State", true, "state"], ["start", "Start", true, "start"], ["moves", "Moved", true, "moves"],
];
const SORTS = { start: "start", submitted: "submission", end: "end" };

export const statusWords = (status) => h("span", { class: `status ${status}` }, h("span", { class: "word" }, STATUS_WORDS[status]));

/** What is asked for; the address of the page repeats it. */
const query = { status: "", search: "", node: "", sort: "start", descending: false, offset: 0 };
let total = 0, chosen = null, asking = null;

export function startJobs() {
  const given = new URLSearchParams(location.search);
  for (const name of ["status", "search", "node", "sort"]) query[name] = given.get(name) ?? query[name];
  query.descending = given.get("descending") === "true";
  if (!(query.status in STATUSES)) query.status = "";
  at("search").value = query.search;
  at("table").tHead.append(h("tr", {}, ...COLUMNS.map(heading)));
  at("search").addEventListener("input", settled(() => change({ search: at("search").value.trim() }), 200));
  at("find").addEventListener("submit", (event) => { event.preventDefault(); change({ search: at("search").value.trim() }); });
  at("sort").append(...Object.entries({ ...Object.fromEntries(COLUMNS.filter(([, , sorts]) => sorts).map(([name, label]) => [name, label.toLowerCase()])), ...SORTS })
    .map(([name, label]) => h("option", { value: name }, label)));
  at("sort").addEventListener("change", () => change({ sort: at("sort").value, descending: false }));
  const turn = (id, offset) => at(id).addEventListener("click", () => change({ offset: offset() }, false));
  turn("first", () => 0);
  turn("previous", () => Math.max(0, query.offset - page()));
  turn("next", () => query.offset + page());
  turn("last", () => Math.floor(Math.max(0, total - 1) / page()) * page());
  at("table").tBodies[0].addEventListener("click", (event) => {
    const row = event.target.closest("tr[data-job]");
    if (row && !event.target.closest("a") && !getSelection().toString()) row.querySelector("a").click();
  });
  drawStatuses({});
}

function heading([name, label, sorts, kind]) {
  if (!sorts) return h("th", { scope: "col", class: kind }, label);
  const sort = () => change({ sort: name, descending: query.sort === name && !query.descending });
  return h("th", { scope: "col", class: kind, "data-sort": name }, h("button", { type: "button", click: sort }, label));
}

/** Show how many jobs there are of each status, in the buttons that choose one. */
export function drawStatuses({ running, planned, not_planned: without, waiting }) {
  const counts = { "": running === undefined ? undefined : running + waiting, running, planned, waiting_room: without };
  const buttons = Object.entries(STATUSES).map(([status, label]) => h("button", {
    type: "button", "data-status": status, "aria-pressed": String(query.status === status), click: () => change({ status }),
  }, label, counts[status] === undefined ? null : h("span", { class: "soft" }, ` ${number(counts[status])}`)));
  const focused = document.activeElement?.dataset?.status;
  at("status").replaceChildren(...buttons);
  buttons.find((button) => button.dataset.status === focused)?.focus();
}

/** List the jobs that a node has. */
export const listNode = (node) => change({ node, search: "", status: "" });

function change(values, isFirst = true) {
  Object.assign(query, isFirst ? { offset: 0 } : {}, values);
  if (at("search").value.trim() !== query.search) at("search").value = query.search;
  const kept = new URLSearchParams();
  for (const name of ["status", "search", "node"]) if (query[name]) kept.set(name, query[name]);
  if (query.sort !== "start" || query.descending) kept.set("sort", query.sort);
  if (query.descending) kept.set("descending", "true");
  history.replaceState(null, "", `${location.pathname}${kept.size ? `?${kept}` : ""}${location.hash}`);
  for (const button of at("status").children) button.setAttribute("aria-pressed", String(button.dataset.status === query.status));
  loadJobs();
}

/** Ask for the page of the list that is shown; an older question that is not answered yet is dropped. */
export async function loadJobs() {
  asking?.abort();
  asking = new AbortController();
  const asked = new URLSearchParams({ sort: query.sort, descending: query.descending, offset: query.offset, limit: page() });
  for (const name of ["status", "search", "node"]) if (query[name]) asked.set(name, query[name]);
  at("table").setAttribute("aria-busy", "true");
  try {
    const found = await get(`v1/jobs?${asked}`, { signal: asking.signal });
    if (found.offset > 0 && found.offset >= found.total) { change({ offset: Math.floor(Math.max(0, found.total - 1) / page()) * page() }, false); return; }
    draw(found);
  } catch (error) {
    if (error.name === "AbortError") return;
    at("jobs-note").textContent = `The jobs could not be read: ${error.message}`;
  }
  at("table").removeAttribute("aria-busy");
}

function draw(found) {
  total = found.total;
  for (const head of at("table").tHead.rows[0].cells) {
    const isSorted = head.dataset.sort === query.sort;
    if (isSorted) head.setAttribute("aria-sort", query.descending ? "descending" : "ascending"); else head.removeAttribute("aria-sort");
  }
  at("sort").value = query.sort;
  const focused = document.activeElement?.closest?.("tr[data-job]")?.dataset.job;
  at("table").tBodies[0].replaceChildren(...found.jobs.map(row));
  if (focused !== undefined) rowOf(focused)?.querySelector("a").focus({ preventScroll: true });
  markJob(chosen);
  const node = query.node ? h("span", {}, `Jobs of node ${query.node}. `, h("button", { type: "button", click: () => change({ node: "" }) }, "all nodes")) : null;
  at("jobs-note").replaceChildren(...[node, total === 0 ? emptyWords() : null].filter(Boolean));
  at("pages").hidden = total <= page();
  at("range").textContent = `${number(found.offset + 1)}–${number(found.offset + found.jobs.length)} of ${count(total, "job")}`;
  at("first").disabled = at("previous").disabled = found.offset === 0;
  at("next").disabled = at("last").disabled = found.offset + found.jobs.length >= total;
}

function emptyWords() {
  if (query.search) return `No job with “${query.search}” in its id, user, group, project or queue.`;
  return { running: "Nothing runs.", planned: "No job waits for a planned start.", waiting_room: "Every waiting job has a start." }[query.status] ?? "There are no jobs.";
}

const rowOf = (id) => [...at("table").tBodies[0].rows].find((one) => one.dataset.job === id);

function row(job) {
  const link = h("a", { href: `#job/${encodeURIComponent(job.id)}` }, job.id);
  const under = [job.user, job.queue].filter((text) => text !== null);
  return h("tr", { "data-job": job.id },
    h("th", { scope: "row", class: "id" }, link, h("small", { class: "narrow" }, ...under.flatMap((text, i) => (i ? [" · ", text] : [text])))),
    h("td", { class: "wide" }, job.user ?? ""), h("td", { class: "wide" }, job.queue ?? ""),
    h("td", { class: "wider", title: job.request }, h("code", {}, job.request)),
    h("td", { class: "wide figure" }, job.walltime === null ? "" : duration(job.walltime)),
    h("td", { class: "state" }, statusWords(job.status)),
    h("td", { class: "start" }, ...startCell(job)),
    h("td", { class: "moves", title: movesWords(job) }, movesDrawing(job, 64, 18)));
}

function startCell(job) {
  if (job.start === null) return [h("span", { class: "soft", title: job.detail }, (job.reason ?? "").replaceAll("_", " "))];
  if (job.status === "running") {
    return [h("span", { title: exactly(job.end) }, `ends ${relative(job.end)}`), h("small", { title: exactly(job.start) }, hasDates() ? `since ${moment(job.start)}` : `began ${relative(job.start)}`)];
  }
  return [h("span", { title: exactly(job.start) }, job.start <= now() ? "at once" : relative(job.start)), hasDates() && h("small", {}, moment(job.start))];
}

/** Mark the row of the job whose details are open, or none. */
export function markJob(id) {
  chosen = id;
  for (const one of at("table").tBodies[0].rows) {
    if (one.dataset.job === id) one.setAttribute("aria-current", "true"); else one.removeAttribute("aria-current");
  }
}

/** Give the focus back to the row of a job. */
export const focusJob = (id) => (rowOf(id)?.querySelector("a") ?? at("jobs")).focus();

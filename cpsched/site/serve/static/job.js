// One job: its place in the plan, how that moved, why it is not earlier, and what it would gain by asking for less.

import { get } from "./api.js";
import { at, facts, h, meter } from "./dom.js";
import { focusJob, markJob, statusWords } from "./jobs.js";
import { movesDrawing, movesList, movesWords } from "./moves.js";
import { insteadForm } from "./question.js";
import { count, duration, exactly, hasDates, moment, now, percent, relative } from "./words.js";

/** Causes as people say them; the words of the API are in docs/answers.md. */
const CAUSES = {
  time: "its own times", dependency: "a dependency", rule: "a rule of the site", limit: "a limit", free_pool: "a free pool", guard: "a guard",
  license: "licences", resource: "nodes are in use", promise: "planned jobs come first", nothing: "nothing: it could start",
};
/** Intervals, and jobs in the way, that are listed at first. */
const FEW = 3;

let open = null, version = null, asking = null, explained = null;

const linkTo = (id) => h("a", { href: `#job/${encodeURIComponent(id)}` }, id);
const timed = (time) => h("span", {}, `${relative(time)} `, hasDates() && h("small", { class: "soft", title: exactly(time) }, moment(time)));

/** Show the job that the address names, if it names one; return what can be waited for. */
export function followAddress() {
  const [, encoded] = /^#job\/(.+)$/s.exec(location.hash) ?? [];
  let id = encoded ?? null;
  try { id = encoded === undefined ? null : decodeURIComponent(encoded); } catch { /* not encoded: taken as it is */ }
  if (id === null && open !== null) close();
  else if (id !== null && id !== open) { open = id; version = null; explained = null; return loadJob({ isNew: true }); }
  return null;
}

function close() {
  const last = open;
  open = null;
  asking?.abort();
  at("job").hidden = true;
  document.body.classList.remove("has-job");
  markJob(null);
  focusJob(last);
}

/** Leave the job by the address, so that the browser's own way back works. */
function leave() {
  history.pushState(null, "", location.pathname + location.search);
  followAddress();
}

/** Ask for the job that is shown; what stays the same is not drawn anew, so that a form keeps what was typed. */
export async function loadJob({ isNew = false } = {}) {
  if (open === null) return;
  asking?.abort();
  asking = new AbortController();
  const panel = at("job"), id = open;
  if (isNew) {
    panel.hidden = false;
    document.body.classList.add("has-job");
    markJob(id);
    panel.replaceChildren(head(id), h("p", { class: "soft" }, "Loading …"));
    if (matchMedia("(max-width: 1100px)").matches) scrollTo(0, 0);
    at("job-title").focus({ preventScroll: true });
  }
  panel.setAttribute("aria-busy", "true");
  try {
    const job = await get(`v1/jobs/${encodeURIComponent(id)}`, { signal: asking.signal });
    draw(job);
  } catch (error) {
    if (error.name === "AbortError") return;
    const words = error.status === 404 ? "There is no such job any more: it has ended, was cancelled, or may not be seen." : error.message;
    panel.replaceChildren(head(id), h("p", { class: "notice" }, words));
    version = null;
  }
  panel.removeAttribute("aria-busy");
}

const head = (id, ...more) => h("div", { class: "head" }, h("h2", { id: "job-title", tabindex: "-1" }, `Job ${id}`), ...more,
  h("button", { type: "button", class: "close", "aria-label": "Close the details of the job", click: leave }, "×"));

function draw(job) {
  const isWaiting = job.status !== "running", drawn = version === null ? null : at("job").querySelector(".changing");
  const changing = h("div", { class: "changing" }, ...placeOf(job), ...(job.moved.length ? [h("h3", {}, "Told starts"),
    movesDrawing(job, 150, 36), h("p", { class: "soft small" }, movesWords(job)), movesList(job)] : []));
  const what = JSON.stringify([job.status, job.start, job.request, job.walltime, job.reason]);
  if (drawn && version === what) { drawn.replaceWith(changing); return; }
  const was = version;
  version = what;
  const parts = [head(job.id, statusWords(job.status)), changing];
  if (isWaiting && job.reason !== "left") {
    explained = h("div", { class: "explanation", "aria-live": "polite" });
    parts.push(h("section", { "aria-labelledby": "why" }, h("h3", { id: "why" }, job.start === null ? "Why has it no start?" : "Why not earlier?"), explained));
    if (job.walltime !== null) {
      parts.push(h("section", { "aria-labelledby": "less" }, h("h3", { id: "less" }, "What if it asked for less?"), insteadForm(job)));
    }
  }
  const isFocused = at("job").contains(document.activeElement);
  at("job").replaceChildren(...parts);
  if (isFocused || was === null) at("job-title").focus({ preventScroll: true });
  if (isWaiting && job.reason !== "left") explain(job.id);
}

function placeOf(job) {
  const isRunning = job.status === "running", rows = [
    [isRunning ? "started" : "planned start", job.start === null ? null : timed(job.start)],
    ["forecast", job.forecast === null ? null : forecastOf(job.forecast)],
    ["jobs like it", job.forecast?.enough ? `95 % end within ${duration(job.forecast.enough)}` : null],
    ["no start", job.start === null ? `${(job.reason ?? "").replaceAll("_", " ")}${job.detail ? `: ${job.detail}` : ""}` : null],
    ["stopped", isRunning ? job.detail : null],
    [isRunning ? "ends at the latest" : "planned end", job.end === null ? null : timed(job.end)],
    ["submitted", job.submitted === null ? null : timed(job.submitted)],
    ["walltime", job.walltime === null ? null : duration(job.walltime)], ["request", job.request && h("code", {}, job.request)],
    ["nodes", job.nodes && h("code", {}, job.nodes)], ["user", job.user], ["group", job.group], ["project", job.project], ["queue", job.queue],
  ];
  const parts = [facts(rows, { class: "facts" })];
  if (isRunning && job.end > job.start) {
    const share = (now() - job.start) / (job.end - job.start);
    parts.unshift(meter(share), h("p", { class: "soft small" }, `${percent(Math.min(1, share))} of its walltime have passed`));
  }
  return parts;
}

/** When it will start, as the daemon's sampled futures have it. */
function forecastOf({ likely, by, earliest, latest }) {
  if (likely === null) return "no start in most futures";
  const title = earliest === null || latest === null ? "" : `80 %: ${exactly(earliest)} to ${exactly(latest)}`;
  return h("span", { title }, "most likely ", timed(likely), by === null || by === likely ? null : h("span", {}, ", by ", timed(by), " with 80 %"));
}

async function explain(id) {
  const place = explained;
  place.setAttribute("aria-busy", "true");
  place.replaceChildren(h("p", { class: "soft" }, "Looking for the reasons …"));
  try {
    const told = await get(`v1/jobs/${encodeURIComponent(id)}/explanation`);
    if (place === explained) place.replaceChildren(...explanation(told));
  } catch (error) {
    if (place === explained) place.replaceChildren(h("p", { class: "notice" }, error.message), h("button", { type: "button", click: () => explain(id) }, "Ask again"));
  }
  place.removeAttribute("aria-busy");
}

/** The short answer first: what was in the way as a bar, then what would help, then interval by interval. */
function explanation(told) {
  const parts = [h("p", { class: "summary" }, inShort(told))];
  if (told.form) parts.push(h("p", { class: "soft small" }, told.form));
  if (told.blocked.length && told.start !== null) parts.push(ribbon(told));
  if (told.changes.length) {
    parts.push(h("h4", {}, told.start === null ? "It could start" : "It could start earlier"), h("ul", { class: "changes" }, ...told.changes.map((change) => h("li", {},
      h("strong", { title: exactly(change.start) }, change.start <= now() ? "at once" : relative(change.start)), ` ${change.detail}`))));
  } else if (told.blocked.length) parts.push(h("p", { class: "soft" }, "No single change that was tried lets it start earlier beside all other jobs."));
  if (told.blocked.length) {
    parts.push(h("h4", {}, told.is_whole ? "What is in the way until then" : "What is in the way, at some seconds until then"),
      h("ol", { class: "blocked" }, ...told.blocked.slice(0, FEW).map(interval)));
    const rest = told.blocked.slice(FEW);
    if (rest.length) parts.push(h("details", {}, h("summary", {}, count(rest.length, "more interval")), h("ol", { class: "blocked" }, ...rest.map(interval))));
  }
  return parts;
}

/** The shortest list of jobs behind it, in one sentence. */
function inShort(told) {
  if (!told.blocked.length) return told.start === null ? (told.detail ?? "The plan does not say why.") : "It starts at the first second that it may.";
  if (told.free_start !== null && (told.start === null || told.free_start < told.start)) {
    return `It could start ${relative(told.free_start)} beside all other jobs; the plan has it later.`;
  }
  const shortest = told.blocked.filter(({ cause }) => cause.holders.length).sort((a, b) => a.cause.holders.length - b.cause.holders.length)[0];
  const first = told.blocked[0].cause;
  if (!shortest) return sentence(first.detail);
  const { holders } = shortest.cause, named = holders.slice(0, 2).map(({ job }) => `job ${job}`).join(" and ");
  const rest = holders.length > 2 ? ` and ${count(holders.length - 2, "other job")}` : "";
  return `${sentence(first.detail)} Without ${named}${rest} it could start ${relative(shortest.start)}.`;
}

const sentence = (text) => `${text.charAt(0).toUpperCase()}${text.slice(1)}${/[.!?]$/.test(text) ? "" : "."}`;

/** The time until the start as a bar, each interval by its kind of cause. */
function ribbon(told) {
  const from = told.blocked[0].start, to = told.start;
  const kinds = [...new Set(told.blocked.map(({ cause }) => cause.kind))];
  const bar = h("div", { class: "ribbon", role: "img", "aria-label": `From ${relative(from)} until its start ${relative(to)}: ${kinds.map((kind) => CAUSES[kind] ?? kind).join(", ")}` });
  for (const { start, end, cause } of told.blocked) {
    const piece = h("span", { class: `cause-${cause.kind}`, title: `${moment(start)} until ${moment(end)}: ${CAUSES[cause.kind] ?? cause.kind}` });
    piece.style.left = `${Math.max(0, (start - from) / Math.max(1, to - from) * 100)}%`;
    piece.style.width = `${Math.max(0.6, (Math.min(end, to) - start) / Math.max(1, to - from) * 100)}%`;
    bar.append(piece);
  }
  return h("div", {}, bar, h("div", { class: "ends soft small" }, h("span", {}, moment(from)), h("span", {}, `start ${moment(to)}`)),
    h("ul", { class: "kinds small" }, ...kinds.map((kind) => h("li", {}, h("i", { class: `cause-${kind}` }), CAUSES[kind] ?? kind))));
}

function interval({ start, end, cause }) {
  const until = end > start + 1 ? ` until ${moment(end)}` : "";
  const where = cause.nodes ? h("small", { class: "soft" }, ` on ${cause.nodes}`) : null;
  const few = cause.holders.slice(0, FEW), rest = cause.holders.slice(FEW);
  return h("li", {}, h("div", {}, h("i", { class: `cause-${cause.kind}` }), h("strong", { title: exactly(start) }, `${moment(start)}${until}`), h("small", { class: "soft" }, ` ${CAUSES[cause.kind] ?? cause.kind}`)),
    h("div", {}, sentence(cause.detail), where, cause.rule && h("small", { class: "soft" }, ` (${cause.rule})`)),
    few.length ? h("ul", { class: "holders" }, ...few.map(holder)) : null,
    rest.length ? h("details", {}, h("summary", {}, `${count(rest.length, "more job")}`), h("ul", { class: "holders" }, ...rest.map(holder))) : null);
}

function holder({ job, user, is_running: isRunning, start, end, nodes }) {
  const place = start === null ? "has no start" : isRunning ? `runs until ${moment(end)}` : `is planned from ${moment(start)} to ${moment(end)}`;
  return h("li", {}, "job ", linkTo(job), user ? ` of ${user}` : "", ` ${place}`, nodes ? h("small", { class: "soft" }, ` on ${nodes}`) : null);
}

addEventListener("keydown", (event) => {
  if (event.key === "Escape" && open !== null && !event.defaultPrevented) leave();
});

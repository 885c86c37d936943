// How the planned start of a job moved: a small drawing, a sentence, and a list.

import { h, svg } from "./dom.js";
import { count, duration, exactly, moment, now, relative } from "./words.js";

const told = (job) => job.moved.filter(({ start }) => start !== null);

/** By how many seconds the start that was told last is later than the first one that is known, or null. */
function shift(job) {
  const starts = told(job);
  return starts.length < 2 ? null : starts[starts.length - 1].start - starts[0].start;
}

/** Say in a sentence how the start moved. */
export function movesWords(job) {
  const seconds = shift(job);
  if (seconds === null) return told(job).length ? "told once, not moved" : "";
  const since = job.moved.length - 1 < job.num_moves ? "than some moves ago" : "than first told";
  const by = seconds === 0 ? `as early as first told` : `${duration(seconds)} ${seconds > 0 ? "later" : "earlier"} ${since}`;
  return `moved ${count(job.num_moves, "time")}, ${by}`;
}

/** Draw the starts that were told as steps over time, later ones higher, and by how much the last differs. */
export function movesDrawing(job, width, height) {
  const seconds = shift(job);
  if (seconds === null) return h("span", { class: "soft" }, job.moved.length ? "–" : "");
  const starts = told(job), first = job.moved[0].at, last = Math.max(now(), job.moved[job.moved.length - 1].at);
  const values = starts.map(({ start }) => start), least = Math.min(...values), most = Math.max(...values);
  const x = (time) => 2 + (time - first) / Math.max(1, last - first) * (width - 6);
  const y = (start) => height - 3 - (start - least) / Math.max(1, most - least) * (height - 6);
  const steps = starts.map(({ at: time, start }, i) => (i ? `H${x(time).toFixed(1)}V${y(start).toFixed(1)}` : `M${x(time).toFixed(1)} ${y(start).toFixed(1)}`));
  const end = y(values[values.length - 1]);
  return h("span", { class: "moved" },
    svg("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": movesWords(job) },
      svg("path", { d: `${steps.join("")}H${width - 4}` }), svg("circle", { cx: width - 4, cy: end.toFixed(1), r: 2.4 })),
    h("small", { class: seconds > 0 ? "later" : "earlier" }, seconds === 0 ? "±0" : `${seconds > 0 ? "▲" : "▼"} ${duration(seconds)}`));
}

/** List the starts that were told, the newest first. */
export function movesList(job) {
  return h("ol", { class: "told", reversed: true }, ...job.moved.toReversed().map(({ at: time, start, reason }) => h("li", {},
    h("span", { title: start === null ? null : exactly(start) }, start === null ? "no start" : moment(start)),
    h("small", { class: "soft", title: exactly(time) }, ` told ${relative(time)}`), reason && h("small", { class: "why soft", title: reason }, reason))));
}

// What is in view, and times and amounts in words.

const AXIS = 26, MARGIN = 12, CHART = 46, CHART_GAP = 8, THIN_ROW = 3;
const plot = at("plot"), charts = at("charts");
const span = Math.max(60, data.end - data.now);
const all = { from: data.now - span * 0.03, to: data.now + span * 1.02, top: 0, bottom: nodeCount };
const view = { ...all };
const first = jobs.reduce((least, job) => Math.min(least, job.start), all.from);
/** Pixels left of the chart, for names: fewer where the page is narrow, as on a phone. */
let gutter = 148;
/** Pixels of a column that names classes, or the groups of a level of the topology. */
const COLUMN = 16;
/** The levels that have a column: on a narrow page only the one of the smallest groups. */
let columns = [];
let width = 0, height = 0, matched = null, chosen = null, hoverTime = null, ink = {};

const xOf = (time) => gutter + (time - view.from) / (view.to - view.from) * width;
const timeAt = (x) => view.from + (x - gutter) / width * (view.to - view.from);
const yOf = (node) => AXIS + (rows[node] - view.top) / (view.bottom - view.top) * height;
const rowAt = (y) => view.top + (y - AXIS) / height * (view.bottom - view.top);
const nodeAt = (y) => nodeIn(rowAt(y));

/** Groups of the topology that are folded, of each node the widest one, and where each node begins, in rows. */
const folded = new Set(), foldOf = new Array(nodeCount).fill(null), rows = Float64Array.from({ length: nodeCount + 1 }, (_, node) => node);

/** The node that a row shows, with the part of its height that is above; outside of all nodes beyond the first and last. */
function nodeIn(row) {
  const node = stepAt(rows, row);
  return node < 0 || node >= nodeCount ? node : node + (row - rows[node]) / (rows[node + 1] - rows[node]);
}

/** Fold groups, of whose nodes each then has a part of one row, or unfold them; the first node in view stays there. */
function fold(groups, isFolded) {
  const top = Math.floor(nodeIn(view.top)), size = view.bottom - view.top >= all.bottom ? Infinity : view.bottom - view.top;
  for (const group of groups) if (isFolded) folded.add(group); else folded.delete(group);
  foldOf.fill(null);
  for (const group of [...folded].sort((a, b) => a[2] - b[2])) foldOf.fill(group, group[1], group[1] + group[2]);
  for (let node = 0; node < nodeCount; node++) rows[node + 1] = rows[node] + (foldOf[node] ? 1 / foldOf[node][2] : 1);
  all.bottom = rows[nodeCount];
  Object.assign(view, { top: rows[top], bottom: rows[top] + Math.min(size, all.bottom) });
  refresh();
}

/** How many nodes of a group are in use at a time. */
function busyIn([, first, count], time) {
  let busy = 0;
  for (let node = first; node < first + count; node++) {
    if (onNode.subarray(offsets[node], offsets[node + 1]).some((index) => pieces[index].start <= time && time < pieces[index].end)) busy++;
  }
  return busy;
}

function keepInside() {
  const longest = (all.to - first) * 1.5, most = all.bottom;
  const length = Math.min(Math.max(view.to - view.from, 10), longest);
  view.from = Math.min(Math.max(view.from, first - length * 0.5), all.to - length * 0.2);
  view.to = view.from + length;
  const rows = Math.min(Math.max(view.bottom - view.top, Math.min(0.5, most)), most);
  view.top = Math.min(Math.max(view.top, 0), most - rows);
  view.bottom = view.top + rows;
}

function zoomTime(factor, centre = (view.from + view.to) / 2) {
  view.from = centre + (view.from - centre) * factor;
  view.to = centre + (view.to - centre) * factor;
  refresh();
}

function zoomNodes(factor, centre = (view.top + view.bottom) / 2) {
  view.top = centre + (view.top - centre) * factor;
  view.bottom = centre + (view.bottom - centre) * factor;
  refresh();
}

function pan(times, rows) {
  view.from += times; view.to += times; view.top += rows; view.bottom += rows;
  refresh();
}

let asked = false;
function refresh() {
  keepInside();
  if (asked) return;
  asked = true;
  requestAnimationFrame(() => { asked = false; drawPlot(); drawCharts(); });
}

const FONT = (pixels) => `${pixels}px system-ui, 'DejaVu Sans', sans-serif`;

/** Give a canvas the size it has on the screen, in the screen's own pixels; return its context in CSS pixels. */
function sized(canvas, cssHeight, cssWidth = at("stage").clientWidth) {
  const ratio = devicePixelRatio || 1;
  canvas.style.height = `${cssHeight}px`;
  canvas.width = Math.round(cssWidth * ratio);
  canvas.height = Math.round(cssHeight * ratio);
  const ctx = canvas.getContext("2d");
  ctx.setTransform(ratio, 0, 0, ratio, 0, 0);
  ctx.font = FONT(11);
  ctx.textBaseline = "middle";
  return ctx;
}

const two = (number) => String(number).padStart(2, "0");
const number = (value) => value.toLocaleString("en");

function duration(seconds) {
  const sign = seconds < 0 ? "−" : "", rest = Math.abs(Math.round(seconds));
  const [d, h, m, s] = [Math.floor(rest / 86400), Math.floor(rest / 3600) % 24, Math.floor(rest / 60) % 60, rest % 60];
  const parts = [[d, "d"], [h, "h"], [m, "min"], [s, "s"]].filter(([amount]) => amount > 0).slice(0, 2);
  return sign + (parts.map(([amount, unit]) => `${number(amount)} ${unit}`).join(" ") || "0 s");
}

/** A Date whose UTC fields show the local time of the instance's own offset. */
const calendar = (time) => new Date(data.epoch[0] + (time + data.epoch[1]) * 1000);
const DAYS = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"];

function moment(time) {
  if (!data.epoch) return `${time >= data.now ? "now + " : "now − "}${duration(Math.abs(time - data.now))}`;
  const d = calendar(time);
  return `${DAYS[d.getUTCDay()]} ${d.getUTCFullYear()}-${two(d.getUTCMonth() + 1)}-${two(d.getUTCDate())} ` +
    `${two(d.getUTCHours())}:${two(d.getUTCMinutes())}:${two(d.getUTCSeconds())}`;
}

function amount(name, value) {
  if (name !== "mem" || value < 1024) return name === "mem" ? `${number(value)} MiB` : number(value);
  return value < 1 << 20 ? `${number(Math.round(value / 102.4) / 10)} GiB` : `${number(Math.round(value / 104857.6) / 10)} TiB`;
}

const amounts = (values) => data.resources.map(({ name }, i) => (values[i] ? `${name} ${amount(name, values[i])}` : ""))
  .filter(Boolean).join(", ");

const STEPS = [1, 5, 15, 30, 60, 300, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400, 172800, 604800, 1209600, 2419200];

/** Return [{time, label, strong}]: about one tick per 90 pixels, 60 where the page is narrow, at full minutes, hours and days. */
function ticks() {
  const least = (view.to - view.from) / Math.max(1, width / (width > 400 ? 90 : 60));
  let step = STEPS.find((length) => length >= least) ?? 2419200 * Math.ceil(least / 2419200);
  const origin = data.epoch ? -((data.epoch[0] / 1000 + data.epoch[1]) % 86400) : data.now;
  const marks = [];
  for (let time = origin + Math.ceil((view.from - origin) / step) * step; time <= view.to; time += step) {
    marks.push({ time, ...tickLabel(time, step) });
  }
  return marks;
}

function tickLabel(time, step) {
  if (!data.epoch) {
    const past = time - data.now;
    return { label: past === 0 ? "now" : (past > 0 ? "+" : "") + duration(past), strong: past === 0 };
  }
  const d = calendar(time), midnight = d.getUTCHours() + d.getUTCMinutes() + d.getUTCSeconds() === 0;
  if (step >= 2419200) return { label: `${d.getUTCFullYear()}-${two(d.getUTCMonth() + 1)}`, strong: false };
  if (midnight) return { label: `${DAYS[d.getUTCDay()]} ${two(d.getUTCMonth() + 1)}-${two(d.getUTCDate())}`, strong: step < 86400 };
  const clock = `${two(d.getUTCHours())}:${two(d.getUTCMinutes())}`;
  return { label: step < 60 ? `${clock}:${two(d.getUTCSeconds())}` : clock, strong: false };
}

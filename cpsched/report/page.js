// A report's charts. The figures are plotly's, with series numbers in place of colours and plain numbers in place of words;
// here they get the colours of the page's theme, ticks and hover texts. Outside names reach the page as text only: in figures
// they are escaped, elsewhere they are set through textContent.

const report = document.documentElement.dataset;
report.errors = "0";
addEventListener("error", (event) => {
  report.errors = String(Number(report.errors) + 1);
  const fault = document.getElementById("fault");
  fault.textContent = `Not all charts could be drawn: ${event.message}`;
  fault.hidden = false;
});

addEventListener("securitypolicyviolation", () => { report.errors = String(Number(report.errors) + 1); });

const at = (id) => document.getElementById(id);
const data = JSON.parse(at("data").textContent);
const PAPER_WIDTH = 700, NARROW = 480;
let isPaper = false;

const style = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
const isDark = () => !isPaper && (report.theme ? report.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches);
const colourOf = (series) => { const all = isDark() ? data.dark : data.light; return all[series % all.length]; };

// --- numbers in words: the same as in cpsched/charts/units.py ---

const PARTS = [[86400, "d"], [3600, "h"], [60, "min"], [1, "s"]];
const count = (value) => value.toLocaleString("en");

function duration(seconds) {
  const parts = [];
  let rest = Math.abs(Math.round(seconds));
  for (const [size, unit] of PARTS) {
    if (rest >= size) parts.push(`${count(Math.floor(rest / size))} ${unit}`);
    rest %= size;
  }
  return (seconds < 0 && parts.length ? "-" : "") + (parts.slice(0, 2).join(" ") || "0 s");
}

function secondsText(value) {
  const size = Math.abs(value);
  if (size === 0 || size >= 10 || (size >= 1 && Number.isInteger(value))) return duration(value);
  const [factor, unit] = size >= 1 ? [1, "s"] : size >= 1e-3 ? [1e3, "ms"] : [1e6, "µs"];
  return `${Number((value * factor).toPrecision(3))} ${unit}`;
}

function textOf({ unit, floor }, value) {
  if (value === null || value === undefined) return "-";
  if (unit === "date") return String(value).slice(0, 16);
  const below = floor !== null && value <= floor * 1.001 ? "≤ " : "";
  if (unit === "seconds") return below + secondsText(value);
  if (unit === "share") return `${(100 * value).toFixed(1)}%`;
  return Number.isInteger(value) ? count(value) : count(Number(value.toPrecision(value < 1000 ? 3 : 6)));
}

// --- ticks of durations ---

const STEPS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400];
const DECADES = [1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1, 10, 60, 600, 3600, 36000, 86400, 864000, 8640000];
const BETWEEN = [-7, -6, -5, -4, -3, -2, -1, 0].flatMap((power) => [1, 2, 5].map((factor) => Number(`${factor}e${power}`)))
  .concat([10, 20, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200, 18000, 36000, 86400, 172800, 432000]);

function durationTicks(low, high, most, isLog) {
  if (isLog) {
    const within = (ticks) => ticks.filter((tick) => tick >= low * 0.999 && tick <= high * 1.001);
    const inside = within(DECADES).length > 2 ? within(DECADES) : within(BETWEEN);
    if (inside.length > 1) return inside.filter((_, place) => place % Math.max(1, Math.ceil(inside.length / most)) === 0);
  }
  const wanted = Math.max((high - low) / Math.max(1, most), 1e-9);
  let step = STEPS.find((length) => length >= wanted) ?? 86400 * Math.ceil(wanted / 86400);
  if (wanted < 1) {
    const power = 10 ** Math.floor(Math.log10(wanted));
    step = [1, 2, 5, 10].map((factor) => factor * power).find((length) => length >= wanted * (1 - 1e-9));
  }
  const ticks = [];
  for (let place = Math.ceil(low / step - 1e-9); place * step <= high * (1 + 1e-9); place++) ticks.push(Number((place * step).toPrecision(12)));
  return ticks;
}

/** The ticks of a logarithmic axis of numbers: as many as have `least` pixels each; none if that is less than two. */
function numberTicks(low, high, pixels, least) {
  const perDecade = pixels / Math.log10(high / low), from = Math.floor(Math.log10(low)), to = Math.ceil(Math.log10(high));
  const stride = Math.max(1, Math.ceil(least / perDecade));
  const powers = Array.from({ length: to - from + 1 }, (_, place) => from + place);
  for (const [factors, gap] of [[[1, 2, 3, 4, 5, 6, 7, 8, 9], 10 / 9], [[1, 2, 5], 2], [[1], 10 ** stride]]) {
    if (Math.log10(gap) * perDecade < least) continue;
    const ticks = powers.filter((power) => power % (factors.length > 1 ? 1 : stride) === 0)
      .flatMap((power) => factors.map((factor) => Number(`${factor}e${power}`))).filter((tick) => tick >= low * 0.999 && tick <= high * 1.001);
    if (ticks.length > 1) return ticks;
  }
  return [];
}

/** Set the ticks of an axis of durations, or of a logarithmic one of numbers, for what it shows now. */
function ticksOf(plot, axis, units, pixels) {
  const range = plot.layout[axis]?.range, isLog = plot.layout[axis]?.type === "log", isAcross = axis === "xaxis";
  if (!range || !(units.unit === "seconds" || (units.unit === "number" && isLog))) return {};
  const [low, high] = range.map((end) => (isLog ? 10 ** end : end)).sort((a, b) => a - b);
  const ticks = units.unit === "number" ? numberTicks(low, high, pixels, isAcross ? 60 : 28)
    : durationTicks(low, high, Math.max(2, Math.floor(pixels / (isAcross ? 78 : 48))), isLog);
  if (!ticks.length) return { [`${axis}.tickmode`]: "auto" };
  return { [`${axis}.tickmode`]: "array", [`${axis}.tickvals`]: ticks, [`${axis}.ticktext`]: ticks.map((tick) => textOf(units, tick)) };
}

// --- one chart ---

const QUANTILES = [["lowerfence", "5%"], ["q1", "25%"], ["median", "median"], ["q3", "75%"], ["upperfence", "95%"]];

/** The traces in the colours of the theme, with hover texts; a box gets invisible points that say its quantiles. */
function painted(chart, isNarrow) {
  return chart.figure.data.flatMap((trace) => {
    const colour = colourOf(trace.meta.series), made = { ...trace, hoverinfo: "text" };
    if (trace.type === "heatmap") {
      made.hoverinfo = "skip";
      if (isNarrow) made.text = trace.text.map((row) => row.map((text) => text.replace(/^(\S+ [a-z]+) .*/, "$1"))); // the larger unit of a duration
      return [made];
    }
    if (trace.type === "box") {
      made.hoverinfo = "skip";
      made.line = { ...trace.line, color: colour };
      made.fillcolor = `${colour}55`;
      const words = QUANTILES.map(([key, name]) => `${name}: ${textOf(chart.x, trace[key][0])}`);
      const text = `${trace.name}, ${count(trace.meta.count)} jobs<br>${words.join("<br>")}<br>mean: ${textOf(chart.x, trace.mean[0])}`;
      const x = QUANTILES.map(([key]) => trace[key][0]);
      return [made, { type: "scatter", mode: "markers", x, y: x.map(() => trace.y[0]), text, hoverinfo: "text", showlegend: false,
        marker: { size: 18, opacity: 0, color: colour }, meta: trace.meta }];
    }
    made.marker = { ...trace.marker, color: colour };
    if (trace.line) made.line = { ...trace.line, color: colour };
    for (const error of ["error_x", "error_y"]) if (trace[error]) made[error] = { ...trace[error], color: colour };
    made.text = trace.x.map((x, place) => trace.customdata?.[place] ?? (chart.isNamed
      ? `${trace.name}: ${textOf(chart.x, x)}${trace.error_x ? ` ± ${textOf(chart.x, trace.error_x.array[place])}` : ""}`
      : `${trace.name}: ${textOf(chart.y, trace.y[place])}<br>${textOf(chart.x, x)}`));
    if (trace.type === "bar") made.textposition = "none";
    return [made];
  });
}

function layoutOf(chart, plot) {
  const ink = style("ink"), soft = style("soft"), grid = style("grid"), made = structuredClone(chart.figure.layout);
  const isNarrow = plot.clientWidth < NARROW;
  for (const axis of [made.xaxis, made.yaxis]) {
    Object.assign(axis, { gridcolor: grid, linecolor: grid, zerolinecolor: grid, tickcolor: grid, ...axis.showgrid === false ? {} : { zeroline: false } });
    axis.tickfont = { color: soft, size: 12 };
    axis.title = { ...axis.title, font: { color: soft, size: 13 }, standoff: 10 };
    if (axis.type === "log") axis.nticks = Math.max(2, Math.floor((axis === made.xaxis ? plot.clientWidth - 90 : plot.dataset.height - 90) / 70));
    if (isNarrow && axis === made.xaxis) axis.title.text = wrapped(axis.title.text, made.yaxis.ticktext ? 22 : 34);
    if (axis.ticktext && isNarrow) axis.ticktext = axis.ticktext.map((text) => cut(text, axis === made.xaxis ? 9 : 24));
  }
  if (isNarrow && made.xaxis.ticktext) made.xaxis.tickangle = -40;
  for (const shape of made.shapes ?? []) shape.line.color = soft;
  return { ...made, height: Number(plot.dataset.height), width: isPaper ? PAPER_WIDTH : plot.clientWidth,
    margin: { l: made.yaxis.automargin ? 12 : 66, r: 14, t: 14, b: made.xaxis.tickangle ? 84 : made.xaxis.title.text.includes("<br>") ? 74 : 58 }, paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", hovermode: "closest",
    dragmode: isTouched ? false : "zoom",
    font: { family: getComputedStyle(document.body).fontFamily, color: ink },
    hoverlabel: { bgcolor: style("raised"), bordercolor: style("line"), font: { color: ink, size: 13 }, align: "left" } };
}

/** Put the second half of a title that has more than `most` characters on a line of its own. */
function wrapped(text, most) {
  const space = text.indexOf(" ", text.length / 2 - 4);
  return text.length > most && space > 0 ? `${text.slice(0, space)}<br>${text.slice(space + 1)}` : text;
}

/** Shorten an escaped text: an escape is one character. */
function cut(text, most) {
  const characters = text.match(/&[a-z]+;|[^]/gu) ?? [];
  return characters.length > most ? `${characters.slice(0, most - 1).join("")}…` : text;
}

const isTouched = matchMedia("(pointer: coarse)").matches;
const CONFIG = { displaylogo: false, responsive: false, scrollZoom: false, displayModeBar: isTouched ? false : "hover",
  modeBarButtons: [["toImage", "zoomIn2d", "zoomOut2d", "resetScale2d"]], toImageButtonOptions: { format: "svg" } };
const hidden = new Map(); // the names that were switched off, by chart

function draw(id) {
  const chart = data.charts[id], plot = at(id), off = hidden.get(id) ?? new Set();
  const traces = painted(chart, plot.clientWidth < NARROW).map((trace) => (off.has(trace.name) ? { ...trace, visible: false } : trace));
  const isFirst = !plot.data;
  Plotly.react(plot, traces, layoutOf(chart, plot), CONFIG);
  if (isFirst) plot.on("plotly_relayout", (change) => { if (zoomed(change)) adjust(id); });
  adjust(id);
  drawLegend(id);
}

/** Write the ticks of durations for the part that is in view. */
function adjust(id) {
  const chart = data.charts[id], plot = at(id), pixels = plot.layout.width - 90;
  const ticks = { ...ticksOf(plot, "xaxis", chart.x, pixels), ...ticksOf(plot, "yaxis", chart.y, plot.layout.height - 90) };
  if (Object.keys(ticks).length) Plotly.relayout(plot, ticks);
}

const zoomed = (change) => Object.keys(change).some((key) => /axis\.(range|autorange)/.test(key));

// --- legends: buttons that switch a series off and on ---

const SVG = "http://www.w3.org/2000/svg";
const DASHES = { solid: "", dash: "6 3", dot: "2 3", dashdot: "6 3 2 3" };
const SHAPES = { circle: "M8 12a4 4 0 1 1 8 0a4 4 0 1 1-8 0", square: "M8 8h8v8H8z", diamond: "M12 7l5 5l-5 5l-5-5z",
  "triangle-up": "M12 7l5 9H7z", x: "M8 10l2-2l2 2l2-2l2 2l-2 2l2 2l-2 2l-2-2l-2 2l-2-2l2-2z", cross: "M10.500 7h3v3.500h3.500v3h-3.500v3.500h-3v-3.500H7v-3h3.500z",
  "triangle-down": "M12 17l5-9H7z", pentagon: "M12 7l5 4l-2 6H9l-2-6z" };

function swatch(trace) {
  const svg = document.createElementNS(SVG, "svg"), colour = colourOf(trace.meta.series);
  svg.setAttribute("width", "24");
  svg.setAttribute("height", "24");
  svg.setAttribute("aria-hidden", "true");
  if (trace.line) {
    const line = document.createElementNS(SVG, "path");
    for (const [key, value] of Object.entries({ d: "M0 12h24", stroke: colour, "stroke-width": "2", "stroke-dasharray": DASHES[trace.line.dash] })) line.setAttribute(key, value);
    svg.append(line);
  }
  const mark = document.createElementNS(SVG, "path");
  mark.setAttribute("d", SHAPES[trace.marker?.symbol] ?? SHAPES.square);
  mark.setAttribute("fill", colour);
  svg.append(mark);
  return svg;
}

const plain = (text) => text.replaceAll("&lt;", "<").replaceAll("&gt;", ">").replaceAll("&amp;", "&");

function drawLegend(id) {
  const named = data.charts[id].figure.data.filter((trace) => trace.type === "scatter" || trace.type === "bar"), list = at(`${id}-legend`);
  const isNamedByRows = data.charts[id].isNamed && named.every((trace) => trace.y.length === 1);
  if (named.length < 2 || isNamedByRows) return;
  list.hidden = false;
  const off = hidden.get(id) ?? new Set();
  list.replaceChildren(...named.map((trace) => {
    const item = document.createElement("li"), button = document.createElement("button"), words = document.createElement("span");
    words.textContent = plain(trace.name);
    button.type = "button";
    button.setAttribute("aria-pressed", String(!off.has(trace.name)));
    button.title = "Show or hide";
    button.append(swatch(trace), words);
    button.addEventListener("click", () => {
      if (off.has(trace.name)) off.delete(trace.name); else off.add(trace.name);
      hidden.set(id, off);
      draw(id);
      [...list.querySelectorAll("button")][named.indexOf(trace)].focus();
    });
    item.append(button);
    return item;
  }));
}

// --- the page ---

const all = Object.keys(data.charts);

/** What is folded has no width: it is drawn when it is opened. */
const isShown = (id) => at(id).clientWidth > 0;

function drawAll() {
  for (const id of all) if (at(id).data && isShown(id)) draw(id);
  for (const frame of document.querySelectorAll("iframe")) tellTheme(frame);
}

/** The frame of the Gantt chart follows the switch. */
function tellTheme(frame) {
  const root = frame.contentDocument?.documentElement;
  if (!root) return;
  if (report.theme) root.dataset.theme = report.theme; else delete root.dataset.theme;
  frame.contentWindow.dispatchEvent(new Event("themechange"));
}

function choose(theme) {
  if (theme) report.theme = theme; else delete report.theme;
  drawAll();
}

const KEY = "cpsched-report-theme";
const kept = { read() { try { return localStorage.getItem(KEY) ?? ""; } catch { return ""; } },
  write(theme) { try { localStorage.setItem(KEY, theme); } catch { /* a file may have no storage */ } } };

at("theme").hidden = false;
for (const choice of at("theme").querySelectorAll("input")) {
  choice.checked = choice.value === kept.read();
  choice.addEventListener("change", () => { kept.write(choice.value); choose(choice.value); });
}
if (kept.read()) report.theme = kept.read();

for (const frame of document.querySelectorAll("iframe")) {
  frame.addEventListener("load", () => tellTheme(frame));
  tellTheme(frame);
}
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawAll);

let width = innerWidth;
addEventListener("resize", () => {
  if (innerWidth !== width) { width = innerWidth; drawAll(); }
});

// paper is white, whatever the screen is: drawn at once, since the page is printed as it is when this returns
function paper(isIt) {
  isPaper = isIt;
  document.documentElement.classList.toggle("paper", isIt);
  for (const part of parts) {
    if (isIt) part.dataset.before = part.open ? "open" : "";
    part.open = isIt || part.dataset.before === "open";
  }
  for (const id of all) if (isShown(id)) draw(id);
  // after the style: the frame draws for the height that it has then
  for (const frame of document.querySelectorAll("iframe")) frame.contentWindow.dispatchEvent(new Event(isIt ? "beforeprint" : "afterprint"));
}
addEventListener("beforeprint", () => paper(true));
addEventListener("afterprint", () => paper(false));

// sections that fold: a link to one opens it
const parts = [...document.querySelectorAll("details.part")];
for (const part of parts) {
  part.addEventListener("toggle", () => {
    if (part.open && report.ready === "yes" && !isPaper) for (const plot of part.querySelectorAll(".plot")) draw(plot.id);
  });
  const heading = part.closest("section").querySelector("h2");
  document.querySelector(`nav a[href="#${heading.id}"]`).addEventListener("click", () => { part.open = true; });
}

// one after the other, so that the page can be read and scrolled meanwhile
function drawNext(place) {
  if (place === all.length) {
    for (const part of parts) part.open = location.hash === `#${part.closest("section").querySelector("h2").id}`;
    report.ready = "yes";
    return;
  }
  if (!at(all[place]).data) draw(all[place]);
  report.drawn = String(place + 1);
  setTimeout(drawNext, 0, place + 1);
}
report.charts = String(all.length);
drawNext(0);

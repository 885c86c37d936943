// Details, input, and what surrounds the charts.

function element(tag, text) {
  const made = document.createElement(tag);
  made.textContent = text;
  return made;
}

function fillList(list, rows) {
  list.replaceChildren(...rows.filter(([, value]) => value !== null && value !== undefined && value !== "")
    .flatMap(([label, value]) => [element("dt", label), element("dd", value)]));
}

function nodesOf(job, most) {
  const runs = new Map(job.pieces.map((piece) => [`${piece.first} ${piece.count}`, piece]));
  const nodes = new Set(), texts = [];
  for (const { first: from, count } of runs.values()) {
    for (let n = from; n < from + count; n++) nodes.add(n);
    texts.push(count === 1 ? data.nodes[from] : `${data.nodes[from]} … ${data.nodes[from + count - 1]}`);
  }
  const rest = texts.length - most;
  return `${number(nodes.size)}: ${texts.slice(0, most).join(", ")}${rest > 0 ? ` and ${number(rest)} ranges more` : ""}`;
}

const facts = (job) => [
  ["user", job.user], ["group", job.group], ["project", job.project], ["queue", data.queues[job.queue]],
  ["state", job.running ? "running" : "planned"], ["submit", moment(job.submit)], ["start", moment(job.start)],
  ["end", moment(job.end)], ["wait", duration(job.start - job.submit)], ["duration", duration(job.end - job.start)],
  ["walltime", job.walltime === job.end - job.start ? "" : duration(job.walltime)],
  ["changes", job.changes], ["request", job.request], ["licences", job.licenses],
];

function showTip(x, y, title, rows) {
  const tip = at("tip"), list = document.createElement("dl");
  fillList(list, rows);
  tip.replaceChildren(element("b", title), list);
  tip.hidden = false;
  const stage = at("stage");
  tip.style.left = `${Math.max(0, x + 18 + tip.offsetWidth > stage.clientWidth ? x - 14 - tip.offsetWidth : x + 18)}px`;
  tip.style.top = `${Math.max(0, Math.min(y + 14, stage.clientHeight - tip.offsetHeight))}px`;
}

function choose(job) {
  chosen = job;
  at("panel").hidden = job === null;
  if (job) {
    at("chosen").textContent = `Job ${job.id}`;
    fillList(at("details"), [...facts(job), ["nodes", nodesOf(job, 20)],
      ...[...new Set(job.pieces.map((piece) => amounts(piece.held)))].slice(0, 4).map((held) => ["on a node", held])]);
    if (!job.pieces.some(isVisible)) Object.assign(view, all);
    if (innerWidth <= 700) at("panel").scrollIntoView({ block: "nearest" }); // it is below the charts there
  }
  report.selected = job ? job.id : "";
  refresh();
}

function chooseAndLink(job) {
  history.replaceState(null, "", job ? `#job=${encodeURIComponent(job.id)}` : location.pathname + location.search);
  choose(job);
}

function followLink() {
  const link = /^#job=(.*)$/s.exec(location.hash);
  if (!link) return;
  let id = link[1];
  try { id = decodeURIComponent(id); } catch { /* not encoded: taken as it is */ }
  choose(jobById.get(id) ?? null);
}

/** The job under a point, on that node, with two pixels of patience beside jobs that are thin. */
function hit(x, y) {
  const row = nodeAt(y), node = Math.floor(row), time = timeAt(x), patience = 2 * (view.to - view.from) / width;
  if (x < gutter || y < AXIS || node < 0 || node >= nodeCount) return null;
  let best = null, least = patience;
  for (const band of bandsOf(node)) {
    if (row - node < band.top || row - node > band.bottom) continue;
    const away = Math.max(0, band.piece.start - time, time - band.piece.end);
    if (away < least || (away === 0 && !best)) { best = band.piece; least = away; }
  }
  return best && { job: best.job, piece: best, node };
}

const reservedAt = (time, node) => data.reserved.find(([, start, end, runs]) => time >= start && time < end &&
  runs.some((from, i) => i % 3 === 0 && node >= from && node < from + runs[i + 1]));

function hover(event) {
  const box = plot.getBoundingClientRect(), x = event.clientX - box.left, y = event.clientY - box.top;
  hoverTime = x >= gutter && x <= gutter + width ? timeAt(x) : null;
  at("cursor").hidden = hoverTime === null;
  at("cursor").style.left = `${x}px`;
  drawCharts();
  const found = event.currentTarget === plot ? hit(x, y) : null, node = Math.floor(nodeAt(y));
  if (found) {
    showTip(x, y, `Job ${found.job.id}`, [...facts(found.job), ["here", found.piece.part], ["nodes", nodesOf(found.job, 3)],
      [`on ${data.nodes[found.node]}`, amounts(found.piece.held)]]);
  } else if (event.currentTarget === plot && reservedAt(timeAt(x), node)) {
    const [id, start, end] = reservedAt(timeAt(x), node);
    showTip(x, y, `Reservation ${id}`, [["start", moment(start)], ["end", moment(end)]]);
  } else if (event.currentTarget === plot && y > AXIS && foldOf[node]) {
    const time = x < gutter ? data.now : timeAt(x);
    showTip(x, y, foldOf[node][0], [["nodes in use", `${number(busyIn(foldOf[node], time))} of ${number(foldOf[node][2])}`]]);
  } else if (event.currentTarget === plot && x < gutter && y > AXIS && node >= 0 && node < nodeCount) {
    const kind = data.classes[classOf[node]];
    showTip(x, y, data.nodes[node], [["has", amounts(kind.amounts)], ["state", kind.state], ["properties", kind.properties],
      ...levels.map(([level, groups]) => [level, groupAt(groups, node)?.[0] ?? ""]), ["like it", `${number(kind.alike)} nodes`]]);
  } else at("tip").hidden = true;
}

/** Choose a job, or fold or unfold a group. */
function press(x, y) {
  const [, groups] = x >= 0 && y > AXIS ? columns[Math.floor(x / COLUMN)] ?? [] : [];
  const found = groups && groupAt(groups, Math.floor(nodeAt(y)));
  if (!found) { chooseAndLink(hit(x, y)?.job ?? null); return; }
  toggle([found]);
}

/** The buttons that fold groups, each with these. */
const folders = [];

/** Fold groups, or unfold them if they all are folded. */
function toggle(groups) {
  fold(groups, groups.some((group) => !folded.has(group)));
  for (const [button, own] of folders) button.setAttribute("aria-expanded", String(own.some((group) => !folded.has(group))));
}

for (const [level, groups] of levels) {
  const busy = (group) => `${level} ${group[0]}: ${number(busyIn(group, data.now))} of ${number(group[2])} nodes in use`;
  for (const [words, own] of [[`every ${level}`, groups], ...groups.map((group) => [busy(group), [group]])]) {
    const button = element("button", words);
    Object.assign(button, { type: "button", ariaExpanded: "true" });
    button.addEventListener("click", () => toggle(own));
    folders.push([button, own]);
    at("folders").append(button);
  }
}
at("groups").hidden = !levels.length;

function leave() {
  hoverTime = null;
  at("cursor").hidden = at("tip").hidden = true;
  drawCharts();
}

let drag = null;
for (const canvas of [plot, charts]) {
  canvas.addEventListener("pointerdown", (event) => {
    drag = { x: event.clientX, y: event.clientY, moved: false, ...view };
    canvas.setPointerCapture(event.pointerId);
  });
  canvas.addEventListener("pointermove", (event) => {
    if (!drag) { hover(event); return; }
    const dx = event.clientX - drag.x, dy = canvas === plot ? event.clientY - drag.y : 0;
    if (!drag.moved && Math.hypot(dx, dy) < 4) return;
    drag.moved = true;
    canvas.classList.add("dragging");
    at("tip").hidden = true;
    const times = dx / width * (drag.to - drag.from), rows = dy / height * (drag.bottom - drag.top);
    Object.assign(view, { from: drag.from - times, to: drag.to - times, top: drag.top - rows, bottom: drag.bottom - rows });
    refresh();
  });
  canvas.addEventListener("pointerup", (event) => {
    canvas.classList.remove("dragging");
    const box = canvas.getBoundingClientRect();
    if (canvas === plot && drag && !drag.moved) press(event.clientX - box.left, event.clientY - box.top);
    drag = null;
  });
  canvas.addEventListener("pointercancel", () => { drag = null; });
  canvas.addEventListener("pointerleave", leave);
  canvas.addEventListener("dblclick", () => { Object.assign(view, all); refresh(); });
  canvas.addEventListener("wheel", (event) => {
    event.preventDefault();
    const box = canvas.getBoundingClientRect(), x = event.clientX - box.left;
    const factor = Math.exp(Math.max(-60, Math.min(60, event.deltaY || event.deltaX)) * 0.004);
    if (canvas === plot && (event.shiftKey || x < gutter)) zoomNodes(factor, rowAt(event.clientY - box.top));
    else zoomTime(factor, timeAt(Math.max(x, gutter)));
  }, { passive: false });
}

const KEYS = {
  ArrowLeft: () => pan((view.from - view.to) / 8, 0), ArrowRight: () => pan((view.to - view.from) / 8, 0),
  ArrowUp: () => pan(0, (view.top - view.bottom) / 8), ArrowDown: () => pan(0, (view.bottom - view.top) / 8),
  "+": () => zoomTime(0.7), "-": () => zoomTime(1.4), "]": () => zoomNodes(0.7), "[": () => zoomNodes(1.4),
  "0": () => { Object.assign(view, all); refresh(); }, Escape: () => chooseAndLink(null),
};
plot.addEventListener("keydown", (event) => {
  if (!(event.key in KEYS) || event.ctrlKey || event.metaKey || event.altKey) return;
  event.preventDefault();
  KEYS[event.key]();
});
const BUTTONS = { "time-in": "+", "time-out": "-", "nodes-in": "]", "nodes-out": "[", reset: "0" };
at("zoom").addEventListener("click", (event) => {
  if (event.target.dataset.zoom) KEYS[BUTTONS[event.target.dataset.zoom]]();
});
at("close").addEventListener("click", () => chooseAndLink(null));

function find() {
  const query = at("query").value.trim().toLowerCase();
  const fields = (job) => [job.id, job.user, job.group, data.queues[job.queue]];
  const exact = jobs.filter((job) => fields(job).some((text) => text?.toLowerCase() === query));
  const found = exact.length ? exact : jobs.filter((job) => fields(job).some((text) => text?.toLowerCase().includes(query)));
  matched = query ? new Set(found) : null;
  at("matches").textContent = query ? `${number(found.length)} job${found.length === 1 ? "" : "s"}` : "";
  refresh();
}

at("query").addEventListener("input", find);
at("search").addEventListener("submit", (event) => {
  event.preventDefault();
  const found = [...matched ?? []];
  if (found.length) chooseAndLink(found[(found.indexOf(chosen) + 1) % found.length]); // Enter again: the next one
});

function fillTable(section, head, rows) {
  section.hidden = rows.length === 0;
  const row = (cells, tag) => { const made = element("tr", ""); made.append(...cells.map((text) => element(tag, text))); return made; };
  section.querySelector("table").replaceChildren(row(head, "th"), ...rows.map((cells) => row(cells, "td")));
}

function fillLegend(list, entries) {
  list.replaceChildren(...entries.map(([name, colour, hatched]) => {
    const item = element("li", ""), swatch = document.createElement("canvas");
    swatch.width = swatch.height = 14;
    const ctx = swatch.getContext("2d");
    for (const style of hatched ? [colour, hatch] : [colour]) { ctx.fillStyle = style; ctx.fillRect(0, 0, 14, 14); }
    item.append(swatch, element("span", name));
    return item;
  }));
}

function drawLegend() {
  const entries = data.queues.slice(0, PALETTE.length).map((name, queue) => [name, colourOf(queue), false]);
  if (data.queues.length > PALETTE.length) entries.push([`${data.queues.length - PALETTE.length} other queues`, OTHERS, false]);
  if (jobs.some((job) => job.running)) entries.push(["running", ink.soft, true]);
  if (pieces.some((piece) => piece.shrunk)) entries.push(["on a share of its cores", `color-mix(in srgb, ${ink.soft} 45%, ${ink.page})`, false]);
  if (data.reserved.length) entries.push(["reserved", ink.shut, true]);
  fillLegend(at("legend"), entries);
  fillLegend(at("finders"), finders.map((by, place) => [by, colourOf(place), false]));
}

function restyle() {
  readColours();
  drawLegend();
  drawTrack();
  refresh();
}

function paper(isPaper) {
  document.documentElement.classList.toggle("paper", isPaper);
  restyle();
}

at("name").textContent = data.name;
at("sentence").textContent = data.sentence;
at("facts").replaceChildren(...data.facts.map(([label, value]) => {
  const card = element("div", "");
  card.className = value.length > 24 ? "wordy" : "";
  card.append(element("dt", label), element("dd", value));
  return card;
}));
plot.setAttribute("aria-label", `Gantt chart of ${number(jobs.length)} jobs on ${number(nodeCount)} nodes`);
charts.setAttribute("aria-label", `Use over time of ${shown.map(({ name }) => name).join(", ")}`);
fillTable(at("waits"), ["queue", "jobs", "mean", "median", "longest"], data.waits);
fillTable(at("history"), ["after", "value", "by"], data.found.map(([after, , value, by]) => [`${after.toFixed(2)} s`, value, by]));
fillTable(at("events"), ["after", "by", "what"], data.events);
fillTable(at("room"), ["job", "reason", "detail"], data.waiting);
at("track").setAttribute("aria-label", data.found.length ? `Value of the best plan: ${data.found[0][2]} at first, ` +
  `${data.found[data.found.length - 1][2]} at last${data.bound ? `; no plan is below ${data.bound[1]}` : ""}` : "");
if (levels.length) at("keys").append(" A click on a group left of the nodes folds it to one row.");
restyle();
drawPlot();
drawCharts();
followLink();
addEventListener("hashchange", followLink);
addEventListener("resize", () => { drawTrack(); refresh(); });
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", restyle);
addEventListener("themechange", restyle); // from the report that this page is a frame of
// paper is white, whatever the screen is: drawn at once, since the page is printed as it is when this returns
addEventListener("beforeprint", () => { paper(true); drawPlot(); drawCharts(); });
addEventListener("afterprint", () => paper(false));
report.ready = "yes";

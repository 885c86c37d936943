// The map of the cluster: a cell for each node, coloured by how much of one resource is used, and the same in words.
// Nodes of a class, or of a group of the topology, are together, and can be folded.

import { at, h, meter, shown } from "./dom.js";
import { listNode } from "./jobs.js";
import { amount, amounts, count, number, percent } from "./words.js";

/** Steps of use, as in the legend: at most this share; 0 is idle. */
const STEPS = [0, 0.25, 0.5, 0.75, 0.999, 1];
const LABELS = ["idle", "to 25 %", "to 50 %", "to 75 %", "below all", "all used"];
/** Pixels: of the smallest and the largest cell, and of the height that all cells may take. */
const LEAST = 4, MOST = 20, HEIGHT = 330;
const MOST_USED = "most used resource", KIND = "kind of node";

let latest = null, colours = null, maps = new Map();

export function startCluster() {
  for (const choice of ["resource", "level"]) at(choice).addEventListener("change", draw);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { colours = null; draw(); });
  new ResizeObserver(() => requestAnimationFrame(draw)).observe(at("map"));
}

/** Show the nodes as the API has them. */
export function drawCluster(nodes) {
  latest = nodes;
  offer(at("resource"), [MOST_USED, ...new Set(nodes.classes.flatMap(({ resources }) => Object.keys(resources)))], "cores");
  offer(at("level"), [KIND, ...nodes.levels], nodes.levels[0]);
  at("grouping").hidden = !nodes.levels.length;
  at("cluster").removeAttribute("aria-busy");
  draw();
}

/** Offer names to choose from: at first one of them, or the first. */
function offer(select, names, preferred) {
  if (names.length === select.options.length && names.every((name, i) => select.options[i].value === name)) return;
  const kept = select.value;
  select.replaceChildren(...names.map((name) => h("option", { value: name }, name)));
  select.value = names.find((name) => name === kept) ?? names.find((name) => name === preferred) ?? names[0];
}

/** The nodes by class, or by their groups at the level that is chosen: what each is called, and its nodes. */
function grouped() {
  const level = latest.levels.indexOf(at("level").value), groups = new Map();
  if (level < 0) latest.classes.forEach((kind, index) => groups.set(index, { kind, name: kind.names, nodes: [] }));
  for (const node of latest.nodes) {
    const key = level < 0 ? node.node_class : node.groups[level];
    if (!groups.has(key)) groups.set(key, { name: key === null ? `in no ${at("level").value}` : `${at("level").value} ${key}`, nodes: [] });
    groups.get(key).nodes.push(node);
  }
  return new Map([...groups.values()].map((group) => [group.name, group]));
}

/** Show how much of each resource is used. */
export function drawUse({ resources, used, states }) {
  const rows = Object.entries(resources).filter(([, total]) => total > 0).map(([name, total]) => {
    const share = (used[name] ?? 0) / total;
    return h("div", {}, h("span", {}, name), meter(share), h("span", { class: "figure" }, percent(share)), h("small", { class: "soft" }, `${amount(name, used[name] ?? 0)} of ${amount(name, total)}`));
  });
  const out = ["drain", "down"].filter((state) => states[state]).map((state) => `${number(states[state])} ${state}`).join(", ");
  at("use").replaceChildren(...rows, ...(out ? [h("p", { class: "soft small" }, `Nodes that take no new jobs: ${out}.`)] : []));
}

/** The share of a node that is used, of the resource that is chosen; null: it has none of it. */
function shareOf(node) {
  const name = at("resource").value;
  const shares = name === MOST_USED ? Object.values(node.shares) : name in node.shares ? [node.shares[name]] : [];
  return shares.length ? Math.max(...shares) : null;
}

const stepOf = (share) => STEPS.findIndex((most) => share <= most + 1e-9);

function readColours() {
  const style = getComputedStyle(document.documentElement);
  const read = (name) => style.getPropertyValue(name).trim();
  colours = { steps: STEPS.map((_, i) => read(`--use-${i}`)), line: read("--line"), soft: read("--soft"), ink: read("--ink"), page: read("--page"), mark: read("--mark") };
}

function draw() {
  if (!latest) return;
  if (!colours) readColours();
  const width = at("map").clientWidth, groups = grouped();
  if (!width) return;
  const size = Math.max(LEAST, Math.min(MOST, Math.floor(Math.sqrt(width * HEIGHT / Math.max(1, latest.nodes.length)))));
  if (maps.size !== groups.size || [...groups.keys()].some((name) => !maps.has(name))) {
    maps = new Map([...groups.keys()].map((name) => [name, maps.get(name) ?? nodeMap()]));
    at("map").replaceChildren(...[...maps.values()].map(({ figure }) => figure));
  }
  groups.forEach((group, name) => maps.get(name).show(group, size, width));
  at("scale").replaceChildren(...LABELS.map((label, i) => legend(label, (ctx) => paint(ctx, 0, 0, 14, { share: STEPS[i], state: "up" }))),
    ...["drain", "down"].filter((state) => latest.nodes.some((node) => node.state === state)).map((state) => legend(state, (ctx) => paint(ctx, 0, 0, 14, { share: 0, state }))));
}

function legend(label, drawing) {
  const canvas = h("canvas", { width: 28, height: 28, "aria-hidden": "true" }), ctx = canvas.getContext("2d");
  ctx.scale(2, 2);
  drawing(ctx);
  return h("li", {}, canvas, label);
}

/** Paint one node: its colour tells its use, a stroke that it drains, a cross that it is down. */
function paint(ctx, x, y, size, { share, state }) {
  const gap = size >= 6 ? 1 : 0.5, side = size - gap;
  ctx.fillStyle = share === null ? colours.page : colours.steps[stepOf(share)];
  ctx.fillRect(x, y, side, side);
  if ((share === null || share === 0) && size >= 8) { ctx.strokeStyle = colours.line; ctx.lineWidth = 1; ctx.strokeRect(x + 0.5, y + 0.5, side - 1, side - 1); }
  if (state === "up") return;
  ctx.strokeStyle = colours.mark;
  ctx.lineWidth = size >= 10 ? 1.6 : 1;
  ctx.beginPath();
  ctx.moveTo(x, y + side);
  ctx.lineTo(x + side, y);
  if (state === "down") { ctx.moveTo(x, y); ctx.lineTo(x + side, y + side); }
  ctx.stroke();
}

function summary(nodes) {
  const used = nodes.filter((node) => node.jobs > 0).length, out = nodes.filter((node) => node.state !== "up").length;
  const shares = nodes.map(shareOf).filter((share) => share !== null);
  const mean = shares.length ? `, ${percent(shares.reduce((sum, share) => sum + share, 0) / shares.length)} of ${at("resource").value} used` : `, without ${at("resource").value}`;
  return `${number(used)} of ${count(nodes.length, "node")} in use${mean}${out ? `, ${number(out)} out of service` : ""}`;
}

/** The nodes of one class or group: a heading, the sentence for those who cannot see the cells, and the cells. */
function nodeMap() {
  const title = h("strong", {}), has = h("small", { class: "soft" }), said = h("small", {}), canvas = h("canvas", { tabindex: 0, role: "application" });
  const figure = h("figure", {}, h("details", { open: true }, h("summary", {}, title, " ", has, said), canvas));
  let nodes = [], size = LEAST, columns = 1, focus = null;
  const tell = (place) => {
    focus = place;
    redraw();
    const node = nodes[place], status = at("node");
    status.hidden = !node;
    if (!node) return;
    const kind = latest.classes[node.node_class];
    status.replaceChildren(h("strong", {}, node.name), ` ${node.state === "up" ? "" : `${node.state}, `}${node.jobs ? count(node.jobs, "job") : "idle"}`,
      h("small", { class: "soft" }, amounts(node.used) ? ` ${Object.keys(kind.resources).filter((name) => kind.resources[name]).map((name) => `${name} ${amount(name, node.used[name] ?? 0)} of ${amount(name, kind.resources[name])}`).join(", ")}` : ` has ${amounts(kind.resources)}`));
  };
  const placeAt = (event) => {
    const box = canvas.getBoundingClientRect(), column = Math.floor((event.clientX - box.left) / size), row = Math.floor((event.clientY - box.top) / size);
    const place = row * columns + column;
    return column >= 0 && column < columns && place < nodes.length && row >= 0 ? place : null;
  };
  const list = (place) => { if (place !== null && nodes[place]?.jobs) listNode(nodes[place].name); };
  canvas.addEventListener("pointermove", (event) => { const place = placeAt(event); if (place !== focus) tell(place); });
  canvas.addEventListener("pointerleave", () => { if (document.activeElement !== canvas) tell(null); });
  canvas.addEventListener("focus", () => tell(focus ?? 0));
  canvas.addEventListener("blur", () => tell(null));
  canvas.addEventListener("click", (event) => list(placeAt(event)));
  canvas.addEventListener("keydown", (event) => {
    const steps = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -columns, ArrowDown: columns, Home: -nodes.length, End: nodes.length };
    if (event.key === "Enter") list(focus);
    if (!(event.key in steps)) return;
    event.preventDefault();
    tell(Math.max(0, Math.min(nodes.length - 1, (focus ?? 0) + steps[event.key])));
  });
  function redraw() {
    const ratio = devicePixelRatio || 1, rows = Math.ceil(nodes.length / columns), height = rows * size;
    canvas.style.height = `${height}px`;
    canvas.style.width = `${columns * size}px`;
    canvas.width = Math.round(columns * size * ratio);
    canvas.height = Math.round(height * ratio);
    const ctx = canvas.getContext("2d");
    ctx.scale(ratio, ratio);
    nodes.forEach((node, i) => paint(ctx, i % columns * size, Math.floor(i / columns) * size, size, { share: shareOf(node), state: node.state }));
    if (focus === null || !nodes[focus]) return;
    ctx.strokeStyle = colours.ink;
    ctx.lineWidth = 2;
    ctx.strokeRect(focus % columns * size - 0.5, Math.floor(focus / columns) * size - 0.5, size, size);
  }
  return {
    figure,
    show(group, cell, width) {
      [nodes, size, columns] = [group.nodes, cell, Math.max(1, Math.floor(width / cell))];
      title.textContent = shown(group.name);
      title.title = shown([group.name, ...Object.entries(group.kind?.properties ?? {}).map(([name, value]) => `${name}=${value}`)].join(" "));
      has.textContent = shown(group.kind ? amounts(group.kind.resources) : "");
      said.textContent = shown(summary(nodes));
      canvas.setAttribute("aria-label", shown(`Nodes ${group.name}: ${summary(nodes)}`));
      redraw();
    },
  };
}

// The map of the cluster: a cell for each node, coloured by how much of one resource is used, and the same in words.

import { at, h, meter, shown } from "./dom.js";
import { listNode } from "./jobs.js";
import { amount, amounts, count, number, percent } from "./words.js";

/** Steps of use, as in the legend: at most this share; 0 is idle. */
const STEPS = [0, 0.25, 0.5, 0.75, 0.999, 1];
const LABELS = ["idle", "to 25 %", "to 50 %", "to 75 %", "below all", "all used"];
/** Pixels: of the smallest and the largest cell, and of the height that all cells may take. */
const LEAST = 4, MOST = 20, HEIGHT = 330;
const MOST_USED = "most used resource";

let latest = null, colours = null, maps = [];

export function startCluster() {
  at("resource").addEventListener("change", draw);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { colours = null; draw(); });
  new ResizeObserver(() => requestAnimationFrame(draw)).observe(at("map"));
}

/** Show the nodes as the API has them. */
export function drawCluster(nodes) {
  latest = nodes;
  const names = [MOST_USED, ...new Set(nodes.classes.flatMap(({ resources }) => Object.keys(resources)))], select = at("resource");
  if (names.length !== select.options.length || names.some((name, i) => select.options[i].value !== name)) {
    const kept = select.value;
    select.replaceChildren(...names.map((name) => h("option", { value: name }, name)));
    select.value = names.includes(kept) && kept ? kept : names.find((name) => name === "cores") ?? MOST_USED;
  }
  at("cluster").removeAttribute("aria-busy");
  draw();
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
  const width = at("map").clientWidth, groups = latest.classes.map(() => []);
  if (!width) return;
  for (const node of latest.nodes) groups[node.node_class].push(node);
  const size = Math.max(LEAST, Math.min(MOST, Math.floor(Math.sqrt(width * HEIGHT / Math.max(1, latest.nodes.length)))));
  if (maps.length !== groups.length) {
    maps = groups.map((_, index) => nodeMap(index));
    at("map").replaceChildren(...maps.map(({ figure }) => figure));
  }
  groups.forEach((group, index) => maps[index].show(latest.classes[index], group, size, width));
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

function summary(kind, nodes) {
  const used = nodes.filter((node) => node.jobs > 0).length, out = nodes.filter((node) => node.state !== "up").length;
  const shares = nodes.map(shareOf).filter((share) => share !== null);
  const mean = shares.length ? `, ${percent(shares.reduce((sum, share) => sum + share, 0) / shares.length)} of ${at("resource").value} used` : `, without ${at("resource").value}`;
  return `${number(used)} of ${count(nodes.length, "node")} in use${mean}${out ? `, ${number(out)} out of service` : ""}`;
}

/** The nodes of one class: a heading, the sentence for those who cannot see the cells, and the cells. */
function nodeMap(index) {
  const title = h("strong", {}), has = h("small", { class: "soft" }), said = h("small", {}), canvas = h("canvas", { tabindex: 0, role: "application" });
  const figure = h("figure", {}, h("figcaption", {}, title, has, said), canvas);
  let nodes = [], size = LEAST, columns = 1, focus = null;
  const tell = (place) => {
    focus = place;
    redraw();
    const node = nodes[place], status = at("node");
    status.hidden = !node;
    if (!node) return;
    const kind = latest.classes[index];
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
    show(kind, group, cell, width) {
      [nodes, size, columns] = [group, cell, Math.max(1, Math.floor(width / cell))];
      title.textContent = shown(kind.names);
      title.title = shown([kind.names, ...Object.entries(kind.properties).map(([name, value]) => `${name}=${value}`)].join(" "));
      has.textContent = shown(amounts(kind.resources));
      said.textContent = shown(summary(kind, group));
      canvas.setAttribute("aria-label", shown(`Nodes ${kind.names}: ${summary(kind, group)}`));
      redraw();
    },
  };
}

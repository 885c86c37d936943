// One plan, drawn. The page joins the files gantt_model, gantt_view, gantt_drawing and gantt_page, in this order, to one
// script module. Outside names reach the page through textContent and canvas text only, never as markup.
// Here: the page's report of itself (<html data-...>), and the plan as jobs, pieces and bands.

const report = document.documentElement.dataset;
report.errors = "0";
addEventListener("error", (event) => {
  report.errors = String(Number(report.errors) + 1);
  const fault = document.getElementById("fault");
  fault.textContent = `The chart could not be drawn completely: ${event.message}`;
  fault.hidden = false;
});

const at = (id) => document.getElementById(id);
const data = JSON.parse(at("data").textContent);

// Paul Tol's "bright" scheme and three of his "vibrant" one: told apart with all common colour visions.
const PALETTE = ["#4477aa", "#ee6677", "#228833", "#ccbb44", "#66ccee", "#aa3377", "#ee7733", "#009988", "#bb9977"];
const OTHERS = "#9aa0a8"; // all queues beyond the palette
const LANES = 96; // the finest split of one node's height
const nodeCount = data.nodes.length;
const colourOf = (queue) => PALETTE[queue] ?? OTHERS;

const classOf = new Int32Array(nodeCount);
data.classes.forEach((kind, index) => classOf.fill(index, kind.first, kind.first + kind.count));

/** The levels of the topology, widest groups first: name and groups, each a name, its first node and the number of nodes. */
const levels = data.levels;
const groupAt = (groups, node) => groups.find(([, first, count]) => node >= first && node < first + count);

/** A piece is one job on `count` neighbouring nodes in [start, end), holding the same on each of them. */
const pieces = [];
const jobs = data.jobs.map(([id, user, group, project, queue, submit, walltime, request, running, licenses, changes, segments]) => {
  const job = { id, user: data.texts[user], group: data.texts[group], project: data.texts[project], queue, submit, walltime,
    request: data.texts[request], running: running === 1, licenses: data.texts[licenses], changes: data.texts[changes], nodes: 0, pieces: [] };
  for (const [start, end, runs, part, shrunk] of segments) {
    for (let i = 0; i < runs.length; i += 3) {
      const piece = { job, start, end, first: runs[i], count: runs[i + 1], held: data.held[runs[i + 2]], part: data.texts[part] ?? "",
        shrunk: shrunk === 1 };
      job.pieces.push(piece);
      pieces.push(piece);
    }
  }
  job.start = segments[0][0];
  job.end = segments[segments.length - 1][1];
  return job;
});
const jobById = new Map(jobs.map((job) => [job.id, job]));

/** How much of a node's height a piece takes: its share of the cores (or of what the class has instead). */
const shareOf = (piece) => {
  const kind = data.classes[classOf[piece.first]];
  return kind.basis < 0 ? 0 : Math.min(1, (piece.held[kind.basis] ?? 0) / kind.amounts[kind.basis]);
};

// The pieces on each node, as one flat list: those of node n stand at offsets[n] ... offsets[n + 1].
const offsets = new Int32Array(nodeCount + 1);
for (const piece of pieces) for (let n = 0; n < piece.count; n++) offsets[piece.first + n + 1]++;
for (let n = 0; n < nodeCount; n++) offsets[n + 1] += offsets[n];
const onNode = new Int32Array(offsets[nodeCount]);
const filled = offsets.slice();
pieces.forEach((piece, index) => {
  for (let n = 0; n < piece.count; n++) onNode[filled[piece.first + n]++] = index;
});

const bandsByNode = new Map();
/** Return [{piece, top, bottom}] of one node, top and bottom as shares of its height; jobs that overlap lie in other lanes. */
function bandsOf(node) {
  if (bandsByNode.has(node)) return bandsByNode.get(node);
  const kind = data.classes[classOf[node]];
  const capacity = kind.basis < 0 ? 0 : kind.amounts[kind.basis];
  const lanes = Math.max(1, Math.min(LANES, capacity));
  const freeAt = new Float64Array(lanes).fill(-Infinity);
  const bands = [];
  const here = Array.from(onNode.subarray(offsets[node], offsets[node + 1]), (index) => pieces[index]);
  here.sort((a, b) => a.start - b.start || b.end - a.end);
  for (const piece of here) {
    const wanted = Math.round(shareOf(piece) * lanes);
    // What takes no core (a GPU alone) is a strip along the bottom, over the others.
    if (wanted === 0) { bands.push({ piece, top: 0.85, bottom: 1 }); continue; }
    for (const [from, to] of takeLanes(freeAt, piece, wanted)) bands.push({ piece, top: from / lanes, bottom: to / lanes });
  }
  bandsByNode.set(node, bands);
  return bands;
}

/** Take `wanted` free lanes, together where possible, else the lowest ones; return them as [from, to) ranges. */
function takeLanes(freeAt, piece, wanted) {
  const free = [];
  for (let lane = 0; lane < freeAt.length; lane++) {
    if (freeAt[lane] > piece.start) continue;
    const last = free[free.length - 1];
    if (last && last[1] === lane) last[1]++; else free.push([lane, lane + 1]);
  }
  const whole = free.find(([from, to]) => to - from >= wanted);
  const taken = [];
  for (const [from, to] of whole ? [whole] : free) {
    const length = Math.min(wanted, to - from);
    if (length > 0) taken.push([from, from + length]);
    wanted -= length;
  }
  for (const [from, to] of taken) freeAt.fill(piece.end, from, to);
  return taken.length ? taken : [[0, 1]]; // more is held than the node has: drawn over the others, never hidden
}

// The chart of the nodes: rows of bands or, where rows are too thin, a density; and below it the use of each resource.

let hatch = null;
const drawn = new Set(), named = new Set(); // the jobs that the last drawing shows, and those whose ids it shows

function readColours() {
  const style = getComputedStyle(document.documentElement);
  for (const name of ["page", "raised", "ink", "soft", "line", "grid", "idle", "shut", "use", "mark"]) {
    ink[name] = style.getPropertyValue(`--${name}`).trim();
  }
  report.ink = ink.ink;
  const tile = document.createElement("canvas");
  tile.width = tile.height = 6;
  const ctx = tile.getContext("2d");
  ctx.strokeStyle = ink.page;
  ctx.globalAlpha = 0.6;
  ctx.lineWidth = 1.4;
  for (const shift of [-6, 0, 6]) { ctx.moveTo(shift, 6); ctx.lineTo(shift + 6, 0); }
  ctx.stroke();
  hatch = ctx.createPattern(tile, "repeat");
}

const rgb = (hex) => [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16));
const readableOn = (hex) => { const [r, g, b] = rgb(hex); return 0.3 * r + 0.59 * g + 0.11 * b > 140 ? "#111" : "#fff"; };

function drawPlot() {
  height = Math.max(300, innerHeight - at("plot").getBoundingClientRect().top - scrollY - chartsHeight() - AXIS - Math.max(30, at("keys").offsetHeight + 10));
  const ctx = sized(plot, height + AXIS);
  const isNarrow = at("stage").clientWidth < 600;
  columns = levels.slice(isNarrow ? -1 : -3);
  gutter = (isNarrow ? 84 : 148) + COLUMN * columns.length;
  width = at("stage").clientWidth - gutter - MARGIN;
  ctx.fillStyle = ink.idle;
  ctx.fillRect(gutter, AXIS, width, height);
  drawAxis(ctx, AXIS, height, 12);
  ctx.save();
  ctx.beginPath();
  ctx.rect(gutter, AXIS, width, height);
  ctx.clip();
  drawStates(ctx);
  drawReserved(ctx);
  const rowHeight = height / (view.bottom - view.top);
  drawn.clear();
  named.clear();
  report.view = rowHeight < THIN_ROW ? "density" : "rows";
  if (rowHeight < THIN_ROW) drawDensity(ctx);
  else {
    drawRows(ctx, rowHeight);
    if (folded.size) drawFolded(ctx);
  }
  drawNow(ctx, AXIS, height);
  ctx.restore();
  drawGutter(ctx, rowHeight);
  ctx.strokeStyle = ink.line;
  ctx.strokeRect(gutter - 0.5, AXIS - 0.5, width + 1, height + 1);
  report.jobs = String(jobs.length);
  report.drawn = String(drawn.size);
  report.named = String(named.size);
}

const isVisible = (piece) => piece.end > view.from && piece.start < view.to &&
  rows[piece.first + piece.count] > view.top && rows[piece.first] < view.bottom;

function drawAxis(ctx, top, length, labelY) {
  let last = -Infinity;
  report.ticks = "0";
  ctx.textAlign = "center";
  for (const { time, label, strong } of ticks()) {
    const x = Math.round(xOf(time)) + 0.5;
    ctx.strokeStyle = strong ? ink.line : ink.grid;
    ctx.beginPath();
    ctx.moveTo(x, top);
    ctx.lineTo(x, top + length);
    ctx.stroke();
    ctx.fillStyle = strong ? ink.ink : ink.soft;
    if (x < gutter || x > gutter + width) continue;
    const half = ctx.measureText(label).width / 2, middle = Math.min(Math.max(x, gutter + half), gutter + width - half);
    if (middle - half < last + 6) continue;
    ctx.fillText(label, middle, labelY);
    last = middle + half;
    report.ticks = String(Number(report.ticks ?? 0) + 1);
  }
}

function drawNow(ctx, top, length) {
  const x = Math.round(xOf(data.now)) + 0.5;
  ctx.strokeStyle = ink.mark;
  ctx.lineWidth = 1.5;
  ctx.setLineDash([5, 3]);
  ctx.beginPath();
  ctx.moveTo(x, top);
  ctx.lineTo(x, top + length);
  ctx.stroke();
  ctx.setLineDash([]);
  ctx.lineWidth = 1;
}

function drawStates(ctx) {
  for (const kind of data.classes) {
    if (kind.state === "up") continue;
    const top = yOf(kind.first);
    ctx.fillStyle = ink.shut;
    ctx.fillRect(gutter, top, width, yOf(kind.first + kind.count) - top);
  }
}

function drawReserved(ctx) {
  for (const [, start, end, runs] of data.reserved) {
    for (let i = 0; i < runs.length; i += 3) {
      const [x, y] = [xOf(start), yOf(runs[i])];
      ctx.fillStyle = ink.shut;
      ctx.fillRect(x, y, xOf(end) - x, yOf(runs[i] + runs[i + 1]) - y);
      ctx.fillStyle = hatch;
      ctx.fillRect(x, y, xOf(end) - x, yOf(runs[i] + runs[i + 1]) - y);
    }
  }
}

function drawRows(ctx, rowHeight) {
  const gap = rowHeight >= 4 ? 0.8 : 0, outlines = [];
  for (let node = Math.floor(nodeIn(view.top)); node < Math.min(nodeCount, Math.ceil(nodeIn(view.bottom))); node++) {
    if (foldOf[node]) continue;
    const top = yOf(node), inner = rowHeight - gap;
    for (const { piece, top: from, bottom: to } of bandsOf(node)) {
      if (piece.end <= view.from || piece.start >= view.to) continue;
      const left = Math.max(xOf(piece.start), gutter - 4), right = Math.min(xOf(piece.end), gutter + width + 4);
      const seam = right - left > 3 ? 0.8 : 0, thick = inner * (to - from);
      const box = [left, top + inner * from, Math.max(0.8, right - left - seam), Math.max(0.8, thick - (thick > 4 ? 0.8 : 0))];
      drawBox(ctx, piece, box);
      if (piece.job === chosen) outlines.push(box);
    }
  }
  outline(ctx, outlines);
  if (rowHeight - gap < LEAST_FONT) drawNamesAcross(ctx);
}

/** Draw how much of each folded group is in use. */
function drawFolded(ctx) {
  ctx.save();
  ctx.beginPath();
  for (const [, start, count] of folded) ctx.rect(gutter, yOf(start), width, yOf(start + count) - yOf(start) - 0.8);
  ctx.clip();
  drawDensity(ctx);
  ctx.restore();
}

/** While some jobs are looked for or one is selected, all others step back. */
const isFaded = (job) => job !== chosen && (matched ? !matched.has(job) : chosen !== null);

/** How strong the colour is of a piece on a share of its cores, and of running jobs where they cannot be hatched. */
const SHRUNK = 0.5, RUNNING = 0.6;

function drawBox(ctx, { job, shrunk }, [x, y, w, h]) {
  drawn.add(job);
  ctx.globalAlpha = isFaded(job) ? 0.16 : 1;
  ctx.fillStyle = ink.page;
  if (shrunk) { ctx.fillRect(x, y, w, h); ctx.globalAlpha *= SHRUNK; }
  ctx.fillStyle = colourOf(job.queue);
  ctx.fillRect(x, y, w, h);
  if (shrunk) { ctx.strokeStyle = colourOf(job.queue); ctx.globalAlpha /= SHRUNK; ctx.strokeRect(x + 0.5, y + 0.5, w - 1, h - 1); }
  if (job.running) { ctx.fillStyle = hatch; ctx.fillRect(x, y, w, h); }
  ctx.globalAlpha = 1;
  if (h >= LEAST_FONT && !isFaded(job)) drawName(ctx, job, [x, y, w, h]);
}

/** Pixels of the smallest letters. */
const LEAST_FONT = 7;

/** Write the id of a job into its box, cut where that is too narrow, or not at all. */
function drawName(ctx, job, [x, y, w, h]) {
  const size = Math.min(11, Math.floor(h)), left = Math.max(x, gutter), room = Math.floor((x + w - left - 8) / (0.6 * size));
  if (room < 3 && job.id.length > room) return;
  const text = job.id.length > room ? `${job.id.slice(0, room - 1)}…` : job.id, middle = y + h / 2 + 0.5;
  ctx.font = FONT(size);
  ctx.textAlign = "left";
  // over the seams between rows
  ctx.strokeStyle = colourOf(job.queue);
  ctx.lineWidth = 3;
  ctx.strokeText(text, left + 4, middle);
  ctx.lineWidth = 1;
  ctx.fillStyle = readableOn(colourOf(job.queue));
  ctx.fillText(text, left + 4, middle);
  ctx.font = FONT(11);
  named.add(job);
}

/** Where rows are too thin for names, a job that fills several of them has its name across these. */
function drawNamesAcross(ctx) {
  for (const piece of pieces) {
    if (!isVisible(piece) || yOf(piece.first + piece.count) - yOf(piece.first) < 11 || shareOf(piece) < 0.9 || isFaded(piece.job)) continue;
    drawName(ctx, piece.job, [xOf(piece.start), yOf(piece.first), xOf(piece.end) - xOf(piece.start), yOf(piece.first + piece.count) - yOf(piece.first)]);
  }
}

function outline(ctx, boxes) {
  ctx.strokeStyle = ink.mark;
  ctx.lineWidth = 2;
  for (const [x, y, w, h] of boxes) ctx.strokeRect(x, y, Math.max(w, 2), Math.max(h, 2));
  ctx.lineWidth = 1;
}

// Rows thinner than a pixel: each pixel gets the mean of what lies under it, by queue, so that nothing flickers or hides.
const layers = new Map();
for (const piece of pieces) {
  const strength = (piece.job.running ? RUNNING : 1) * (piece.shrunk ? SHRUNK : 1);
  const key = `${colourOf(piece.job.queue)} ${strength}`;
  if (!layers.has(key)) layers.set(key, { colour: rgb(colourOf(piece.job.queue)), strength, pieces: [] });
  layers.get(key).pieces.push(piece);
}

function drawDensity(ctx) {
  const columns = Math.ceil(width), rows = Math.ceil(height), stride = columns + 2;
  const sums = [0, 1, 2, 3].map(() => new Float32Array(columns * rows));
  const slopes = new Float64Array(stride * (rows + 2));
  for (const layer of layers.values()) {
    slopes.fill(0);
    for (const piece of layer.pieces) if (isVisible(piece)) addBox(slopes, stride, columns, rows, piece);
    addLayer(sums, slopes, stride, columns, rows, layer);
  }
  const image = document.createElement("canvas");
  image.width = columns;
  image.height = rows;
  image.getContext("2d").putImageData(blend(sums, columns, rows), 0, 0);
  ctx.globalAlpha = matched || chosen ? 0.2 : 1;
  ctx.drawImage(image, gutter, AXIS);
  drawSeams(ctx);
  ctx.globalAlpha = 1;
  for (const job of new Set([...matched ?? [], ...chosen ? [chosen] : []])) {
    ctx.fillStyle = colourOf(job.queue);
    for (const box of boxesOf(job)) ctx.fillRect(...box);
  }
  if (chosen) outline(ctx, boxesOf(chosen));
}

/** Part jobs of one colour from each other, where they are large enough to be seen as such. */
function drawSeams(ctx) {
  ctx.strokeStyle = ink.idle;
  ctx.lineWidth = 0.8;
  for (const piece of pieces) {
    if (!isVisible(piece)) continue;
    const x = xOf(piece.start), y = yOf(piece.first), w = xOf(piece.end) - x, h = yOf(piece.first + piece.count) - y;
    if (w >= 5 && h >= 4) ctx.strokeRect(x, y, w, h);
  }
  ctx.lineWidth = 1;
}

const boxesOf = (job) => job.pieces.filter(isVisible).map((piece) => {
  const [x, y] = [xOf(piece.start), yOf(piece.first)];
  return [x, y, Math.max(1.5, xOf(piece.end) - x), Math.max(1.5, yOf(piece.first + piece.count) - y)];
});

/** Add one box to a field of slopes whose running sums (along x, then y) are the share of each pixel that is covered. */
function addBox(slopes, stride, columns, rows, piece) {
  drawn.add(piece.job);
  const clamp = (value, most) => Math.min(Math.max(value, 0), most);
  const across = edges(clamp(xOf(piece.start) - gutter, columns), clamp(xOf(piece.end) - gutter, columns));
  const down = edges(clamp(yOf(piece.first) - AXIS, rows), clamp(yOf(piece.first + piece.count) - AXIS, rows));
  const share = Math.max(shareOf(piece), 1 / LANES);
  for (let j = 0; j < 8; j += 2) {
    for (let i = 0; i < 8; i += 2) slopes[down[j] * stride + across[i]] += share * down[j + 1] * across[i + 1];
  }
}

/** The slope of the coverage of [from, to) as four (cell, change) pairs, edges counted by the part they cover. */
function edges(from, to) {
  const i = Math.floor(from), j = Math.floor(to);
  return [i, i + 1 - from, i + 1, from - i, j, to - j - 1, j + 1, j - to];
}

function addLayer([red, green, blue, cover], slopes, stride, columns, rows, { colour: [r, g, b], strength }) {
  const above = new Float64Array(columns);
  for (let y = 0, pixel = 0; y < rows; y++) {
    let slope = 0;
    for (let x = 0; x < columns; x++, pixel++) {
      slope += slopes[y * stride + x];
      above[x] += slope;
      const share = above[x] * strength;
      if (share < 1e-6) continue;
      red[pixel] += share * r;
      green[pixel] += share * g;
      blue[pixel] += share * b;
      cover[pixel] += share;
    }
  }
}

function blend([red, green, blue, cover], columns, rows) {
  const image = new ImageData(columns, rows), out = image.data;
  for (let pixel = 0; pixel < cover.length; pixel++) {
    const share = cover[pixel];
    if (share === 0) continue;
    out[4 * pixel] = red[pixel] / share;
    out[4 * pixel + 1] = green[pixel] / share;
    out[4 * pixel + 2] = blue[pixel] / share;
    out[4 * pixel + 3] = 255 * Math.min(1, share);
  }
  return image;
}

function drawGutter(ctx, rowHeight) {
  ctx.save();
  ctx.beginPath();
  ctx.rect(0, AXIS, gutter, height);
  ctx.clip();
  const every = rowHeight >= 11 ? 1 : [2, 4, 8, 16, 32, 50, 100, 200, 500, 1000].find((n) => n * rowHeight >= 14) ??
    1000 * Math.ceil(14 / rowHeight / 1000);
  const names = COLUMN * (1 + columns.length);
  let last = -Infinity;
  columns.forEach(([, groups], column) => groups.forEach(([name, first, count], index) => {
    drawSpan(ctx, COLUMN * column, first, count, index, [name]);
  }));
  data.classes.forEach((kind, index) => {
    const top = Math.max(yOf(kind.first), AXIS), bottom = Math.min(yOf(kind.first + kind.count), AXIS + height);
    if (bottom <= top) return;
    const label = [kind.count > 1 ? `${number(kind.count)} nodes` : "1 node", amounts(kind.amounts), kind.state === "up" ? "" : kind.state];
    drawSpan(ctx, names - COLUMN, kind.first, kind.count, index, [label.filter(Boolean).join(" · "), label[0]]);
    ctx.textAlign = "right";
    ctx.fillStyle = ink.soft;
    const from = Math.max(kind.first, kind.first + Math.floor((nodeIn(view.top) - kind.first) / every) * every);
    for (let node = from; node < Math.min(kind.first + kind.count, nodeIn(view.bottom) + 1); node += every) {
      if (foldOf[node] && foldOf[node][1] !== node) continue;
      const y = yOf(node) + (every === 1 ? rowHeight / 2 : 6);
      if ((!foldOf[node] && y + 4 > bottom) || y - last < 11) continue;
      ctx.fillText(shortened(foldOf[node]?.[0] ?? data.nodes[node], Math.floor((gutter - names - 12) / 7)), gutter - 7, y);
      last = y;
    }
  });
  ctx.restore();
}

const shortened = (text, most) => (text.length > most ? `${text.slice(0, most - 1)}…` : text);

/** Draw some nodes of one class or group as a part of a column, with the first of some labels that has room. */
function drawSpan(ctx, left, first, count, index, labels) {
  const top = Math.max(yOf(first), AXIS), bottom = Math.min(yOf(first + count), AXIS + height);
  if (bottom <= top) return;
  ctx.fillStyle = index % 2 ? ink.line : ink.raised;
  ctx.fillRect(left, top, COLUMN, bottom - top);
  if (first > 0 && top > AXIS) { ctx.fillStyle = ink.line; ctx.fillRect(left, top, gutter + width - left, 1); }
  const text = labels.find((label) => ctx.measureText(label).width <= bottom - top - 6);
  if (!text) return;
  ctx.save();
  ctx.translate(left + 8.5, (top + bottom) / 2);
  ctx.rotate(-Math.PI / 2);
  ctx.textAlign = "center";
  ctx.fillStyle = ink.ink;
  ctx.fillText(text, 0, 0);
  ctx.restore();
}

const shown = data.resources.filter(({ total, amounts: used }) => total > 0 || used.some((value) => value > 0));
const chartsHeight = () => shown.length * (CHART + CHART_GAP) + AXIS;

/** What is used up to each change of a series (amount x seconds): means over any time are differences of it. */
const areas = shown.map(({ times, amounts: used }) => {
  const sums = [0];
  for (let i = 1; i < times.length; i++) sums.push(sums[i - 1] + used[i - 1] * (times[i] - times[i - 1]));
  return sums;
});

/** Index of the last time that is not after `time`, or -1. */
function stepAt(times, time) {
  let low = 0, high = times.length;
  while (low < high) { const middle = (low + high) >> 1; if (times[middle] <= time) low = middle + 1; else high = middle; }
  return low - 1;
}

function areaUntil(index, time) {
  const { times, amounts: used } = shown[index], i = stepAt(times, time);
  return i < 0 ? 0 : areas[index][i] + used[i] * (time - times[i]);
}

function drawCharts() {
  const ctx = sized(charts, chartsHeight());
  drawAxis(ctx, 0, chartsHeight() - AXIS + 3, chartsHeight() - 12);
  shown.forEach((resource, index) => drawChart(ctx, resource, index, CHART_GAP + index * (CHART + CHART_GAP)));
  ctx.save();
  ctx.beginPath();
  ctx.rect(gutter, 0, width, chartsHeight() - AXIS);
  ctx.clip();
  drawNow(ctx, 0, chartsHeight() - AXIS);
  ctx.restore();
}

function drawChart(ctx, { name, total, mean, times, amounts: used }, index, top) {
  const most = Math.max(total, used.reduce((a, b) => Math.max(a, b), 0), 1), bottom = top + CHART;
  ctx.fillStyle = ink.use;
  let before = areaUntil(index, timeAt(gutter));
  for (let x = 0; x < width; x++) {
    const until = areaUntil(index, timeAt(gutter + x + 1));
    const height = (until - before) / (view.to - view.from) * width / most * CHART;
    ctx.fillRect(gutter + x, bottom - height, 1, height);
    before = until;
  }
  ctx.fillStyle = ink.line;
  ctx.fillRect(gutter, bottom, width, 1);
  ctx.fillRect(gutter, Math.round(bottom - total / most * CHART), width, 1);
  ctx.textAlign = "right";
  ctx.fillStyle = ink.ink;
  ctx.fillText(shortened(name, Math.floor((gutter - 20) / 7)), gutter - 7, top + 9);
  ctx.fillStyle = ink.soft;
  if (hoverTime === null) {
    ctx.fillText(amount(name, total), gutter - 7, top + 25);
    if (mean !== null) ctx.fillText(`mean ${Math.round(mean * 100)} %`, gutter - 7, top + 40);
    return;
  }
  const i = stepAt(times, hoverTime), now = i < 0 ? 0 : used[i];
  ctx.fillText(`${amount(name, now)} of ${amount(name, total)}`, gutter - 7, top + 25, gutter - 9);
  if (total) ctx.fillText(`${Math.round(now / total * 100)} %`, gutter - 7, top + 40);
}

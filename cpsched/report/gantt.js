"use strict";
// Draws one plan. Outside names reach the page through textContent and canvas text only, never as markup.
// Order: self-report, model, view, drawing, charts, details, input. The page says in <html data-...> what it drew.

const report = document.documentElement.dataset;
report.errors = "0";
addEventListener("error", (event) => {
  report.errors = String(Number(report.errors) + 1);
  const fault = document.getElementById("fault");
  fault.textContent = `The chart could not be drawn completely: ${event.message}`;
  fault.hidden = false;
});

(() => {
  const at = (id) => document.getElementById(id);
  const data = JSON.parse(at("data").textContent);

  // ---- model -------------------------------------------------------------------------------------------------------
  // Paul Tol's "bright" scheme and three of his "vibrant" one: told apart with all common colour visions.
  const PALETTE = ["#4477aa", "#ee6677", "#228833", "#ccbb44", "#66ccee", "#aa3377", "#ee7733", "#009988", "#bb9977"];
  const OTHERS = "#9aa0a8"; // all queues beyond the palette
  const LANES = 96; // the finest split of one node's height
  const nodeCount = data.nodes.length;
  const colourOf = (queue) => PALETTE[queue] ?? OTHERS;

  const classOf = new Int32Array(nodeCount);
  data.classes.forEach((kind, index) => classOf.fill(index, kind.first, kind.first + kind.count));

  /** A piece is one job on `count` neighbouring nodes in [start, end), holding the same on each of them. */
  const pieces = [];
  const jobs = data.jobs.map(([id, user, group, project, queue, submit, walltime, request, running, licenses, segments]) => {
    const job = { id, user: data.texts[user], group: data.texts[group], project: data.texts[project], queue, submit, walltime,
      request: data.texts[request], running: running === 1, licenses: data.texts[licenses], nodes: 0, pieces: [] };
    for (const [start, end, runs] of segments) {
      for (let i = 0; i < runs.length; i += 3) {
        const piece = { job, start, end, first: runs[i], count: runs[i + 1], held: data.held[runs[i + 2]] };
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

  // ---- view --------------------------------------------------------------------------------------------------------
  const GUTTER = 148, AXIS = 26, MARGIN = 12, CHART = 46, CHART_GAP = 8, THIN_ROW = 3;
  const plot = at("plot"), charts = at("charts");
  const span = Math.max(60, data.end - data.now);
  const all = { from: data.now - span * 0.03, to: data.end + span * 0.02, top: 0, bottom: nodeCount };
  const view = { ...all };
  const first = jobs.reduce((least, job) => Math.min(least, job.start), all.from);
  let width = 0, height = 0, matched = null, chosen = null, hoverTime = null, ink = {};

  const xOf = (time) => GUTTER + (time - view.from) / (view.to - view.from) * width;
  const timeAt = (x) => view.from + (x - GUTTER) / width * (view.to - view.from);
  const yOf = (node) => AXIS + (node - view.top) / (view.bottom - view.top) * height;
  const nodeAt = (y) => view.top + (y - AXIS) / height * (view.bottom - view.top);

  function keepInside() {
    const longest = (all.to - first) * 1.5, most = nodeCount;
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

  /** Give a canvas the size it has on the screen, in the screen's own pixels; return its context in CSS pixels. */
  function sized(canvas, cssHeight) {
    const ratio = devicePixelRatio || 1, cssWidth = at("stage").clientWidth;
    canvas.style.height = `${cssHeight}px`;
    canvas.width = Math.round(cssWidth * ratio);
    canvas.height = Math.round(cssHeight * ratio);
    const ctx = canvas.getContext("2d");
    ctx.setTransform(ratio, 0, 0, ratio, 0, 0);
    ctx.font = "11px system-ui, 'DejaVu Sans', sans-serif";
    ctx.textBaseline = "middle";
    return ctx;
  }

  // ---- words -------------------------------------------------------------------------------------------------------
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

  /** Return [{time, label, strong}]: about one tick per 90 pixels, at full minutes, hours and days. */
  function ticks() {
    const least = (view.to - view.from) / Math.max(1, width / 90);
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
    if (midnight) return { label: `${DAYS[d.getUTCDay()]} ${two(d.getUTCMonth() + 1)}-${two(d.getUTCDate())}`, strong: step < 86400 };
    const clock = `${two(d.getUTCHours())}:${two(d.getUTCMinutes())}`;
    return { label: step < 60 ? `${clock}:${two(d.getUTCSeconds())}` : clock, strong: false };
  }

  // ---- drawing -----------------------------------------------------------------------------------------------------
  let hatch = null;

  function readColours() {
    const style = getComputedStyle(document.documentElement);
    for (const name of ["page", "raised", "ink", "soft", "line", "grid", "idle", "shut", "use", "mark"]) {
      ink[name] = style.getPropertyValue(`--${name}`).trim();
    }
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
    height = Math.max(300, innerHeight - at("plot").getBoundingClientRect().top - scrollY - chartsHeight() - AXIS - 30);
    const ctx = sized(plot, height + AXIS);
    width = at("stage").clientWidth - GUTTER - MARGIN;
    ctx.fillStyle = ink.idle;
    ctx.fillRect(GUTTER, AXIS, width, height);
    drawAxis(ctx, AXIS, height, 12);
    ctx.save();
    ctx.beginPath();
    ctx.rect(GUTTER, AXIS, width, height);
    ctx.clip();
    drawStates(ctx);
    drawReserved(ctx);
    const rowHeight = height / (view.bottom - view.top);
    report.view = rowHeight < THIN_ROW ? "density" : "rows";
    if (rowHeight < THIN_ROW) drawDensity(ctx); else drawRows(ctx, rowHeight);
    drawNow(ctx, AXIS, height);
    ctx.restore();
    drawGutter(ctx, rowHeight);
    ctx.strokeStyle = ink.line;
    ctx.strokeRect(GUTTER - 0.5, AXIS - 0.5, width + 1, height + 1);
    report.jobs = String(jobs.length);
    report.drawn = String(new Set(drawnPieces()).size);
  }

  /** The jobs that the drawing shows a piece of. */
  function* drawnPieces() {
    for (const piece of pieces) if (isVisible(piece)) yield piece.job;
  }

  const isVisible = (piece) => piece.end > view.from && piece.start < view.to &&
    piece.first + piece.count > view.top && piece.first < view.bottom;

  function drawAxis(ctx, top, length, labelY) {
    ctx.textAlign = "center";
    for (const { time, label, strong } of ticks()) {
      const x = Math.round(xOf(time)) + 0.5;
      ctx.strokeStyle = strong ? ink.line : ink.grid;
      ctx.beginPath();
      ctx.moveTo(x, top);
      ctx.lineTo(x, top + length);
      ctx.stroke();
      ctx.fillStyle = strong ? ink.ink : ink.soft;
      if (x > GUTTER + 10 && x < GUTTER + width - 14) ctx.fillText(label, x, labelY);
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
      ctx.fillRect(GUTTER, top, width, yOf(kind.first + kind.count) - top);
    }
  }

  function drawReserved(ctx) {
    for (const [, , start, end, runs] of data.reserved) {
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
    const gap = rowHeight >= 6 ? 1 : 0, outlines = [];
    for (let node = Math.floor(view.top); node < Math.min(nodeCount, Math.ceil(view.bottom)); node++) {
      const top = yOf(node), inner = rowHeight - gap;
      for (const { piece, top: from, bottom: to } of bandsOf(node)) {
        if (piece.end <= view.from || piece.start >= view.to) continue;
        const left = Math.max(xOf(piece.start), GUTTER - 4), right = Math.min(xOf(piece.end), GUTTER + width + 4);
        const seam = right - left > 3 ? 0.8 : 0, thick = inner * (to - from);
        const box = [left, top + inner * from, Math.max(0.8, right - left - seam), Math.max(0.8, thick - (thick > 4 ? 0.8 : 0))];
        drawBox(ctx, piece.job, box);
        if (piece.job === chosen) outlines.push(box);
      }
    }
    outline(ctx, outlines);
  }

  function drawBox(ctx, job, [x, y, w, h]) {
    ctx.globalAlpha = matched && !matched.has(job) ? 0.14 : 1;
    ctx.fillStyle = colourOf(job.queue);
    ctx.fillRect(x, y, w, h);
    if (job.running) { ctx.fillStyle = hatch; ctx.fillRect(x, y, w, h); }
    if (h >= 11 && w >= 34) {
      const room = Math.floor((w - 8) / 6.6);
      ctx.fillStyle = readableOn(colourOf(job.queue));
      ctx.textAlign = "left";
      ctx.fillText(job.id.length > room ? `${job.id.slice(0, Math.max(1, room - 1))}…` : job.id, Math.max(x, GUTTER) + 4, y + h / 2 + 0.5);
    }
    ctx.globalAlpha = 1;
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
    const key = `${colourOf(piece.job.queue)}${piece.job.running ? "r" : ""}`;
    if (!layers.has(key)) layers.set(key, { colour: rgb(colourOf(piece.job.queue)), strength: piece.job.running ? 0.6 : 1, pieces: [] });
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
    ctx.globalAlpha = matched ? 0.2 : 1;
    ctx.drawImage(image, GUTTER, AXIS);
    ctx.globalAlpha = 1;
    for (const job of matched ?? []) {
      ctx.fillStyle = colourOf(job.queue);
      for (const box of boxesOf(job)) ctx.fillRect(...box);
    }
    if (chosen) outline(ctx, boxesOf(chosen));
  }

  const boxesOf = (job) => job.pieces.filter(isVisible).map((piece) => {
    const [x, y] = [xOf(piece.start), yOf(piece.first)];
    return [x, y, Math.max(1.5, xOf(piece.end) - x), Math.max(1.5, yOf(piece.first + piece.count) - y)];
  });

  /** Add one box to a field of slopes whose running sums (along x, then y) are the share of each pixel that is covered. */
  function addBox(slopes, stride, columns, rows, piece) {
    const clamp = (value, most) => Math.min(Math.max(value, 0), most);
    const across = edges(clamp(xOf(piece.start) - GUTTER, columns), clamp(xOf(piece.end) - GUTTER, columns));
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
    ctx.rect(0, AXIS, GUTTER, height);
    ctx.clip();
    const every = rowHeight >= 11 ? 1 : [2, 4, 8, 16, 32, 50, 100, 200, 500, 1000].find((n) => n * rowHeight >= 14) ??
      1000 * Math.ceil(14 / rowHeight / 1000);
    data.classes.forEach((kind, index) => {
      const top = Math.max(yOf(kind.first), AXIS), bottom = Math.min(yOf(kind.first + kind.count), AXIS + height);
      if (bottom <= top) return;
      drawClass(ctx, kind, index, top, bottom);
      ctx.textAlign = "right";
      ctx.fillStyle = ink.soft;
      const from = Math.max(kind.first, kind.first + Math.floor((view.top - kind.first) / every) * every);
      for (let node = from; node < Math.min(kind.first + kind.count, view.bottom + 1); node += every) {
        const y = yOf(node) + (every === 1 ? rowHeight / 2 : 6);
        if (y + 5 < bottom + 1) ctx.fillText(shortened(data.nodes[node], 17), GUTTER - 7, y);
      }
    });
    ctx.restore();
  }

  const shortened = (text, most) => (text.length > most ? `${text.slice(0, most - 1)}…` : text);

  function drawClass(ctx, kind, index, top, bottom) {
    ctx.fillStyle = index % 2 ? ink.line : ink.raised;
    ctx.fillRect(0, top, 16, bottom - top);
    if (kind.first > 0 && top > AXIS) { ctx.fillStyle = ink.line; ctx.fillRect(0, top, GUTTER + width, 1); }
    const label = [kind.count > 1 ? `${number(kind.count)} nodes` : "1 node", amounts(kind.amounts), kind.state === "up" ? "" : kind.state];
    for (const text of [label.filter(Boolean).join(" · "), label[0]]) {
      if (ctx.measureText(text).width > bottom - top - 6) continue;
      ctx.save();
      ctx.translate(8.5, (top + bottom) / 2);
      ctx.rotate(-Math.PI / 2);
      ctx.textAlign = "center";
      ctx.fillStyle = ink.ink;
      ctx.fillText(text, 0, 0);
      ctx.restore();
      return;
    }
  }

  // ---- charts ------------------------------------------------------------------------------------------------------
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
    ctx.rect(GUTTER, 0, width, chartsHeight() - AXIS);
    ctx.clip();
    drawNow(ctx, 0, chartsHeight() - AXIS);
    ctx.restore();
  }

  function drawChart(ctx, { name, total, times, amounts: used }, index, top) {
    const most = Math.max(total, used.reduce((a, b) => Math.max(a, b), 0), 1), bottom = top + CHART;
    ctx.fillStyle = ink.use;
    let before = areaUntil(index, timeAt(GUTTER));
    for (let x = 0; x < width; x++) {
      const until = areaUntil(index, timeAt(GUTTER + x + 1));
      const mean = (until - before) / (view.to - view.from) * width;
      ctx.fillRect(GUTTER + x, bottom - mean / most * CHART, 1, mean / most * CHART);
      before = until;
    }
    ctx.fillStyle = ink.line;
    ctx.fillRect(GUTTER, bottom, width, 1);
    ctx.fillRect(GUTTER, Math.round(bottom - total / most * CHART), width, 1);
    ctx.textAlign = "right";
    ctx.fillStyle = ink.ink;
    ctx.fillText(shortened(name, 18), GUTTER - 7, top + 9);
    ctx.fillStyle = ink.soft;
    const i = hoverTime === null ? -1 : stepAt(times, hoverTime);
    const here = hoverTime === null ? "" : `${amount(name, i < 0 ? 0 : used[i])} of `;
    ctx.fillText(here + amount(name, total), GUTTER - 7, top + 25);
    if (here && total) ctx.fillText(`${Math.round((i < 0 ? 0 : used[i]) / total * 100)} %`, GUTTER - 7, top + 40);
  }

  // ---- details -----------------------------------------------------------------------------------------------------
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
    ["request", job.request], ["licences", job.licenses],
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

  // ---- input -------------------------------------------------------------------------------------------------------
  /** The job under a point, on that node, with two pixels of patience beside jobs that are thin. */
  function hit(x, y) {
    const row = nodeAt(y), node = Math.floor(row), time = timeAt(x), patience = 2 * (view.to - view.from) / width;
    if (x < GUTTER || y < AXIS || node < 0 || node >= nodeCount) return null;
    let best = null, least = patience;
    for (const band of bandsOf(node)) {
      if (row - node < band.top || row - node > band.bottom) continue;
      const away = Math.max(0, band.piece.start - time, time - band.piece.end);
      if (away < least || (away === 0 && !best)) { best = band.piece; least = away; }
    }
    return best && { job: best.job, piece: best, node };
  }

  function hover(event) {
    const box = plot.getBoundingClientRect(), x = event.clientX - box.left, y = event.clientY - box.top;
    hoverTime = x >= GUTTER && x <= GUTTER + width ? timeAt(x) : null;
    at("cursor").hidden = hoverTime === null;
    at("cursor").style.left = `${x}px`;
    drawCharts();
    const found = event.currentTarget === plot ? hit(x, y) : null, node = Math.floor(nodeAt(y));
    if (found) {
      showTip(x, y, `Job ${found.job.id}`, [...facts(found.job), ["nodes", nodesOf(found.job, 3)],
        [`on ${data.nodes[found.node]}`, amounts(found.piece.held)]]);
    } else if (event.currentTarget === plot && x < GUTTER && y > AXIS && node >= 0 && node < nodeCount) {
      const kind = data.classes[classOf[node]];
      showTip(x, y, data.nodes[node], [["has", amounts(kind.amounts)], ["state", kind.state], ["properties", kind.properties],
        ["like it", `${number(kind.count)} nodes`]]);
    } else at("tip").hidden = true;
  }

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
      if (canvas === plot && drag && !drag.moved) chooseAndLink(hit(event.clientX - box.left, event.clientY - box.top)?.job ?? null);
      drag = null;
    });
    canvas.addEventListener("pointercancel", () => { drag = null; });
    canvas.addEventListener("pointerleave", leave);
    canvas.addEventListener("dblclick", () => { Object.assign(view, all); refresh(); });
    canvas.addEventListener("wheel", (event) => {
      event.preventDefault();
      const box = canvas.getBoundingClientRect(), x = event.clientX - box.left;
      const factor = Math.exp(Math.max(-60, Math.min(60, event.deltaY || event.deltaX)) * 0.004);
      if (canvas === plot && (event.shiftKey || x < GUTTER)) zoomNodes(factor, nodeAt(event.clientY - box.top));
      else zoomTime(factor, timeAt(Math.max(x, GUTTER)));
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

  // ---- the page ----------------------------------------------------------------------------------------------------
  function fillTable(section, head, rows) {
    section.hidden = rows.length === 0;
    const row = (cells, tag) => { const made = element("tr", ""); made.append(...cells.map((text) => element(tag, text))); return made; };
    section.querySelector("table").replaceChildren(row(head, "th"), ...rows.map((cells) => row(cells, "td")));
  }

  function drawLegend() {
    const entries = data.queues.slice(0, PALETTE.length).map((name, queue) => [name, colourOf(queue), false]);
    if (data.queues.length > PALETTE.length) entries.push([`${data.queues.length - PALETTE.length} other queues`, OTHERS, false]);
    if (jobs.some((job) => job.running)) entries.push(["running", ink.soft, true]);
    at("legend").replaceChildren(...entries.map(([name, colour, running]) => {
      const item = element("li", ""), swatch = document.createElement("canvas");
      swatch.width = swatch.height = 14;
      const ctx = swatch.getContext("2d");
      for (const style of running ? [colour, hatch] : [colour]) { ctx.fillStyle = style; ctx.fillRect(0, 0, 14, 14); }
      item.append(swatch, element("span", name));
      return item;
    }));
  }

  function restyle() {
    readColours();
    drawLegend();
    refresh();
  }

  at("name").textContent = data.name;
  at("sentence").textContent = data.sentence;
  at("facts").replaceChildren(...data.facts.map(([label, value]) => {
    const card = element("div", "");
    card.append(element("dt", label), element("dd", value));
    return card;
  }));
  plot.setAttribute("aria-label", `Gantt chart of ${number(jobs.length)} jobs on ${number(nodeCount)} nodes`);
  charts.setAttribute("aria-label", `Use over time of ${shown.map(({ name }) => name).join(", ")}`);
  fillTable(at("waits"), ["queue", "jobs", "mean", "median", "longest"], data.waits);
  fillTable(at("room"), ["job", "reason", "detail"], data.waiting);
  restyle();
  drawPlot();
  drawCharts();
  followLink();
  addEventListener("hashchange", followLink);
  addEventListener("resize", refresh);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", restyle);
  report.ready = "yes";
})();

// How the plan was found: the value of the best plan over the seconds of work, a dot for each who found a better one, and
// the proven bound below.

const TRACK_HEIGHT = 190, TRACK_LEFT = 78, TRACK_RIGHT = 14, TRACK_TOP = 14, TRACK_BOTTOM = 24;
const finders = [...new Set(data.found.map(([, , , by]) => by))];

function drawTrack() {
  if (!data.found.length) return;
  const canvas = at("track"), trackWidth = canvas.parentElement.clientWidth;
  const ctx = sized(canvas, TRACK_HEIGHT, trackWidth);
  canvas.style.width = `${trackWidth}px`;
  const values = data.found.map(([, value]) => value);
  const best = Math.min(...values), most = Math.max(...values), least = Math.min(best, data.bound ? data.bound[0] : best);
  const room = most - least || Math.abs(most) || 1;
  const last = Math.max(data.elapsed, ...data.found.map(([after]) => after)) || 1;
  const right = trackWidth - TRACK_RIGHT, bottom = TRACK_HEIGHT - TRACK_BOTTOM;
  const xAt = (after) => TRACK_LEFT + after / last * (right - TRACK_LEFT);
  const yAt = (value) => bottom - 8 - (value - least) / room * (bottom - 8 - TRACK_TOP);
  ctx.fillStyle = ink.idle;
  ctx.fillRect(TRACK_LEFT, TRACK_TOP - 8, right - TRACK_LEFT, bottom - TRACK_TOP + 8);
  drawSeconds(ctx, last, xAt, bottom);
  drawLevel(ctx, yAt(data.found[0][1]), data.found[0][2], right, ink.grid);
  if (data.bound) drawLevel(ctx, yAt(data.bound[0]), `bound ${data.bound[1]}`, right, ink.mark);
  const end = data.found.reduce((one, other) => (other[1] < one[1] ? other : one));
  if (yAt(end[1]) - yAt(most) > 13 && (!data.bound || yAt(data.bound[0]) - yAt(end[1]) > 13)) drawLevel(ctx, yAt(end[1]), end[2], right, ink.grid);
  drawSteps(ctx, xAt, yAt, right);
  ctx.strokeStyle = ink.line;
  ctx.strokeRect(TRACK_LEFT - 0.5, TRACK_TOP - 8.5, right - TRACK_LEFT + 1, bottom - TRACK_TOP + 9);
  report.found = String(data.found.length);
}

function drawSeconds(ctx, last, xAt, bottom) {
  const step = [1, 2, 5].flatMap((n) => [-3, -2, -1, 0, 1, 2, 3, 4, 5].map((power) => n * 10 ** power))
    .sort((a, b) => a - b).find((length) => last / length <= 6) ?? last;
  ctx.fillStyle = ink.soft;
  ctx.textAlign = "center";
  for (let tick = 0; tick * step <= last * 1.0001; tick++) {
    ctx.fillText(`${number(Number((tick * step).toPrecision(6)))} s`, xAt(tick * step), bottom + 12);
  }
}

/** A line across, dashed, with its value at the left. */
function drawLevel(ctx, y, label, right, colour) {
  ctx.strokeStyle = colour;
  ctx.setLineDash([4, 3]);
  ctx.beginPath();
  ctx.moveTo(TRACK_LEFT, Math.round(y) + 0.5);
  ctx.lineTo(right, Math.round(y) + 0.5);
  ctx.stroke();
  ctx.setLineDash([]);
  ctx.fillStyle = ink.soft;
  ctx.textAlign = "right";
  ctx.fillText(label, TRACK_LEFT - 6, y, TRACK_LEFT - 8);
}

function drawSteps(ctx, xAt, yAt, right) {
  ctx.strokeStyle = ink.soft;
  ctx.lineWidth = 1.5;
  ctx.beginPath();
  data.found.forEach(([after, value], place) => {
    if (place) ctx.lineTo(xAt(after), yAt(data.found[place - 1][1]));
    else ctx.moveTo(xAt(after), yAt(value));
    ctx.lineTo(xAt(after), yAt(value));
  });
  ctx.lineTo(right, yAt(data.found[data.found.length - 1][1]));
  ctx.stroke();
  ctx.lineWidth = 1;
  for (const [after, value, , by] of data.found) {
    ctx.fillStyle = colourOf(finders.indexOf(by));
    ctx.beginPath();
    ctx.arc(xAt(after), yAt(value), 3.5, 0, 2 * Math.PI);
    ctx.fill();
  }
}

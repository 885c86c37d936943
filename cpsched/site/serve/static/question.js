// "What if": a form for a request and a walltime, and the answer beside what is planned now.

import { post } from "./api.js";
import { h, shown } from "./dom.js";
import { duration, exactly, moment, now, relative } from "./words.js";

/** Names of amounts that people set, and their labels. */
const LABELS = { ncpus: "cores", cores: "cores", mem: "memory", ngpus: "GPUs", gpus: "GPUs" };
let forms = 0;

/**
 * Take apart a request of equal chunks: ``4:ncpus=8:mem=2g,place=scatter``.
 *
 * Return {count, parts, rest}, parts as [name, value]; null: it has several kinds of chunks, or steps.
 */
export function takenApart(request) {
  const [, chunk, rest] = /^([^,]*)(.*)$/s.exec(request);
  if (chunk === "" || /[+→(]/.test(chunk)) return null;
  const [, count, body] = /^(?:(\d+):)?(.*)$/s.exec(chunk);
  const parts = body.split(":").map((part) => part.split("="));
  return parts.every((part) => part.length === 2) ? { count: Number(count ?? 1), parts, rest } : null;
}

/** Put a request together again. */
export const putTogether = ({ count, parts, rest }) => `${count}:${parts.map((part) => part.join("=")).join(":")}${rest}`;

const isAmount = (value) => /^\d+$/.test(value);
const isMemory = (name, value) => name === "mem" && /^\d+(\.\d+)?[a-z]*$/i.test(value);

/** A labelled input; `attributes` are the input's. */
function field(label, attributes, hint = null) {
  const id = `field-${++forms}`;
  return h("div", { class: "field" }, h("label", { for: id }, label), h("input", { id, autocomplete: "off", ...attributes }), hint && h("small", { class: "soft" }, hint));
}

/** The walltime as the API reads it. */
const walltimeText = (seconds) => (seconds % 3600 === 0 ? `${seconds / 3600}h` : seconds % 60 === 0 ? `${seconds / 60}m` : String(seconds));

/**
 * Make the form "what if this job asked for less".
 *
 * Only what is changed is sent; a request of several kinds of chunks is changed as text.
 */
export function insteadForm(job) {
  const simple = takenApart(job.request), isSteps = job.request.includes("→") || /\d x \(/.test(job.request);
  const walltime = field("walltime", { name: "walltime", value: walltimeText(job.forecast?.enough ?? job.walltime), required: true, maxlength: 32 }, "2h, 90m, 1:30:00");
  const inputs = [];
  if (simple) {
    inputs.push(field("chunks", { name: "count", type: "number", min: 1, max: Math.max(simple.count, 1), value: simple.count, required: true }));
    simple.parts.forEach(([name, value], i) => {
      if (isAmount(value) && name !== "mem") inputs.push(field(`${LABELS[name] ?? name} each`, { name: `part-${i}`, type: "number", min: 0, value, required: true }));
      else if (isMemory(name, value)) inputs.push(field("memory each", { name: `part-${i}`, value, required: true, pattern: "\\d+(\\.\\d+)?[A-Za-z]*", maxlength: 32 }, "4g, 512m"));
    });
  } else if (!isSteps) {
    inputs.push(field("request", { name: "request", value: job.request, required: true, maxlength: 4096, spellcheck: "false", class: "long" }));
  }
  const ask = (values) => {
    let request = values.get("request") ?? job.request;
    if (simple) {
      const parts = simple.parts.map(([name, value], i) => [name, values.get(`part-${i}`) ?? value]);
      request = putTogether({ ...simple, count: Number(values.get("count")), parts });
    }
    const asked = { job: job.id };
    if (!isSteps && request !== job.request && request !== `1:${job.request}`) asked.request = request;
    if (values.get("walltime") !== walltimeText(job.walltime)) asked.walltime = values.get("walltime");
    if (Object.keys(asked).length === 1) throw new Error("Change something first: fewer chunks, cores, less memory or a shorter walltime.");
    return { instead: asked };
  };
  return form([...inputs, walltime], "When would it start?", ask, (answer) => compared(answer, job.start));
}

/** Make the form for a job that is not submitted; `queues` may be chosen. */
export function submitForm(user) {
  const inputs = [
    field("request", { name: "request", value: "1:ncpus=4:mem=8g", required: true, maxlength: 4096, spellcheck: "false", class: "long" }, "chunks: 8:ncpus=2:mem=4g"),
    field("walltime", { name: "walltime", value: "2h", required: true, maxlength: 32 }, "2h, 90m, 1:30:00"),
    field("queue", { name: "queue", maxlength: 256 }, "may be empty"),
    field("user", { name: "user", value: user ?? "", maxlength: 256 }, "may be empty"),
  ];
  const ask = (values) => ({ submit: Object.fromEntries([...values].filter(([, value]) => value !== "")) });
  return form(inputs, "When would it start?", ask, (answer) => compared(answer, null));
}

function form(inputs, label, question, drawing) {
  const answer = h("div", { class: "answer", "aria-live": "polite" });
  const button = h("button", { type: "submit", class: "primary" }, label);
  const made = h("form", { class: "question", submit: async (event) => {
    event.preventDefault();
    button.disabled = true;
    answer.setAttribute("aria-busy", "true");
    answer.replaceChildren(h("p", { class: "soft" }, "Looking for a place …"));
    try { answer.replaceChildren(drawing(await post("v1/what-if", question(new FormData(made))))); }
    catch (error) { answer.replaceChildren(h("p", { class: "notice" }, ...error.message.split("\n").map((line) => h("span", { class: "line" }, line)))); }
    answer.removeAttribute("aria-busy");
    button.disabled = false;
  } }, h("div", { class: "fields" }, ...inputs), button, answer);
  return made;
}

/** The answer: the new start, and the planned one with a bar each from now on. */
function compared({ start, end, nodes, detail, before }, planned) {
  if (start === null) return h("p", { class: "notice" }, `It would have no start: ${detail}`);
  const old = before ?? planned, lines = [];
  const last = Math.max(start, old ?? start) - now();
  const line = (label, time, kind) => {
    const bar = h("span", { class: `wait ${kind}`, "aria-hidden": "true" }, h("span", {}));
    bar.firstChild.style.width = `${last > 0 ? Math.max(0, time - now()) / last * 100 : 0}%`;
    return h("div", { class: "compared" }, h("span", { class: "soft" }, label), bar, h("span", { title: exactly(time) }, `${relative(time)} (${moment(time)})`));
  };
  if (old !== null) lines.push(line("planned", old, "old"));
  lines.push(line(old === null ? "start" : "then", start, "new"));
  const gain = old === null ? null : old - start;
  const words = gain === null ? `It would start ${start <= now() ? "at once" : relative(start)}.` :
    gain === 0 ? "It would not start earlier." : `It would start ${duration(gain)} ${gain > 0 ? "earlier" : "later"}.`;
  return h("div", {}, h("p", { class: gain > 0 ? "gain" : "" }, h("strong", {}, words)), ...lines,
    h("p", { class: "soft small" }, `It would end by ${moment(end)}, on ${shown(nodes)}. No other job is moved for it.`));
}

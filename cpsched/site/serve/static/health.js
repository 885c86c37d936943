// The health of the daemon as cards, each with a word that does not depend on its colour.

import { at, h, meter } from "./dom.js";
import { count, duration, exactly, hasDates, moment, number, percent } from "./words.js";

/** Seconds of silence beyond its budget after which the daemon is called stale, as in ``/v1/health``. */
const SILENCE = 75;

const STOPPED = { done: "it was done", optimal: "proven optimal", budget: "used its budget", interrupted: "interrupted", fallback: "a fallback" };

/** Show the state of the daemon; where there is none, what is shown instead. */
export function drawHealth(state) {
  const { cycle, objective } = state;
  at("health").replaceChildren(...(cycle ? ofDaemon(cycle) : ofDocument(state)), ...ofPlan(objective));
  at("health").removeAttribute("aria-busy");
  at("silent").hidden = !isStale(cycle);
  if (isStale(cycle)) at("silent").textContent = `The daemon has been silent for ${duration(cycle.lag)}: what is shown may be out of date.`;
}

/** Whether a daemon has been silent for too long. */
const isStale = (cycle) => cycle !== null && cycle.lag > cycle.budget + SILENCE;

function card(label, value, note, kind = "") {
  return h("div", { class: `card ${kind}` }, h("span", { class: "label" }, label), h("strong", {}, value), h("small", { title: note }, note));
}

function ofDaemon(cycle) {
  const stale = isStale(cycle), slow = cycle.budget > 0 && cycle.seconds > cycle.budget;
  const took = card("Cycle took", `${cycle.seconds.toFixed(1)} s`, cycle.budget ? `of a budget of ${number(cycle.budget)} s` : "without a budget", slow ? "bad" : "");
  if (cycle.budget) took.append(meter(cycle.seconds / cycle.budget));
  return [
    card("Daemon", stale ? "✕ silent" : "✓ works", cycle.dry_run ? "dry run: it gives no orders" : "it gives the orders", stale ? "bad" : "good"),
    card("Last cycle", `${duration(cycle.lag)} ago`, cycle.why || "nothing had changed", stale ? "bad" : ""),
    took,
    card("Fallbacks", number(cycle.fallbacks), `of the last ${count(cycle.cycles, "cycle")}`, cycle.fallbacks ? "bad" : ""),
    card("Orders", number(cycle.orders), "in the last cycle"),
    ...(cycle.choice ? [card("Best on the past", cycle.choice.engine, evidence(cycle.choice))] : []),
    ...(cycle.forecasts?.starts ? [card("Forecasts", percent(cycle.forecasts.within / cycle.forecasts.starts), `of ${count(cycle.forecasts.starts, "start")} within their 80 %`)] : []),
    ...(cycle.forecasts?.ends ? [card("Advice", percent(cycle.forecasts.in_time / cycle.forecasts.ends), `of ${count(cycle.forecasts.ends, "end")} in time, of 95 % advised`)] : []),
  ];
}

/** Why an engine was chosen: what the others made of the jobs of the past. */
function evidence({ usual, jobs, trials }) {
  const others = Object.entries(trials).map(([name, one]) => `${name} ${one.ratio.toFixed(2)}${one.wins ? " ✓" : ""}`);
  return `${others.join(", ")} of ${usual}’s weighted queue time, ${count(jobs, "past job")}`;
}

function ofDocument({ now, cluster }) {
  return [
    card("Source", "a document", "it does not change"),
    ...(hasDates() ? [card("Now", h("span", { title: exactly(now) }, moment(now)), "the instance’s own clock")] : []),
    card("Nodes", number(cluster.nodes), Object.entries(cluster.states).filter(([name, value]) => value && name !== "up").map(([name, value]) => `${number(value)} ${name}`).join(", ") || "all up"),
  ];
}

function ofPlan(objective) {
  const gap = objective.honest_gap ?? objective.gap;
  return [
    card("Gap", gap === null ? "–" : percent(gap), gap === null ? "no bound is known" : "no plan is better by more"),
    card("Value", number(Math.round(objective.value * 100) / 100), objective.name.replaceAll("_", " ")),
    card("Planned by", objective.engine, `${objective.elapsed.toFixed(1)} s, ${STOPPED[objective.stopped] ?? objective.stopped}`),
  ];
}

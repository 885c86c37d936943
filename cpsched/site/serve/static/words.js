// Times, durations and amounts in words. A time is a second on the instance's clock; it is shown in the viewer's zone.

/** What the instance's clock says: `set` with each state. */
const clock = { now: 0, epoch: null, offset: 0 };

export function setClock({ now, epoch, utc_offset: offset }) {
  clock.now = now;
  clock.epoch = epoch === null ? null : Date.parse(epoch);
  clock.offset = offset ?? 0;
}

export const now = () => clock.now;
export const hasDates = () => clock.epoch !== null;

export const number = (value) => value.toLocaleString("en");
export const count = (value, one, many = `${one}s`) => `${number(value)} ${value === 1 ? one : many}`;
export const percent = (share) => (share > 0 && share < 0.01 ? "< 1 %" : `${Math.floor(share * 100)} %`);

/** Return a duration by its two largest units: ``2 h 13 min``. */
export function duration(seconds) {
  const rest = Math.abs(Math.round(seconds));
  const units = [[Math.floor(rest / 86400), "d"], [Math.floor(rest / 3600) % 24, "h"], [Math.floor(rest / 60) % 60, "min"], [rest % 60, "s"]];
  const first = units.findIndex(([amount]) => amount > 0);
  if (first < 0) return "0 s";
  return units.slice(first, first + 2).filter(([amount]) => amount > 0).map(([amount, unit]) => `${number(amount)} ${unit}`).join(" ");
}

/** Return how far a time is from now: ``in 2 h 13 min``, ``5 min ago``, ``now``. */
export function relative(time) {
  const past = time - clock.now;
  return past === 0 ? "now" : past > 0 ? `in ${duration(past)}` : `${duration(past)} ago`;
}

const SHORT = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit" });
const DAY = new Intl.DateTimeFormat("en-GB", { weekday: "short", day: "numeric", month: "short" });
const YEAR = new Intl.DateTimeFormat("en-GB", { weekday: "short", day: "numeric", month: "short", year: "numeric" });
const FULL = new Intl.DateTimeFormat("en-GB", {
  weekday: "short", day: "numeric", month: "short", year: "numeric", hour: "2-digit", minute: "2-digit", second: "2-digit", timeZoneName: "short",
});

const dateOf = (time) => new Date(clock.epoch + time * 1000);

/** Return a time as a date, as short as it can be on the instance's own day; without an epoch as its distance from now. */
export function moment(time) {
  if (clock.epoch === null) return time === clock.now ? "now" : `now ${time > clock.now ? "+" : "−"} ${duration(time - clock.now)}`;
  const date = dateOf(time), today = dateOf(clock.now);
  if (DAY.format(date) === DAY.format(today) && date.getFullYear() === today.getFullYear()) return SHORT.format(date);
  return `${(date.getFullYear() === today.getFullYear() ? DAY : YEAR).format(date)} ${SHORT.format(date)}`;
}

/** Return a time to the second, in the viewer's zone and, where its clocks differ, in the site's. */
export function exactly(time) {
  if (clock.epoch === null) return `second ${number(time)} of the instance`;
  const date = dateOf(time), own = -date.getTimezoneOffset() * 60;
  if (own === clock.offset) return FULL.format(date);
  const site = new Date(date.getTime() + clock.offset * 1000).toISOString();
  return `${FULL.format(date)} (at the site ${site.slice(0, 10)} ${site.slice(11, 19)})`;
}

/** Return the name of the zone in which times are shown. */
export const zone = () => (clock.epoch === null ? "Times have no date: the instance does not say when it begins." :
  `Times are those of ${Intl.DateTimeFormat().resolvedOptions().timeZone}, where this page is read.`);

const isMemory = (name) => name === "mem" || name === "memory";

/** Return an amount of a resource; memory is in MiB. */
export function amount(name, value) {
  if (!isMemory(name)) return number(value);
  for (const [size, unit] of [[2 ** 20, "TiB"], [2 ** 10, "GiB"]]) {
    if (value >= size) return `${number(Math.round(value / size * 10) / 10)} ${unit}`;
  }
  return `${number(value)} MiB`;
}

export const amounts = (resources) => Object.entries(resources).filter(([, value]) => value > 0)
  .map(([name, value]) => `${name} ${amount(name, value)}`).join(", ");

// Server-sent events by fetch, since an EventSource cannot send a token. A stream that ends or falls silent is opened anew.

import { ask } from "./api.js";

/** Seconds without a line after which a stream counts as lost: the server sends a comment more often. */
const SILENCE = 40, LONGEST_WAIT = 30;

/**
 * Listen for ever.
 *
 * `onEvent({event, data})` is called for each event, and `onState(state, detail)` with ``connecting``, ``live``, and
 * ``lost``, whose detail is {seconds until the next try, error}. Return a function that tries at once.
 */
export function listen(path, { onEvent, onState }) {
  let wake = () => {};
  const run = async () => {
    for (let failures = 0; ; failures++) {
      onState("connecting");
      let error = null;
      try {
        await follow(path, onEvent, () => { failures = 0; onState("live"); });
      } catch (reason) { error = reason; }
      const seconds = error?.retryAfter ?? Math.min(2 ** Math.min(failures, 5), LONGEST_WAIT);
      onState("lost", { seconds, error });
      await new Promise((resolve) => { wake = resolve; setTimeout(resolve, seconds * 1000); });
    }
  };
  run();
  addEventListener("online", () => wake());
  return () => wake();
}

async function follow(path, onEvent, onOpen) {
  const stop = new AbortController();
  let timer = 0;
  const watch = () => { clearTimeout(timer); timer = setTimeout(() => stop.abort(), SILENCE * 1000); };
  try {
    watch();
    const reply = await ask(path, { signal: stop.signal, headers: { Accept: "text/event-stream" } });
    onOpen();
    const reader = reply.body.pipeThrough(new TextDecoderStream()).getReader();
    const take = parser(onEvent);
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      watch();
      take(value);
    }
  } finally { clearTimeout(timer); stop.abort(); }
}

/** Return a function that takes pieces of a stream and calls `onEvent` with each event that is complete. */
export function parser(onEvent) {
  let rest = "", event = "message", data = [];
  return (piece) => {
    const lines = (rest + piece).split(/\r\n|\n|\r(?!$)/);
    rest = lines.pop();
    for (const line of lines) {
      const [, field, value] = /^([^:]*):? ?(.*)$/s.exec(line);
      if (line === "") {
        if (data.length) onEvent({ event, data: data.join("\n") });
        event = "message";
        data = [];
      } else if (field === "event") event = value;
      else if (field === "data") data.push(value);
    }
  };
}

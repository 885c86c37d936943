// Elements from data. Texts become text nodes, always: nothing from outside is read as markup.

export const at = (id) => document.getElementById(id);

/** A character that is not shown as itself: controls, separators, changes of the direction of writing. */
const UNSHOWN = /[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Cn}\p{Zl}\p{Zp}]/gu;

/** Return a name from outside as it may be drawn: each character that cannot be seen becomes an escape. */
export function shown(text) {
  return String(text).replace(UNSHOWN, (char) => {
    const code = char.codePointAt(0).toString(16);
    return code.length <= 2 ? `\\x${code.padStart(2, "0")}` : code.length <= 4 ? `\\u${code.padStart(4, "0")}` : `\\U${code.padStart(8, "0")}`;
  });
}

/**
 * Make an element.
 *
 * `attributes` are set as attributes, but functions as listeners of that event, and `false` or `null` not at all;
 * `children` are elements or texts, `null` and `false` are left out.
 */
export function h(tag, attributes = {}, ...children) {
  return dress(document.createElement(tag), attributes, children);
}

/** Make an element of a drawing. */
export function svg(tag, attributes = {}, ...children) {
  return dress(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);
}

function dress(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") element.addEventListener(name, value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) element.setAttribute(name, shown(value));
  }
  for (const child of children.flat()) {
    if (child instanceof Node) element.append(child);
    else if (child !== null && child !== undefined && child !== false) element.append(shown(child));
  }
  return element;
}

/** Return a definition list of those rows that have a value. */
export function facts(rows, attributes = {}) {
  const filled = rows.filter(([, value]) => value !== null && value !== undefined && value !== "");
  return h("dl", attributes, ...filled.map(([label, value]) => h("div", {}, h("dt", {}, label), h("dd", {}, value))));
}

/** Make a bar that is filled up to a share; words beside it say the same. */
export function meter(share) {
  const bar = h("span", { class: "meter", "aria-hidden": "true" }, h("span", {}));
  bar.firstChild.style.width = `${Math.max(0, Math.min(1, share)) * 100}%`;
  return bar;
}

/** Return a function that calls `work` once the calls have paused for so many milliseconds. */
export function settled(work, pause) {
  let timer = 0;
  return (...values) => {
    clearTimeout(timer);
    timer = setTimeout(() => work(...values), pause);
  };
}

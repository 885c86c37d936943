// What does not look right on a page: texts that can hardly be read or are cut off, and labels on each other.
() => {
  const CONTRAST = 4.5; // WCAG 2.2, level AA
  const pixel = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const colours = new Map(), faults = new Set();

  /** Red, green, blue and opacity of a colour, however CSS writes it. */
  const parts = (colour) => {
    if (!colours.has(colour)) {
      pixel.clearRect(0, 0, 1, 1);
      pixel.fillStyle = colour;
      pixel.fillRect(0, 0, 1, 1);
      colours.set(colour, [...pixel.getImageData(0, 0, 1, 1).data]);
    }
    return colours.get(colour);
  };

  const luminance = (colour) => {
    const [red, green, blue] = colour.slice(0, 3).map((part) => part / 255)
      .map((part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4));
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
  };

  const behind = (place) => {
    for (let one = place; one; one = one.parentElement) {
      const colour = parts(getComputedStyle(one).backgroundColor);
      if (colour[3] > 250) return colour;
    }
    return [255, 255, 255];
  };

  const judge = (place, words) => {
    const box = place.getBoundingClientRect(), style = getComputedStyle(place), isDrawn = place instanceof SVGElement;
    if (box.width < 2 || box.height < 2) return; // for screen readers alone
    const bright = [parts(isDrawn ? style.fill : style.color), behind(place)].map(luminance).sort((a, b) => b - a);
    const contrast = (bright[0] + 0.05) / (bright[1] + 0.05);
    if (contrast < CONTRAST) faults.add(`contrast ${contrast.toFixed(1)}: ${words}`);
    if (isDrawn) {
      const frame = place.closest("svg").getBoundingClientRect();
      const beyond = Math.max(frame.left - box.left, box.right - frame.right, frame.top - box.top, box.bottom - frame.bottom);
      if (beyond > 1.5) faults.add(`cut off by ${Math.round(beyond)} pixels: ${words}`);
    } else if (style.overflowX === "hidden" && style.textOverflow !== "ellipsis" && place.scrollWidth > place.clientWidth + 1) {
      faults.add(`cut off: ${words}`);
    }
  };

  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) {
    const place = texts.currentNode.parentElement, words = texts.currentNode.data.trim().slice(0, 60);
    // cells of heat maps are on a picture, whose colours no style knows; the library chooses their ink by them
    const isJudged = words && !place.closest("script, style, noscript, option, :disabled, .heatmap-label");
    if (isJudged && place.checkVisibility({ opacityProperty: true, visibilityProperty: true })) judge(place, words);
  }

  const isLevel = (label) => !/rotate\((?!0)/.test(label.getAttribute("transform") ?? "");
  for (const plot of document.querySelectorAll(".plot")) for (const axis of [".xtick", ".ytick"]) {
    const labels = [...plot.querySelectorAll(`${axis} text`)].filter(isLevel).map((one) => [one.textContent, one.getBoundingClientRect()]);
    for (const [place, [words, a]] of labels.entries()) for (const [others, b] of labels.slice(place + 1)) {
      const across = Math.min(a.right, b.right) - Math.max(a.left, b.left), down = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
      if (across > 1 && down > 3) faults.add(`on each other: ${words}, ${others}`);
    }
  }
  return [...faults];
}

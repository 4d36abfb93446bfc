/* Makes elements, and draws formulas and charts with them. */
const Dom = (() => {
  "use strict";

  const SVG = "http://www.w3.org/2000/svg";
  const SVG_TAGS = new Set(["svg", "path", "line", "rect", "text", "g", "circle", "polyline", "marker", "defs", "title"]);

  /* element("button", {class: "primary", onclick: f}, "text", another element, ...). null and false are left out. */
  function element(tag, attributes = {}, ...children) {
    const made = SVG_TAGS.has(tag) ? document.createElementNS(SVG, tag) : document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) {
      if (value === null || value === undefined || value === false) continue;
      if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
      else if (name === "value") made.value = value;
      else made.setAttribute(name, value === true ? "" : value);
    }
    made.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
    return made;
  }

  /* Pieces of `Show` as elements. A piece with a cell is a button that calls follow(cell). */
  function formula(pieces, follow = null) {
    return words(pieces.map(({ text, sub, index, place, cell, zero }) => {
      const lower = [sub, index].filter(Boolean).join(" ");
      const inner = [text, lower && element("sub", {}, lower)];
      if (cell && follow) {
        const label = `${App.cellText(cell.name, cell.flat)}: ${text}`;
        const kind = App.machine.get(cell.name).role === "gradient" ? "gradient" : "value";
        return element("button", {
          type: "button", class: `number ${kind}${zero ? " zero" : ""}`, title: App.cellText(cell.name, cell.flat),
          "aria-label": label, onclick: () => follow(cell),
        }, text);
      }
      if (place) return element("span", { class: "symbol" }, element("small", {}, `${place} `), inner);
      return lower || zero ? element("span", { class: zero ? "symbol zero" : "symbol" }, inner) : text;
    }));
  }

  /* Elements and texts in which a line ends at a space alone, so that a bracket stays with its number. */
  function words(parts) {
    const made = [[]];
    for (const part of parts)
      for (const piece of typeof part === "string" ? part.split(/( )/) : [part]) {
        if (piece === " ") made.push([" "], []);
        else if (piece !== "") made.at(-1).push(piece);
      }
    return made.map((word) => (word.length > 1 ? element("span", { class: "word" }, word) : word)).flat();
  }

  /* A line chart: series [{values, label, class}] over steps 0, 1, 2, ... */
  function chart(series, { label, x, y, width = 560, height = 220 }) {
    const left = 52, bottom = 34, top = 12, right = 12;
    const longest = Math.max(2, ...series.map(({ values }) => values.length));
    const most = Math.max(...series.flatMap(({ values }) => values.filter(Number.isFinite)), 1e-12);
    const xOf = (n) => left + ((width - left - right) * n) / (longest - 1);
    const yOf = (value) => height - bottom - ((height - top - bottom) * Math.min(value, most)) / most;
    const ticks = [0, 0.5, 1].map((part) => [
      element("line", { x1: left, x2: width - right, y1: yOf(part * most), y2: yOf(part * most), class: "grid" }),
      element("text", { x: left - 6, y: yOf(part * most) + 4, "text-anchor": "end" }, Show.number(part * most)),
    ]);
    const steps = [0, longest - 1].map((n) =>
      element("text", { x: xOf(n), y: height - bottom + 16, "text-anchor": n ? "end" : "start" }, String(n)));
    const lines = series.map(({ values, class: kind }) => element("polyline", {
      class: `line ${kind}`, points: values.map((value, n) => `${xOf(n)},${yOf(Number.isFinite(value) ? value : most)}`).join(" "),
    }));
    const names = series.map(({ label: name, class: kind }) => element("li", { class: kind }, name));
    return element("figure", { class: "chart" },
      element("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label }, ticks, steps, lines,
        element("text", { x: (left + width) / 2, y: height - 4, "text-anchor": "middle" }, x),
        element("text", { x: 4, y: top - 2 }, y)),
      series.length > 1 && element("ul", { class: "legend" }, names));
  }

  return { element, formula, chart };
})();

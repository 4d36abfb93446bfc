/* Connects what stands for the same number: a cell of a heat map, a number of a derivation, and a symbol of a formula. While
   the pointer or the focus is on one of them, the others are marked, and arrows lead from the cells that a number is
   computed from to its own cell, and from there to the cells that are computed from it. */
const Connect = (() => {
  "use strict";

  const { element } = Dom;
  const MOST = 10; // arrows that come, and as many that go
  const REST = 40; // milliseconds that the pointer stays before something is drawn
  let pointed = null; // what the pointer is on
  let shown = ""; // the key of what is drawn
  let waiting = 0;

  const textOf = ({ name, flat }) => `${name} ${flat}`;
  const cellOf = (text) => ({ name: text.split(" ")[0], flat: Number(text.split(" ")[1]) });
  const content = () => document.querySelector("main.view-cell");
  const mapOf = (name) => [...content().querySelectorAll(`canvas[data-array="${CSS.escape(name)}"]`)].find((map) => map.getClientRects().length);

  /* What an element stands for: {key, own: cells, edges() -> [{from, to}]}, or null. A cell without `flat` is a whole map. */
  function meaning(target, event) {
    const [map, number, symbol, section] = ["canvas[data-array]", "button[data-cell]", "math [data-array]", "[data-number]"].map((each) => target.closest(each));
    if (map) return ofCell(map.dataset.array, event ? Heatmap.pointedAt(map, event) : chosenIn(map.dataset.array));
    if (number && section) return computed([cellOf(number.dataset.cell)], cellOf(section.dataset.number));
    if (!symbol) return null;
    const name = symbol.dataset.array;
    const to = section ? cellOf(section.dataset.number) : { name: symbol.closest(".map")?.querySelector("canvas").dataset.array ?? name, flat: null };
    if (to.name === name) return computed([to]);
    return computed(section ? numbersOf(section).filter((cell) => cell.name === name) : [{ name, flat: null }], to);
  }

  function chosenIn(name) {
    const chosen = App.cell();
    return chosen?.name === name ? chosen.flat : null;
  }

  const computed = (own, to = null) => ({ key: JSON.stringify([own, to]), own, edges: () => (to ? own.map((from) => ({ from, to })) : []) });

  /* The numbers of a derivation, each cell once. */
  const numbersOf = (section) => [...new Set([...section.querySelectorAll("button[data-cell]")].map((each) => each.dataset.cell))].map(cellOf);

  function ofCell(name, flat) {
    if (flat === null) return null;
    const cell = { name, flat };
    return { key: textOf(cell), own: [cell], edges: () => [
      ...inView(App.machine.comesFrom(name, flat)).map((from) => ({ from, to: cell })),
      ...inView(App.machine.goesTo(name, flat)).map((to) => ({ from: cell, to })),
    ] };
  }

  /* Of many cells, those that are in the window, and not behind the panel of a narrow page. */
  const inView = (cells) => cells.filter((cell) => {
    const box = boxOf(cell, 0, 0);
    const bottom = window.innerWidth < 1100 ? content().querySelector(".inspector").getBoundingClientRect().top || window.innerHeight : window.innerHeight;
    return box && box[1] >= 0 && box[1] + box[3] <= bottom;
  }).slice(0, MOST);

  /* --- drawing --- */

  function clear() {
    content()?.querySelector("svg.connections")?.remove();
    for (const lit of document.querySelectorAll(".lit")) lit.classList.remove("lit");
    shown = "";
  }

  /* Draw what is meant, unless it is there already. */
  function show(meant) {
    if (meant?.key === shown) return;
    clear();
    if (!meant) return;
    shown = meant.key;
    const edges = meant.edges();
    const main = content();
    const { left, top, width, height } = main.getBoundingClientRect();
    const boxes = new Map([...meant.own, ...edges.flatMap(({ from, to }) => [from, to])].map((cell) => [textOf(cell), boxOf(cell, left, top)]));
    const frames = [...boxes.values()].filter(Boolean).map(([x, y, w, h]) => element("rect", { x: x - 1, y: y - 1, width: w + 2, height: h + 2 }));
    const arrows = edges.map(({ from, to }) => [boxes.get(textOf(from)), boxes.get(textOf(to)), kindOf(to.name)])
      .filter(([from, to]) => from && to).slice(0, 2 * MOST).map(([from, to, kind]) => arrow(from, to, kind));
    const head = (kind) => element("marker", { id: `head-${kind}`, class: kind, viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 7, markerHeight: 7, orient: "auto" },
      element("path", { d: "M0,0 8,4 0,8z" }));
    main.append(element("svg", { class: "connections", width, height, "aria-hidden": "true" }, element("defs", {}, head("value"), head("gradient")), frames, arrows));
    for (const cell of meant.own) {
      for (const number of main.querySelectorAll(`button[data-cell="${CSS.escape(textOf(cell))}"]`)) number.classList.add("lit");
      for (const symbol of main.querySelectorAll(`math [data-array="${CSS.escape(cell.name)}"]`)) symbol.classList.add("lit");
    }
  }

  const kindOf = (name) => (App.machine.get(name).role === "gradient" ? "gradient" : "value");

  /* Where a cell, or a whole map, is in the page: [x, y, width, height]; null if it is not to be seen. */
  function boxOf({ name, flat }, left, top) {
    const map = mapOf(name);
    if (!map) return null;
    const { x, y, width, height } = map.getBoundingClientRect();
    const [dx, dy, w, h] = flat === null ? [0, 0, width, height] : Heatmap.boxOf(map, flat);
    return [x - left + dx, y - top + dy, w, h];
  }

  /* A curve from the border of a box to the border of another. */
  function arrow(from, to, kind) {
    const middle = ([x, y, width, height]) => [x + width / 2, y + height / 2];
    const [[x0, y0], [x1, y1]] = [middle(from), middle(to)];
    const bend = [(x0 + x1) / 2 + (y1 - y0) / 8, (y0 + y1) / 2 - (x1 - x0) / 8];
    const border = ([x, y], [, , width, height]) => {
      const [dx, dy] = [bend[0] - x, bend[1] - y];
      const part = Math.min(1, (width / 2 + 2) / Math.abs(dx), (height / 2 + 2) / Math.abs(dy));
      return [x + dx * part, y + dy * part];
    };
    return element("path", { class: kind, d: `M${border([x0, y0], from)} Q${bend} ${border([x1, y1], to)}`, "marker-end": `url(#head-${kind})` });
  }

  /* --- the pointer and the focus --- */

  /* Show what the pointer is on, or else what has the focus. */
  function refresh() {
    clearTimeout(waiting);
    if (content()) show(pointed ?? meaning(document.activeElement));
  }

  function later() {
    clearTimeout(waiting);
    waiting = setTimeout(refresh, REST);
  }

  /* After the page was drawn anew. */
  function redraw() {
    pointed = null;
    clear();
    later();
  }

  document.addEventListener("pointermove", (event) => {
    if (!content()) return;
    pointed = event.target.closest ? meaning(event.target, event) : null;
    later();
  });
  document.addEventListener("pointerleave", () => { pointed = null; later(); });
  document.addEventListener("focusin", () => { pointed = null; later(); });
  document.addEventListener("focusout", later);
  document.addEventListener("scroll", () => { shown = ""; later(); }, { passive: true });

  return { redraw };
})();

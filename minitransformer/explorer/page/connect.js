/* Connects what stands for the same number: a cell of a heat map, a number of a derivation, and a symbol of a formula. While
   the pointer or the focus is on one of them, the others are marked, and arrows lead to its cell and away from it. */
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

  /* What an element stands for: {key, own: cells, edges() -> [[from, to]]}, or null. A cell without `flat` is a whole map. */
  function meaning(target, event) {
    const [map, number, symbol, section] = ["canvas[data-array]", "button[data-cell]", "math [data-array]", "[data-number]"]
      .map((selector) => target.closest?.(selector));
    if (map) return ofCell(map.dataset.array, event ? Heatmap.pointedAt(map, event) : App.cell()?.name === map.dataset.array ? App.cell().flat : null);
    if (number && section) return ofTerms([cellOf(number.dataset.cell)], cellOf(section.dataset.number));
    if (!symbol) return null;
    const name = symbol.dataset.array;
    const to = section ? cellOf(section.dataset.number) : { name: symbol.closest(".map")?.querySelector("canvas").dataset.array ?? name, flat: null };
    if (to.name === name) return ofTerms([to], null);
    const cells = section && [...section.querySelectorAll(`button[data-cell^="${CSS.escape(name)} "]`)].map((each) => each.dataset.cell);
    return ofTerms(section ? [...new Set(cells)].map(cellOf) : [{ name, flat: null }], to);
  }

  const ofTerms = (own, to) => ({ key: JSON.stringify([own, to]), own, edges: () => (to ? own.map((from) => [from, to]) : []) });

  function ofCell(name, flat) {
    const cell = { name, flat };
    return flat === null ? null : { key: textOf(cell), own: [cell], edges: () => [
      ...inWindow(App.machine.comesFrom(name, flat)).map((from) => [from, cell]), ...inWindow(App.machine.goesTo(name, flat)).map((to) => [cell, to]),
    ] };
  }

  /* Of many cells, those that can be seen now; the panel of a narrow page covers its lower half. */
  function inWindow(cells) {
    const bottom = window.innerWidth < 1100 ? content().querySelector(".inspector").getBoundingClientRect().top || window.innerHeight : window.innerHeight;
    return cells.filter((cell) => {
      const [, y, , height] = boxOf(cell) ?? [0, -1];
      return y >= 0 && y + height <= bottom;
    }).slice(0, MOST);
  }

  /* Where a cell, or a whole map, is in the window: [x, y, width, height]; null if it is not on the page, or folded. */
  function boxOf({ name, flat }) {
    const map = [...content().querySelectorAll(`canvas[data-array="${CSS.escape(name)}"]`)].find((each) => each.getClientRects().length);
    if (!map) return null;
    const { x, y, width, height } = map.getBoundingClientRect();
    const [left, top, ...size] = flat === null ? [0, 0, width, height] : Heatmap.boxOf(map, flat);
    return [x + left, y + top, ...size];
  }

  function clear() {
    content()?.querySelector("svg.connections")?.remove();
    for (const lit of document.querySelectorAll(".lit")) lit.classList.remove("lit");
    shown = "";
  }

  /* Draw what the pointer is on, or else what has the focus, unless it is there already. */
  function show() {
    const main = content();
    const meant = main && (pointed ?? meaning(document.activeElement));
    if (meant?.key === shown) return;
    clear();
    if (!meant) return;
    shown = meant.key;
    const edges = meant.edges();
    const { left, top, width, height } = main.getBoundingClientRect();
    const boxes = new Map([...meant.own, ...edges.flat()].map((cell) => [textOf(cell), boxOf(cell)]));
    const frames = [...boxes.values()].filter(Boolean).map(([x, y, w, h]) => element("rect", { x: x - 1, y: y - 1, width: w + 2, height: h + 2 }));
    const arrows = edges.map(([from, to]) => [boxes.get(textOf(from)), boxes.get(textOf(to)), Show.kind(to)]).filter(([from, to]) => from && to);
    const heads = ["value", "gradient"].map((kind) => element("marker", {
      id: `head-${kind}`, class: kind, viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 5, markerHeight: 5, orient: "auto",
    }, element("path", { d: "M0,0 8,4 0,8z" })));
    main.append(element("svg", { class: "connections", viewBox: `${left} ${top} ${width} ${height}`, width, height, "aria-hidden": "true" },
      element("defs", {}, heads), frames, arrows.slice(0, 2 * MOST).map(arrow)));
    const marks = meant.own.map((cell) => `button[data-cell="${CSS.escape(textOf(cell))}"], math [data-array="${CSS.escape(cell.name)}"]`);
    for (const each of main.querySelectorAll(marks.join())) each.classList.add("lit");
  }

  /* A curve from the border of a box to the border of another, which is above or below. In the same row, it goes along the
     border above the numbers. */
  function arrow([[x, y, w, h], [toX, toY, toW, toH], kind]) {
    const beside = Math.abs(toY - y) < Math.max(h, toH);
    const [x0, x1] = beside ? (toX > x ? [x + w, toX] : [x, toX + toW]) : [x + w / 2, toX + toW / 2];
    const [y0, y1] = beside ? [y, toY] : toY > y ? [y + h, toY] : [y, toY + toH];
    const bend = beside ? `${(x0 + x1) / 2},${y0} ${(x0 + x1) / 2},${y1}` : `${x0},${(y0 + y1) / 2} ${x1},${(y0 + y1) / 2}`;
    return element("path", { class: kind, d: `M${x0},${y0} C${bend} ${x1},${y1}`, "marker-end": `url(#head-${kind})` });
  }

  function later() {
    clearTimeout(waiting);
    waiting = setTimeout(show, REST);
  }

  /* What was drawn may be at another place now. */
  function again() {
    shown = null;
    later();
  }

  document.addEventListener("pointermove", (event) => {
    if (!content()) return;
    pointed = meaning(event.target, event);
    later();
  });
  document.addEventListener("pointerleave", () => { pointed = null; later(); });
  document.addEventListener("focusin", () => { pointed = null; later(); });
  document.addEventListener("focusout", later);
  document.addEventListener("scroll", again, { passive: true });

  return { redraw: () => { pointed = null; again(); } };
})();

/* The page of a model that is too large for the other views: who looks at whom in a sentence, in all layers and heads, and
   how much each look helps what is written. All numbers come from Python. attention.html loads it in place of app.js. */
const App = (() => {
  "use strict";

  const { element } = Dom;
  const SIGN = 6.3; // pixels of a letter in a label
  const KINDS = { value: "weights", gradient: "products" };
  const state = { map: 0, head: 0, cell: 0, show: "value" };
  const text = Strings.attention;

  const mapOf = () => MODEL.maps[state.map];
  const lengthOf = (sequence) => MODEL.tokens[sequence].length;
  const largest = (lists) => lists.flat(Infinity).reduce((most, x) => Math.max(most, Math.abs(x)), 0);

  /* The name of a token of a sequence; in the target, what is written after it, too. */
  function tokenName(sequence, at) {
    const [read, write] = [MODEL.tokens[sequence][at], sequence === "target" && MODEL.writes[at]];
    return write ? `${read}→${write}` : read;
  }

  /* What a heat map asks for: the name of an array is the number of its map. */
  const machine = {
    get(name) {
      const map = MODEL.maps[name];
      const shape = [lengthOf(map.rows), lengthOf(map.keys)];
      return { map, shape, size: shape[0] * shape[1] };
    },
  };

  /* A row of the target is named by what it writes. */
  function label({ map, shape }, axis, index) {
    const write = axis === 0 && map.rows === "target" && MODEL.writes[index];
    const name = write ? `→${write}` : MODEL.tokens[axis === 0 ? map.rows : map.keys][index];
    const most = Math.max(1, Math.floor((axis === 0 ? 40 : Math.min(42, (mapWidth() - 40) / shape[1])) / SIGN));
    return name.length > most ? name.slice(0, most) : name;
  }

  function summary(map, head, flat) {
    const [row, key] = [Math.floor(flat / lengthOf(map.keys)), flat % lengthOf(map.keys)];
    const [weight, product] = ["weights", "products"].map((name) => Show.number(map[name][head][row][key]));
    return text.cell(tokenName(map.rows, row), MODEL.tokens[map.keys][key], weight, product);
  }

  const mapWidth = () => Math.min(560, window.innerWidth - 30);

  function set(changes) {
    Object.assign(state, changes);
    history.replaceState(null, "", `#${new URLSearchParams(state)}`);
    draw();
  }

  /* The state of the address; without one, the look that helps most. */
  function read() {
    const given = Object.fromEntries(new URLSearchParams(location.hash.slice(1)));
    const best = { size: -1 };
    MODEL.maps.forEach(({ products }, map) => products.forEach((rows, head) => rows.flat().forEach((size, cell) => {
      if (size > best.size) Object.assign(best, { map, head, cell, size });
    })));
    const place = (name, count) => { state[name] = /^\d+$/.test(given[name]) && given[name] < count ? Number(given[name]) : best[name]; };
    place("map", MODEL.maps.length);
    if (state.map !== best.map) Object.assign(best, { head: 0, cell: 0 });
    place("head", mapOf().weights.length);
    place("cell", lengthOf(mapOf().rows) * lengthOf(mapOf().keys));
    state.show = given.show === "gradient" ? "gradient" : "value";
  }

  /* One stack: a row for each layer, the last on top, and a picture for each head. */
  function overview(stack) {
    const most = state.show === "value" ? 1 : largest(MODEL.maps.map(({ products }) => products));
    const rows = MODEL.maps.map((map, number) => [map, number]).filter(([map]) => map.stack === stack).reverse();
    if (rows.length === 0) return null;
    return element("section", {}, element("h2", {}, text.stacks[stack]), rows.map(([map, number]) =>
      element("div", { class: "heads" }, element("span", { class: "note" }, text.layer(map.layer)), map[KINDS[state.show]].map((values, head) =>
        element("button", {
          type: "button", class: "head", "data-focus": `${number}.${head}`, title: text.head(stack, map.layer, head),
          "aria-pressed": String(number === state.map && head === state.head), onclick: () => set({ map: number, head }),
        }, Heatmap.heatmap({ name: number, values: values.flat(), compact: true, kind: state.show, width: 72, largest: most, label: text.head(stack, map.layer, head) }))))));
  }

  /* The chosen head, its weights and its products, and the row of the chosen cell as a sentence. */
  function detail() {
    const map = mapOf();
    const name = text.head(map.stack, map.layer, state.head);
    const output = element("output", {}, summary(map, state.head, state.cell));
    const maps = Object.entries(KINDS).map(([kind, array]) => element("div", { class: `map ${kind}` }, element("h3", {}, text[kind]), Heatmap.heatmap({
      name: state.map, values: map[array][state.head].flat(), kind, width: mapWidth(), selected: state.cell, output, largest: kind === "value" ? 1 : undefined,
      label: text.mapLabel(name, text[kind]), summary: (flat) => summary(map, state.head, flat),
      select: (cell) => { set({ cell }); document.querySelector(`.detail canvas[data-kind=${kind}]`).focus({ preventScroll: true }); },
    })));
    const row = Math.floor(state.cell / lengthOf(map.keys));
    const looks = MODEL.tokens[map.keys].map((token, key) => {
      const [weight, product] = [map.weights, map.products].map((of) => of[state.head][row][key]);
      return element("li", { style: `--share: ${(20 * weight).toFixed(0)}%` }, element("span", {}, token),
        element("small", { class: "value" }, Show.number(weight)), element("small", { class: "gradient" }, Show.number(product)));
    });
    return element("section", { class: "detail", "aria-label": name }, element("h2", {}, name), maps, output,
      element("h3", {}, text.row(tokenName(map.rows, row))), element("ol", { class: "looks" }, looks));
  }

  function draw() {
    const focused = document.activeElement?.getAttribute("data-focus");
    const sentence = (label, list) => element("p", {}, element("strong", {}, label), list.map((token) => element("span", { class: "token" }, token)));
    const { source } = MODEL.tokens;
    const prompt = source ?? MODEL.tokens.target.slice(0, MODEL.writes.findIndex((token) => token !== null) + 1);
    const choice = Object.keys(KINDS).map((kind) => element("label", { class: "check" }, element("input", {
      type: "radio", name: "show", checked: state.show === kind, "data-focus": kind, onchange: () => set({ show: kind }),
    }), text[kind]));
    document.title = Strings.title(MODEL.title);
    document.getElementById("app").replaceChildren(
      element("header", {}, element("h1", {}, text.title), sentence(text.reads, prompt), sentence(text.writes, MODEL.writes.filter((token) => token !== null)),
        element("p", {}, text.probability(Show.number(Math.exp(MODEL.log_probability)), Show.number(MODEL.log_probability))),
        element("p", { class: "intro" }, text.intro), element("p", { class: "intro" }, text.product)),
      element("main", { id: "content", class: "attention" },
        element("div", {}, element("fieldset", { class: "inputs" }, element("legend", {}, text.show), choice),
          ["cross", "decoder", "encoder"].map(overview)),
        detail()),
      element("footer", {}, element("p", {}, Strings.made)));
    if (focused) document.querySelector(`[data-focus="${CSS.escape(focused)}"]`)?.focus({ preventScroll: true });
  }

  document.addEventListener("DOMContentLoaded", () => {
    read();
    draw();
    window.addEventListener("popstate", () => { read(); draw(); });
    window.addEventListener("resize", draw);
    window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  });
  return { machine, label, state };
})();

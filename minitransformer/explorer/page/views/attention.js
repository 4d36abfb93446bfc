/* The page of a model that is too large for the other views: who looks at whom in a sentence, in all layers and heads, and
   how much each look helps what is written, or brings two sentences closer. All numbers come from Python. attention.html
   loads it in place of app.js. */
const App = (() => {
  "use strict";

  const { element } = Dom;
  const SIGN = 6.3; // pixels of a letter in a label
  const KINDS = { value: "weights", gradient: "products" };
  const text = Strings.attention;
  const sums = MODEL.maps.map(({ products }) => products.map((rows) => rows.flat().reduce((a, b) => a + b, 0))); // of each head
  const state = { show: "value" }; // and the chosen cell: the numbers of its map, its head, and itself

  const tokensOf = (map) => [MODEL.tokens[map.rows], MODEL.tokens[map.keys]];

  /* What a heat map asks for: the name of an array is the number of its map. */
  const machine = {
    get(name) {
      const map = MODEL.maps[name], shape = tokensOf(map).map(({ length }) => length);
      return { map, shape, size: shape[0] * shape[1] };
    },
    isRounding: () => false,
  };

  /* A row of the target is named by what is written there. */
  function label({ map, shape }, axis, index) {
    const write = axis === 0 && map.rows === "target" && MODEL.writes[index];
    const width = axis === 0 ? 40 : Math.min(42, (mapWidth() - 40) / shape[1]);
    return (write ? `→${write}` : tokensOf(map)[axis][index]).slice(0, Math.max(1, Math.floor(width / SIGN)));
  }

  /* A cell of the large map in words: {row, key, weight, product}. */
  function look(cell) {
    const map = MODEL.maps[state.map], [rows, keys] = tokensOf(map);
    const [t, i] = [Math.floor(cell / keys.length), cell % keys.length];
    const write = map.rows === "target" && MODEL.writes[t];
    const [weight, product] = [map.weights, map.products].map((of) => of[state.head][t][i]);
    return { row: write ? `${rows[t]}→${write}` : rows[t], key: keys[i], weight, product, first: t * keys.length, count: keys.length };
  }

  function cellSummary(cell) {
    const { row, key, weight, product } = look(cell);
    return text.cell(row, key, Show.number(weight), Show.number(product));
  }

  const mapWidth = () => Math.min(560, window.innerWidth - 46);
  const headName = ({ stack, layer }, head) => text.head(stack, layer, head);

  /* One stack: a line for each layer, the last on top, and a picture for each head. */
  function overview(stack) {
    const largest = state.show === "value" ? 1 : Measures.largest(MODEL.maps.flatMap(({ products }) => products.flat(2)));
    const picture = (number, values, label) =>
      Heatmap.heatmap({ name: number, values: values.flat(), compact: true, kind: state.show, width: sums[0].length > 8 ? 48 : 72, largest, label });
    const total = (x) => element("small", { class: "gradient", style: `--share: ${(20 * Math.abs(x) / Measures.largest(sums.flat())).toFixed(0)}%` }, Show.number(x));
    const lines = MODEL.maps.map((map, number) => map.stack === stack && element("div", { class: "heads" },
      element("span", { class: "note" }, text.layer(map.layer)), map[KINDS[state.show]].map((values, head) => element("button", {
        type: "button", class: "head", "data-focus": `${number}.${head}`, title: headName(map, head), onclick: () => choose(number, head, largestOf(map.products[head])),
      }, picture(number, values, headName(map, head)), total(sums[number][head]))))).filter(Boolean);
    return lines.length > 0 && element("section", {}, element("h2", {}, text.stacks[stack]), lines.reverse());
  }

  /* The chosen head, its weights and its products, and the row of the chosen cell as a sentence. */
  function detail() {
    const map = MODEL.maps[state.map], name = headName(map, state.head);
    const [output, sentence] = [element("output", {}), element("div", {})];
    const maps = Object.entries(KINDS).map(([kind, array]) => Heatmap.heatmap({
      name: state.map, values: map[array][state.head].flat(), kind, width: mapWidth(), largest: kind === "value" ? 1 : undefined, output,
      label: text.mapLabel(name, text[kind]), summary: cellSummary, select,
    }));
    function select(cell) {
      state.cell = cell;
      for (const canvas of maps) Heatmap.update(canvas, { selected: cell });
      const { row, first, count } = look(cell);
      output.textContent = cellSummary(cell);
      const looks = Array.from({ length: count }, (_, i) => look(first + i)).map(({ key, weight, product }) =>
        element("li", { style: `--share: ${(20 * weight).toFixed(0)}%` }, element("span", {}, key),
          element("small", { class: "value" }, Show.number(weight)), element("small", { class: "gradient" }, Show.number(product))));
      sentence.replaceChildren(element("h3", {}, text.row(row)), element("ol", { class: "looks" }, looks));
    }
    select(state.cell);
    return element("section", { class: "detail", "aria-label": name }, element("h2", {}, name),
      Object.keys(KINDS).map((kind, n) => element("div", { class: `map ${kind}` }, element("h3", {}, text[kind]), maps[n])), output, sentence);
  }

  const largestOf = (products) => products.flat().reduce((most, x, cell, all) => (Math.abs(x) > Math.abs(all[most]) ? cell : most), 0);

  /* Enlarge a head, without drawing the others again. */
  function choose(map, head, cell = 0) {
    Object.assign(state, { map, head, cell });
    for (const each of document.querySelectorAll(".head")) each.setAttribute("aria-pressed", String(each.dataset.focus === `${map}.${head}`));
    document.querySelector(".detail").replaceWith(detail());
  }

  /* What the page says first: [name, tokens] of both sentences, and the lines below them. */
  function beginning() {
    const { tokens, writes, cosine, log_probability: log } = MODEL;
    if (!writes) return [Object.entries(tokens), [text.cosine(Show.number(cosine)), text.intro, text.closer]];
    const written = writes.filter((token) => token !== null);
    const read = tokens.source ?? tokens.target.slice(0, writes.indexOf(written[0]) + 1);
    return [Object.entries({ read, written }), [text.probability(Show.number(Math.exp(log)), Show.number(log)), text.intro, text.product]];
  }

  function draw(changes = {}) {
    Object.assign(state, changes);
    const focused = document.activeElement?.getAttribute("data-focus");
    const sentence = ([name, list]) => element("p", {}, element("strong", {}, text.sentences[name]), list.map((token) => element("span", { class: "token" }, token)));
    const choice = Object.keys(KINDS).map((kind) => element("label", { class: "check" }, element("input", {
      type: "radio", name: "show", checked: state.show === kind, "data-focus": kind, onchange: () => draw({ show: kind }),
    }), text[kind]));
    const [sentences, intro] = beginning();
    document.title = Strings.title(MODEL.title);
    document.getElementById("app").replaceChildren(
      element("header", {}, element("h1", {}, text.title), sentences.map(sentence),
        intro.map((each) => element("p", { class: "intro" }, each))),
      element("main", { id: "content", class: "attention" },
        element("div", {}, element("fieldset", { class: "inputs" }, element("legend", {}, text.show), choice),
          Object.keys(text.stacks).map(overview)), element("div", { class: "detail" })),
      element("footer", {}, element("p", {}, Strings.made)));
    choose(state.map, state.head, state.cell);
    if (focused) document.querySelector(`[data-focus="${CSS.escape(focused)}"]`)?.focus({ preventScroll: true });
  }

  document.addEventListener("DOMContentLoaded", () => {
    let most = -1; // the look that helps most comes first, or for two sentences the one that matters most
    MODEL.maps.forEach(({ products }, map) => products.forEach((rows, head) => rows.flat().forEach((product, cell) => {
      const size = MODEL.writes ? product : Math.abs(product);
      if (size > most) [most, state.map, state.head, state.cell] = [size, map, head, cell];
    })));
    draw();
    window.addEventListener("resize", () => draw());
    window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => draw());
  });
  return { machine, label, state };
})();

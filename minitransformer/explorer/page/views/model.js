/* The whole model as a graph: a box for each place, an edge with its shape between two boxes. */
const ModelView = (() => {
  "use strict";

  const { element } = Dom;
  const SHOWN = { embedding: "x", self: "p", attention: "p", norm: "y", ffn: "r", output: "z" }; // the array of each box
  const THUMBNAIL = 92;

  function render(content) {
    const { machine } = App;
    const text = Strings.model;
    const of = (stack) => machine.places.filter(({ stack: own, kind }) => own === stack && kind !== "matrix");
    content.append(
      element("div", { class: "head" }, element("h1", {}, text.title), element("p", { class: "intro" }, text.intro), legend()), PlayBar.bar(),
      element("div", { class: "stacks" }, // below the encoder, which is the shorter one, there is room for words
        element("div", { class: "beside" }, machine.isPair && stack(text.encoder, of("source"), "source"), PlayBar.list()),
        stack(text.decoder, of("target"), "target")));
    write(content);
  }

  const key = () => [];

  function update(content, fresh) {
    if (!fresh) return;
    for (const canvas of content.querySelectorAll(".stacks canvas")) Heatmap.update(canvas, { values: App.machine.data(canvas.dataset.array) }, true);
    write(content);
  }

  /* What changes with the numbers, except for the pictures. */
  function write(content) {
    const { machine } = App;
    const { reads, writes, loss } = Strings.model;
    const spell = (name) => [...machine.data(name)].map(App.tokenText).join(" ");
    if (machine.isPair) content.querySelector(".source .reads").textContent = reads(spell("source.ids"));
    content.querySelector(".target .reads").textContent = reads(spell("target.ids"));
    content.querySelector(".target .writes").textContent = writes(Training.rowsOf(machine).map(({ right }) => App.tokenText(right)).join(" "));
    content.querySelector(".loss").textContent = `${loss} L = ${Show.number(machine.loss)}`;
    if (machine.isPair) drawMemory(content.querySelector(".stacks"));
    PlayBar.show();
  }

  const legend = () => element("ul", { class: "legend" }, Object.entries(Strings.legend).map(([kind, text]) => element("li", { class: kind }, text)));

  /* The boxes of one stack, in the order of the computation: the style sheet lets them grow from the bottom up. A sub-layer
     and its norm are framed together: with post-norm, the norm that adds its input again, and with pre-norm the one that it reads. */
  function stack(title, places, name) {
    const parts = [];
    for (let n = 0; n < places.length; n++) {
      const place = places[n];
      if (place.kind === "embedding") parts.push(box(place), edge(`${place.name}.x`));
      else if (place.kind === "output") parts.push(box(place));
      else {
        const [isPre, partner] = [place.kind === "norm", places[n + 1]];
        const isLast = isPre && (!partner || partner.kind === "output"); // the norm after a stack
        if (!isLast) n++;
        parts.push(isLast ? box(place) : element("div", { class: "sublayer" },
          element("span", { class: "skip-path", "aria-hidden": "true" }, element("small", {}, Strings.model.residual)),
          box(place), edge(`${place.name}.y`), box(partner)));
        const next = places[n + 1];
        parts.push(!next ? edge("M", Strings.model.toMemory) : edge(isPre && next.kind === "norm" ? `${next.name}.x` : `${places[n].name}.y`));
      }
    }
    return element("section", { class: `stack ${name}`, "aria-label": title }, element("h2", {}, title), element("p", { class: "reads" }), parts,
      name === "target" && [element("p", { class: "reads writes" }), element("a", { class: "box loss", "data-array": "output.L", href: App.link({ view: "cell", cell: "output.L[]" }), "data-cell": "output.L[]" })]);
  }

  function edge(name, note = null) {
    const { shape, symbol } = App.machine.get(name);
    return element("div", { class: "edge", "data-edge": name, "aria-hidden": "true" },
      element("span", { class: "value arrow", "data-array": name }, "↑"),
      element("span", { class: "shape" }, `${symbol} (${shape.join(", ")})`),
      element("span", { class: "gradient arrow", "data-array": App.machine.partner(name) }, "↓"),
      note && element("small", {}, note));
  }

  function describe(place) {
    const kind = place.kind === "self" && place.stack === "target" ? "masked" : place.kind;
    const { C, F, norm, positions } = MODEL.sizes;
    const { name, text } = Strings.places[kind === "norm" && norm === "pre" ? "preNorm" : kind === "matrix" && !App.machine.isPair ? "onlyMatrix" : kind];
    return { name, text: kind === "ffn" ? Strings.feedForward(C, F) : kind === "embedding" ? Strings.embedding[positions] : text };
  }

  function box(place) {
    const full = `${place.name}.${SHOWN[place.kind]}`;
    const { name, text } = describe(place);
    const picture = (array) => {
      const { shape, symbol } = App.machine.get(array);
      return element("span", { class: "thumbnail" },
        Heatmap.heatmap({ name: array, compact: true, width: THUMBNAIL }),
        element("span", { class: "caption" }, ...Dom.formula([Show.symbol(symbol)]), ` (${shape.join(", ")})`));
    };
    return element("a", { class: "box", href: App.link({ view: "cell", cell: full }), "data-cell": full, "data-place": place.name },
      element("span", { class: "words" }, element("strong", {}, name), element("code", {}, place.name), element("span", { class: "text" }, text)),
      element("span", { class: "thumbnails" }, picture(full), picture(App.machine.partner(full))));
  }

  /* The line from the end of the encoder to each cross-attention, where the two stacks stand side by side. */
  function drawMemory(stacks) {
    stacks.querySelector(".memory")?.remove();
    const edge = stacks.querySelector('[data-edge="M"]');
    const from = edge.getBoundingClientRect();
    const frame = stacks.getBoundingClientRect();
    const boxes = App.machine.places.filter(({ kind }) => kind === "attention")
      .map(({ name }) => stacks.querySelector(`[data-place="${name}"]`).getBoundingClientRect());
    if (boxes[0].left < from.right - frame.width * 0.2) return; // one below the other
    const [x0, y0] = [edge.lastElementChild.getBoundingClientRect().right + 8 - frame.left, from.top + from.height / 2 - frame.top];
    const lines = boxes.flatMap((box) => {
      const [x1, y1] = [box.left - frame.left, box.top + box.height / 2 - frame.top];
      const middle = (from.right - frame.left + x1) / 2 - 6;
      const path = (shift) => `M${x0},${y0 + shift} H${middle + shift} V${y1 + shift} H${x1}`;
      return [["value", "M", 0], ["gradient", "dM", 5]].map(([kind, array, shift]) => element("path", { d: path(shift), class: kind, "data-array": array }));
    });
    stacks.append(element("svg", { class: "memory", width: frame.width, height: frame.height, "aria-hidden": "true" }, lines));
  }

  return { render, key, update, legend, describe };
})();

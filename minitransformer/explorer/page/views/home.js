/* The first minute: the letters that the model reads, those that it writes by itself, and arcs as thick as it looks. */
const HomeView = (() => {
  "use strict";

  const { element } = Dom;
  const text = Strings.home, name = (id) => App.tokenText(id);
  const COLUMN = 100; // units of the picture that a letter is wide
  const MOST_LIKELY = 3, LONG = 30; // texts that a heading has no room for
  const FIRST = 800, EACH = 1600; // milliseconds until the first letter is touched for the reader, and for each
  let written = ""; // what has been written before the reader's eyes: it moves once
  let hint = 0; // the timer that touches one letter after the other
  let untouch = null; // until a pointer or a key comes: what ends that

  function render(content) {
    const shown = writing();
    const hasTour = Boolean(Stations.places(App.machine)); // a GPT has none
    const figure = picture(shown);
    const key = JSON.stringify([MODEL.title, App.weights, App.state.word, shown.target]);
    figure.classList.toggle("writing", key !== written);
    written = key;
    content.append(
      element("h1", {}, text.heading(Stations.count(App.machine), does(shown))), figure, Dom.note(text.gradient),
      element("div", { class: "go" },
        to(hasTour ? "tour" : "cell", hasTour ? text.start : text.links.cell, "primary"),
        Dom.button(Strings.ladder.title, Ladder.focus, { "data-focus": "to-ladder" })),
      element("form", { class: "others", "aria-label": Strings.input.legend, onsubmit: (event) => event.preventDefault() },
        App.field("word", text.another), Models.note(),
        element("span", {}, Object.entries(text.links).map(([view, words]) => to(view, words)))),
      Ladder.section());
    Ladder.begin();
  }

  /* A link that begins at the top of the other view. */
  const to = (view, words, kind = null) => element("a", {
    class: kind, href: App.link({ view, station: 1 }), onclick: (event) => App.instead(event, () => App.set({ view, station: 1 })),
  }, words);

  function does({ target }) {
    if (!Object.hasOwn(text.tasks, MODEL.task)) {
      const [read, write] = [App.words(App.ids().source.filter((id) => id > Engine.EOS)), App.words(target) || text.nothing];
      return read.length + write.length > LONG ? text.texts : text.unknown(read, write);
    }
    return App.weights === "untrained" ? text.untrained(text.tasks[MODEL.task][1], App.state.steps) : text.tasks[MODEL.task][0];
  }

  /* Touch one letter after the other, to say that this can be done, until somebody does it. */
  function showHow(figure, count, touch) {
    clearTimeout(hint);
    if (untouch === undefined || window.matchMedia("(prefers-reduced-motion: reduce)").matches) return;
    let t = -1;
    const next = () => {
      if (!figure.isConnected) return;
      t = t === count - 1 ? -1 : t + 1;
      touch(t < 0 ? null : t);
      hint = setTimeout(next, EACH);
    };
    hint = setTimeout(next, FIRST + 500 * count);
    untouch = () => touch(null);
  }

  for (const kind of ["pointermove", "pointerdown", "keydown", "wheel", "focusin"]) document.addEventListener(kind, () => {
    clearTimeout(hint);
    untouch?.();
    untouch = undefined;
  }, { capture: true, passive: true });

  /* What the model writes by itself -> {target, keys: the ids that are looked at, letters: [{id, looks, likely}]}. */
  function writing() {
    const { source } = App.ids();
    const weights = Object.fromEntries(App.machine.weights().map((name) => [name, App.machine.data(name)]));
    const options = { eps: MODEL.norm_eps, ...Mistakes.list.find(({ id }) => id === App.state.mistake)?.options };
    const target = App.written() ?? Engine.greedyDecode(MODEL.sizes, options, weights, source, MODEL.max_length);
    const machine = Engine.build(MODEL.sizes, { ...options, S: source.length, T: target.length + 1 });
    machine.fill(weights, { source, target });
    machine.run(machine.forward);
    const last = (kind) => [...machine.arrays.values()].findLast(({ symbol, place }) => symbol === "p" && place.rows === "target" && place.kind === kind);
    const { name, place } = last("attention") ?? last("self");
    const first = machine.firstRow;
    const ids = target.length ? target : [likely(machine, first)[0].id]; // if it writes nothing, the token that it ends with
    const read = machine.data(`${place.keys}.ids`).slice(0, place.keys === "source" ? source.length : first + ids.length);
    const keys = [...read].filter((id) => id !== Engine.PAD);
    const letters = ids.map((id, t) => ({ id, looks: keys.map((_, i) => weight(machine, name, first + t, i)), likely: likely(machine, first + t) }));
    return { keys, letters, target };
  }

  /* The weight p, the mean of all heads. */
  const weight = (machine, name, t, i) => Measures.mean([...Array(MODEL.sizes.H).keys()].map((h) => machine.value(name, machine.offsetOf(name, [h, t, i]))));

  function likely(machine, t) {
    const { V } = MODEL.sizes;
    return [...machine.data("output.p").slice(t * V, (t + 1) * V)].map((share, id) => ({ id, share }))
      .sort((a, b) => b.share - a.share).slice(0, MOST_LIKELY);
  }

  /* --- the picture, which runs upwards --- */

  function picture({ keys, letters, target }) {
    const columns = Math.max(keys.length, letters.length, 1), height = 130 + 15 * Math.min(columns, 9);
    const x = (n, all) => (n + (columns - all + 1) / 2) * COLUMN;
    const arcs = letters.map(({ looks }, t) => element("g", { style: `--n: ${t}` }, looks.map((p, i) => {
      const [from, to] = [x(i, keys.length), x(t, letters.length)];
      const d = `M${from},${height} C${from},${height / 2} ${to},${height / 2} ${to},0`;
      return element("path", { d, pathLength: 1, "stroke-width": 1 + 13 * p, "stroke-opacity": p });
    })));
    const said = element("p", { class: "said" }, text.legend(unit()));
    const looks = keys.map(() => element("span", { class: "look" }));
    const show = (t) => {
      arcs.forEach((arc, n) => arc.classList.toggle("other", t !== null && n !== t));
      looks.forEach((look, i) => { look.textContent = t === null ? "" : text.percent(letters[t].looks[i]); });
      said.textContent = t === null ? text.legend(unit()) : sentence(keys, letters, t);
    };
    const touch = (t) => {
      show(t);
      figure.querySelectorAll(".written .tile").forEach((each, n) => each.classList.toggle("touched", n === t));
    };
    const tile = ({ id }, t) => element("button", {
      type: "button", class: tileClass(id), "data-focus": `letter${t}`, "aria-describedby": `looks${t}`,
      onpointerenter: () => show(t), onfocus: () => show(t), onclick: () => show(t), onpointerleave: ({ target }) => { if (target !== document.activeElement) show(null); }, onblur: () => show(null),
    }, name(id));
    const bars = ({ id, share }) => element("li", { style: `--share: ${100 * share}%` },
      element("span", {}, name(id)), " ", element("b", {}, text.percent(share)));
    const figure = element("figure", { class: MODEL.separator ? "letters words" : "letters", style: `--columns: ${columns}` },
      element("p", { class: "side" }, text.writes, " ", element("span", { class: "result", style: `--n: ${letters.length}` }, verdict(target))),
      element("ul", { class: "unseen" }, letters.map((letter, t) =>
        element("li", { id: `looks${t}` }, sentence(keys, letters, t), " ", all(keys, letter)))),
      element("div", { class: "across" },
        element("ol", { class: "written" }, letters.map((letter, t) => element("li", { style: `--n: ${t}` },
          element("ol", { class: "likely", "aria-label": text.likely }, letter.likely.map(bars)), tile(letter, t)))),
        element("svg", { class: "arcs", viewBox: `0 0 ${columns * COLUMN} ${height}`, role: "img", "aria-label": text.arcs(unit()) }, arcs),
        element("ol", { class: "read" }, keys.map((id, i) => element("li", {}, looks[i], element("span", { class: tileClass(id) }, name(id)))))),
      element("p", { class: "side" }, text.reads), said);
    showHow(figure, letters.length, touch);
    return figure;
  }

  const tileClass = (id) => (name(id).length > 2 ? "tile long" : "tile");
  const unit = () => text.units[MODEL.separator ? 1 : 0];

  function sentence(keys, letters, t) {
    const { id, looks } = letters[t];
    const i = looks.indexOf(Math.max(...looks));
    return text.looks(unit(), name(id), text.ordinal(t, letters.length), text.percent(looks[i]), name(keys[i]), text.ordinal(i, keys.length));
  }

  const all = (keys, { looks }) => text.all(looks.map((p, i) => `${name(keys[i])} ${text.percent(p)}`).join(", "));

  function verdict(target) {
    const right = Tasks.solve(App.ids().source.filter((id) => id > Engine.EOS));
    const word = element("strong", {}, App.words(target) || text.nothing);
    if (!right) return [word, ": ", element("span", {}, text.unchecked)];
    const good = String(right) === String(target);
    return [word, " ", element("span", { class: `verdict ${good ? "right" : "wrong"}` }, good ? text.right : text.wrong(App.words(right)))];
  }

  return { render };
})();

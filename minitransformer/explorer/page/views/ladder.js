/* "Write one line of backprop": eight lines of the backward pass, from the logits down to the embeddings. Each is written from its
   formula forward, and six alarms say whether it is right. What somebody has solved is kept in the browser. */
const Ladder = (() => {
  "use strict";

  const { element, button } = Dom;
  const text = Strings.ladder;
  const KEPT = "minitransformer ladder";
  const RUNGS = [ // the array to write, the kind of its place, the arrays of the forward pass that say what it is, and what the line needs
    ["dz", "output", ["p", "loss", "L"], "p, p_star, share"], ["ds", "attention", ["p"], "p, dp"], ["dv", "attention", ["o"], "p, do"], ["dq", "attention", ["s"], "k, ds"],
    ["da", "ffn", ["r"], "a, dr"], ["dx", "norm", ["x_hat", "y"], "x_hat, sigma, dx_hat"], ["dW_q", "attention", ["q"], "x, dq"],
    ["dE", "matrix", ["output.z", "target.e", "source.e"], "DZ, DE_TARGET, DE_SOURCE"],
  ];
  let kept = []; // what is solved, where the browser keeps nothing

  function solved() {
    try {
      kept = JSON.parse(localStorage.getItem(KEPT)) ?? kept;
    } catch {} // a browser may forbid it, or the text may be another's
    return new Set(Array.isArray(kept) ? kept : []);
  }

  function keep(symbol) {
    kept = [...solved().add(symbol)];
    try {
      localStorage.setItem(KEPT, JSON.stringify(kept));
    } catch {} // it is kept as long as the page is open
  }

  const at = () => Math.max(1, Math.min(RUNGS.length, Math.floor(App.state.rung)));

  /* The present rung: {symbol, name, forward, given}; `name` is the last array of this kind, such as "cross.ds". */
  function rung() {
    const [symbol, kind, forward, given] = RUNGS[at() - 1], { machine } = App;
    const place = machine.places.findLast((each) => each.kind === kind) ?? machine.places.findLast((each) => each.kind === "self");
    const nameOf = (each) => (place.name && !each.includes(".") ? `${place.name}.${each}` : each);
    return { symbol, given, name: nameOf(symbol), forward: forward.map(nameOf).filter((each) => machine.arrays.has(each)) };
  }

  /* What somebody has written to the right of the = sign, read as the whole line; the place of a problem is that in `right`. */
  function read(name, right) {
    const found = OwnLine.read(`${name} = ${right}`), before = name.length + 3;
    return found.problem ? { problem: { kind: found.problem.kind, length: found.problem.length, facts: found.problem.facts, at: Math.max(0, found.problem.at - before) } } : found;
  }

  /* The line is tried on a word in which two letters come twice, such as "toot". */
  function subject(name, { mistake, text: line }) {
    const [a, b = a] = MODEL.source.slice(1).concat(MODEL.source), word = [a, b, b, a];
    return {
      key: `${MODEL.title} ${line}`, view: "home", weights: App.weights, mistake, smoothing: 0,
      source: [...word, ...MODEL.source_end], target: Tasks.solve(word) ?? MODEL.target,
    };
  }

  function section() {
    const { symbol, name, forward, given } = rung(), { machine, state } = App, done = solved();
    const steps = RUNGS.map(([each], n) => element("li", {}, element("a", {
      href: App.link({ rung: n + 1, write: "" }), "aria-current": n + 1 === at() ? "step" : null, "data-focus": `rung${n + 1}`, class: done.has(each) && "done",
      onclick: (event) => App.instead(event, () => go(n + 1)),
    }, Dom.formula([Show.symbol(each)]), done.has(each) && element("span", { class: "unseen" }, text.solved))));
    return element("section", { class: "ladder", "aria-labelledby": "ladder" },
      element("h2", { id: "ladder" }, text.title), element("p", { class: "intro" }, text.intro(done.size, RUNGS.length)), element("ol", { class: "rungs" }, steps),
      element("h3", {}, text.task(Show.nameText(symbol), Show.word(machine.get(name)), ModelView.describe(machine.get(name).place).name)),
      element("div", { class: "value" }, element("p", { class: "note" }, text.forward), forward.map((each) =>
        element("p", { class: "formula" }, Dom.formula(Show.equation(machine.get(each).definition, machine))))),
      element("p", { class: "note" }, text.given, element("code", {}, given), ". ", text.how),
      field(name), element("ul", { class: "alarms", "aria-label": Strings.break.who }), element("div", { class: "verdict-of-line", role: "status" }),
      element("details", {}, element("summary", { "data-focus": "clue" }, text.clue), element("p", {}, text.clues[at() - 1])),
      element("details", { ontoggle: ({ target }) => { target.lastChild.textContent = Strings.line.namesOf(...OwnLine.names(name)); } },
        element("summary", { "data-focus": "ladder-names" }, Strings.line.names), element("p", {})),
      state.write !== "" && button(text.share, ({ target }) => share(target), { class: "quiet", "data-focus": "share" }));
  }

  /* A sentence, and the line with a mark at the place. */
  function explanation({ kind, at: start, length, facts }) {
    const line = App.state.write, end = start + length;
    return [element("p", {}, Strings.line.at(start + 1), " ", Strings.line.problems[kind](facts)), element("p", { class: "typed", "aria-hidden": "true" },
      line.slice(0, start), element("mark", {}, line.slice(start, end) || "\u00a0"), line.slice(end))];
  }

  function field(name) {
    const { machine, state } = App, message = element("div", { class: "problem", role: "alert", id: "ladder-problem" });
    const input = element("input", {
      type: "text", value: state.write, placeholder: text.placeholder, "data-focus": "write", autocomplete: "off", spellcheck: "false", autocapitalize: "off",
      "aria-label": text.field(Show.nameText(name)), "aria-describedby": message.id,
    });
    const submit = (event) => {
      event.preventDefault();
      const right = input.value.replace(/^\s*[\w.]+(\[[^\]]*\])?\s*=(?!=)/, "").trim(); // the left side is there
      App.set({ write: right }, { remember: true });
    };
    const found = state.write && read(name, state.write);
    if (found?.problem) {
      input.setAttribute("aria-invalid", "true");
      message.append(...explanation(found.problem));
    }
    const left = { op: "cell", name: machine.get(name).symbol, index: machine.get(name).definition.index };
    return element("div", { class: "own" }, element("form", { class: "setter gradient", onsubmit: submit },
      element("span", { class: "formula" }, Dom.formula([...Show.letters({ place: machine.get(name).place, expression: left }, machine), { text: "=", form: "infix" }])),
      input, element("button", {}, text.test)), message);
  }

  /* Once it is on the page: try the line, and say what each alarm finds as soon as it is there. */
  function begin() {
    const { symbol, name } = rung(), found = App.state.write && read(name, App.state.write);
    if (!found?.mistake) return Experiments.plan(null);
    const tried = subject(name, found), place = document.querySelector(".alarms");
    const show = (id) => place.querySelector(`[data-alarm=${id}]`).replaceChildren(BreakView.head(id, Experiments.result(id, tried)));
    place.append(...Mistakes.detectors.map(({ id }) => element("li", { "data-alarm": id })));
    Mistakes.detectors.forEach(({ id }) => show(id));
    const told = (id) => {
      if (id) show(id);
      const results = Mistakes.detectors.map((each) => ({ id: each.id, ...Experiments.result(each.id, tried) }));
      if (results.every(({ rings }) => rings !== undefined)) judge(results.filter(({ rings }) => rings), tried, symbol, name);
    };
    Experiments.plan(told, tried);
    return told();
  }

  function judge(ringing, tried, symbol, name) {
    const context = Mistakes.context(MODEL, { ...tried, weights: MODEL.weights[tried.weights] });
    const most = Measures.largest(Mistakes.differences(context.right(), context.wrong()).map(({ difference }) => difference));
    const isRight = ringing.length === 0 && most <= Mistakes.EXACT;
    const isNew = isRight && !solved().has(symbol);
    if (isRight) keep(symbol);
    if (isNew) {
      document.querySelector(`[data-focus=rung${at()}]`).classList.add("done");
      document.querySelector(".ladder .intro").textContent = text.intro(solved().size, RUNGS.length);
    }
    const { machine } = App, verdict = isRight ? text.right(at() === RUNGS.length) : ringing.length ? text.rings(ringing.length, ringing.map(({ id }) => Strings.detectors[id].name)) : text.unseen;
    document.querySelector(".verdict-of-line").replaceChildren(element("p", { class: `verdict ${isRight ? "right" : "wrong"}` }, `${isRight ? "✓" : "✗"} ${verdict}`),
      ...ringing.map(({ id }) => element("p", { class: "note" }, `${Strings.detectors[id].name}: ${Strings.detectors[id].text}`)),
      isRight && at() < RUNGS.length ? button(text.next, () => go(at() + 1), { class: "primary", "data-focus": "next-rung" })
        : element("details", {}, element("summary", {}, Strings.line.show), element("p", { class: "formula" }, Dom.formula(Show.equation(machine.get(name).definition, machine)))));
  }

  function go(n) {
    App.set({ rung: n, write: "" }, { remember: true });
    focus();
  }

  /* From a button elsewhere to the field. */
  function focus() {
    if (App.state.view !== "home") App.set({ view: "home" });
    document.querySelector(".ladder").scrollIntoView({ block: "start" });
    document.querySelector("[data-focus=write]").focus({ preventScroll: true });
  }

  /* The address of this rung, with the line if it is not solved yet: the other one shall write it. */
  function share(pressed) {
    const write = solved().has(rung().symbol) ? "" : App.state.write, address = new URL(App.link({ write }), location.href).href;
    const say = (words) => { pressed.textContent = words; };
    (navigator.clipboard?.writeText(address) ?? Promise.reject()).then(() => say(text.copied), () => say(address));
  }

  return { section, begin, focus };
})();

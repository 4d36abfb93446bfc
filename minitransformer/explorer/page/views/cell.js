/* A map of all arrays, to look one up; one array with what it is computed from; and everything about one chosen number. */
const CellView = (() => {
  "use strict";

  const { element, button, note } = Dom;
  const text = Strings.cell;
  const MOST_LINKS = 24;
  const SLICE = 25; // milliseconds of computing, then the page gets its turn
  let exponent = -5; // of h, for the nudge
  let job = null; // what the witnesses are computing

  /* The array whose row shows a chosen one, and its place. */
  function shownBy({ name }) {
    const { machine } = App;
    const array = machine.get(name);
    const shown = array.role === "gradient" ? machine.partner(array.name) ?? array.name : array.name;
    return { name: shown, place: machine.places.find((each) => each.name === machine.get(shown).place.name) };
  }

  const key = () => [App.cell() && shownBy(App.cell()).name];

  function render(content) {
    const chosen = App.cell();
    if (!chosen) return content.append(...map());
    const { place, name } = shownBy(chosen), chips = chipsOf(place, name), frames = framesOf(chosen);
    content.append(
      element("div", { class: "place" }, element("a", { href: App.link({ cell: "" }), "data-cell": "" }, text.back), element("h1", {}, heading(place)),
        element("p", { class: "intro" }, ModelView.describe(place).text), chips, rowsOf(place), ModelView.legend(), row(App.machine.get(name), frames), parts(name, frames)),
      inspector(chosen), element("output", { class: "unseen" }, summary(chosen)));
    return bringIntoView(content, chosen);
  }

  function update(content, fresh) {
    const chosen = App.cell();
    if (!chosen) return;
    const frames = framesOf(chosen);
    if (fresh) content.querySelector(".rows")?.replaceWith(rowsOf(shownBy(chosen).place));
    for (const canvas of content.querySelectorAll(".map canvas")) {
      const { array } = canvas.dataset;
      Heatmap.update(canvas, { values: App.machine.data(array), ...frames(array) }, fresh);
      const note = fresh && canvas.parentElement.querySelector(".rounding");
      if (note) note.hidden = !App.machine.isRounding(array);
    }
    const same = replaceInspector(content.querySelector(".inspector"), inspector(chosen));
    // for a screen reader: the map that has the focus stays
    content.querySelector("output.unseen").textContent = summary(chosen);
    if (!same) bringIntoView(content, chosen);
  }

  /* --- the map --- */

  /* All places with their arrays, in the order of the computation. */
  function map() {
    return [element("h1", {}, text.map), element("p", { class: "intro" }, text.mapIntro), ModelView.legend(),
      ...App.machine.places.map((place) => element("section", { class: "row" },
        element("h2", {}, ModelView.describe(place).name, " ", element("code", {}, place.name || App.globalName())), chipsOf(place)))];
  }

  /* A link to each array of a place. */
  function chipsOf(place, current = null) {
    const { machine } = App, arrays = [...machine.arrays.values()].filter((array) => array.place.name === place.name);
    return element("nav", { class: "arrays", "aria-label": text.arraysOf(heading(place)) }, arrays.map(({ name, symbol }) => element("a", {
      class: `chip ${Show.kind({ name })}`, href: App.link({ view: "cell", cell: name }), "data-cell": name, "data-chip": name, title: Show.word(machine.get(name)),
      "aria-label": `${Show.nameText(name)}: ${Show.word(machine.get(name))}`, "aria-current": name === current ? "true" : null,
    }, Dom.formula([Show.symbol(symbol)]))));
  }

  /* The arrays that an array and its gradient are computed from. */
  function parts(name, frames) {
    const { machine } = App;
    const used = [name, machine.partner(name)].filter(Boolean).flatMap((each) => [...(machine.get(each).definition?.uses ?? [])]);
    const rows = [...new Set(used.map((each) => shownBy({ name: each }).name))].filter((each) => each !== name);
    return rows.length > 0 && element("section", {}, element("h2", {}, text.parts), rows.map((each) => row(machine.get(each), frames)));
  }

  /* What was unfolded stays so; while the number is the same one, its field stays in the window -> whether it is. */
  function replaceInspector(old, made) {
    const open = [...old.querySelectorAll("details[open]")].map(({ dataset }) => dataset.fold);
    const same = old.dataset.cell === made.dataset.cell;
    const scrollTop = same && old.scrollTop, isUsed = old.contains(document.activeElement);
    old.replaceWith(made);
    for (const each of made.querySelectorAll("details")) each.open = open.includes(each.dataset.fold);
    if (same) made.scrollTop = scrollTop;
    if (same && isUsed) made.querySelector(".setter")?.scrollIntoView({ block: "nearest" }); // what is said above it may be longer now
    return same;
  }

  const summary = ({ name, flat }) => (flat === null ? "" : App.cellSummary(name, flat));

  /* frames(name) -> the cell of a map that is chosen, and those that it is computed from; also the one whose partner it is. */
  function framesOf({ name: chosen, flat }) {
    const { machine } = App, sources = flat === null ? [] : machine.comesFrom(chosen, flat);
    return (name) => ({
      selected: name === chosen ? flat : null,
      marked: [...sources, ...(flat === null ? [] : [{ name: machine.partner(chosen), flat }])].filter((cell) => cell.name === name).map((cell) => cell.flat),
    });
  }

  /* Scroll only if the array is not to be seen. */
  function bringIntoView(content, chosen) {
    const map = (of) => content.querySelector(`canvas[data-array="${CSS.escape(of)}"]`);
    const rectangle = (map(chosen.name) ?? map(shownBy(chosen).name))?.getBoundingClientRect();
    if (!rectangle) return;
    const bottom = window.innerHeight * (chosen.flat !== null && window.innerWidth < 1100 ? 0.52 : 1);
    if (rectangle.top >= 0 && rectangle.bottom <= bottom) return;
    window.scrollBy(0, rectangle.top - Math.max(60, (bottom - rectangle.height) / 2));
  }

  const heading = (place) => `${ModelView.describe(place).name}${place.name ? ` (${place.name})` : ""}`;

  function rowsOf(place) {
    if (place.rows !== "target" || place.kind === "matrix") return null;
    const [read, write = Engine.EOS] = App.ids().target.filter((id) => id !== Engine.PAD);
    return element("p", { class: "note rows" }, text.rows(App.tokenText(read), App.tokenText(write)));
  }

  /* One array and its gradient, side by side, below the formula of what is shown. */
  function row(array, frames) {
    const { machine } = App, shown = [array.name, machine.partner(array.name)].filter(Boolean), width = mapWidth();
    return element("article", { class: "array", "data-row": array.name, "aria-label": Show.nameText(array.name) }, shown.map((name) => {
      const { role, shape, definition } = machine.get(name);
      return element("div", { class: `map ${Show.kind({ name })}` },
        element("p", { class: "formula" }, Dom.formula(definition ? Show.equation(definition, machine) : [Show.named(array)])),
        element("p", { class: "about" }, Show.word(machine.get(name)), element("small", {}, ` (${shape.join(", ")})`), " ", element("code", {}, machine.get(name).place.name), " ", globalThis.Lessons?.link(machine.get(name))),
        planted(name), role === "mask" && forbids(machine.get(name)),
        role === "gradient" && element("p", { class: "note rounding", hidden: !machine.isRounding(name) }, text.rounding),
        Heatmap.heatmap({
          name, width, ...frames(name),
          select: (flat) => choose({ name, flat }), enter: () => document.querySelector(".inspector").focus(),
        }));
    }));
  }

  /* What a mask is for, and how to see what happens without it. */
  function forbids({ place: { rows, keys } }) {
    const causal = rows === "target" && keys === "target";
    return note(text.forbids(causal), causal && [" ", text.without,
      element("a", { href: App.link({ view: "break", mistake: "causal-mask-off", cell: "", look: "", guess: "" }) }, Strings.mistakes["causal-mask-off"].name)]);
  }

  /* What a planted mistake changes in an array's line. */
  function planted(name) {
    if (!App.state.mistake || !Experiments.isChanged(name)) return null;
    const text = Strings.break;
    const right = App.machine.get(name).definition ? [App.state.mistake === "own" ? Strings.line.inCell : text.planted, ...Dom.formula(Experiments.line(Experiments.right(), name))] : text.plantedMask;
    return element("p", { class: "formula planted" }, "✗ ", right);
  }

  /* Two maps stand side by side, except on a narrow page. */
  function mapWidth() {
    const all = Math.min(window.innerWidth, 1500);
    if (all < 700) return all - 44;
    return Math.floor((all - (all >= 1100 ? 490 : 84)) / 2);
  }

  const toMap = ({ name }) => document.querySelector(`canvas[data-array="${CSS.escape(name)}"]`)?.focus({ preventScroll: true });

  function choose(cell) {
    App.select(cell);
    toMap(cell);
  }

  /* Go to a cell that another one names; the browser's Back returns. */
  function follow(cell) {
    App.select(cell, {}, { remember: true });
    document.querySelector(".inspector").focus({ preventScroll: true });
  }

  function close(cell) {
    App.set({ cell: cell.name });
    toMap(cell);
  }

  /* --- one number --- */

  function inspector(chosen) {
    const { machine } = App, { name, flat } = chosen;
    if (flat === null) {
      begin(machine.deriving(new Map())); // a browser is slow the first time
      return element("aside", { class: "inspector empty", "aria-label": text.choose }, element("p", {}, text.choose));
    }
    const { role } = machine.get(name);
    const partner = machine.partner(name);
    const value = role === "gradient" ? partner : name;
    const gradient = role === "gradient" ? name : partner;
    return element("aside", {
      class: "inspector", tabindex: -1, "aria-label": App.cellSummary(name, flat), "data-cell": `${name} ${flat}`,
      onkeydown: (event) => { if (event.key === "Escape") close(chosen); },
    },
      button("×", () => close(chosen), { class: "close", "aria-label": text.close }),
      element("h2", {}, App.cellText(name, flat)),
      value && section("value", text.forward, value, flat),
      gradient && section("gradient", text.backward, gradient, flat),
      value && !gradient && note(withoutGradient(value)),
      gradient && why(gradient, flat),
      value && witnesses(value, gradient, flat),
      value && setter(value, flat));
  }

  function withoutGradient(name) {
    if (name === "output.L") return text.noGradientLoss;
    return ["ids", "mask", "input"].includes(App.machine.get(name).role) ? text.noGradientInput : text.noGradient;
  }

  function section(kind, title, name, flat) {
    const { machine } = App;
    const { definition, role, symbol } = machine.get(name);
    const x = machine.value(name, flat);
    const index = machine.indexOf(name, flat).map((i) => [{ tag: "mn", text: String(i) }]);
    const amount = App.edits().find((each) => each.name === name && each.flat === flat)?.amount;
    return element("section", { class: kind }, element("h3", {}, title),
      element("p", { class: "result" }, Dom.formula([Show.named(machine.get(name), index)]), " = ", element("strong", { title: Show.exact(x) }, Show.number(x))),
      definition
        ? element("div", { class: "derivation" },
          element("p", {}, Dom.formula([{ text: "=", form: "infix" }, ...Show.letters(definition, machine)])),
          element("p", {}, "= ", ...Dom.formula(Show.numbers(definition, machine, machine.givenOf(name, flat)), follow)),
          /\W1\[/.test(definition.text) && note(text.bracket))
        : element("p", {}, origin(name)),
      symbol === "M" && note(text.memory),
      amount !== undefined && note(text.edited(role !== "mask" && Show.number(amount), Show.number(machine.nudge(name, flat, -amount)), Show.number(machine.loss))),
      definition && links(text.comesFrom, machine.comesFrom(name, flat), kind),
      further(name, flat));
  }

  /* What a number is that no formula computes. */
  function origin(name) {
    const { role, symbol } = App.machine.get(name);
    const { steps, edits } = App.state;
    if (role !== "weight") return text.origin[role === "input" ? symbol : role];
    const initial = App.weights === "untrained";
    return steps > 0 ? text.weightSteps(steps, initial) : initial ? text.weightInitial : text.weightLearned;
  }

  /* Where a number goes; if that is nowhere, or only where nothing passes, why. */
  function further(name, flat) {
    const { machine } = App;
    const { role } = machine.get(name);
    const cells = machine.goesTo(name, flat);
    const users = machine.definitions.filter(({ uses }) => uses.has(name));
    const off = cells.some((cell) => machine.get(cell.name).definition.expression.op === "relu" && machine.value(cell.name, cell.flat) === 0);
    if (cells.length) return [links(text.goesTo, cells, role), off && note(text.reluOff)];
    const reason = users.length ? text.leftOut(users.map((each) => Show.nameText(each.name)).join(", ")) : role === "gradient" ? text.toOptimizer : text.lastNumber;
    return element("p", {}, `${text.goesTo}: ${reason}`);
  }

  function links(title, cells, kind) {
    return element("details", { class: "links", "data-fold": `${kind} ${title}` }, element("summary", {}, `${title} (${cells.length})`),
      element("ul", {}, cells.slice(0, MOST_LINKS).map(item), cells.length > MOST_LINKS && element("li", {}, text.more(cells.length - MOST_LINKS))));
  }

  function item(cell) {
    return element("li", {}, element("a", {
      href: App.link({ view: "cell", cell: App.setCell(cell) }), onclick: (event) => App.instead(event, () => follow(cell)),
    }, App.cellText(cell.name, cell.flat)), ` = ${Show.number(App.machine.value(cell.name, cell.flat))}`);
  }

  /* Why a gradient is 0: the factors that are 0 are framed above. */
  function why(name, flat) {
    const { machine } = App, { definition } = machine.get(name);
    if (machine.value(name, flat) !== 0) return null;
    const hasZero = Show.numbers(definition, machine, machine.givenOf(name, flat)).some(({ zero }) => zero);
    return element("p", { class: "why" }, hasZero ? text.zero : text.cancel);
  }

  /* --- witnesses --- */

  function witnesses(name, gradient, flat) {
    const { machine } = App;
    if (["ids", "mask"].includes(machine.get(name).role) || name === "output.L") return null;
    const symbol = Show.nameText(machine.get(name).symbol);
    const claimed = gradient ? machine.value(gradient, flat) : null;
    const [exact, output, size] = [element("span", {}), element("output", {}), element("span", {})];
    let complex = null;
    function* ask() {
      const h = 10 ** exponent;
      size.textContent = `h = ${Show.number(h)}`;
      complex ??= yield* machine.deriving(new Map([[name, new Map([[flat, 1]])]]));
      exact.replaceChildren(element("strong", {}, Show.number(complex)), claimed === null ? "" : verdict(claimed, complex, 1e-9));
      const quotient = ((yield* machine.nudging(name, flat, h)) - (yield* machine.nudging(name, flat, -h))) / (2 * h);
      output.replaceChildren(element("strong", {}, Show.number(quotient)), verdict(quotient, complex, 1e-4));
    }
    const slider = element("input", {
      type: "range", min: -12, max: 0, step: 0.5, value: exponent, "aria-label": text.nudge(symbol),
      oninput: () => { exponent = Number(slider.value); begin(ask()); },
    });
    begin(ask());
    return element("section", { class: "witnesses" }, element("h3", {}, text.witnesses),
      element("p", {}, text.complex, ": ", exact),
      element("label", { class: "nudge" }, text.nudge(symbol), slider, size),
      element("p", {}, text.quotient, ": ", output),
      note(text.nudgeHelp));
  }

  /* Compute at once what takes a moment, and the rest in pieces, so that a large model does not hold up the next key. */
  function begin(work) {
    job = work;
    advance(work);
  }

  function advance(work) {
    const end = performance.now() + SLICE;
    let done = false;
    while (!done && performance.now() < end) ({ done } = work.next());
    if (!done) setTimeout(() => work === job && advance(work));
  }

  /* How far a number is from the true derivative. */
  function verdict(found, right, tolerance) {
    const error = Math.abs(found - right);
    const agrees = error <= tolerance * Math.max(Math.abs(right), 1e-6);
    return element("span", { class: `verdict ${agrees ? "right" : "wrong"}` }, agrees ? ` ✓ ${text.agrees}` : ` ✗ ${text.off(Show.number(error))}`,
      agrees && error > 0 ? element("small", {}, ` (${text.off(Show.number(error))})`) : null);
  }

  /* --- changing a number --- */

  function typed(text) {
    const number = Number(text.replaceAll("−", "-").replace(",", "."));
    return text.trim() === "" || !Number.isFinite(number) ? null : number;
  }

  function setter(name, flat) {
    const { machine } = App;
    const { role, symbol } = machine.get(name);
    const label = text.set(Show.nameText(symbol));
    if (role === "ids" || name === "output.L") return null;
    if (App.state.steps > 0) return note(text.locked);
    const now = machine.value(name, flat);
    if (role === "mask") {
      return element("p", {}, button(`${label} ${now ? 0 : 1}`, () => App.edit({ name, flat }, now ? -1 : 1), { "data-focus": "toggle" }));
    }
    const edited = App.edits().some((each) => each.name === name && each.flat === flat);
    const problem = element("span", { class: "problem", role: "alert" });
    const field = element("input", { type: "text", inputmode: "decimal", size: 10, value: Show.number(now), "data-focus": "set" });
    const apply = () => {
      const wanted = typed(field.value);
      if (wanted === null) problem.textContent = text.invalid;
      else if (field.value !== Show.number(now)) App.edit({ name, flat }, wanted - now);
    };
    return element("form", { class: "setter", onsubmit: (event) => { event.preventDefault(); apply(); } },
      element("label", {}, `${label} `, field), element("button", { "data-focus": "apply" }, text.apply),
      edited && button(text.undo, () => App.edit({ name, flat }, null)), problem);
  }

  return { render, key, update, verdict, typed };
})();

/* One array with its formula and one thing to turn, without the rest of the page, as lessons embed it:
   #embed=cross.ds[0,1,2]&turn=cross.s[0,1,3]. What is turned is a number, an entry of a mask, "lr" or "word". */
const EmbedView = (() => {
  "use strict";

  const { element } = Dom;
  const SPAN = { weight: 2, value: 10 }; // how far a slider goes to either side of the computed number
  let untouched = null; // the numbers of the array before anything is turned
  let showTurned = null; // brings the control up to date

  const watched = () => {
    const { name, flat } = App.cell(App.state.embed) ?? { name: "cross.ds" };
    return { name, flat: flat ?? 0 };
  };
  const key = () => [watched().name, App.state.turn];

  function render(content) {
    const { machine, state } = App;
    const { name } = watched();
    const { definition, size } = machine.get(name);
    const cell = App.cell(state.turn);
    untouched = cell && App.build({ sequences: App.ids() }).data(name);
    showTurned = null;
    content.append(...[
      element("h1", {}), !App.cell(state.embed) && element("p", { class: "problem", role: "alert" }, Strings.embed.unknown(state.embed, App.cellText("cross.ds", 0))),
      element("p", { class: "formula" }, Dom.formula(definition ? Show.equation(definition, machine) : [Show.named(machine.get(name))])),
      element("div", { class: "computed" }),
      element("form", { class: "turn", onsubmit: (event) => event.preventDefault() }, control(cell),
        Dom.button(Strings.embed.restart, App.open, { class: "quiet" })),
      element("div", { class: size > 1 && "watched" }, element("div", { class: "map" }),
        element("p", { class: "effect" }, element("span", { role: "status" }), " ", element("a", { target: "_blank" }, Strings.embed.all))),
    ].filter(Boolean));
    if (size > 1) map(content.querySelector(".map"), name);
    update(content, false);
    fit(0);
  }

  /* A frame of the same site is as high as its content; when that shrinks, what is below shall not jump. */
  function fit(least) {
    const frame = window.frameElement;
    if (frame) frame.style.height = `${Math.max(least, document.getElementById("app").offsetHeight + 4)}px`;
  }

  function map(box, name) {
    box.append(Heatmap.heatmap({
      name, width: box.clientWidth - 2, abreast: true, select: (flat) => App.set({ embed: App.setCell({ name, flat }) }),
    }));
  }

  function update(content, fresh) {
    const { machine } = App;
    const { name, flat } = watched();
    const values = machine.data(name);
    const moved = untouched ? [...values.keys()].filter((n) => values[n] !== untouched[n]) : [];
    const find = (selector) => content.querySelector(selector);
    find("h1").textContent = App.cellText(name, flat);
    find(".computed").replaceChildren(...computed(name, flat));
    if (find("canvas")) Heatmap.update(find("canvas"), { values, selected: flat, marked: moved }, fresh);
    showTurned?.();
    find("[role=status]").textContent = Strings.embed.effect(Show.number(machine.loss), untouched && moved.length, values.length);
    find("a").href = App.link({ view: "cell", cell: App.setCell({ name, flat }), embed: "", turn: "" });
    fit(window.innerHeight);
  }

  /* The number, how it is computed, and whether it is right if a mistake is planted. */
  function computed(name, flat) {
    const { machine } = App;
    const { definition } = machine.get(name);
    const x = machine.value(name, flat);
    const of = App.state.mistake && Show.kind({ name }) === "gradient" && machine.partner(name);
    return [
      definition && element("p", {}, "= ", ...Dom.formula(Show.numbers(definition, machine, machine.givenOf(name, flat)))),
      element("p", { class: `result ${Show.kind({ name })}` }, "= ", element("strong", { title: Show.exact(x) }, Show.number(x)),
        of && CellView.verdict(x, machine.complexStep(of, flat), 1e-9)),
    ].filter(Boolean);
  }

  function control(cell) {
    const text = Strings.embed;
    if (App.state.turn === "word") return App.field("word");
    if (App.state.turn === "lr") {
      const choice = Dom.select({ "data-focus": "turn" }, App.rates, App.state.lr, (lr) => App.set({ lr }), Show.exact);
      return element("label", {}, text.rate(App.state.steps), " ", choice);
    }
    if (!cell || cell.flat === null) return null;
    return App.machine.get(cell.name).role === "mask" ? tick(cell) : slider(cell);
  }

  const turnTo = (cell, wanted) => App.edit(cell, wanted - App.machine.value(cell.name, cell.flat));

  function tick(cell) {
    const box = element("input", { type: "checkbox", "data-focus": "turn", onchange: () => turnTo(cell, Number(box.checked)) });
    showTurned = () => { box.checked = App.machine.value(cell.name, cell.flat) === 1; };
    const array = App.machine.get(cell.name);
    return element("label", {}, box, Strings.embed.mayLook(...App.machine.indexOf(cell.name, cell.flat).map((i, axis) => App.label(array, axis, i))));
  }

  /* A slider around what the number is by itself, and a field for any number. */
  function slider(cell) {
    const { name, flat } = cell;
    const label = App.cellText(name, flat);
    const base = App.machine.value(name, flat) - (App.edits().find((each) => each.name === name && each.flat === flat)?.amount ?? 0);
    const span = SPAN[App.machine.get(name).role] ?? SPAN.value;
    const [min, max] = [Math.floor(base) - span, Math.ceil(base) + span];
    const range = element("input", { type: "range", min, max, step: 0.01, "aria-label": label, "data-focus": "turn", oninput: () => turnTo(cell, Number(range.value)) });
    const problem = element("span", { class: "problem", role: "alert" });
    const field = element("input", {
      type: "text", inputmode: "decimal", size: 6, "aria-label": Strings.embed.exactly(label), "data-focus": "exactly",
      onchange: () => {
        const wanted = CellView.typed(field.value);
        problem.textContent = wanted === null ? Strings.cell.invalid : "";
        if (wanted !== null) turnTo(cell, wanted);
      },
    });
    showTurned = () => {
      const x = App.machine.value(name, flat);
      [range.value, field.value] = [x, Show.number(x)];
      range.setAttribute("aria-valuetext", Show.number(x));
    };
    return [element("span", { class: "turned" }, label), range, field, problem];
  }

  return { render, key, update };
})();

/* Two sets of weights side by side on the same input: trained and untrained, or those of two runs. */
const CompareView = (() => {
  "use strict";

  const { element } = Dom;
  const text = Strings.compare;
  let other = null; // {key, machine}: the machine with the weights that the page does not show

  function render(content) {
    const sides = Object.keys(MODEL.weights).map(side), name = chosen(sides[0].machine);
    const shown = [name, sides[0].machine.partner(name)].filter(Boolean);
    content.append(element("h1", {}, text.title(...sides.map(({ weights }) => text.weightsOf(weights)))), element("p", { class: "intro" }, text.intro), overview(sides), picker(name, sides[0].machine),
      ...shown.map((each) => pair(each, sides)));
  }

  /* One model: App's own machine, with its steps of training, or one with the other weights. */
  function side(weights) {
    const { state, machine, run } = App;
    if (weights === App.weights) return { weights, machine, steps: run.steps };
    const { model, word, answer, padding, smoothing, mistake, line, edits } = state;
    const key = JSON.stringify([model, weights, word, answer, padding, smoothing, mistake, line, edits]);
    if (other?.key !== key) other = { key, machine: App.build({ weights }) };
    return { weights, machine: other.machine, steps: 0 };
  }

  const sideName = ({ weights, steps }) => text.side(text.weightsOf(weights), steps);

  function chosen(machine) {
    const array = machine.arrays.get(App.state.compare);
    const name = array?.role === "gradient" ? machine.partner(array.name) : array?.name;
    const role = name && machine.get(name).role;
    return role === "value" || role === "weight" ? name : `${(machine.places.find(({ kind }) => kind === "attention") ?? machine.places.find(({ kind }) => kind === "self")).name}.p`;
  }

  /* --- what is above the arrays --- */

  function overview(sides) {
    const rows = sides.map((each) => {
      const written = Training.rowsOf(each.machine);
      return element("tr", {}, element("th", { scope: "row" }, sideName(each)), element("td", {}, Show.number(each.machine.loss)),
        element("td", {}, Show.number(Measures.mean(written.map(({ probability }) => probability)))),
        element("td", { class: "written" }, written.map((row) => App.tokenText(row.written)).join(" "), " ", App.answer().origin !== "model" && Dom.mark(written.every((row) => row.right === row.written))));
    });
    return element("section", { "aria-label": text.sides }, Dom.table([text.weights, text.loss, text.probability, text.predicts], rows));
  }

  function picker(name, machine) {
    const arrays = [...machine.arrays.values()].filter(({ role }) => ["value", "weight"].includes(role));
    const problem = element("span", { class: "problem", role: "alert" });
    const choose = ({ target }) => {
      const compare = target.value.trim().replace(" ", "."), isKnown = arrays.some((array) => array.name === compare);
      problem.textContent = isKnown ? "" : text.unknown(target.value);
      if (isKnown) App.set({ compare });
    };
    return element("p", { class: "picker" }, element("label", {}, `${text.array} `, element("input", {
      type: "search", list: "arrays", value: name, "data-focus": "compare", autocomplete: "off", spellcheck: "false", onfocus: ({ target }) => target.select(), onchange: choose,
    })), " ", problem, element("datalist", { id: "arrays" }, arrays.map((array) => element("option", { value: array.name }, Show.word(array)))));
  }

  /* --- one array --- */

  function pair(name, sides) {
    const kind = Show.kind({ name });
    const largest = Math.max(...sides.map(({ machine }) => Measures.largest(machine.data(name))));
    const width = window.innerWidth >= 700 ? Math.floor((Math.min(window.innerWidth, 1500) - 80) / 2) : window.innerWidth - 44;
    const maps = sides.map((each) => {
      const { weights, machine, steps } = each;
      const output = element("output", {});
      const map = Heatmap.heatmap({
        name, values: machine.data(name), largest, output, width, what: sideName(each),
        open: (flat) => App.select({ name, flat }, { weights, steps }),
        summary: (flat) => `${App.cellText(name, flat)}: ${sides.map((one) => `${text.weightsOf(one.weights)} ${Show.number(one.machine.value(name, flat))}`).join(", ")}`,
      });
      return element("div", { class: `side ${kind}`, "data-side": weights }, element("h3", {}, sideName(each)), element("div", { class: "map" }, map), output);
    });
    return element("section", { class: "pair-of-maps" }, element("h2", {}, text[kind], ` ${Show.nameText(name)}`),
      element("div", { class: "sides" }, maps));
  }

  return { render };
})();

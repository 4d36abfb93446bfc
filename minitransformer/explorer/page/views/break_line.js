/* The reader's own line: a field to write it in, what is wrong with it and where, and lines to begin with. */
const BreakLine = (() => {
  "use strict";

  const { element } = Dom;
  const text = Strings.line;
  const STARTS = ["ds = p*dp", "dx = dx_hat / sigma", "dz = p - p_star", "da = dr", "dW_q = sum[t](x*q)"]; // each is wrong

  const plant = (line) => App.set({ mistake: "own", line, cell: OwnLine.read(line).array, guess: "" }, { remember: true });

  function section() {
    const message = element("div", { class: "problem", role: "alert", id: "line-problem" });
    const field = element("input", {
      type: "text", value: App.state.line, placeholder: STARTS[0], "data-focus": "line", autocomplete: "off", spellcheck: "false", autocapitalize: "off",
      "aria-describedby": message.id,
    });
    const show = (found) => {
      field.setAttribute("aria-invalid", String(Boolean(found.problem)));
      message.replaceChildren(...(found.problem ? explanation(found) : []));
      if (found.problem && App.state.mistake === "own") message.append(element("p", {}, text.last(App.state.line)));
    };
    const submit = (event) => {
      event.preventDefault();
      const found = OwnLine.read(field.value);
      field.value = found.text;
      if (!found.problem) return plant(found.text);
      show(found);
      field.focus();
      field.setSelectionRange(found.problem.at, found.problem.at + found.problem.length);
    };
    if (App.state.line) show(OwnLine.read(App.state.line));
    const starts = STARTS.filter((line) => OwnLine.read(line).mistake);
    return element("section", { class: "own", "aria-labelledby": "own" }, element("h3", { id: "own", tabindex: -1 }, text.title), element("p", {}, text.task),
      element("form", { class: "setter", onsubmit: submit },
        element("label", {}, text.field, field), element("button", { class: "primary" }, text.plant)), message,
      Dom.note(text.help),
      element("details", { class: "links", ontoggle: ({ target }) => { target.lastChild.textContent = text.namesOf(...OwnLine.names(field.value)); } },
        element("summary", { "data-focus": "names" }, text.names), element("p", {})),
      element("p", { class: "starts" }, text.begin, starts.map((line) => [" ",
        Dom.button(line, () => plant(line), { "data-focus": `start-${line}` })])));
  }

  /* A sentence, and the line with a mark at the place. */
  function explanation({ text: line, problem: { kind, at, length, facts } }) {
    return [element("p", {}, text.at(at + 1), " ", text.problems[kind](facts)),
      element("p", { class: "typed", "aria-hidden": "true" },
        line.slice(0, at), element("mark", {}, line.slice(at, at + length) || "\u00a0"), line.slice(at + length))];
  }

  /* Lines [kind, label, formula] below each other, and the places of the arrays that they belong to. */
  function lines(rows, names = []) {
    const places = names.map((name) => App.machine.get(name).place.name).filter(Boolean);
    return element("dl", { class: "lines" },
      rows.map(([kind, label, formula]) => [element("dt", { class: kind }, label), element("dd", { class: "formula", "aria-label": label }, formula)]),
      places.length > 0 && element("dd", { class: "note" }, Strings.break.inPlaces(places)));
  }

  /* What is planted. The right line is shown when it is asked for, and only to those who have tried. */
  function changed() {
    const all = Experiments.changedLines();
    return element("section", { class: "changed" }, all.length === 0 && element("p", {}, text.same),
      all.map(({ names, wrong }) => lines([["", text.yours, Dom.formula(wrong)]], names)),
      all.length > 0 && !STARTS.includes(App.state.line) && element("details", {}, element("summary", {}, text.show),
        lines(all.map(({ right }) => ["good", `✓ ${Strings.break.right}`, Dom.formula(right)]))));
  }

  /* What the results say about it. */
  function moral(ringing, all) {
    const most = Measures.largest(all.map((array) => array.most));
    if (ringing > 0) return text.again;
    return most > Mistakes.EXACT ? text.unseen : text.solved(most);
  }

  return { section, explanation, lines, changed, moral };
})();

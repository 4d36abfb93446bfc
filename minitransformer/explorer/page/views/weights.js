/* A part of the view of training: how far each weight has moved, and why some have not. */
const WeightsView = (() => {
  "use strict";

  const { element } = Dom;
  const text = Strings.train;
  const sum = (list, of) => list.reduce((total, each) => total + of(each), 0);

  function section(run, changes) {
    return element("section", {}, element("h2", {}, text.weights), summary(run, changes), reasons(run, changes));
  }

  function summary(run, changes) {
    const furthest = changes.reduce((a, b) => (b.largest > a.largest ? b : a));
    const all = sum(changes, ({ values }) => values.length);
    const moved = sum(changes, (each) => each.moved.length);
    const share = text.share(moved, all, ((100 * moved) / all).toFixed(1));
    const [least, most] = Measures.range(changes.flatMap((each) => each.moved.map((flat) => Math.abs(each.values[flat]))));
    if (least > 0.99 * most) return element("p", {}, share, " ", text.equal(Show.number(most), (most / run.adam.lr).toFixed(2)));
    return element("p", {}, share, " ",
      text.furthest(Show.number(furthest.largest), (furthest.largest / run.adam.lr).toFixed(2)),
      Dom.cellLink({ name: furthest.name, flat: furthest.at }), ".");
  }

  /* The weights that stayed, in groups of one reason each. */
  function reasons(run, changes) {
    const stayed = changes.flatMap((each) => [...each.held, ...each.still].map((flat) => ({ name: each.name, flat })));
    if (stayed.length === 0) return null;
    const held = sum(changes, (each) => each.held.length);
    const most = Measures.largest(changes.flatMap((each) => each.held.map((flat) => each.values[flat])));
    const still = stayed.length - held;
    const groups = { keys: [], hidden: [], rest: [] };
    const unmoved = new Map(changes.filter(({ name }) => name.endsWith(".b_1")).map(({ name, still: units }) => [run.machine.get(name).place.name, new Set(units)]));
    for (const cell of stayed) groups[reason(run.machine, cell, unmoved)].push(cell);
    return element("div", {}, element("p", {}, [held > 0 && text.held(held, Show.number(most)), " ", still > 0 && text.still(still), " ", text.stayed(stayed.length)]),
      element("ul", {}, Object.entries(groups).filter(([, cells]) => cells.length > 0).map(([kind, cells]) =>
        element("li", {}, `${text.reasons[kind](cells.length)} `, whyLink(run.machine, cells[0])))));
  }

  /* Why a weight stayed: `unmoved` are the units of each feed-forward layer whose bias had no gradient in any step. */
  function reason(machine, { name, flat }, unmoved) {
    const { symbol, place } = machine.get(name);
    if (App.state.mistake) return "rest";
    if (symbol === "b_k") return "keys";
    if (place.kind !== "ffn" || symbol === "b_2") return "rest";
    const unit = symbol === "W_2" ? Math.floor(flat / machine.sizes.C) : flat % machine.sizes.F;
    return unmoved.get(place.name).has(unit) ? "hidden" : "rest";
  }

  /* The gradient of a weight that stayed, as it is now or, if it is no longer 0, as it was at the start. */
  function whyLink(machine, { name, flat }) {
    const gradient = machine.partner(name) ?? name;
    const same = App.state.steps === 0 || Math.abs(machine.value(gradient, flat)) < App.adam.eps;
    return Dom.cellLink({ name: gradient, flat }, `${text.why} ${App.cellText(gradient, flat)}`, same ? {} : { steps: 0 });
  }

  return { section };
})();

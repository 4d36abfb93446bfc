/* A part of the view of training: how far each weight has moved, and why some have not. */
const WeightsView = (() => {
  "use strict";

  const { element } = Dom;
  const SHOWN = 8; // arrays
  const sum = (list, of) => list.reduce((total, each) => total + of(each), 0);

  function section(run, changes) {
    const text = Strings.train;
    const furthest = changes.reduce((a, b) => (b.largest > a.largest ? b : a));
    const common = furthest.largest / run.adam.lr;
    const size = ({ mean }) => Number(mean.toPrecision(3)); // after the first step, equal but for rounding
    const ordered = [...changes].sort((a, b) => size(b) - size(a));
    return element("section", {}, element("h2", {}, text.weights), summary(run, changes, furthest), reasons(run, changes),
      Dom.note(text.mapsIntro), element("div", { class: "cards" }, ordered.slice(0, SHOWN).map((change) => card(run, change, common))));
  }

  function summary(run, changes, furthest) {
    const text = Strings.train;
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
    const text = Strings.train;
    const stayed = changes.flatMap((each) => [...each.held, ...each.still].map((flat) => ({ name: each.name, flat })));
    if (stayed.length === 0) return null;
    const held = sum(changes, (each) => each.held.length);
    const most = Measures.largest(changes.flatMap((each) => each.held.map((flat) => each.values[flat])));
    const still = stayed.length - held;
    const groups = { keys: [], hidden: [], single: [], rest: [] };
    const unmoved = new Map(changes.filter(({ name }) => name.endsWith(".b_1")).map(({ name, still: units }) => [run.machine.get(name).place.name, new Set(units)]));
    for (const cell of stayed) groups[reason(run.machine, cell, unmoved)].push(cell);
    return element("div", {}, element("p", {}, [held > 0 && text.held(held, Show.number(most)), " ", still > 0 && text.still(still)]),
      element("ul", {}, Object.entries(groups).filter(([, cells]) => cells.length > 0).map(([kind, cells]) =>
        element("li", {}, `${text.reasons[kind](cells.length)} `, whyLink(run.machine, cells[0])))));
  }

  /* Why a weight stayed: `unmoved` are the units of each feed-forward layer whose bias had no gradient in any step. */
  function reason(machine, { name, flat }, unmoved) {
    const { symbol, place } = machine.get(name);
    if (App.state.mistake) return "rest";
    if (symbol === "b_k") return "keys";
    if (["W_q", "b_q", "W_k"].includes(symbol) && hasOneKey(machine, place)) return "single";
    if (place.kind !== "ffn" || symbol === "b_2") return "rest";
    const unit = symbol === "W_2" ? Math.floor(flat / machine.sizes.C) : flat % machine.sizes.F;
    return unmoved.get(place.name).has(unit) ? "hidden" : "rest";
  }

  /* Whether no row of an attention may look at more than one token. */
  function hasOneKey(machine, place) {
    const keys = machine.get(`${place.name}.allowed`).shape[1];
    const seen = machine.data(`${place.name}.allowed`).reduce((counts, allowed, n) => {
      counts[Math.floor(n / keys)] = (counts[Math.floor(n / keys)] ?? 0) + allowed;
      return counts;
    }, []);
    return Math.max(...seen) <= 1;
  }

  /* The gradient of a weight that stayed, as it is now or, if it is no longer 0, as it was at the start. */
  function whyLink(machine, { name, flat }) {
    const gradient = machine.partner(name) ?? name;
    const same = App.state.steps === 0 || Math.abs(machine.value(gradient, flat)) < App.adam.eps;
    return Dom.cellLink({ name: gradient, flat }, `${Strings.train.why} ${App.cellText(gradient, flat)}`, same ? {} : { steps: 0 });
  }

  function card(run, { name, values, moved, mean, largest }, common) {
    const text = Strings.train;
    const rates = values.map((value) => value / run.adam.lr);
    const output = element("output", {});
    const map = Heatmap.heatmap({
      name, values: rates, largest: common, output, width: Math.min(306, window.innerWidth - 60),
      what: text.what, open: (flat) => App.select({ name, flat }),
      summary: (flat) => text.change(App.cellText(name, flat), Show.number(run.start[name][flat]), Show.number(run.machine.value(name, flat)),
        Show.number(values[flat]), rates[flat].toFixed(2).replace("-", "−")),
    });
    return element("article", { class: "card", "data-change": name }, element("h3", {}, Dom.cellLink({ name })),
      Dom.note(text.card(moved.length, values.length, (mean / run.adam.lr).toFixed(2), (largest / run.adam.lr).toFixed(2))),
      element("div", { class: "map value" }, map), output);
  }

  return { section };
})();

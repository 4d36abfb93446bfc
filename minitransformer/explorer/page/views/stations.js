/* The stations of the tour: where the gradient is on its way, what is asked there, and the right answer, all computed
   from the machine. */
const Stations = (() => {
  "use strict";

  const NUDGES = [1, 1e-5, 1e-12], DECIMALS = 8;
  const RATE = 0.1; // of a step down the gradient
  const FEW = 10, STEPS = 50, PATIENCE = 3000; // milliseconds: only a large model on a slow machine needs more
  const ZERO = 1e-12;
  const SIGNS = ["negative", "zero", "positive"];
  const sign = (x, zero = ZERO) => (Math.abs(x) < zero ? "zero" : x > 0 ? "positive" : "negative");
  const { range } = Measures;
  const best = (count, gain) => range(count).reduce((most, n) => (gain(n) > gain(most) ? n : most), 0);
  const value = (machine, { name, flat }) => machine.value(name, flat);

  /* The places of the tour; null in a model that does not end with cross-attention, norm, feed-forward, norm and output. */
  function places(machine) {
    const found = machine.places.slice(machine.places.findLastIndex(({ kind }) => kind === "attention"), -1);
    return found.map(({ kind }) => kind).join(" ") === "attention norm ffn norm output" ? found.map(({ name }) => name) : null;
  }

  /* The cells from dz to a weight of W_q, on the heaviest of its roads; the features c and d between dz and ds, where that road is
     a bundle, are those that bring most. Null without places. */
  function road(machine) {
    if (!places(machine)) return null;
    const [cross, first, , last] = places(machine);
    const { C, D } = machine.sizes, S = machine.lengths.source;
    const rows = Training.rowsOf(machine), roads = Roads.of(machine, cross), { h, q, x, heaviest: { t, w, i } } = roads;
    const cell = (name, ...index) => ({ name, flat: machine.offsetOf(name, index) });
    const at = (...place) => value(machine, cell(...place));
    // beside feed-forward, two gradients meet before the norm, or with pre-norm behind it
    const sum = machine.get(`${first}.dy`).definition.uses.has(`${last}.dx`) ? [`${first}.dy`, `${first}.dx`] : [`${first}.dx`];
    const upper = (c) => [cell("output.dz", t, w), ...["output.dy", `${last}.dx`, ...sum].map((name) => cell(name, t, c))];
    const lower = [cell(`${cross}.dp`, h, t, i), cell(`${cross}.ds`, h, t, i), cell(`${cross}.dq`, h, t, q), cell(`${cross}.dW_q`, x, h * D + q)];
    const [dp, ds, dq, dW] = lower, sense = Math.sign(value(machine, dW) * slopes(machine, lower)), ways = range(C).map(upper);
    const brought = ways.map((way) => sense * value(machine, way[0]) * slopes(machine, way));
    const most = best(C * D, (n) => brought[Math.floor(n / D)] * at(`${cross}.W_o`, h * D + (n % D), Math.floor(n / D)) * at(`${cross}.v`, h, i, n % D));
    const way = [...ways[Math.floor(most / D)], cell(`${cross}.do`, h, t, most % D), ...lower], all = (of) => range(S).map((n) => of(n));
    const key = (n) => Strings.tour.letter(App.tokenText(machine.value("source.ids", n)), n + 1);
    /* An array with the cells that are framed: those with this index, where null is any. */
    const part = (name, ...index) => ({
      name, marked: range(machine.get(name).size).filter((flat) => machine.indexOf(name, flat).every((n, axis) => [null, n].includes(index[axis]))),
    });
    return { machine, way, roads, rows, cross, last, C, D, t, h, w, i, q, x, cell, part, at, dp, ds, dq, dW, all, key, right: App.tokenText(rows[t].right) };
  }

  /* How much a gradient grows if another one, earlier on the way back, grows by 1. */
  function slope(machine, from, to) {
    const [start, end] = [from, to].map(({ name }) => machine.definitions.indexOf(machine.get(name).definition) + 1);
    const values = machine.data(from.name), kept = values[from.flat];
    const set = (x) => {
      values[from.flat] = x;
      machine.run(machine.definitions.slice(start, end));
      return value(machine, to);
    };
    return set(kept + 1) - set(kept);
  }

  const slopes = (machine, way) => way.slice(1).reduce((all, cell, n) => all * slope(machine, way[n], cell), 1);

  /* {cell, before}: the number, and the arrays that the question needs, or the parts of them with the `first` indices; `facts`
     for the texts; and what is asked: `options` with those that are `right`, or a `number` between two others. */
  const ALL = {
    learning() {
      const weights = "untrained" in MODEL.weights ? "untrained" : App.weights, cell = { name: "output.L", flat: 0 };
      const twin = App.build({ weights }), run = descend(twin, RATE, STEPS), n = run.firstRight;
      const facts = { fresh: weights === "untrained", count: count(twin), word: App.words(App.answer().ids), n: n < 0 ? null : n, steps: run.steps };
      return { cell, weights, facts, options: ["few", "some", "more"], right: [n < 0 ? "more" : n > FEW ? "some" : "few"], run };
    },
    forward({ machine, cross, rows, t, h, C, cell, at, right }) {
      const number = at("output.loss", t), p = rows[t].probability, short = Math.abs(number + Math.log(p)) < ZERO;
      const facts = { right, weights: Strings.compare.weightsOf(App.weights), percent: Strings.home.percent(p), p, smooth: machine.sizes.smoothing > 0, rows: rows.length, C, head: Strings.heatmap.head(h), heads: machine.sizes.H, read: App.tokenText(machine.value("target.ids", t)) };
      const before = [["target.x", t], [`${cross}.p`, h, t], ["output.y", t], ["output.z", t], ["output.p", t]].map(([name, ...first]) => ({ name, first }));
      before.at(-1).marked = [cell("output.p", t, rows[t].right).flat];
      return { cell: cell("output.loss", t), before, short, facts, number, from: 0, to: Math.max(4, Math.ceil(1.2 * number)) };
    },
    logits({ machine, rows, t, w, way: [dz] }) {
      const [p, goal] = ["output.p", "output.p_star"].map((name) => machine.value(name, dz.flat)), facts = { letter: App.tokenText(w), isRight: w === rows[t].right, p, goal, rows: rows.length };
      return { cell: dz, before: [{ name: "output.p", first: [t], marked: [dz.flat] }], facts, options: SIGNS, first: [t], right: [sign(value(machine, dz))] };
    },
    norm({ machine, last, C, t, part, at, way: [, , cell] }) {
      const [before, after] = [`${last}.dx_hat`, cell.name].map((name) => range(C).map((c) => at(name, t, c)));
      const sum = (list) => list.reduce((a, b) => a + b), rounding = ZERO * (1 + Measures.largest(after));
      const facts = { C, c: machine.indexOf(cell.name, cell.flat)[1], before: sum(before), after: sum(after) };
      const right = sign(facts.after, rounding), { marked } = part(cell.name, t, null);
      return { cell, marked, before: [{ name: `${last}.dx_hat`, first: [t] }], short: right === "zero", first: [t], facts, options: SIGNS, right: [right] };
    },
    residual({ machine, C, t, way: [, , road, cell] }) {
      const around = value(machine, road), through = value(machine, cell) - around, before = [{ name: road.name, first: [t], marked: [road.flat] }];
      return { cell, before, short: true, first: [t], facts: { around, through, C }, options: ["larger", "sum", "mean"], right: ["sum"] };
    },
    price({ machine, cross, D, dp, t, h, i, part, key, right }) {
      const price = value(machine, dp), before = [part(`${cross}.do`, h, t, null), part(`${cross}.v`, h, i, null)];
      return { cell: dp, before, facts: { right, key: key(i), price, D, head: Strings.heatmap.head(h) }, options: SIGNS, right: [sign(price)] };
    },
    score({ machine, cross, dp: { name, flat }, ds, t, h, i, part, at, all, key }) {
      const [p, dp, mean] = [at(`${cross}.p`, h, t, i), machine.value(name, flat), at(`${cross}.dp_mean`, h, t)];
      const most = Number(Measures.largest(all((n) => at(name, h, t, n))).toPrecision(1)) || 1;
      const terms = all((n) => [`${cross}.p`, name].map((each) => Show.number(at(each, h, t, n)).replace(/^−.*/, "($&)")).join(" · ")).join(" + ");
      const facts = { key: key(i), p, dp, mean, terms };
      return { cell: ds, before: [part(`${cross}.p`, h, t, null), part(name, h, t, null)], facts, number: value(machine, ds), from: -most, to: most };
    },
    query({ ds, dq, cross, D, t, h, q, part, at, all, key }) {
      const pulls = all((n) => {
        const score = at(ds.name, h, t, n), k = at(`${cross}.k`, h, n, q);
        return { ds: score, k, pull: (score * k) / Math.sqrt(D) };
      });
      const size = (n) => Math.abs(pulls[n].pull), shown = all(Number).sort((a, b) => size(b) - size(a)).slice(0, 3);
      const right = String(shown[0]), options = shown.sort((a, b) => a - b).map(String);
      const before = [part(ds.name, h, t, null), part(`${cross}.k`, h, null, q)];
      return { cell: dq, before, facts: { names: all(key), pulls }, options, right: [right] };
    },
    weight({ machine, cross, rows, dq, dW, t, h, q, x, part, at }) {
      const terms = rows.map((_, n) => at(`${cross}.x`, n, x) * at(dq.name, h, n, q));
      const count = terms.filter((term) => Math.abs(term) > ZERO).length;
      const facts = { home: machine.indexOf(dW.name, dW.flat).join(", "), rows: rows.length, count, own: terms[t], sum: value(machine, dW) };
      const before = [part(`${cross}.x`, null, x), part(dq.name, h, null, q)];
      return { cell: dW, before, facts, options: ["none", "one", "more"], right: [["none", "one"][count] ?? "more"] };
    },
    nudge({ machine, cross, dW }) {
      const weight = { name: `${cross}.W_q`, flat: dW.flat }, gradient = value(machine, dW);
      const quotient = (h) => (machine.nudge(weight.name, dW.flat, h) - machine.nudge(weight.name, dW.flat, -h)) / (2 * h);
      const errors = NUDGES.map((h) => Math.abs(quotient(h) - gradient)), least = Math.min(...errors), best = NUDGES.filter((_, n) => errors[n] === least);
      const [found, exact] = [quotient(best[0]), gradient].map((x) => Show.exact(x.toFixed(DECIMALS)));
      const facts = { gradient, errors, found, exact, decimals: DECIMALS, isRight: least < 10 ** -DECIMALS };
      return { cell: weight, before: [{ name: weight.name, marked: [weight.flat] }], facts, options: NUDGES.map(String), right: best.map(String) };
    },
  };

  const count = (machine) => machine.weights().reduce((sum, name) => sum + machine.get(name).size, 0).toLocaleString(Strings.language);

  /* Steps without Adam, each weight by -rate times its gradient. */
  function descend(machine, rate, steps) {
    const arrays = machine.weights().map((name) => [machine.data(name), machine.data(machine.partner(name))]);
    const descent = { steps: 0, step() { this.steps++; arrays.forEach(([w, g]) => g.forEach((x, n) => { w[n] -= rate * x; })); } };
    const run = new Training.Run(machine, descent);
    run.advance(steps, PATIENCE);
    return run;
  }

  return { places, road, count, names: Object.keys(ALL), at: (name, road) => ALL[name](road) };
})();

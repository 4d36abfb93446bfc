/* The stations of the tour: where the gradient is on its way, what is asked there, and the right answer, all computed
   from the machine. */
const Stations = (() => {
  "use strict";

  const NUDGES = [1, 1e-5, 1e-12];
  const RATES = [0.01, 0.1, 10]; // of one step down the gradient
  const STEPS = 50, PATIENCE = 100; // milliseconds for so many steps
  const ZERO = 1e-12;
  const SIGNS = ["negative", "zero", "positive"];
  const sign = (x, zero = ZERO) => (Math.abs(x) < zero ? "zero" : x > 0 ? "positive" : "negative");
  const range = (count) => Array.from({ length: count }, (_, n) => n);
  const largest = (count, size) => range(count).reduce((best, n) => (Math.abs(size(n)) > Math.abs(size(best)) ? n : best), 0);
  const value = (machine, { name, flat }) => machine.value(name, flat);

  /* The cells from dz of the second row to a weight of W_q, each of them in the largest term of the next one; null in a
     model that does not end with cross-attention, norm, feed-forward, norm and output. */
  function road(machine) {
    const places = machine.places.slice(machine.places.findLastIndex(({ kind }) => kind === "attention"), -1);
    if (places.map(({ kind }) => kind).join(" ") !== "attention norm ffn norm output") return null;
    const [cross, first, , last] = places.map(({ name }) => name);
    const { C, D, H } = machine.sizes, S = machine.lengths.source;
    const rows = Training.rowsOf(machine), t = Math.min(1, rows.length - 1);
    const cell = (name, ...index) => ({ name, flat: machine.offsetOf(name, index) });
    const at = (...place) => value(machine, cell(...place));
    const score = largest(H * S, (n) => at(`${cross}.ds`, Math.floor(n / S), t, n % S));
    const [h, i] = [Math.floor(score / S), score % S];
    const d = largest(D, (n) => at(`${cross}.do`, h, t, n) * at(`${cross}.v`, h, i, n));
    const c = largest(C, (n) => at(`${cross}.dy`, t, n) * at(`${cross}.W_o`, h * D + d, n));
    const q = largest(D, (n) => at(`${cross}.dq`, h, t, n));
    const x = largest(C, (n) => at(`${cross}.x`, t, n));
    // beside feed-forward, two gradients meet before the norm, or with pre-norm behind it
    const sum = machine.get(`${first}.dy`).definition.uses.has(`${last}.dx`) ? [`${first}.dy`, `${first}.dx`] : [`${first}.dx`];
    const way = [
      cell("output.dz", t, rows[t].right), ...["output.dy", `${last}.dx`, ...sum].map((name) => cell(name, t, c)), cell(`${cross}.do`, h, t, d),
      cell(`${cross}.dp`, h, t, i), cell(`${cross}.ds`, h, t, i), cell(`${cross}.dq`, h, t, q), cell(`${cross}.dW_q`, x, h * D + q),
    ];
    const [dp, ds, dq, dW] = way.slice(-4), all = (of) => range(S).map((n) => of(n));
    const key = (n) => Strings.tour.letter(App.tokenText(machine.value("source.ids", n)), n + 1);
    return { machine, way, rows, cross, last, C, D, t, h, i, q, x, cell, at, dp, ds, dq, dW, all, key, right: App.tokenText(rows[t].right) };
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

  /* The numbers of the way, and the factor from each to the next; the first is the slope of the loss itself. */
  const factors = ({ machine, way }) => way.map((cell, n) => ({
    cell, number: value(machine, cell), factor: n === 0 ? value(machine, cell) : slope(machine, way[n - 1], cell),
  }));

  /* {cell, before, after}: the number, and the arrays before and after the guess; `facts` for the texts; and what is asked:
     `options` with those that are `right`, or a `number` between two others. */
  const ALL = {
    loss({ machine, rows, t, cell, at, right }) {
      const number = at("output.loss", t), facts = { right, percent: Strings.tour.percent(rows[t].probability), smooth: machine.sizes.smoothing > 0 };
      return { cell: cell("output.loss", t), before: "output.p", after: "output.p", facts, number, from: 0, to: Math.max(4, Math.ceil(1.2 * number)) };
    },
    logits({ machine, way: [dz], right }) {
      const [p, goal] = ["output.p", "output.p_star"].map((name) => machine.value(name, dz.flat));
      return { cell: dz, before: "output.p", facts: { right, p, goal }, options: SIGNS, right: [sign(value(machine, dz))] };
    },
    norm({ last, C, t, at, way: [, , cell] }) {
      const [before, after] = [`${last}.dx_hat`, cell.name].map((name) => range(C).map((c) => at(name, t, c)));
      const sum = (list) => list.reduce((a, b) => a + b), rounding = ZERO * (1 + Measures.largest(after));
      const facts = { C, before: sum(before), after: sum(after) };
      return { cell, before: `${last}.dx_hat`, facts, options: SIGNS, right: [sign(facts.after, rounding)] };
    },
    residual({ machine, way: [, , road, cell] }) {
      const around = value(machine, road), through = value(machine, cell) - around, [a, b] = [around, through].map(Math.abs);
      const right = Math.abs(a - b) <= 0.1 * Math.max(a, b) ? "equal" : a > b ? "around" : "through";
      return { cell, before: road.name, facts: { around, through }, options: ["around", "equal", "through"], right: [right] };
    },
    price({ machine, cross, dp, i, key, right }) {
      const price = value(machine, dp);
      return { cell: dp, before: `${cross}.do`, facts: { right, key: key(i), price }, options: SIGNS, right: [sign(price)] };
    },
    score({ machine, cross, dp: { name, flat }, ds, t, h, i, at, all, key }) {
      const [p, dp, mean] = [at(`${cross}.p`, h, t, i), machine.value(name, flat), at(`${cross}.dp_mean`, h, t)];
      const most = Number(Measures.largest(all((n) => at(name, h, t, n))).toPrecision(1)) || 1;
      const facts = { key: key(i), p, dp, mean, alone: p === 1, below: dp < mean };
      return { cell: ds, before: name, facts, number: value(machine, ds), from: -most, to: most };
    },
    query({ ds, dq, cross, D, t, h, q, at, all, key }) {
      const pulls = all((n) => {
        const score = at(ds.name, h, t, n), k = at(`${cross}.k`, h, n, q);
        return { ds: score, k, pull: (score * k) / Math.sqrt(D) };
      });
      const size = (n) => Math.abs(pulls[n].pull), shown = all(Number).sort((a, b) => size(b) - size(a)).slice(0, 3);
      const right = size(shown[0]) < ZERO ? "none" : String(shown[0]), options = [...shown.sort((a, b) => a - b).map(String), "none"];
      return { cell: dq, before: ds.name, facts: { names: all(key), pulls }, options, right: [right] };
    },
    weight({ machine, cross, rows, dq, dW, t, h, q, x, at }) {
      const terms = rows.map((_, n) => at(`${cross}.x`, n, x) * at(dq.name, h, n, q));
      const count = terms.filter((term) => Math.abs(term) > ZERO).length;
      const facts = { rows: rows.length, count, own: terms[t], sum: value(machine, dW) };
      return { cell: dW, before: dq.name, facts, options: ["none", "one", "more"], right: [["none", "one"][count] ?? "more"] };
    },
    nudge({ machine, cross, dW }) {
      const weight = { name: `${cross}.W_q`, flat: dW.flat }, gradient = value(machine, dW);
      const quotient = (h) => (machine.nudge(weight.name, dW.flat, h) - machine.nudge(weight.name, dW.flat, -h)) / (2 * h);
      const errors = NUDGES.map((h) => Math.abs(quotient(h) - gradient));
      const right = NUDGES.filter((_, n) => errors[n] === Math.min(...errors)).map(String);
      const play = { from: -12, to: 0, start: -5, tell: (h) => Strings.tour.quotient(...[h, quotient(h), gradient].map(Show.number)) };
      return { cell: weight, before: weight.name, after: dW.name, facts: { gradient, errors }, options: NUDGES.map(String), right, play };
    },
    step({ machine }) {
      const weights = "untrained" in MODEL.weights ? "untrained" : App.weights, twin = App.build({ weights });
      const before = twin.loss, after = RATES.map((rate) => descend(twin, rate, 1)[1]);
      const count = machine.weights().reduce((sum, name) => sum + machine.get(name).size, 0);
      const right = RATES.filter((_, n) => after[n] === Math.min(...after)).map(String);
      const curve = (rate) => descend(twin, rate, STEPS);
      const tell = (rate, losses) => Strings.tour.stepped(...[rate, losses[0], losses[1], losses.at(-1), losses.length - 1].map(Show.number));
      const facts = { count, loss: before, after, lower: after.filter((loss) => loss < before).length };
      return {
        cell: { name: "output.L", flat: 0 }, weights, facts, options: RATES.map(String), right, play: { from: -3, to: 1, start: -1, tell, curve },
      };
    },
  };

  /* The losses of steps without Adam, each weight by -rate times its gradient; afterwards the weights are what they were. */
  function descend(machine, rate, steps) {
    const arrays = machine.weights().map((name) => [machine.data(name), machine.data(machine.partner(name)), name]);
    const descent = { steps: 0, step() { this.steps++; arrays.forEach(([w, g]) => g.forEach((x, n) => { w[n] -= rate * x; })); } };
    const run = new Training.Run(machine, descent);
    run.advance(steps, PATIENCE);
    arrays.forEach(([w, , name]) => w.set(run.start[name]));
    machine.run();
    return run.losses;
  }

  return { road, factors, names: Object.keys(ALL), at: (name, road) => ALL[name](road) };
})();

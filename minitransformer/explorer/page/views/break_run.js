/* What the detectors found, computed in pieces so that the page stays responsive, and how the machine with the mistake
   differs from the right one. */
const Experiments = (() => {
  "use strict";

  const SLICE = 25; // ms of computing, then the page gets its turn
  const found = new Map(); // input -> Map("mistake/detector" -> result)
  let job = null; // {input, line, pairs, tell, work, timer}
  let twins = null; // {machine, steps, right}

  /* --- detectors --- */

  /* What all results depend on, except for the mistake. */
  function input() {
    const { model, word, answer, padding, smoothing } = App.state;
    return JSON.stringify([model, word, answer, padding, smoothing, App.weights]);
  }

  function results() {
    if (!found.has(input())) found.set(input(), new Map());
    return found.get(input());
  }

  const keyOf = (mistake, detector) => `${mistake === "own" ? App.state.line : mistake}/${detector}`;

  /* What a detector found for a mistake ("" is the right model), or null. */
  const result = (mistake, detector) => results().get(keyOf(mistake, detector)) ?? null;

  /* The right model, the reader's own line if there is one, and all mistakes. */
  const rows = () => ["", ...(App.planted("own") ? ["own"] : []), ...Mistakes.list.map(({ id }) => id)];

  const pairsOf = (mistake) => Mistakes.detectors.map(({ id }) => [mistake, id]);
  const allPairs = () => rows().flatMap(pairsOf);
  const missing = (pairs) => pairs.filter((pair) => !result(...pair));

  /* Compute these results one after the other, and no others; `tell(mistake, detector, part)` hears how much of one is done. */
  function plan(pairs, tell) {
    const { line } = App.state;
    const work = job?.input === input() && job.line === line ? job.work : null;
    stop();
    job = { input: input(), line, pairs, tell, work, timer: setTimeout(compute, 0) };
  }

  function stop() {
    clearTimeout(job?.timer);
    job = null;
  }

  function compute() {
    const [next] = missing(job.pairs);
    if (!next || job.input !== input() || App.state.view !== "break") return stop();
    if (job.work?.pair.join() !== next.join()) job.work = begin(next);
    const { work, tell } = job;
    const end = performance.now() + SLICE;
    let step;
    do {
      step = work.pieces.next();
      work.done++;
    } while (!step.done && performance.now() < end);
    if (step.done) results().set(keyOf(...next), step.value);
    job.timer = setTimeout(compute, 0);
    tell(...next, step.done ? 1 : work.done / work.count);
  }

  function begin(pair) {
    const [id, name] = pair;
    const { source, target } = App.ids();
    const { weights, state } = App;
    const context = Mistakes.context(MODEL, { weights: MODEL.weights[weights], source, target, mistake: App.planted(id), smoothing: state.smoothing });
    const detector = Mistakes.detectors.find((each) => each.id === name);
    const pieces = detector.work ? detector.work(context) : atOnce(() => detector.run(context));
    return { pair, pieces, done: 0, count: 2 * context.steps + 1 };
  }

  function* atOnce(run) {
    return run();
  }

  /* --- the two machines --- */

  /* The right model with the weights, the input and the changes by hand of App.machine. */
  function right() {
    const { machine, state } = App;
    if (twins?.machine === machine && twins.steps === state.steps) return twins.right;
    const made = App.build({ mistake: "" });
    for (const name of made.weights()) made.data(name).set(machine.data(name));
    made.run();
    twins = { machine, steps: state.steps, right: made };
    return made;
  }

  /* Whether the mistake changes the line of an array, or how a mask is filled in. */
  function isChanged(name) {
    const [wrong, good] = [App.machine, right()];
    const { definition, role, place } = wrong.get(name);
    if (role === "mask") return wrong.causal !== good.causal && place.rows === "target" && place.keys === "target";
    return Boolean(definition) && definition.text !== good.get(name).definition.text;
  }

  const line = (machine, name) => Show.equation(machine.get(name).definition, machine);

  /* The lines that the mistake changes, forward first: {names, right, wrong}, the same line of several places once. */
  function changedLines() {
    const lines = new Map();
    for (const { name, text } of App.machine.definitions) {
      if (!isChanged(name)) continue;
      const key = `${right().get(name).definition.text} ${text}`;
      if (!lines.has(key)) lines.set(key, { names: [], right: line(right(), name), wrong: line(App.machine, name) });
      lines.get(key).names.push(name);
    }
    return [...lines.values()];
  }

  /* All arrays in the order of the computation: {name, phase, most, relative, differs, changed}. */
  function differences() {
    const [good, wrong] = [right(), App.machine];
    const all = Mistakes.differences(good, wrong);
    for (const { name, role, place } of wrong.arrays.values()) {
      if (role === "mask") all.splice(all.findIndex((array) => wrong.get(array.name).place.name === place.name), 0, Mistakes.compared(good, wrong, name));
    }
    return all.map(({ name, phase, difference, size }) => (
      { name, phase, most: difference, relative: difference / (size || 1), differs: difference > Mistakes.EXACT, changed: isChanged(name) }));
  }

  return { input, result, rows, pairsOf, allPairs, missing, plan, stop, right, isChanged, line, changedLines, differences };
})();

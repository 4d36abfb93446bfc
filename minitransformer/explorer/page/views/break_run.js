/* What the detectors found, computed in pieces so that the page stays responsive, and how the machine with the mistake
   differs from the right one. */
const Experiments = (() => {
  "use strict";

  const SLICE = 25; // ms of computing, then the page gets its turn
  const found = new Map(); // key -> {detector: result}
  let job = null; // {subject, tell, work, timer}
  let twins = null; // {machine, steps, right}

  /* --- detectors --- */

  /* What is tested, unless a view names another one: {key, view, weights, source, target, mistake, smoothing}. */
  function ofPage() {
    const { model, word, answer, padding, smoothing, mistake, line } = App.state;
    const key = JSON.stringify([model, word, answer, padding, smoothing, App.weights, mistake, mistake === "own" && line]);
    return { key, view: "break", weights: App.weights, ...App.ids(), mistake: App.planted(), smoothing };
  }

  function results(key) {
    if (!found.has(key)) found.set(key, {});
    return found.get(key);
  }

  /* What a detector found for the planted mistake or the right model, or undefined. */
  const result = (detector, { key } = ofPage()) => results(key)[detector];

  /* Compute all results one after the other; tell(detector) hears that one is there. Without it, compute none. */
  function plan(tell, subject = ofPage()) {
    clearTimeout(job?.timer);
    job = tell ? { subject, tell, work: job?.subject.key === subject.key ? job.work : null, timer: setTimeout(compute) } : null;
  }

  function compute() {
    const { key, view } = job.subject, next = Mistakes.detectors.find(({ id }) => !results(key)[id]);
    if (!next || App.state.view !== view) return;
    if (job.work?.id !== next.id) job.work = begin(next, job.subject);
    const end = performance.now() + SLICE;
    let step;
    do step = job.work.pieces.next(); while (!step.done && performance.now() < end);
    job.timer = setTimeout(compute);
    if (!step.done) return;
    results(key)[next.id] = step.value;
    job.tell(next.id);
  }

  const begin = ({ id, run, work = atOnce(run) }, subject) => ({ id, pieces: work(Mistakes.context(MODEL, { ...subject, weights: MODEL.weights[subject.weights] })) });

  const atOnce = (run) => function* (context) {
    return run(context);
  };

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

  /* All arrays in the order of the computation: {name, phase, most, differs, changed}. */
  function differences() {
    const [good, wrong] = [right(), App.machine];
    const all = Mistakes.differences(good, wrong);
    for (const { name, role, place } of wrong.arrays.values()) {
      if (role === "mask") all.splice(all.findIndex((array) => wrong.get(array.name).place.name === place.name), 0, Mistakes.compared(good, wrong, name));
    }
    return all.map(({ name, phase, difference }) => (
      { name, phase, most: difference, differs: difference > Mistakes.EXACT, changed: isChanged(name) }));
  }

  return { result, plan, right, isChanged, line, changedLines, differences };
})();

/* A machine that learns: it takes steps of Adam, and remembers where it began and what each step did. */
const Training = (() => {
  "use strict";

  class Run {
    constructor(machine, adam) {
      Object.assign(this, { machine, adam, losses: [], rows: [] });
      this.start = copyOfWeights(machine);
      this.record();
    }

    get steps() {
      return this.adam.steps;
    }

    record() {
      this.losses.push(this.machine.loss);
      this.rows.push(rowsOf(this.machine));
    }

    /* Take the steps that are missing, or as many as fit into some milliseconds -> whether none is missing any more. */
    advance(steps, milliseconds = Infinity) {
      const end = performance.now() + milliseconds;
      while (this.steps < steps && performance.now() < end) {
        this.adam.step(this.machine);
        this.machine.run();
        this.record();
      }
      return this.steps >= steps;
    }

    /* The first step after which every row writes its right token, or -1. */
    get firstRight() {
      return this.rows.findIndex((rows) => rows.every(({ right, written }) => right === written));
    }
  }

  function copyOfWeights(machine) {
    return Object.fromEntries(machine.weights().map((name) => [name, machine.data(name).slice()]));
  }

  /* For each row that is to write a token: that token, its probability, and the most likely one. */
  function rowsOf(machine) {
    const [p, ids, V] = [machine.data("output.p"), machine.data("output.ids"), machine.sizes.V];
    return [...ids].map((right, t) => {
      const row = p.subarray(t * V, (t + 1) * V);
      return { t, right, probability: row[right], written: row.indexOf(Math.max(...row)) };
    }).filter(({ right }) => right !== Engine.PAD);
  }

  /* What the steps did to each array of weights: a weight is `still` if its gradients were all exactly 0, and `held` if their
     size is below Adam's eps. */
  function changes(run) {
    const { adam, start, machine } = run;
    const correction = 1 - adam.beta_2 ** adam.steps;
    return machine.weights().map((name) => {
      const values = machine.data(name).map((w, i) => w - start[name][i]);
      const kinds = { moved: [], held: [], still: [] };
      adam.means.get(name)?.[1].forEach((m2, i) => {
        kinds[m2 === 0 ? "still" : Math.sqrt(m2 / correction) < adam.eps ? "held" : "moved"].push(i);
      });
      const largest = Measures.largest(values);
      return { name, values, ...kinds, largest, at: values.findIndex((value) => Math.abs(value) === largest) };
    });
  }

  /* A bar at the lower edge of the window, for steps that take long. */
  function showProgress(steps, all, stop) {
    const { element } = Dom;
    const text = Strings.train;
    if (!document.getElementById("working")) {
      document.addEventListener("keydown", stopByKey);
      document.body.append(element("div", { id: "working" },
        element("span", { role: "status" }, text.working), element("progress", { "aria-label": text.working }), element("span", { class: "count" }),
        Dom.button(text.stop, () => stop())));
    }
    const bar = document.querySelector("#working progress");
    [bar.max, bar.value] = [all, steps];
    document.querySelector("#working .count").textContent = text.progress(steps, all);
  }

  function hideProgress() {
    document.removeEventListener("keydown", stopByKey);
    document.getElementById("working")?.remove();
  }

  function stopByKey({ key }) {
    if (key === "Escape") document.querySelector("#working button")?.click();
  }

  return { Run, rowsOf, changes, showProgress, hideProgress };
})();

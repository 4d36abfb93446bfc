/* A machine that learns: it takes steps, and remembers what each step did. */
const Training = (() => {
  "use strict";

  class Run {
    constructor(machine, adam) {
      Object.assign(this, { machine, adam, losses: [], rows: [] });
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

  /* For each row that is to write a token: that token, its probability, and the most likely one. */
  function rowsOf(machine) {
    const [p, ids, V] = [machine.data("output.p"), machine.data("output.ids"), machine.sizes.V];
    return [...ids].map((right, t) => {
      const row = p.subarray(t * V, (t + 1) * V);
      return { t, right, probability: row[right], written: row.indexOf(Math.max(...row)) };
    }).filter(({ right }) => right !== Engine.PAD);
  }

  return { Run, rowsOf };
})();

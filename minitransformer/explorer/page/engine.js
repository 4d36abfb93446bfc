/* Computes every array of the model from the formulas, in float64.

     const machine = Engine.build(MODEL.sizes, { S: 4, T: 5, eps: 1e-5, smoothing: 0 });
     machine.fill(weights, ids);   machine.run();   machine.value("cross.p", 7);   machine.complexStep("cross.s", 7);
*/
const Engine = (() => {
  "use strict";

  const PAD = 0, BOS = 1, EOS = 2;
  const ROUNDING = 1e-12;
  const LR = 0.01; // of Adam
  const STEP = 1e-30; // of the complex step: its square is below every float64
  const angle = (t, n, width) => t / 10000 ** ((n - (n % 2)) / width);
  const POSITIONS = { // sinusoids, and how rotary positions rotate two features: row, column and width -> number
    PE: (t, c, C) => (c % 2 ? Math.cos : Math.sin)(angle(t, c, C)),
    cos: (t, d, D) => Math.cos(angle(t, d, D)),
    sin: (t, d, D) => (d % 2 ? 1 : -1) * Math.sin(angle(t, d, D)),
  };

  class Machine {
    constructor(sizes, options) {
      this.causal = options.causal ?? true;
      this.sizes = { ...sizes, eps: options.eps, smoothing: options.smoothing ?? 0 };
      this.isPair = sizes.kind !== "gpt"; // a GPT reads the source as the beginning of its only sequence
      this.lengths = { source: options.S, target: this.isPair ? options.T : options.S + options.T - 1 };
      this.places = Formulas.places(sizes);
      this.arrays = new Map(); // name -> {name, place, symbol, role, letters, shape, strides, size, number, definition}
      this.definitions = [];
      this.edits = new Map(); // name -> Map(flat index -> what is added to the computed number)
      this.addInputs();
      for (const line of Formulas.lines(sizes, options.replaced, options.only)) this.addDefinition(line);
      this.forward = this.definitions.filter(({ phase }) => phase === "forward");
      this.re = this.storage();
    }

    storage() {
      return [...this.arrays.values()].map(({ size }) => new Float64Array(size));
    }

    /* The number of values of each index in a place. */
    sizesAt({ rows, keys }) {
      const { C, H, D, F, V } = this.sizes;
      const t = this.lengths[rows];
      const i = this.lengths[keys];
      return { ...this.sizes, T: t, S: i, t, i, j: i, h: H, d: D, c: C, f: F, w: V, g: H * D };
    }

    addArray(place, symbol, role, shape, letters, definition = null) {
      const name = place.name ? `${place.name}.${symbol}` : symbol;
      if (this.arrays.has(name)) throw new Error(`${name} is defined twice`);
      const strides = shape.map((_, axis) => shape.slice(axis + 1).reduce((a, b) => a * b, 1));
      const size = shape.reduce((a, b) => a * b, 1);
      const number = this.arrays.size;
      this.arrays.set(name, { name, place, symbol, role, letters, shape, strides, size, number, definition });
    }

    addInputs() {
      const add = (place, symbol, role, letters) => {
        const sizes = this.sizesAt(place);
        this.addArray(place, symbol, role, [...letters].map((letter) => sizes[letter]), [...letters]);
      };
      const global = this.places.at(-1);
      add(global, "E", "weight", "wc");
      const longest = this.isPair ? Math.max(this.lengths.source, this.lengths.target) : this.lengths.target;
      for (const [symbol, [t, c]] of Object.entries(Formulas.POSITIONS[this.sizes.positions ?? "sinusoidal"].tables))
        this.addArray(global, symbol, "input", [longest, this.sizesAt(global)[c]], [t, c]);
      for (const place of this.places) {
        for (const [symbol, letters] of Object.entries(place.weights)) add(place, symbol, "weight", letters);
        if (place.kind === "embedding" || place.kind === "output") add(place, "ids", "ids", "t");
        if (place.kind === "self" || place.kind === "attention") add(place, "allowed", "mask", "ti");
      }
    }

    addDefinition({ place, text, phase }) {
      const parsed = Language.parse(text);
      const sizes = this.sizesAt(place);
      const scope = { sizes, read: (name, index) => this.re[this.find(place, name).number][offsetOf(this.find(place, name), index)] };
      const last = Object.fromEntries(parsed.indices.map((name) => [name, sizes[name] - 1]));
      const shape = parsed.index.map((part) => Language.evaluate(part, scope, last) + 1);
      const letters = parsed.index.map((part) => (part.op === "index" ? part.name : "g"));
      const definition = { ...parsed, place, phase, sizes, scope, uses: new Set() };
      this.addArray(place, parsed.symbol, phase === "forward" ? "value" : "gradient", shape, letters, definition);
      const at = (name) => {
        const array = this.find(place, name);
        if (array.name !== definition.name) definition.uses.add(array.name);
        const { number, strides, shape, role } = array;
        return { number, strides, shape, complex: role !== "ids" && role !== "mask" };
      };
      definition.name = [...this.arrays.keys()].at(-1);
      definition.real = Language.compile(parsed, at, sizes, false);
      if (phase === "forward") definition.complex = lazy(() => Language.compile(parsed, at, sizes, true));
      this.definitions.push(definition);
    }

    /* The array that a formula of `place` means by `name`: a wire, one of the place, or one of the whole model. */
    find(place, name) {
      const local = place.name ? `${place.name}.${name}` : name;
      const array = this.arrays.get(place.wires[name] ?? local) ?? this.arrays.get(name);
      if (!array) throw new Error(`${place.name || "the model"} has no ${name}`);
      return array;
    }

    get(name) {
      const array = this.arrays.get(name);
      if (!array) throw new Error(`there is no array ${name}`);
      return array;
    }

    data(name) {
      return this.re[this.get(name).number];
    }

    value(name, flat = 0) {
      return this.data(name)[flat];
    }

    /* The first row that counts in the loss: 0, unless the rows of a prompt are before it. */
    get firstRow() {
      return this.data("output.ids").findIndex((id) => id !== PAD);
    }

    get loss() {
      return this.value("output.L");
    }

    /* Whether a gradient is 0 except for rounding: its largest entry is 12 orders below the largest of the logits'. */
    isRounding(name) {
      const largest = (array) => this.data(array).reduce((most, value) => Math.max(most, Math.abs(value)), 0);
      return this.get(name).role === "gradient" && largest(name) > 0 && largest(name) < ROUNDING * largest("output.dz");
    }

    /* The array that holds the gradient of `name`, or the array that `name` is the gradient of; null if there is none. */
    partner(name) {
      const { place, symbol, role } = this.get(name);
      const other = role === "gradient" ? symbol.replace(/^d/, "") : `d${symbol}`;
      const full = place.name ? `${place.name}.${other}` : other;
      const found = this.arrays.get(full);
      return found && found.size === this.get(name).size && found.name !== name ? found.name : null;
    }

    /* weights {name: nested lists or Float64Array}, and ids {source, target} without bos, eos;
       padding may follow. In a GPT, the rows of the prompt do not count, and there is no mask of padding. */
    fill(weights, ids) {
      const put = (name, values) => this.data(name).set(flatten(values).slice(0, this.get(name).size));
      for (const [name, { role, shape, size }] of this.arrays) {
        if (role === "weight") put(name, weights[name]);
        if (role === "input") put(name, Float64Array.from({ length: size }, (_, n) => POSITIONS[name](Math.floor(n / shape[1]), n % shape[1], shape[1])));
      }
      const used = (list) => list.filter((id) => id !== PAD);
      const prompt = this.isPair ? [BOS] : used(ids.source);
      const padding = (this.isPair ? ids.target : [...ids.source, ...ids.target]).filter((id) => id === PAD);
      if (this.isPair) put("source.ids", ids.source);
      put("target.ids", [...prompt, ...used(ids.target), ...padding]);
      put("output.ids", [...prompt.slice(1).fill(PAD), ...used(ids.target), EOS, ...padding]); // what counts in the loss
      for (const [name, { role, place, shape }] of this.arrays) {
        if (role !== "mask") continue;
        const keys = this.data(place.keys === "source" ? "source.ids" : "target.ids");
        const causal = this.causal && place.rows === "target" && place.keys === "target";
        put(name, Array.from({ length: shape[0] * shape[1] }, (_, n) => {
          const [t, i] = [Math.floor(n / shape[1]), n % shape[1]];
          return Number((keys[i] !== PAD || !this.isPair) && (!causal || i <= t));
        }));
      }
      for (const [name, { definition }] of this.arrays) if (!definition) this.applyEdits(name, this.re);
    }

    /* Add `amount` to a number each time that it is computed, or filled in, so that gradients pass it; 0 takes the edit back. */
    edit(name, flat, amount) {
      if (!this.edits.has(name)) this.edits.set(name, new Map());
      if (amount) this.edits.get(name).set(flat, amount);
      else this.edits.get(name).delete(flat);
    }

    applyEdits(name, re, extra) {
      const values = re[this.get(name).number];
      for (const [flat, amount] of this.edits.get(name) ?? []) values[flat] += amount;
      if (extra?.name === name) values[extra.flat] += extra.amount;
    }

    /* Compute everything, or the forward pass alone -> the loss. */
    run(definitions = this.definitions) {
      for (const { name, real } of definitions) {
        real(this.re);
        this.applyEdits(name, this.re);
      }
      return this.loss;
    }

    /* The loss if `amount` is added to one number; and the same array by array. */
    nudge(name, flat, amount) {
      return finish(this.nudging(name, flat, amount));
    }

    * nudging(name, flat, amount) {
      this.scratch ??= this.storage();
      const re = this.copyInputs(this.scratch);
      const extra = { name, flat, amount };
      if (!this.get(name).definition) re[this.get(name).number][flat] += amount;
      for (const definition of this.forward) {
        yield definition.real(re);
        this.applyEdits(definition.name, re, extra);
      }
      return re[this.get("output.L").number][0];
    }

    copyInputs(re) {
      for (const { number, definition } of this.arrays.values()) if (!definition) re[number].set(this.re[number]);
      return re;
    }

    /* The derivative of the loss with respect to one number, Im L(x + ih) / h; or along `direction`: name -> Map or
       Float64Array of its entries. */
    complexStep(name, flat) {
      return this.complexDerivative(new Map([[name, new Map([[flat, 1]])]]));
    }

    complexDerivative(direction) {
      return finish(this.deriving(direction));
    }

    * deriving(direction) {
      this.complexRe ??= this.storage();
      this.complexIm ??= this.storage();
      const [re, im] = [this.copyInputs(this.complexRe), this.complexIm];
      const turn = (name) => {
        const values = im[this.get(name).number];
        direction.get(name)?.forEach((amount, flat) => { values[flat] += STEP * amount; });
      };
      for (const { name, number, definition } of this.arrays.values()) {
        if (definition) continue;
        im[number].fill(0);
        turn(name);
      }
      for (const definition of this.forward) {
        yield definition.complex()(re, im);
        this.applyEdits(definition.name, re);
        turn(definition.name);
      }
      return im[this.get("output.L").number][0] / STEP;
    }

    /* The index of a cell as a tuple, and back. */
    indexOf(name, flat) {
      const { shape, strides } = this.get(name);
      return shape.map((length, axis) => Math.floor(flat / strides[axis]) % length);
    }

    offsetOf(name, index) {
      return offsetOf(this.get(name), index);
    }

    /* The values of the formula's indices that belong to a cell. */
    givenOf(name, flat) {
      const { definition } = this.get(name);
      const fixed = Language.solve(definition.index, this.indexOf(name, flat), definition.sizes);
      for (const given of Language.tuples(definition.indices, definition.sizes, {}, fixed)) if (this.targetOf(definition, given) === flat) return given;
      return undefined;
    }

    /* The cell that a definition computes for these values of its indices. */
    targetOf({ name, index, scope }, given) {
      return this.offsetOf(name, index.map((part) => Language.evaluate(part, scope, given)));
    }

    /* The cells that a cell is computed from, without repeats: [{name, flat}]. */
    comesFrom(name, flat) {
      const { definition } = this.get(name);
      return definition ? this.cellsOf(definition, this.givenOf(name, flat)) : [];
    }

    cellsOf(definition, given) {
      const found = new Map();
      Language.visitCells(definition.expression, definition.scope, given, (name, index) => {
        const array = this.find(definition.place, name);
        const flat = offsetOf(array, index);
        found.set(`${array.name} ${flat}`, { name: array.name, flat });
      });
      return [...found.values()];
    }

    /* The cells that are computed from a cell. */
    goesTo(name, flat) {
      return this.definitions.filter(({ uses }) => uses.has(name)).flatMap((definition) =>
        this.targetsOf(definition, this.get(name), flat).map((target) => ({ name: definition.name, flat: target })));
    }

    /* The cells that a definition computes from a cell. Most of its indices follow from where the cell stands in the formula. */
    targetsOf(definition, array, flat) {
      const { expression, indices, sizes, scope, place } = definition;
      const found = new Set();
      const cell = this.indexOf(array.name, flat);
      Language.occurrences(expression, (node, over) => {
        if (this.find(place, node.name) !== array) return;
        const fixed = Language.solve(node.index, cell, sizes);
        const outside = Object.fromEntries(Object.entries(fixed).filter(([index]) => !over.includes(index)));
        for (const given of Language.tuples(indices, sizes, {}, outside))
          Language.visitCells(expression, scope, given, (other, index) => {
            if (this.find(place, other) === array && offsetOf(array, index) === flat) found.add(this.targetOf(definition, given));
          }, fixed);
      });
      return [...found].sort((a, b) => a - b);
    }

    /* The names of all weights. */
    weights() {
      return [...this.arrays.values()].filter(({ role }) => role === "weight").map(({ name }) => name);
    }
  }

  const offsetOf = ({ strides }, index) => index.reduce((sum, i, axis) => sum + i * strides[axis], 0);

  /* What a generator returns in the end. */
  function finish(pieces) {
    let step;
    do step = pieces.next(); while (!step.done);
    return step.value;
  }

  function lazy(make) {
    let made;
    return () => (made ??= make());
  }

  function flatten(values) {
    if (ArrayBuffer.isView(values)) return values;
    return Array.isArray(values) ? values.flat(Infinity) : [values];
  }

  /* Adam (Kingma and Ba 2015), without a schedule: `step` changes the weights of a machine by its gradients. */
  class Adam {
    constructor(lr = LR) {
      Object.assign(this, { lr, beta_1: 0.9, beta_2: 0.98, eps: 1e-9, steps: 0, means: new Map() });
    }

    step(machine) {
      this.steps++;
      const [c1, c2] = [1 - this.beta_1 ** this.steps, 1 - this.beta_2 ** this.steps];
      for (const name of machine.weights()) {
        const [w, g] = [machine.data(name), machine.data(machine.partner(name))];
        if (!this.means.has(name)) this.means.set(name, [new Float64Array(w.length), new Float64Array(w.length)]);
        const [m1, m2] = this.means.get(name);
        for (let i = 0; i < w.length; i++) {
          m1[i] = this.beta_1 * m1[i] + (1 - this.beta_1) * g[i];
          m2[i] = this.beta_2 * m2[i] + (1 - this.beta_2) * g[i] * g[i];
          w[i] -= (this.lr * m1[i]) / c1 / (Math.sqrt(m2[i] / c2) + this.eps);
        }
      }
    }
  }

  /* What a model writes, if it takes the most likely token each time -> ids without eos, at most `longest`. A planted mistake
     may see padding, and gets a machine for each length; without one, a machine with room for all is enough. */
  function greedyDecode(sizes, options, weights, source, longest) {
    const make = (T) => new Machine(sizes, { ...options, S: source.length, T });
    const planted = Boolean(options.replaced) || options.causal === false;
    const roomy = planted ? null : make(longest + 1);
    const written = [];
    while (written.length < longest) {
      const T = planted ? written.length + 1 : longest + 1;
      const machine = roomy ?? make(T);
      machine.fill(weights, { source, target: [...written, ...Array(T - 1 - written.length).fill(PAD)] });
      machine.run(machine.forward);
      const t = machine.firstRow + written.length;
      const row = machine.data("output.z").slice(t * sizes.V, (t + 1) * sizes.V);
      const next = row.indexOf(Math.max(...row));
      if (next === EOS || next === PAD || next === BOS) break;
      written.push(next);
    }
    return written;
  }

  /* Random numbers between -1 and 1, the same each time, by a linear congruential generator (Park and Miller 1988). */
  function randomNumbers() {
    let state = 123456;
    return () => {
      state = (state * 48271) % 2147483647;
      return (2 * state) / 2147483647 - 1;
    };
  }

  /* Weights that have learned nothing, with the shapes of others and the library's distributions: uniform matrices (Glorot and
     Bengio 2010), a normal E with variance 1/C (Box and Muller 1958), gains of 1, and zeros. */
  function initialWeights(weights) {
    const random = randomNumbers();
    const normal = () => Math.sqrt(-2 * Math.log((1 + random()) / 2)) * Math.cos(Math.PI * random());
    return Object.fromEntries(Object.entries(weights).map(([name, rows]) => [name, flatten(rows).map(() => {
      const symbol = name.split(".").at(-1);
      if (symbol === "E") return normal() / Math.sqrt(rows[0].length);
      return symbol.startsWith("W") ? random() * Math.sqrt(6 / (rows.length + rows[0].length)) : Number(symbol === "gamma");
    })]));
  }

  const build = (sizes, options) => new Machine(sizes, options);
  return { build, greedyDecode, randomNumbers, initialWeights, Adam, LR, flatten, finish, PAD, BOS, EOS };
})();

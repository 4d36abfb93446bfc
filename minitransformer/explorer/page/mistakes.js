/* Mistakes to plant in the model, and the detectors that look for them, as in lesson 15.

   A mistake is a set of other formulas for some arrays: `mistake.options` are options of `Engine.build`. A detector's
   run(context) -> {rings, number, where, ...} sees only the machine with the mistake, except for "falls" and "formula".
*/
const Mistakes = (() => {
  "use strict";

  const EXACT = 1e-9; // far above rounding and far below any mistake
  const ZERO = 1e-12; // of the largest derivative: rounding
  const AS_GOOD = 0.04; // nats: a difference of two losses that nobody would notice
  const STEPS = 100; // of Adam
  const PADDING = 2; // tokens that are appended

  /* The lines for self-attention, and for attention to another sequence, whose tokens are in M. */
  function bothAttentions(lines, self = {}) {
    const { dM, ...shared } = lines; // self-attention has no memory
    const inSelf = Object.entries({ ...shared, ...self }).map(([symbol, line]) => [symbol, line.replace("M[", "x[")]);
    return { attention: lines, self: Object.fromEntries(inSelf) };
  }

  /* Heads that are split by a reshape alone: the numbers of x W, row by row, fill one head after another. So the entry
     (h, n, d) of `length` tokens is number (h length + n) D + d of x W. */
  function reshapedHeads() {
    const number = (n, length) => `(h*${length}+${n})*D+d`;
    const row = (n, length) => `div(${number(n, length)},C)`;
    const column = (n, length) => `mod(${number(n, length)},C)`;
    const cell = (n, length) => `div(${n}*C+g,${length}*D),mod(div(${n}*C+g,D),${length}),mod(g,D)`;
    const back = (z, n, length) => `sum[g](d${z}[${cell(n, length)}] * W_${z}[c,g])`;
    const lines = {
      y: `y[t,c] = sum[g](o[${cell("t", "T")}] * W_o[g,c]) + b_o[c]`,
      dW_o: `dW_o[g,c] = sum[t](o[${cell("t", "T")}] * dy[t,c])`,
      do: `do[h,t,d] = sum[c](dy[${row("t", "T")},c] * W_o[${column("t", "T")},c])`,
      dx: `dx[t,c] = ${back("q", "t", "T")}`,
      dM: `dM[i,c] = ${back("k", "i", "S")} + ${back("v", "i", "S")}`,
    };
    for (const [z, x, n, length] of [["q", "x", "t", "T"], ["k", "M", "i", "S"], ["v", "M", "i", "S"]]) {
      const [from, to] = [row(n, length), column(n, length)];
      lines[z] = `${z}[h,${n},d] = sum[c](${x}[${from},c] * W_${z}[c,${to}]) + b_${z}[${to}]`;
      lines[`dW_${z}`] = `dW_${z}[c,g] = sum[${n}](${x}[${n},c] * d${z}[${cell(n, length)}])`;
      lines[`db_${z}`] = `db_${z}[g] = sum[${n}](d${z}[${cell(n, length)}])`;
    }
    return bothAttentions(lines, { dx: `dx[t,c] = ${["q", "k", "v"].map((z) => back(z, "t", "T")).join(" + ")}` });
  }

  const UNSCALED_BACKWARD = {
    dq: "dq[h,t,d] = sum[i](ds[h,t,i] * k[h,i,d])",
    dk: "dk[h,i,d] = sum[t](ds[h,t,i] * q[h,t,d])",
  };

  /* The gradient of a token's last place, instead of the sum over all of its places. */
  const lastOf = (ids, de, n) => `1[sum[${n}: ${ids}[${n}] == w](1) > 0] * ${de}[max[${n}: ${ids}[${n}] == w](${n}),c]`;

  /* {id, kind, lines, only, causal, needs}: `kind` is "forward" or "backward", the pass that is not what it should be; `lines`
     are {kind of place: {symbol: line}}; `only` are the places, null for all; `needs` is the shape that a model must have. */
  const all = [
    {
      id: "no-scale",
      kind: "forward",
      lines: bothAttentions({ s: "s[h,t,i] = sum[d](q[h,t,d] * k[h,i,d])", ...UNSCALED_BACKWARD }),
    },
    { id: "no-scale-backward", kind: "backward", lines: bothAttentions(UNSCALED_BACKWARD) },
    {
      id: "mask-after-softmax",
      kind: "forward",
      lines: bothAttentions({ m: "m[h,t] = max[i](s[h,t,i])", n: "n[h,t] = sum[i](exp(s[h,t,i] - m[h,t]))" }),
    },
    { id: "causal-mask-off", kind: "forward", causal: false },
    { id: "heads-reshaped", kind: "forward", lines: reshapedHeads() },
    {
      id: "variance-over-c-1",
      kind: "forward",
      lines: {
        norm: {
          sigma: "sigma[t] = sqrt(sum[c]((x[t,c] - mu[t])^2) / (C - 1) + eps)",
          dx_hat_x_hat_mean: "dx_hat_x_hat_mean[t] = sum[c](dx_hat[t,c] * x_hat[t,c]) / (C - 1)",
        },
      },
    },
    {
      id: "gamma-outside-sums",
      kind: "backward",
      lines: {
        norm: {
          dx_hat_mean: "dx_hat_mean[t] = sum[c](dy[t,c]) / C",
          dx_hat_x_hat_mean: "dx_hat_x_hat_mean[t] = sum[c](dy[t,c] * x_hat[t,c]) / C",
          dx: "dx[t,c] = gamma[c] * (dy[t,c] - dx_hat_mean[t] - x_hat[t,c] * dx_hat_x_hat_mean[t]) / sigma[t] + SKIP_DX[t,c]",
        },
      },
    },
    {
      id: "softmax-entry-by-entry",
      kind: "backward",
      lines: bothAttentions({ ds: "ds[h,t,i] = p[h,t,i] * (1 - p[h,t,i]) * dp[h,t,i]" }),
    },
    {
      id: "keys-reshaped",
      kind: "backward",
      lines: bothAttentions({ dk: "dk[h,i,d] = sum[t](q[h,t,div(i*D+d,S)] * ds[h,t,mod(i*D+d,S)]) / sqrt(D)" }),
    },
    { id: "relu-gated-by-gradient", kind: "backward", lines: { ffn: { da: "da[t,f] = 1[dr[t,f] > 0] * dr[t,f]" } } },
    {
      id: "residual-forgotten",
      kind: "backward",
      lines: { norm: { dy: "dy[t,c] = DY[t,c]" } },
      only: ["decoder.norm1"],
      needs: { kind: "transformer", norm: "post" },
    },
    {
      id: "residual-forgotten",
      kind: "backward",
      lines: { norm: { dx: "dx[t,c] = (dx_hat[t,c] - dx_hat_mean[t] - x_hat[t,c] * dx_hat_x_hat_mean[t]) / sigma[t]" } },
      only: ["decoder.norm2"],
      needs: { kind: "transformer", norm: "pre" },
    },
    {
      id: "memory-through-values",
      kind: "backward",
      lines: { attention: { dM: "dM[i,c] = sum[h,d](dv[h,i,d] * W_v[c,h*D+d])" } },
      needs: { kind: "transformer" },
    },
    {
      id: "token-twice",
      kind: "backward",
      lines: {
        matrix: {
          dE: `dE[w,c] = sum[t](DZ[t,w] * Y[t,c]) + ${lastOf("TARGET_IDS", "DE_TARGET", "t")}`
            + ` + ${lastOf("SOURCE_IDS", "DE_SOURCE", "i")}`,
        },
      },
    },
    {
      id: "mean-and-sum",
      kind: "backward",
      lines: { output: { dz: "dz[t,w] = 1[ids[t] != 0] * (p[t,w] - p_star[t,w])" } },
    },
  ].map(make);

  /* A mistake with its options; also for a line that the reader has written. */
  function make({ id, kind, lines = {}, only = null, causal = true, needs = {} }) {
    return { id, kind, lines, only, causal, needs, options: { replaced: lines, only, causal } };
  }

  /* What a detector is run with. `right` and `wrong` build a machine and run it; they take other ids if asked. */
  function context(model, { weights, source, target, mistake = null, smoothing = 0, steps = STEPS }) {
    const make = (planted) => (ids = { source, target }) => {
      const lengths = { S: ids.source.length, T: ids.target.length + 1 };
      const settings = { ...lengths, eps: model.norm_eps, smoothing, ...planted?.options };
      const machine = Engine.build(model.sizes, settings);
      machine.fill(weights, ids);
      machine.run();
      return machine;
    };
    return { source, target, steps, right: make(null), wrong: make(mistake) };
  }

  const sizeOf = (number) => (Number.isNaN(number) ? Infinity : Math.abs(number));

  /* Collects numbers that should be 0, and keeps the largest and the array in which it was. */
  function largest() {
    const found = { number: 0, where: null };
    const add = (number, where) => {
      if (sizeOf(number) > found.number) Object.assign(found, { number: sizeOf(number), where });
    };
    return { add, result: () => ({ rings: found.number > EXACT, ...found }) };
  }

  const difference = (a, b) => a.reduce((worst, value, i) => Math.max(worst, sizeOf(value - b[i])), 0);

  /* For each array of two machines of one size, in the order of the definitions: its largest absolute difference. */
  const differences = (right, wrong) => right.definitions.map(({ name }) => compared(right, wrong, name));

  function compared(right, wrong, name) {
    const [a, b] = [right.data(name), wrong.data(name)];
    return { name, phase: right.get(name).definition?.phase ?? "forward", difference: difference(a, b) };
  }

  /* Adam from the current weights -> the losses before, between and after the steps. It yields after each step. */
  function* train(machine, { steps }) {
    const [losses, optimizer] = [[machine.loss], new Engine.Adam()];
    for (; losses.length <= steps; losses.push(machine.run())) yield optimizer.step(machine);
    return losses;
  }

  /* Does the loss fall as it falls with the right gradients? `first` is the loss before, `right` that of the others. */
  function* falls(context) {
    const losses = yield* train(context.wrong(), context);
    const [last, right] = [losses.at(-1), (yield* train(context.right(), context)).at(-1)];
    return { rings: !(last - right <= AS_GOOD), number: last, where: null, first: losses[0], right };
  }

  /* The derivative along one random direction for each array of weights, by a complex step and by the gradient; `wrong` are the
     arrays whose gradients are. */
  function complex(context) {
    const machine = context.wrong();
    const random = Engine.randomNumbers();
    const gradients = machine.definitions.map(({ name }) => [machine.partner(name), name]);
    const arrays = gradients.filter(([name]) => name && machine.get(name).role === "weight").map(([name, gradient]) => {
      const direction = machine.data(name).map(random);
      const claimed = machine.data(gradient).reduce((sum, value, i) => sum + value * direction[i], 0);
      return { name, claimed, true: machine.complexDerivative(new Map([[name, direction]])) };
    });
    const most = Math.max(...arrays.map((array) => Math.abs(array.true)));
    const worst = largest();
    for (const array of arrays) {
      const size = Math.abs(array.true), isZero = size <= ZERO * most; // there, no error can be relative
      array.error = Math.abs(array.claimed - array.true) / (isZero ? 1 : Math.max(size, 1e-3 * most)); // some are almost 0
      worst.add(array.error, array.name);
    }
    const wrong = arrays.filter(({ error }) => !(error <= EXACT)).map(({ name }) => name);
    return { ...worst.result(), arrays, wrong };
  }

  /* Calls add(number, name) for each sum of a place that should be 0. */
  const SUMS = {
    attention(machine, place, add) {
      const of = (symbol) => rows(machine, `${place.name}.${symbol}`);
      const [allowed, p, ds, dk] = [of("allowed"), of("p"), of("ds"), of("dk")];
      p.forEach((row, n) => add(sum(row) - Math.max(...allowed[n % allowed.length]), `${place.name}.p`));
      ds.forEach((row) => add(sum(row), `${place.name}.ds`));
      const S = machine.lengths[place.keys];
      for (let h = 0; h < machine.sizes.H; h++) // one vector added to all keys changes no weight
        dk[0].forEach((_, d) => add(sum(dk.slice(h * S, (h + 1) * S).map((row) => row[d])), `${place.name}.dk`));
    },
    norm(machine, place, add) {
      const of = (symbol) => rows(machine, `${place.name}.${symbol}`);
      const [dx, dx_hat, x_hat, sigma] = [of("dx"), of("dx_hat"), of("x_hat"), machine.data(`${place.name}.sigma`)];
      const around = place.wires.SKIP_DX; // what the line adds for the residual path with pre-norm
      const skip = machine.get(`${place.name}.dx`).definition.uses.has(around) && rows(machine, around);
      dx.forEach((whole, t) => {
        const row = skip ? whole.map((x, c) => x - skip[t][c]) : whole;
        add(sum(row), `${place.name}.dx`);
        // without eps, dx would be orthogonal to x_hat
        const byEps = (machine.sizes.eps / sigma[t] ** 3) * dot(dx_hat[t], x_hat[t]);
        add(dot(row, x_hat[t]) - byEps, `${place.name}.dx`);
      });
    },
    output(machine, place, add) {
      rows(machine, `${place.name}.p`).forEach((row) => add(sum(row) - 1, `${place.name}.p`));
      rows(machine, `${place.name}.dz`).forEach((row) => add(sum(row), `${place.name}.dz`));
    },
  };
  SUMS.self = SUMS.attention;

  const sum = (values) => values.reduce((a, b) => a + b, 0);
  const dot = (a, b) => a.reduce((total, value, i) => total + value * b[i], 0);
  function rows(machine, name) {
    const [data, length] = [machine.data(name), machine.get(name).shape.at(-1)];
    return Array.from({ length: data.length / length }, (_, n) => data.subarray(n * length, (n + 1) * length));
  }

  function rowSums(context) {
    const machine = context.wrong();
    const worst = largest();
    for (const place of machine.places) SUMS[place.kind]?.(machine, place, worst.add);
    return worst.result();
  }

  /* Other tokens from place t on must not move the logits of the rows up to t. */
  function leak({ source, target, wrong }) {
    const machine = wrong(), usual = machine.data("output.z"), { V } = machine.sizes;
    const worst = largest();
    target.forEach((_, t) => {
      const later = target.map((id, n) => (n < t || id === Engine.PAD ? id : id === 3 ? 4 : 3));
      const before = usual.subarray(0, (machine.firstRow + t + 1) * V);
      worst.add(difference(before, wrong({ source, target: later }).data("output.z")), "output.z");
    });
    return worst.result();
  }

  /* Padding must not move the logits, the loss or the gradient of any weight. */
  function padding({ source, target, wrong }) {
    const longer = (ids) => [...ids, ...Array(PADDING).fill(Engine.PAD)];
    const usual = wrong();
    const worst = largest();
    for (const ids of [{ source: longer(source), target }, { source, target: longer(target) }]) {
      const padded = wrong(ids);
      for (const name of ["output.z", "output.L", ...usual.weights().map((weight) => usual.partner(weight))])
        worst.add(difference(usual.data(name), padded.data(name)), name);
    }
    return worst.result();
  }

  /* Comparison of all arrays of the forward pass with the right ones; `first` is where the two part. */
  function formula(context) {
    const worst = largest();
    const all = differences(context.right(), context.wrong()).filter(({ phase }) => phase === "forward");
    for (const array of all) worst.add(array.difference, array.name);
    return { ...worst.result(), first: all.find((array) => array.difference > EXACT)?.name ?? null };
  }

  const detectors = [
    { id: "falls", work: falls, run: (context) => Engine.finish(falls(context)) },
    { id: "complex", run: complex }, { id: "rows", run: rowSums },
    { id: "leak", run: leak }, { id: "padding", run: padding }, { id: "formula", run: formula },
  ];

  /* The mistakes that a model of this shape can have. */
  const has = ({ needs }) => Object.entries(needs).every(([name, value]) => MODEL.sizes[name] === value);

  return { get list() { return all.filter(has); }, make, context, detectors, differences, compared, EXACT };
})();

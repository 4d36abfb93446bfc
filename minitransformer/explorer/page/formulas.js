/* The Transformer, written as one formula for each array, forward and backward.

   The engine compiles these lines, and the page shows them. The letters are those of lessons/NOTATION.md. A name is local
   to its place; `wires` says which array of another place is meant by a name in capitals.

     t    tokens of the sequence that the place belongs to, and queries        h    heads        c    features
     i    keys: tokens of the source, or in self-attention of the same one     d    features of a head
     w    tokens of the vocabulary                                             f    hidden features
*/
const Formulas = (() => {
  "use strict";

  const EMBEDDING = {
    forward: [
      "e[t,c] = E[ids[t],c]",
      "x[t,c] = sqrt(C) * e[t,c] + PE[t,c]",
    ],
    backward: [
      "dx[t,c] = DX[t,c] + SKIP[t,c]",
      "de[t,c] = sqrt(C) * dx[t,c]",
    ],
  };

  const ATTENTION = {
    forward: [
      "x[t,c] = X[t,c]",
      "M[i,c] = MEMORY[i,c]",
      "q[h,t,d] = sum[c](x[t,c] * W_q[c,h*D+d]) + b_q[h*D+d]",
      "k[h,i,d] = sum[c](M[i,c] * W_k[c,h*D+d]) + b_k[h*D+d]",
      "v[h,i,d] = sum[c](M[i,c] * W_v[c,h*D+d]) + b_v[h*D+d]",
      "s[h,t,i] = sum[d](q[h,t,d] * k[h,i,d]) / sqrt(D)",
      "m[h,t] = max[i: allowed[t,i] == 1](s[h,t,i])",
      "n[h,t] = sum[i: allowed[t,i] == 1](exp(s[h,t,i] - m[h,t]))",
      "p[h,t,i] = 1[allowed[t,i] == 1] * exp(s[h,t,i] - m[h,t]) / n[h,t]",
      "o[h,t,d] = sum[i](p[h,t,i] * v[h,i,d])",
      "y[t,c] = sum[h,d](o[h,t,d] * W_o[h*D+d,c]) + b_o[c]",
    ],
    backward: [
      "dy[t,c] = DY[t,c]",
      "dW_o[h*D+d,c] = sum[t](o[h,t,d] * dy[t,c])",
      "db_o[c] = sum[t](dy[t,c])",
      "do[h,t,d] = sum[c](dy[t,c] * W_o[h*D+d,c])",
      "dv[h,i,d] = sum[t](p[h,t,i] * do[h,t,d])",
      "dp[h,t,i] = sum[d](do[h,t,d] * v[h,i,d])",
      "dp_mean[h,t] = sum[i](p[h,t,i] * dp[h,t,i])",
      "ds[h,t,i] = p[h,t,i] * (dp[h,t,i] - dp_mean[h,t])",
      "dq[h,t,d] = sum[i](ds[h,t,i] * k[h,i,d]) / sqrt(D)",
      "dk[h,i,d] = sum[t](ds[h,t,i] * q[h,t,d]) / sqrt(D)",
      "dW_q[c,h*D+d] = sum[t](x[t,c] * dq[h,t,d])",
      "db_q[h*D+d] = sum[t](dq[h,t,d])",
      "dW_k[c,h*D+d] = sum[i](M[i,c] * dk[h,i,d])",
      "db_k[h*D+d] = sum[i](dk[h,i,d])",
      "dW_v[c,h*D+d] = sum[i](M[i,c] * dv[h,i,d])",
      "db_v[h*D+d] = sum[i](dv[h,i,d])",
      "dx[t,c] = sum[h,d](dq[h,t,d] * W_q[c,h*D+d])",
      "dM[i,c] = sum[h,d](dk[h,i,d] * W_k[c,h*D+d]) + sum[h,d](dv[h,i,d] * W_v[c,h*D+d])",
    ],
  };

  /* In self-attention keys and values are made of x itself, so that three gradients meet in dx. */
  const SELF_ATTENTION = {
    forward: ATTENTION.forward.filter((line) => !line.startsWith("M[")).map((line) => line.replace("M[i,c]", "x[i,c]")),
    backward: [
      ...ATTENTION.backward.slice(0, -2).map((line) => line.replace("M[i,c]", "x[i,c]")),
      "dx[t,c] = sum[h,d](dq[h,t,d] * W_q[c,h*D+d]) + sum[h,d](dk[h,t,d] * W_k[c,h*D+d])"
        + " + sum[h,d](dv[h,t,d] * W_v[c,h*D+d])",
    ],
  };

  /* Rotary positions turn queries and keys, two features at a time (Su et al. 2021): W_q and W_k make q_0 and k_0, and
     `sin` is negative for the first of two features. Learned positions are weights P in place of PE. */
  const ROTATION = {
    forward: [
      "q[h,t,d] = q_0[h,t,d] * cos[t,d] + q_0[h,t,pair(d)] * sin[t,d]",
      "k[h,i,d] = k_0[h,i,d] * cos[i,d] + k_0[h,i,pair(d)] * sin[i,d]",
    ],
    backward: [
      "dq_0[h,t,d] = dq[h,t,d] * cos[t,d] - dq[h,t,pair(d)] * sin[t,d]",
      "dk_0[h,i,d] = dk[h,i,d] * cos[i,d] - dk[h,i,pair(d)] * sin[i,d]",
    ],
  };
  const LEARNED = { backward: ["dP[t,c] = dx[t,c]"] };

  /* With pre-norm, the sum that goes around the next sub-layer is x itself; its gradient comes back as SKIP_DX. */
  const NORM = {
    forward: [
      "x[t,c] = SKIP[t,c] + SUBLAYER[t,c]",
      "mu[t] = sum[c](x[t,c]) / C",
      "sigma[t] = sqrt(sum[c]((x[t,c] - mu[t])^2) / C + eps)",
      "x_hat[t,c] = (x[t,c] - mu[t]) / sigma[t]",
      "y[t,c] = gamma[c] * x_hat[t,c] + beta[c]",
    ],
    backward: [
      "dy[t,c] = DY[t,c] + SKIP_DY[t,c]",
      "dgamma[c] = sum[t](dy[t,c] * x_hat[t,c])",
      "dbeta[c] = sum[t](dy[t,c])",
      "dx_hat[t,c] = dy[t,c] * gamma[c]",
      "dx_hat_mean[t] = sum[c](dx_hat[t,c]) / C",
      "dx_hat_x_hat_mean[t] = sum[c](dx_hat[t,c] * x_hat[t,c]) / C",
      "dx[t,c] = (dx_hat[t,c] - dx_hat_mean[t] - x_hat[t,c] * dx_hat_x_hat_mean[t]) / sigma[t] + SKIP_DX[t,c]",
    ],
  };

  const FEED_FORWARD = {
    forward: [
      "x[t,c] = X[t,c]",
      "a[t,f] = sum[c](x[t,c] * W_1[c,f]) + b_1[f]",
      "r[t,f] = relu(a[t,f])",
      "y[t,c] = sum[f](r[t,f] * W_2[f,c]) + b_2[c]",
    ],
    backward: [
      "dy[t,c] = DY[t,c]",
      "dW_2[f,c] = sum[t](r[t,f] * dy[t,c])",
      "db_2[c] = sum[t](dy[t,c])",
      "dr[t,f] = sum[c](dy[t,c] * W_2[f,c])",
      "da[t,f] = 1[a[t,f] > 0] * dr[t,f]",
      "dW_1[c,f] = sum[t](x[t,c] * da[t,f])",
      "db_1[f] = sum[t](da[t,f])",
      "dx[t,c] = sum[f](da[t,f] * W_1[c,f])",
    ],
  };

  const OUTPUT = {
    forward: [
      "y[t,c] = Y[t,c]",
      "z[t,w] = sum[c](y[t,c] * E[w,c])",
      "m[t] = max[w](z[t,w])",
      "n[t] = sum[w](exp(z[t,w] - m[t]))",
      "p[t,w] = exp(z[t,w] - m[t]) / n[t]",
      "p_star[t,w] = (1 - smoothing) * 1[ids[t] == w] + smoothing / V",
      "share[t] = 1[ids[t] != 0] / sum[j: ids[j] != 0](1)",
      "loss[t] = m[t] + log(n[t]) - sum[w](p_star[t,w] * z[t,w])",
      "L = sum[t](share[t] * loss[t])",
    ],
    backward: [
      "dz[t,w] = share[t] * (p[t,w] - p_star[t,w])",
      "dy[t,c] = sum[w](dz[t,w] * E[w,c])",
    ],
  };

  const SHARED_MATRIX = {
    backward: [
      "dE[w,c] = sum[t](DZ[t,w] * Y[t,c]) + sum[t: TARGET_IDS[t] == w](DE_TARGET[t,c])"
        + " + sum[i: SOURCE_IDS[i] == w](DE_SOURCE[i,c])",
    ],
  };

  const KINDS = {
    embedding: EMBEDDING,
    attention: ATTENTION,
    self: SELF_ATTENTION,
    norm: NORM,
    ffn: FEED_FORWARD,
    output: OUTPUT,
    matrix: SHARED_MATRIX,
  };

  /* What each kind of positions adds: tables that are no weights, with their axes, and lines for some kind of place. */
  const POSITIONS = {
    sinusoidal: { tables: { PE: "tc" } },
    rope: { tables: { cos: "td", sin: "td" }, self: ROTATION },
    learned: { tables: {}, embedding: LEARNED },
    none: { tables: {} },
  };

  /* The weights of a place, and what their axes are. */
  const WEIGHTS = {
    attention: {
      W_q: "cg", b_q: "g", W_k: "cg", b_k: "g", W_v: "cg", b_v: "g", W_o: "gc", b_o: "c",
    },
    norm: { gamma: "c", beta: "c" },
    ffn: { W_1: "cf", b_1: "f", W_2: "fc", b_2: "c" },
  };
  WEIGHTS.self = WEIGHTS.attention;

  /* The places of a model in the order of its forward pass: {name, kind, stack, rows, keys, wires, weights, more}. `rows`
     and `keys` are "source" or "target". A wire that is null is left out of its sum, and `more` are lines that this kind of
     positions adds. A "gpt" is a decoder alone, without cross-attention. */
  function places({ layers, kind = "transformer", norm = "post", positions = "sinusoidal" }) {
    const found = [];
    const add = (stack, place, name, wires, keys = stack) => found.push({
      name, kind: place, stack, rows: stack, keys, wires, weights: WEIGHTS[place] ?? {}, more: POSITIONS[positions][place] ?? {},
    });
    const addStack = norm === "post" ? addPostNorm : addPreNorm;
    const isPair = kind === "transformer";
    const memory = isPair && addStack(add, sublayers("source", layers, ["self", "ffn"]), "source", "dM");
    const last = addStack(add, sublayers("target", layers, isPair ? ["self", "attention", "ffn"] : ["self", "ffn"]), "target", "output.dy");
    for (const place of found.filter((each) => each.kind === "embedding")) {
      place.wires.PE = { sinusoidal: "PE", learned: `${place.name}.P` }[positions] ?? null;
      if (positions === "learned") place.weights = { P: "tc" };
    }
    add("target", "output", "output", { Y: last });
    add("target", "matrix", "", {
      Y: last, MEMORY: memory, DZ: "output.dz", TARGET_IDS: "target.ids", DE_TARGET: "target.de",
      SOURCE_IDS: isPair ? "source.ids" : null, DE_SOURCE: isPair ? "source.de" : null,
    }, isPair ? "source" : "target");
    return found;
  }

  /* The sub-layers of a stack and the norms beside them: {kind, name, norm, keys}. */
  function sublayers(stack, layers, kinds) {
    const prefix = stack === "source" ? "encoder" : "decoder";
    return Array.from({ length: layers }, (_, l) => kinds.map((kind, n) => {
      const at = (name) => `${prefix}${layers === 1 ? "" : l + 1}.${name}`;
      const name = kind !== "attention" ? at(kind) : layers === 1 ? "cross" : at("cross");
      return { kind, name, norm: at(`norm${n + 1}`), keys: kind === "attention" ? "source" : stack };
    })).flat();
  }

  /* Add a stack that normalizes each sum, as in the paper -> the array with its output. `end` is the gradient of that. */
  function addPostNorm(add, steps, stack, end) {
    add(stack, "embedding", stack, { DX: `${steps[0].name}.dx`, SKIP: `${steps[0].norm}.dx` });
    steps.forEach(({ kind, name, norm, keys }, n) => {
      const before = n === 0 ? `${stack}.x` : `${steps[n - 1].norm}.y`;
      const next = steps[n + 1];
      add(stack, kind, name, { X: before, MEMORY: "M", DY: `${norm}.dx` }, keys);
      add(stack, "norm", norm, {
        SKIP: before, SUBLAYER: `${name}.y`, DY: next ? `${next.name}.dx` : end, SKIP_DY: next ? `${next.norm}.dx` : null, SKIP_DX: null,
      });
    });
    return `${steps.at(-1).norm}.y`;
  }

  /* Add a stack that normalizes what each sub-layer reads, and at the end once more. The sums are the inputs of the norms. */
  function addPreNorm(add, steps, stack, end) {
    const last = `${stack === "source" ? "encoder" : "decoder"}.norm`;
    add(stack, "embedding", stack, { DX: `${steps[0].norm}.dx`, SKIP: null });
    const addNorm = (norm, n, DY, SKIP_DX) => add(stack, "norm", norm, {
      SKIP: n === 0 ? `${stack}.x` : `${steps[n - 1].norm}.x`, SUBLAYER: n === 0 ? null : `${steps[n - 1].name}.y`, DY, SKIP_DY: null, SKIP_DX,
    });
    steps.forEach(({ kind, name, norm, keys }, n) => {
      const sum = `${steps[n + 1]?.norm ?? last}.dx`;
      addNorm(norm, n, `${name}.dx`, sum);
      add(stack, kind, name, { X: `${norm}.y`, MEMORY: "M", DY: sum }, keys);
    });
    addNorm(last, steps.length, end, null);
    return `${last}.y`;
  }

  /* All definitions in the order in which they can be computed: {place, text, phase}. `replaced`: {kind: {symbol: line}}
     are planted mistakes; `only` limits them to some places, by their names or by those in a model of one layer. */
  function lines(shape, replaced = {}, only = null) {
    const all = places(shape);
    const symbolOf = (line) => line.match(/^\w+/)[0];
    const isChosen = ({ name }) => only === null || only.includes(name) || only.includes(name.replace(/^(encoder|decoder)\d+/, "$1"));
    const of = (place, phase) => {
      const { kind, more, wires } = place;
      const others = (isChosen(place) && replaced[kind]) || {};
      const own = (KINDS[kind][phase] ?? []).map((line) => others[symbolOf(line)] ?? line);
      const added = (more[phase] ?? []).map((line) => (phase === "backward" && others[symbolOf(line)]) || line);
      return (more === ROTATION ? rotated(own, added) : [...own, ...added]).map((line) => ({ place, phase, text: withoutMissingWires(line, wires) }));
    };
    const global = all.at(-1);
    const [source, target] = ["source", "target"].map((name) => all.slice(0, -1).filter(({ stack }) => stack === name));
    const forward = (list) => list.flatMap((place) => of(place, "forward"));
    const backward = (list) => [...list].reverse().flatMap((place) => of(place, "backward"));
    const memory = source.length > 0 ? memoryLines(global, target.filter(({ kind }) => kind === "attention")) : { forward: [], backward: [] };
    return [
      ...forward(source), ...memory.forward, ...forward(target),
      ...backward(target), ...memory.backward, ...backward(source), ...of(global, "backward"),
    ];
  }

  /* The lines of an attention, with its rotations where q and k, or dq and dk, are there. */
  function rotated(own, rotations) {
    const lines = own.map((line) => (/^[qk]\[/.test(line) ? line.replace("[", "_0[") : /^d(W|b|x)/.test(line) ? line.replace(/\bd([qk])\[/g, "d$1_0[") : line));
    const after = lines.findIndex((line) => /^(k_0|dk)\[/.test(line)) + 1;
    return [...lines.slice(0, after), ...rotations, ...lines.slice(after)];
  }

  /* The output of the encoder, and its gradient: the sum over all that read it. */
  function memoryLines(global, readers) {
    const wires = Object.fromEntries(readers.map(({ name }, l) => [`DM_${l}`, `${name}.dM`]));
    return {
      forward: [{ place: global, phase: "forward", text: "M[i,c] = MEMORY[i,c]" }],
      backward: [{ place: { ...global, wires }, phase: "backward", text: `dM[i,c] = ${Object.keys(wires).map((name) => `${name}[i,c]`).join(" + ")}` }],
    };
  }

  function withoutMissingWires(line, wires) {
    const missing = Object.keys(wires).filter((name) => wires[name] === null);
    const isThere = (term) => !missing.some((name) => term.includes(`${name}[`));
    return missing.length > 0 ? line.split(" + ").filter(isThere).join(" + ") : line;
  }

  return { POSITIONS, places, lines };
})();

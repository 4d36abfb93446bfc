/* The Transformer, written as one formula for each array, forward and backward.

   This is the only place where the model is written: the engine compiles these lines, the page shows them, and the tests
   compare what they compute with the library. The letters are those of lessons/NOTATION.md. A name is local to its
   place; `wires` says which array of another place is meant by a name in capitals.

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
      "dx[t,c] = (dx_hat[t,c] - dx_hat_mean[t] - x_hat[t,c] * dx_hat_x_hat_mean[t]) / sigma[t]",
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

  /* The weights of a place, and what their axes are. */
  const WEIGHTS = {
    embedding: {},
    attention: {
      W_q: "cg", b_q: "g", W_k: "cg", b_k: "g", W_v: "cg", b_v: "g", W_o: "gc", b_o: "c",
    },
    norm: { gamma: "c", beta: "c" },
    ffn: { W_1: "cf", b_1: "f", W_2: "fc", b_2: "c" },
    output: {},
    matrix: {},
  };
  WEIGHTS.self = WEIGHTS.attention;

  /* The places of a model in the order of its forward pass: {name, kind, stack, rows, keys, wires}. `rows` and `keys`
     are "source" or "target". A wire that is null is left out of its sum. */
  function places(layers) {
    const number = (l) => (layers === 1 ? "" : l);
    const encoder = (l, name) => `encoder${number(l)}.${name}`;
    const decoder = (l, name) => `decoder${number(l)}.${name}`;
    const cross = (l) => (layers === 1 ? "cross" : decoder(l, "cross"));
    const found = [];
    const add = (stack, kind, name, wires, keys = stack) => found.push({ name, kind, stack, rows: stack, keys, wires });

    add("source", "embedding", "source", { DX: `${encoder(1, "self")}.dx`, SKIP: `${encoder(1, "norm1")}.dx` });
    for (let l = 1; l <= layers; l++) {
      const at = (name) => encoder(l, name);
      const before = l === 1 ? "source.x" : `${encoder(l - 1, "norm2")}.y`;
      const next = l < layers && ((name) => encoder(l + 1, name));
      add("source", "self", at("self"), { X: before, DY: `${at("norm1")}.dx` });
      add("source", "norm", at("norm1"), {
        SKIP: before, SUBLAYER: `${at("self")}.y`, DY: `${at("ffn")}.dx`, SKIP_DY: `${at("norm2")}.dx`,
      });
      add("source", "ffn", at("ffn"), { X: `${at("norm1")}.y`, DY: `${at("norm2")}.dx` });
      add("source", "norm", at("norm2"), {
        SKIP: `${at("norm1")}.y`, SUBLAYER: `${at("ffn")}.y`,
        DY: next ? `${next("self")}.dx` : "dM", SKIP_DY: next ? `${next("norm1")}.dx` : null,
      });
    }
    add("target", "embedding", "target", { DX: `${decoder(1, "self")}.dx`, SKIP: `${decoder(1, "norm1")}.dx` });
    for (let l = 1; l <= layers; l++) {
      const at = (name) => decoder(l, name);
      const before = l === 1 ? "target.x" : `${decoder(l - 1, "norm3")}.y`;
      const next = l < layers && ((name) => decoder(l + 1, name));
      add("target", "self", at("self"), { X: before, DY: `${at("norm1")}.dx` });
      add("target", "norm", at("norm1"), {
        SKIP: before, SUBLAYER: `${at("self")}.y`, DY: `${cross(l)}.dx`, SKIP_DY: `${at("norm2")}.dx`,
      });
      add("target", "attention", cross(l), { X: `${at("norm1")}.y`, MEMORY: "M", DY: `${at("norm2")}.dx` }, "source");
      add("target", "norm", at("norm2"), {
        SKIP: `${at("norm1")}.y`, SUBLAYER: `${cross(l)}.y`, DY: `${at("ffn")}.dx`, SKIP_DY: `${at("norm3")}.dx`,
      });
      add("target", "ffn", at("ffn"), { X: `${at("norm2")}.y`, DY: `${at("norm3")}.dx` });
      add("target", "norm", at("norm3"), {
        SKIP: `${at("norm2")}.y`, SUBLAYER: `${at("ffn")}.y`,
        DY: next ? `${next("self")}.dx` : "output.dy", SKIP_DY: next ? `${next("norm1")}.dx` : null,
      });
    }
    const last = `${decoder(layers, "norm3")}.y`;
    add("target", "output", "output", { Y: last });
    add("target", "matrix", "", {
      Y: last, DZ: "output.dz", TARGET_IDS: "target.ids", DE_TARGET: "target.de", SOURCE_IDS: "source.ids",
      DE_SOURCE: "source.de",
    }, "source");
    return found;
  }

  /* All definitions in the order in which they can be computed: {place, text, phase}. `replaced`: {kind: {symbol: line}}
     puts other lines in place of some, for the planted mistakes; `only` limits them to some places, named as in a model
     of one layer. */
  function lines(layers, replaced = {}, only = null) {
    const all = places(layers);
    const symbolOf = (line) => line.match(/^\w+/)[0];
    const isChosen = ({ name }) => only === null || only.includes(name.replace(/^(encoder|decoder)\d+/, "$1"));
    const of = (place, phase) =>
      (KINDS[place.kind][phase] ?? []).map((line) => {
        const other = isChosen(place) ? replaced[place.kind]?.[symbolOf(line)] : null;
        return { place, phase, text: withoutMissingWires(other ?? line, place.wires) };
      });
    const memory = all.findIndex(({ name }) => name === "target");
    const cross = all.filter(({ kind }) => kind === "attention");
    const global = all.at(-1);
    const decoder = all.slice(memory, -1);
    return [
      ...all.slice(0, memory).flatMap((place) => of(place, "forward")),
      { place: { ...global, wires: { Y: all[memory - 1].name + ".y" } }, phase: "forward", text: "M[i,c] = Y[i,c]" },
      ...decoder.flatMap((place) => of(place, "forward")),
      ...of(all.at(-2), "backward"),
      ...decoder.slice(0, -1).reverse().flatMap((place) => of(place, "backward")),
      {
        place: { ...global, wires: Object.fromEntries(cross.map(({ name }, l) => [`DM_${l}`, `${name}.dM`])) },
        phase: "backward",
        text: `dM[i,c] = ${cross.map((_, l) => `DM_${l}[i,c]`).join(" + ")}`,
      },
      ...all.slice(0, memory).reverse().flatMap((place) => of(place, "backward")),
      ...of(global, "backward"),
    ];
  }

  function withoutMissingWires(line, wires) {
    let text = line;
    for (const [name, array] of Object.entries(wires)) if (array === null) text = text.replace(` + ${name}[t,c]`, "");
    return text;
  }

  return { KINDS, WEIGHTS, places, lines };
})();

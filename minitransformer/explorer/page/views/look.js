/* What to look for when two arrays are compared, in sentences and in a table. Every number is measured. */
const Look = (() => {
  "use strict";

  const percent = (share) => Strings.compare.percent(share);
  const number = (x) => Show.exact(Number(x.toPrecision(3)));

  function kindOf({ place, symbol, role }) {
    if (symbol === "b_k") return "keyBias";
    if (symbol === "gamma") return "gain";
    if (role === "weight" && (symbol.startsWith("b_") || symbol === "beta")) return "bias";
    if (symbol === "E") return "tokens";
    if (place.kind === "attention" || place.kind === "self") return { p: "attention", s: "scores" }[symbol] ?? "any";
    return { "output.p": "probabilities", "output.z": "logits", "ffn.r": "hidden", "norm.x_hat": "normal", "output.loss": "losses" }[`${place.kind}.${symbol}`] ?? "any";
  }

  /* What to look for, with the numbers of both sides: sentences about the values, and about the gradient `partner`, which
     may be null. */
  function sentences(name, partner, sides) {
    const kind = kindOf(sides[0].machine.get(name));
    const text = Strings.compare.look;
    const measured = (measure) => {
      const [trained, untrained] = sides.map(({ machine }) => number(measure(machine.data(name))));
      return { trained, untrained };
    };
    const makers = {
      attention: () => attention(name, sides),
      probabilities: () => [probabilities(name, sides)],
      tokens: () => [tokens(name, sides)],
      gain: () => {
        const [least, most] = Measures.range(sides[0].machine.data(name)).map(number);
        return [text.gain({ least, most })];
      },
      hidden: () => {
        const [trained, untrained] = sides.map(({ machine }) => percent(Measures.zeros(machine.data(name))));
        return [text.hidden({ trained, untrained })];
      },
      losses: () => [losses(name, sides)],
      scores: () => [text.scores(measured(Measures.largest))],
      keyBias: () => [text.keyBias(measured(Measures.largest))],
      bias: () => [text.bias(measured(Measures.largest))],
    };
    const make = makers[kind] ?? (() => [text[kind](measured(Measures.rms))]);
    return [make(), partner ? gradient(partner, sides) : []];
  }

  function attention(name, sides) {
    const text = Strings.compare.look;
    const { place } = sides[0].machine.get(name);
    const [trained, untrained] = sides.map(({ machine }) => Measures.attention(machine, name));
    const found = [place.kind === "self" ? text.self : crossText(sides[0].machine)];
    if (trained.even !== null) {
      const shares = trained.heads.map(({ share }) => share);
      const head = shares.indexOf(Math.max(...shares));
      found.push(text.share({ head, trained: percent(shares[head]), untrained: percent(Math.max(...untrained.heads.map(({ share }) => share))), even: percent(trained.even) }));
    }
    const means = [trained, untrained].map(({ heads }) => Measures.mean(heads.map(({ entropy }) => entropy)));
    const difference = (means[0] - means[1]) / (trained.most || 1);
    found.push(text.entropy({
      trained: means[0].toFixed(2), untrained: means[1].toFixed(2), most: trained.most.toFixed(2), sharper: difference < -0.05, evener: difference > 0.05,
    }));
    return found;
  }

  function crossText(machine) {
    const text = Strings.compare.look;
    const letters = (name) => [...machine.data(name)].filter((id) => id > Engine.EOS);
    const [source, target] = [letters("source.ids"), letters("output.ids")];
    const same = (other) => source.length === target.length && source.length > 1 && other.every((id, n) => id === target[n]);
    if (same([...source].reverse())) return text.crossReversed;
    return same(source) ? text.crossCopied : text.cross;
  }

  function probabilities(name, sides) {
    const [trained, untrained] = sides.map(({ machine }) => {
      const rows = Training.rowsOf(machine);
      return { mean: Measures.mean(rows.map(({ probability }) => probability)), right: rows.filter(({ right, written }) => right === written).length, rows: rows.length };
    });
    return Strings.compare.look.probabilities({
      trained: percent(trained.mean), untrained: percent(untrained.mean), even: percent(1 / MODEL.sizes.V),
      right: trained.right, rows: trained.rows, rightUntrained: untrained.right,
    });
  }

  function losses(name, sides) {
    const [trained, untrained] = sides.map(({ machine }) => {
      const values = [...machine.data(name)];
      const most = Math.max(...values);
      return { most: number(most), token: App.tokenText(machine.data("output.ids")[values.indexOf(most)]) };
    });
    return Strings.compare.look.losses({ token: trained.token, trained: trained.most, tokenUntrained: untrained.token, untrained: untrained.most });
  }

  function tokens(name, sides) {
    const [trained, untrained] = sides.map(({ machine }) => Measures.rows(machine.data(name), MODEL.sizes.C));
    const length = Math.max(...trained.lengths);
    return Strings.compare.look.tokens({
      longest: App.tokenText(trained.lengths.indexOf(length)), length: number(length), cosine: number(trained.cosine), untrained: number(untrained.cosine),
    });
  }

  /* How the sizes of the gradients compare, and those of the losses. */
  function gradient(name, sides) {
    const text = Strings.compare.look;
    const sizes = sides.map(({ machine }) => Measures.rms(machine.data(name)));
    if (Math.max(...sizes) < 1e-12) return [text.gradientNoise];
    const losses = sides.map(({ machine }) => machine.loss);
    const found = [text.gradient({ trained: number(sizes[0]), untrained: number(sizes[1]), lossTrained: Show.number(losses[0]), lossUntrained: Show.number(losses[1]) })];
    if (sizes[0] > sizes[1] && losses[0] < losses[1] && sizes[1] > 0) found.push(text.gradientLarger(number(sizes[0] / sizes[1])));
    return found;
  }

  /* [[label, [trained, untrained]]] */
  function facts(name, partner, sides) {
    const text = Strings.compare.rows;
    const array = sides[0].machine.get(name);
    const kind = kindOf(array);
    const both = (measure, each = name) => sides.map(({ machine }) => number(measure(machine.data(each))));
    const found = [[text.largest, both(Measures.largest)], [text.rms, both(Measures.rms)]];
    if (kind === "attention") {
      const all = sides.map(({ machine }) => Measures.attention(machine, name));
      all[0].heads.forEach((_, h) => found.push([text.entropy(h), all.map(({ heads }) => heads[h].entropy.toFixed(2))]));
      if (all[0].even !== null) all[0].heads.forEach((_, h) => found.push([text.share(h), all.map(({ heads }) => percent(heads[h].share))]));
    }
    if (kind === "hidden") found.push([text.zeros, sides.map(({ machine }) => percent(Measures.zeros(machine.data(name))))]);
    if (kind === "tokens") {
      const all = sides.map(({ machine }) => Measures.rows(machine.data(name), MODEL.sizes.C));
      found.push([text.lengths, all.map(({ lengths }) => `${number(Math.min(...lengths))}, ${number(Math.max(...lengths))}`)], [text.cosines, all.map(({ cosine }) => number(cosine))]);
    }
    if (partner) found.push([text.gradientLargest, both(Measures.largest, partner)], [text.gradientRms, both(Measures.rms, partner)]);
    return found;
  }

  return { sentences, facts };
})();

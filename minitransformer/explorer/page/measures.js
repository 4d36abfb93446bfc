/* What can be said about an array in one number: sizes, angles, and how attention is spread. */
const Measures = (() => {
  "use strict";

  const sum = (list) => list.reduce((a, b) => a + b, 0);
  const mean = (list) => sum(list) / list.length;
  const dot = (x, y) => x.reduce((total, value, i) => total + value * y[i], 0);
  const norm = (x) => Math.sqrt(dot(x, x));
  const rms = (x) => norm(x) / Math.sqrt(x.length);
  const largest = (x) => x.reduce((most, value) => Math.max(most, Math.abs(value)), 0);
  const range = (x) => x.reduce(([least, most], value) => [Math.min(least, value), Math.max(most, value)], [Infinity, -Infinity]);
  const zeros = (x) => x.filter((value) => value === 0).length / x.length;
  const entropy = (p) => -sum([...p].map((share) => (share > 0 ? share * Math.log(share) : 0)));

  /* The cosine of the angle between two arrays; NaN if one is 0. */
  const cosine = (x, y) => dot(x, y) / (norm(x) * norm(y));

  const rowsOf = (values, length) => Array.from({ length: values.length / length }, (_, n) => values.subarray(n * length, (n + 1) * length));

  /* The lengths of the rows of a matrix, and the mean cosine of two different rows. */
  function rows(values, length) {
    const all = rowsOf(values, length);
    const cosines = all.flatMap((x, n) => all.slice(0, n).map((y) => cosine(x, y)));
    return { lengths: all.map(norm), cosine: mean(cosines) };
  }

  /* How the heads of an attention spread their weights: for each head the mean entropy of a row, and the mean share of
     the token that the row must write, over the rows whose token is in the source; and what an even spread would have.
     Rows of padding are left out. */
  function attention(machine, name) {
    const { place, shape } = machine.get(name);
    const [H, T, S] = shape;
    const [p, allowed] = [machine.data(name), machine.data(`${place.name}.allowed`)];
    const ids = machine.data(place.rows === "source" ? "source.ids" : "output.ids");
    const rowNumbers = Array.from({ length: T }, (_, t) => t).filter((t) => ids[t] !== Engine.PAD);
    const may = (t) => [...allowed.subarray(t * S, (t + 1) * S)];
    const matches = place.kind === "attention" ? rowNumbers.map((t) => [t, [...machine.data("source.ids")].map((id) => Number(id === ids[t]))])
      .filter(([, match]) => sum(match) > 0) : [];
    const row = (h, t) => p.subarray((h * T + t) * S, (h * T + t + 1) * S);
    return {
      heads: Array.from({ length: H }, (_, h) => ({
        entropy: mean(rowNumbers.map((t) => entropy(row(h, t)))),
        share: matches.length ? mean(matches.map(([t, match]) => dot(match, row(h, t)))) : null,
      })),
      most: mean(rowNumbers.map((t) => Math.log(sum(may(t))))),
      even: matches.length ? mean(matches.map(([t, match]) => dot(match, may(t)) / sum(may(t)))) : null,
    };
  }

  return { mean, rms, largest, range, zeros, cosine, rows, attention };
})();

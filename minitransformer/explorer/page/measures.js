/* What can be said about an array in one number. */
const Measures = {
  mean: (list) => list.reduce((a, b) => a + b, 0) / list.length,
  largest: (x) => x.reduce((most, value) => Math.max(most, Math.abs(value)), 0),
};

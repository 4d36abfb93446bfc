/* What can be said about an array in one number, and the numbers from 0 on. */
const Measures = {
  mean: (list) => list.reduce((a, b) => a + b, 0) / list.length,
  range: (count) => Array.from({ length: count }, (_, n) => n),
  largest: (x) => x.reduce((most, value) => Math.max(most, Math.abs(value)), 0),
};

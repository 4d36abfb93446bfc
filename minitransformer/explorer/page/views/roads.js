/* All roads from the loss to one weight of W_q: over a logit's gradient dz, over the score ds of a letter that is read, and over
   the query. The backward pass is linear in dz, so a road's share is what it brings of the weight's gradient, and all of them
   add up to 1. The rows of the features between dz and ds are a bundle: their roads are one here. */
const Roads = (() => {
  "use strict";

  const { element } = Dom, { range } = Measures;
  const EXACT = 1e-9; // a mistake in the backward pass may be no sum of roads
  const LEAST = 5e-4; // of the gradient: a thinner road could not be seen
  const NAMED = 0.05; // of the gradient: with less traffic, a stop has no room for its name
  const WIDE = 600; // pixels that the shares at the stops need
  const known = new WeakMap(); // machine -> its roads

  /* {h, q, x, dW, all: [{t, w, i, share}], heaviest}: to the weight of W_q with the largest gradient. */
  function of(machine, cross) {
    if (!known.has(machine)) known.set(machine, measured(machine, cross));
    return known.get(machine);
  }

  function measured(machine, cross) {
    const { V, D } = machine.sizes, [S, T] = [machine.lengths.source, machine.lengths.target];
    const at = (name, ...index) => machine.value(name, machine.offsetOf(name, index));
    const flat = machine.data(`${cross}.dW_q`).reduce((most, x, n, all) => (Math.abs(x) > Math.abs(all[most]) ? n : most), 0);
    const [x, g] = machine.indexOf(`${cross}.dW_q`, flat), [h, q] = [Math.floor(g / D), g % D], dW = at(`${cross}.dW_q`, x, g);
    const slopes = slopesOfScores(machine, cross);
    const home = (t, i) => (at(`${cross}.k`, h, i, q) / Math.sqrt(D)) * at(`${cross}.x`, t, x); // from ds to the weight
    const all = range(T * V * S).map((n) => {
      const [t, w, i] = [Math.floor(n / (V * S)), Math.floor(n / S) % V, n % S];
      const brought = at("output.dz", t, w) * slopes[w][machine.offsetOf(`${cross}.ds`, [h, t, i])] * home(t, i);
      return { t, w, i, share: dW === 0 ? 0 : brought / dW };
    });
    return { machine, cross, h, q, x, dW, all, heaviest: all.reduce((most, road) => (road.share > most.share ? road : most)) };
  }

  /* For each letter w that may be written, how much each ds grows if dz of its row and w grows by 1: each row by itself. */
  function slopesOfScores(machine, cross) {
    const [start, end] = ["output.dz", `${cross}.ds`].map((name) => machine.definitions.indexOf(machine.get(name).definition) + 1);
    const dz = machine.data("output.dz"), { V } = machine.sizes;
    const slopes = range(V).map((w) => {
      dz.forEach((_, n) => { dz[n] = Number(n % V === w); });
      machine.run(machine.definitions.slice(start, end));
      return machine.data(`${cross}.ds`).slice();
    });
    machine.run();
    return slopes;
  }

  const sum = (roads) => roads.reduce((total, { share }) => total + share, 0);

  const percent = (share) => Strings.tour.end.percent(Math.round(100 * share));

  /* --- the picture: each road is one ribbon as thick as its share, from the loss at the top down to the weight --- */

  /* Where the roads cross a floor: one beside the other in the order of `key`, with a gap after each node -> road -> its middle. */
  function crossing(roads, { key, node }, scale, from, width) {
    const order = [...roads].sort((a, b) => key(a) - key(b)), nodes = new Set(order.map(node)).size;
    const gap = (width - order.reduce((all, { share }) => all + scale * Math.abs(share), 0)) / nodes;
    let [at, last] = [from - gap / 2, null];
    return new Map(order.map((road) => {
      const size = scale * Math.abs(road.share);
      at += node(road) === last ? 0 : gap;
      [at, last] = [at + size, node(road)];
      return [road, at - size / 2];
    }));
  }

  function picture({ machine, all, dW, heaviest, x, q, h }, width) {
    const text = Strings.tour.end, { V, D } = machine.sizes, [S, T] = [machine.lengths.source, machine.lengths.target];
    if (Math.abs(sum(all) - 1) > EXACT) return element("p", { class: "sentence" }, dW === 0 ? text.nothing : text.noSum);
    const height = Math.min(600, 330 + width / 4), traffic = (roads) => roads.reduce((total, { share }) => total + Math.abs(share), 0);
    const rows = range(T).map((t) => all.filter((road) => road.t === t)), room = rows.map((own) => width * (0.5 / T + (0.5 * traffic(own)) / traffic(all)));
    const starts = rows.map((_, t) => room.slice(0, t).reduce((a, b) => a + b, 0)), scale = Math.min(...rows.map((own, t) => (0.72 * room[t]) / traffic(own)));
    const logits = { key: ({ w, i }) => w * S + i, node: ({ w }) => w }, scores = { key: ({ w, i }) => i * V + w, node: ({ i }) => i };
    const query = { ...scores, node: () => 0 }, meet = (key) => crossing(all, { key, node: () => 0 }, scale, 0, width);
    const inRows = (floor) => new Map(rows.flatMap((own, t) => [...crossing(own, floor, scale, starts[t], room[t])]));
    const floors = [meet(({ t, w, i }) => (t * V + w) * S + i), inRows(logits), inRows(scores), inRows(query), meet(({ t, w, i }) => (t * S + i) * V + w)];
    const heights = [0.02, 0.27, 0.58, 0.79, 0.94].map((share) => share * height);
    /* Down its left side and up its right one, which is as far away on each floor. */
    const side = (points) => points.map(([at, y], n) => {
      const [before, above] = points[n - 1] ?? [];
      return n === 0 ? `${at},${y}` : ` C${before},${(above + y) / 2} ${at},${(above + y) / 2} ${at},${y}`;
    }).join("");
    const ribbon = (road) => {
      const points = (by) => floors.map((floor, n) => [floor.get(road) + by, heights[n]]), half = (scale * Math.abs(road.share)) / 2;
      return Math.abs(road.share) > LEAST && element("path", {
        d: `M${side(points(-half))} L${side(points(half).reverse())} Z`, class: `${road.share < 0 ? "against" : "along"}${road === heaviest ? " ours" : ""}`,
      });
    };
    const label = (content, at, y, kind) => element("text", { x: at, y, "text-anchor": "middle", class: kind }, content);
    const node = (n, own, name) => {
      const places = own.map((road) => floors[n].get(road));
      return { at: (Math.min(...places) + Math.max(...places)) / 2, name, share: sum(own), size: traffic(own) };
    };
    /* The larger nodes that have room for their names, or for a wider text. */
    const apart = (nodes, roomOf) => nodes.filter(({ size }) => size >= NAMED).sort((a, b) => b.size - a.size).reduce((kept, each) => (
      kept.every((other) => Math.abs(other.at - each.at) >= roomOf(each, other)) ? [...kept, each] : kept), []);
    const names = [1, 2].flatMap((n) => {
      const nodes = rows.flatMap((own) => range(n === 1 ? V : S).map((stop) => node(n, own.filter((road) => (n === 1 ? road.w : road.i) === stop),
        App.tokenText(n === 1 ? stop : machine.value("source.ids", stop)))));
      const shown = width > WIDE ? apart(nodes.filter(({ share }) => Math.abs(share) >= NAMED), () => 44) : [];
      return [...apart(nodes, (a, b) => 6 + 4 * (a.name.length + b.name.length)).map(({ name, at }) => label(name, at, heights[n] - 6, "stop")),
        ...shown.map(({ share, at }) => label(percent(share), at, heights[n] + 8))];
    });
    const inRow = rows.map((own, t) => traffic(own) >= NAMED && [
      label(App.label(machine.get("output.z"), 0, t, true), Math.max(24, Math.min(width - 24, starts[t] + room[t] / 2)), heights[1] - 26),
      label(percent(sum(own)), Math.max(42, node(3, own).at), heights[3] + 4, "stop"),
    ]);
    return element("figure", { class: "roads" }, element("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": text.picture(Strings.home.percent(heaviest.share)) },
      [...all].sort((a, b) => (a === heaviest) - (b === heaviest)).map(ribbon), names, inRow,
      Object.values(text.floors).map((words, n) => element("text", { x: 0, y: heights[n] + 14, class: "floor" }, words)),
      label(text.own(percent(heaviest.share)), (floors[1].get(heaviest) + floors[2].get(heaviest)) / 2, (heights[1] + heights[2]) / 2, "stop"),
      label(text.weight(`${x}, ${h * D + q}`, Show.number(dW)), width / 2, heights[4] + 18, "stop")));
  }

  return { of, picture };
})();

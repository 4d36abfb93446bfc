/* A line that the reader writes, such as `ds = p*dp`: it becomes a mistake to plant, or a problem with its place.

     OwnLine.read("cross.ds = p*dp") -> {text, mistake, array: "cross.ds"}; of a bad line: {text, problem: {kind, at, length, facts}}

   A name without brackets has the indices that it has in the page's own formulas. What is planted is the line with all
   indices, which `Language` reads again. */
const OwnLine = (() => {
  "use strict";

  const LONGEST = 300; // characters
  const MOST = 2e7; // terms: more would take the browser too long
  const SPELLINGS = { "·": "*", "×": "*", "−": "-", "²": "^2", "x̂": "x_hat", γ: "gamma", β: "beta", μ: "mu", σ: "sigma", ε: "eps" };
  const known = new WeakMap(); // MODEL -> {machine, Map(text -> what was read)}

  const tidy = (text) => Object.entries(SPELLINGS).reduce((all, [from, to]) => all.replaceAll(from, to), text).replace(/\s+/g, " ").trim();

  function read(typed) {
    const text = tidy(typed);
    if (!known.has(MODEL)) known.set(MODEL, { machine: sample(), lines: new Map() });
    const { machine, lines } = known.get(MODEL);
    if (!lines.has(text)) lines.set(text, attempt(text, machine));
    return lines.get(text);
  }

  /* The right model, with the longest sequences. */
  function sample(options = {}) {
    const length = MODEL.max_length + MODEL.source_end.length;
    return Engine.build(MODEL.sizes, { S: length, T: MODEL.max_length + 1, eps: MODEL.norm_eps, ...options });
  }

  function attempt(text, machine) {
    try {
      if (text.length > LONGEST) throw new Language.Problem(text, "cost", LONGEST, text.length - LONGEST);
      return { text, ...understand(text, machine) };
    } catch (error) {
      return { text, problem: error instanceof Language.Problem ? error : { kind: "other", at: 0, length: text.length, facts: {} } };
    }
  }

  /* The line in each place that has such an array and all the names; if there is none, the problem that comes last. */
  function understand(text, machine) {
    const tree = Language.parse(text, true);
    const { symbol, places } = target(tree, machine);
    const [lines, wanted, problems] = [{}, [], []];
    for (const place of places) {
      try {
        (lines[place.kind] ??= {})[symbol] = complete(tree, symbol, machine, place);
        wanted.push(place);
      } catch (error) {
        if (!(error instanceof Language.Problem)) throw error;
        problems.push(error);
      }
    }
    if (wanted.length === 0) throw problems.reduce((a, b) => (b.at > a.at ? b : a));
    const built = sample({ replaced: lines, only: wanted.map(({ name }) => name) });
    const isPlanted = (place) => definitionOf(built, place, symbol).text === lines[place.kind][symbol]; // some belong to no kind of place
    const only = wanted.filter(isPlanted).map(({ name }) => name);
    if (only.length === 0) throw new Language.Problem(text, "other", 0, tree.end);
    const { phase } = definitionOf(machine, places[0], symbol);
    const first = only.at(phase === "forward" ? 0 : -1); // that is computed
    return { array: first ? `${first}.${symbol}` : symbol, mistake: Mistakes.make({ id: "own", kind: phase, lines, only }) };
  }

  const linesOf = (machine, { name }) => machine.definitions.filter(({ place }) => place.name === name);

  const definitionOf = (machine, place, symbol) => linesOf(machine, place).find((each) => each.symbol === symbol);

  /* What a line may be written with: [its array, the arrays that are there by then, sizes and constants]. */
  function names(typed) {
    const machine = sample();
    const name = tidy(typed).match(/^[\w.]*/)[0];
    const own = machine.definitions.findLast((each) => [each.symbol, each.name].includes(name)) ?? machine.definitions.findLast(({ symbol }) => symbol === "ds");
    const order = machine.definitions.indexOf(own);
    const isWire = (each) => own.place.name !== "" && Object.hasOwn(own.place.wires, each);
    const isThere = (each) => !isWire(each) && machine.definitions.indexOf(machine.find(own.place, each).definition) < order;
    const isKnown = (each) => own.place.name !== "" || Object.hasOwn(own.place.wires, each) || machine.arrays.has(each); // dM has wires of its own
    const arrays = [...usualIndices(machine, own.place)].filter(([each]) => isKnown(each) && isThere(each)).map((pair) => pair.join(""));
    return [own.symbol, arrays, Object.keys(own.sizes).filter((each) => typeof own.sizes[each] === "number" && !/^[a-z]$|layers/.test(each))];
  }

  /* The array on the left, and the places that have a line for it. */
  function target({ symbol: name, text, end }, machine) {
    const fail = (kind, facts) => { throw new Language.Problem(text, kind, 0, end, { name, ...facts }); };
    const dot = name.lastIndexOf(".");
    const [where, symbol] = [name.slice(0, Math.max(0, dot)), name.slice(dot + 1)];
    const inPlace = machine.places.filter((place) => dot < 0 || place.name === where);
    if (inPlace.length === 0) fail("place", { name: where });
    const places = inPlace.filter((place) => definitionOf(machine, place, symbol));
    if (places.length > 0) return { symbol, places };
    const isInput = [...machine.arrays.values()].some((array) => array.symbol === symbol && !array.definition);
    return fail(isInput ? "fixed" : "target", { name: symbol });
  }

  /* The line with all indices, as the formulas of a place are written. */
  function complete(tree, symbol, machine, place) {
    const { text } = tree;
    const sizes = machine.sizesAt(place);
    const own = definitionOf(machine, place, symbol);
    const order = machine.definitions.indexOf(own);
    const isSize = (name) => Object.hasOwn(sizes, name) && typeof sizes[name] === "number";
    const isLetter = (name) => /^[a-z]$/.test(name) && isSize(name);
    const letters = Object.keys(sizes).filter(isLetter);
    const usual = usualIndices(machine, place);
    const parts = [];
    let done = tree.start;
    const fail = ({ name, at, end }, kind, facts) => { throw new Language.Problem(text, kind, at, end - at, { name, ...facts }); };

    function arrayOf(node) {
      if (!usual.has(node.name)) fail(node, "unknown");
      const array = machine.find(place, node.name);
      if (array.definition === own) fail(node, "itself");
      if (machine.definitions.indexOf(array.definition) > order) fail(node, "late", { target: own.symbol });
      return array;
    }
    function checkLetter(name, node, bound) {
      if (!isLetter(name)) fail(node, "letter", { letters });
      if (!bound.has(name)) fail(node, "unbound", { name });
    }
    /* The terms that a node costs. */
    function walk(node, bound) {
      switch (node.op) {
        case "number": return 1;
        case "name": return bare(node, bound);
        case "cell": return cell(node, bound);
        case "bracket": return walk(node.where.a, bound) + walk(node.where.b, bound);
        case "div":
        case "mod": return fail(node, "function", { name: node.op });
        case "sum":
        case "max": {
          node.over.forEach((name, n) => isLetter(name) || fail(node.names[n], "letter", { letters }));
          const inner = new Set([...bound, ...node.over]);
          const where = node.where ? walk(node.where.a, inner) + walk(node.where.b, inner) : 0;
          return node.over.reduce((count, name) => count * sizes[name], 1) * (where + walk(node.a, inner));
        }
        default: return walk(node.a, bound) + (node.b ? walk(node.b, bound) : 0);
      }
    }
    function bare(node, bound) {
      const { name, end } = node;
      if (bound.has(name)) return 1;
      if (isLetter(name)) checkLetter(name, node, bound);
      if (isSize(name)) return 1;
      arrayOf(node);
      const index = usual.get(name);
      const loose = (index.match(/\b[a-z]\b/g) ?? []).find((letter) => !bound.has(letter));
      if (loose) fail(node, "loose", { index, letter: loose });
      parts.push(text.slice(done, end), index);
      done = end;
      return 1;
    }
    function cell(node, bound) {
      const array = arrayOf(node);
      const index = usual.get(node.name);
      const whole = { ...node, end: node.stop };
      if (node.index.length !== array.shape.length) fail(whole, "indices", { index, given: node.index.length });
      node.index.forEach((part, n) => {
        const wanted = axis(array.role === "input" ? place : array.place, array.letters[n]);
        if (wanted !== axisOf(part, bound, whole)) fail({ ...whole, ...(part.at && { at: part.at, end: part.end }) }, "fits", { index, number: n + 1 });
      });
      return 1;
    }
    /* What an index counts. */
    function axisOf(part, bound, node) {
      if (part.op === "name") {
        checkLetter(part.name, part, bound);
        return axis(place, part.name);
      }
      if (part.op === "cell" && arrayOf(part).role === "ids") return cell(part, bound) && "w";
      const [{ a: h, b: D } = {}, d] = part.op === "+" && part.a.op === "*" ? [part.a, part.b] : [];
      if (h?.name !== "h" || D?.name !== "D" || d?.name !== "d") fail(node, "index");
      for (const each of [h, d]) checkLetter(each.name, each, bound);
      return axis(place, "g");
    }

    if (tree.index.length > 0 && text.slice(tree.end, tree.stop).replace(/ /g, "") !== own.text.slice(own.end, own.stop).replace(/ /g, ""))
      fail({ at: 0, end: tree.stop }, "left", { name: symbol, index: own.text.slice(own.end, own.stop) });
    const cost = machine.get(own.name).size * walk(tree.expression, new Set(own.indices));
    if (cost > MOST) fail({ at: 0, end: text.length }, "cost", { cost });
    return `${own.text.slice(0, own.stop)} =${parts.join("")}${text.slice(done)}`;
  }

  /* What an axis counts: tokens of the source or of the target, or what its letter stands for in all places. */
  const axis = ({ rows, keys }, letter) => ({ t: rows, i: keys, j: keys, g: "c" }[letter] ?? letter);

  /* name -> its indices in the formulas of a place, such as "[h,t,i]". */
  function usualIndices(machine, place) {
    const found = new Map();
    const lines = linesOf(machine, place);
    for (const { symbol, text, end, stop } of lines) found.set(symbol, text.slice(end, stop));
    const visit = (node, text) => {
      if (node?.op === "cell" && !found.has(node.name)) found.set(node.name, text.slice(node.end, node.stop));
      for (const part of node ? [node.where?.a, node.where?.b, node.a, node.b, ...(node.index ?? [])] : []) visit(part, text);
    };
    for (const { expression, text } of lines) visit(expression, text);
    return found;
  }

  return { read, names };
})();

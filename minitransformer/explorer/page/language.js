/* The language of the formulas: one line says how each entry of an array is computed.

     s[h,t,i] = sum[d](q[h,t,d] * k[h,i,d]) / sqrt(D)

   A line is parsed once, compiled to loops, printed with letters and with numbers, and asked which cells a cell is
   computed from. So what the page shows is what it computes.

     sum[d](...), max[i](...)          over an index; sum[i: allowed[t,i] == 1](...) over some of its values
     1[a > 0]                          1 if true, and 0 if not; as a factor it is a strong zero: 0 times anything is 0
     sqrt, exp, log, relu              functions
     div(a, b), mod(a, b), pair(a)     for indices; pair(a) is the other one of 0 and 1, of 2 and 3, and so on
     C, D, eps                         sizes and constants
*/
const Language = (() => {
  "use strict";

  const TOKEN = /\s*(?:([A-Za-z_][\w.]*)|(\d+(?:\.\d+)?(?:e[-+]?\d+)?)|(==|!=|>=|<=|[-+*/^()[\],:<>=]))/y;
  const FUNCTIONS = new Set(["sqrt", "exp", "log", "relu", "div", "mod", "pair"]);
  const PAIRS = new Set(["div", "mod"]); // functions of two arguments
  const REDUCTIONS = new Set(["sum", "max"]);
  const compiled = new Map(); // code -> function: the browser has made it fast by the time that another machine needs it

  /* What is wrong with a line, and where. */
  class Problem extends Error {
    constructor(text, kind, at, length, facts = {}) {
      super(`${kind} at ${at} of ${text}`);
      Object.assign(this, { kind, at, length, facts });
    }
  }

  function tokenize(text) {
    const tokens = [];
    TOKEN.lastIndex = 0;
    for (let from = 0; from < text.length; from = TOKEN.lastIndex) {
      const match = TOKEN.exec(text);
      if (!match) {
        const found = text.slice(from).trimStart();
        throw new Problem(text, "sign", text.length - found.length, 1, { found: String.fromCodePoint(found.codePointAt(0)) });
      }
      const [all, name, number, sign] = match;
      const end = from + all.length;
      tokens.push({ name, number: number && Number(number), sign, at: end - all.trimStart().length, end });
    }
    return tokens;
  }

  /* "target = expression" -> {symbol, index, indices, expression, text}. `index` are the expressions in the brackets of the
     target, and `indices` the names of the loops that they need. A name ends at `end`, its brackets at `stop`, and the
     expression begins at `start`. In a `loose` line, a name may lack brackets. */
  function parse(text, loose = false) {
    const tokens = tokenize(text);
    const bound = new Set();
    let at = 0;
    const peek = (sign) => tokens[at]?.sign === sign;
    const take = (sign) => peek(sign) && Boolean(++at);
    const stop = () => tokens[at - 1].end;
    function fail(kind, facts, { at: from, end } = tokens[at] ?? { at: text.length, end: text.length + 1 }) {
      throw new Problem(text, kind, from, end - from, { found: text.slice(from, end), ...facts });
    }
    function expect(sign) {
      const factor = tokens[at] && (tokens[at].sign === undefined || peek("(")); // perhaps a * is missing before it
      if (!take(sign)) fail("expected", { wanted: sign, factor });
    }
    function takeName() {
      if (!tokens[at]?.name) fail("name");
      return tokens[at++].name;
    }
    const list = (read) => {
      const items = [read()];
      while (take(",")) items.push(read());
      return items;
    };
    function sum() {
      let node = product();
      while (peek("+") || peek("-")) node = { op: tokens[at++].sign, a: node, b: product() };
      return node;
    }
    function product() {
      let node = power();
      while (peek("*") || peek("/")) node = { op: tokens[at++].sign, a: node, b: power() };
      return node;
    }
    function power() {
      if (take("-")) return { op: "negative", a: power() };
      const node = primary();
      if (!take("^")) return node;
      const times = tokens[at]?.number;
      if (!Number.isInteger(times) || times < 2 || times > 9) fail("power");
      at++;
      return { op: "square", a: node, power: times };
    }
    function condition() {
      const a = sum();
      const test = tokens[at]?.sign;
      if (!Object.hasOwn(TESTS, test ?? "")) fail("comparison");
      at++;
      return { test, a, b: sum() };
    }
    function reduction(op) {
      if (!peek("[")) fail("reduction", { name: op }, tokens[at - 1]);
      at++;
      const first = at;
      const over = list(takeName);
      const names = tokens.slice(first, at).filter(({ name }) => name);
      const inner = over.filter((name) => !bound.has(name)); // the others are hidden, and come back
      inner.forEach((name) => bound.add(name));
      const where = take(":") ? condition() : null;
      expect("]");
      expect("(");
      const a = sum();
      expect(")");
      inner.forEach((name) => bound.delete(name));
      return { op, over, names, where, a };
    }
    function primary() {
      if (at === tokens.length) fail("early");
      if (take("(")) {
        const node = sum();
        expect(")");
        return node;
      }
      const { number } = tokens[at];
      if (number !== undefined) {
        at++;
        if (number !== 1 || !take("[")) return { op: "number", value: number };
        const where = condition();
        expect("]");
        return { op: "bracket", where };
      }
      const token = tokens[at];
      const { name, end } = token;
      if (!name) fail("value");
      at++;
      if (REDUCTIONS.has(name)) return reduction(name);
      if (FUNCTIONS.has(name) || peek("(")) {
        if (!FUNCTIONS.has(name)) fail("function", { name }, token);
        expect("(");
        const parts = list(sum);
        expect(")");
        if (parts.length !== (PAIRS.has(name) ? 2 : 1)) fail("function", { name }, token);
        return { op: name, a: parts[0], b: parts[1], at: token.at, end };
      }
      if (take("[")) {
        const index = list(sum);
        expect("]");
        if (peek("(")) fail("function", { name }, token);
        return { op: "cell", name, index, at: token.at, end, stop: stop() };
      }
      if (loose) return { op: "name", name, at: token.at, end };
      if (bound.has(name)) return { op: "index", name };
      if (/^[a-z]$/.test(name)) fail("unbound", { name }, token);
      return { op: "size", name };
    }

    const symbol = takeName();
    const { end } = tokens[0];
    let index = [];
    const indices = [];
    if (take("[")) {
      const start = at;
      for (; at < tokens.length && !peek("]"); at++) {
        const { name } = tokens[at];
        if (name && /^[a-z]$/.test(name) && !indices.includes(name)) indices.push(name);
      }
      at = start;
      indices.forEach((name) => bound.add(name));
      index = list(sum);
      expect("]");
    }
    const definition = { symbol, index, indices, text, end, stop: stop() };
    expect("=");
    const start = stop();
    const expression = sum();
    if (at !== tokens.length) expect("the end");
    return { ...definition, start, expression };
  }

  const TESTS = {
    "==": (a, b) => a === b,
    "!=": (a, b) => a !== b,
    ">": (a, b) => a > b,
    "<": (a, b) => a < b,
    ">=": (a, b) => a >= b,
    "<=": (a, b) => a <= b,
  };

  /* Every tuple of values of the indices `names`; `sizes` has the number of values of each, `fixed` the value of some. */
  function* tuples(names, sizes, given = {}, fixed = {}) {
    if (names.length === 0) {
      yield given;
      return;
    }
    const [first, ...rest] = names;
    const [from, to] = first in fixed ? [fixed[first], Math.min(fixed[first] + 1, sizes[first])] : [0, sizes[first]];
    for (let i = from; i < to; i++) yield* tuples(rest, sizes, { ...given, [first]: i }, fixed);
  }

  /* The values that indices must have in a cell, as far as they can be read off: from [t,h*D+d] and (1, 5) t = 1, h = 1 and
     d = 2 if D is 3. */
  function solve(parts, cell, sizes) {
    const fixed = {};
    parts.forEach((part, axis) => {
      const { op, name, a, b } = part;
      if (op === "index") fixed[name] = cell[axis];
      else if (op === "+" && a.op === "*" && a.a.op === "index" && a.b.op === "size" && b.op === "index")
        Object.assign(fixed, { [a.a.name]: Math.floor(cell[axis] / sizes[a.b.name]), [b.name]: cell[axis] % sizes[a.b.name] });
    });
    return fixed;
  }

  /* Calls found(node, over) for each cell of an expression; `over` are the indices of the sums around it. */
  function occurrences(node, found, over = []) {
    if (node.op === "cell") found(node, over);
    const parts = node.op === "bracket" ? [node.where.a, node.where.b] : node.index ?? [node.a, node.b];
    for (const part of parts) if (part) occurrences(part, found, [...over, ...(node.over ?? [])]);
  }

  /* The value of a node. `scope` has sizes (of indices too), and read(name, index) -> number; `given` the indices. */
  function evaluate(node, scope, given) {
    const of = (part) => evaluate(part, scope, given);
    switch (node.op) {
      case "number": return node.value;
      case "size": return scope.sizes[node.name];
      case "index": return given[node.name];
      case "cell": return scope.read(node.name, node.index.map(of));
      case "+": return of(node.a) + of(node.b);
      case "-": return of(node.a) - of(node.b);
      case "*": return isZero(node, scope, given) ? 0 : of(node.a) * of(node.b);
      case "/": return isZero(node.a, scope, given) ? 0 : of(node.a) / of(node.b);
      case "negative": return -of(node.a);
      case "square": return of(node.a) ** node.power;
      case "bracket": return Number(holds(node.where, scope, given));
      case "sqrt": return Math.sqrt(of(node.a));
      case "exp": return Math.exp(of(node.a));
      case "log": return Math.log(of(node.a));
      case "relu": return Math.max(0, of(node.a));
      case "div": return Math.floor(of(node.a) / of(node.b));
      case "mod": return of(node.a) % of(node.b);
      case "pair": return of(node.a) ^ 1;
      default: return reduce(node, scope, given);
    }
  }

  function reduce(node, scope, given) {
    let total = node.op === "sum" ? 0 : -Infinity;
    for (const inner of chosen(node, scope, given)) {
      const term = evaluate(node.a, scope, inner);
      total = node.op === "sum" ? total + term : Math.max(total, term);
    }
    return total;
  }

  function* chosen(node, scope, given, fixed) {
    for (const inner of tuples(node.over, scope.sizes, given, fixed))
      if (!node.where || holds(node.where, scope, inner)) yield inner;
  }

  function holds(where, scope, given) {
    return TESTS[where.test](evaluate(where.a, scope, given), evaluate(where.b, scope, given));
  }

  /* Whether a factor of a product is a bracket that is 0. */
  function isZero(node, scope, given) {
    if (node.op === "bracket") return !holds(node.where, scope, given);
    if (node.op === "*") return isZero(node.a, scope, given) || isZero(node.b, scope, given);
    return node.op === "/" && isZero(node.a, scope, given);
  }

  /* Calls found(name, index) for each cell that the value of a node is computed from. A strong zero hides what it is multiplied
     with. With `fixed`, sums and maxima are visited for these values of their indices alone. */
  function visitCells(node, scope, given, found, fixed = {}) {
    const visit = (part, at = given) => visitCells(part, scope, at, found, fixed);
    if (node.op === "cell") {
      found(node.name, node.index.map((part) => evaluate(part, scope, given)));
      node.index.forEach((part) => visit(part));
    } else if (node.over) {
      for (const inner of chosen(node, scope, given, fixed)) visit(node.a, inner);
    } else if (node.op === "bracket") {
      visit(node.where.a);
      visit(node.where.b);
    } else if ((node.op === "*" || node.op === "/") && isZero(node, scope, given)) {
      for (const part of [node.a, node.b]) if (part.op === "bracket" || isZero(part, scope, given)) visit(part);
    } else {
      for (const part of [node.a, node.b]) if (part) visit(part);
    }
  }

  /* JavaScript that fills one array: loops over the indices of the definition, with one operation on each line. `place(name)`
     gives the number of an array, its shape and strides, and whether it can be complex. */
  function compile(definition, place, sizes, complex) {
    const lines = [];
    const used = new Set();
    let names = 0;
    const fresh = (code) => {
      const name = `v${names++}`;
      lines.push(`const ${name} = ${code};`);
      return name;
    };
    const real = (re) => ({ re, im: null });
    const keep = (value) => ({ re: fresh(value.re), im: value.im && fresh(value.im) });

    function size(name) {
      if (!Object.hasOwn(sizes, name) || typeof sizes[name] !== "number") throw new Error(`${name} has no size: ${definition.text}`);
      return sizes[name];
    }
    function offset(name, index) {
      const { strides, shape } = place(name);
      const fits = (part, axis) => part.op !== "index" || size(part.name) <= shape[axis];
      if (index.length !== strides.length || !index.every(fits))
        throw new Error(`${name} has other axes: ${definition.text}`);
      return index.map((part, axis) => `(${emit(part).re}) * ${strides[axis]}`).join(" + ") || "0";
    }
    function multiply(a, b) {
      if (a.im && b.im)
        return { re: `${a.re} * ${b.re} - ${a.im} * ${b.im}`, im: `${a.re} * ${b.im} + ${a.im} * ${b.re}` };
      return { re: `${a.re} * ${b.re}`, im: a.im ? `${a.im} * ${b.re}` : b.im && `${a.re} * ${b.im}` };
    }
    function divide(a, b) {
      if (!b.im) return { re: `${a.re} / ${b.re}`, im: a.im && `${a.im} / ${b.re}` };
      const size = fresh(`${b.re} * ${b.re} + ${b.im} * ${b.im}`);
      const top = keep(multiply(a, { re: b.re, im: fresh(`-${b.im}`) }));
      return { re: `${top.re} / ${size}`, im: `${top.im} / ${size}` };
    }
    const add = (a, b, sign) => ({
      re: `${a.re} ${sign} ${b.re}`,
      im: a.im && b.im ? `${a.im} ${sign} ${b.im}` : a.im || (b.im && `${sign} ${b.im}`),
    });
    const call = {
      exp: ({ re, im }) => {
        const size = fresh(`Math.exp(${re})`);
        return im ? { re: `${size} * Math.cos(${im})`, im: `${size} * Math.sin(${im})` } : real(size);
      },
      log: ({ re, im }) => (im ? { re: `Math.log(Math.hypot(${re}, ${im}))`, im: `Math.atan2(${im}, ${re})` } : real(`Math.log(${re})`)),
      sqrt: ({ re, im }) => {
        if (!im) return real(`Math.sqrt(${re})`);
        const root = fresh(`Math.sqrt((Math.hypot(${re}, ${im}) + ${re}) / 2)`); // of a number right of 0
        return { re: root, im: `${im} / (2 * ${root})` };
      },
      relu: ({ re, im }) => ({ re: `${re} > 0 ? ${re} : 0`, im: im && `${re} > 0 ? ${im} : 0` }),
      negative: ({ re, im }) => ({ re: `-${re}`, im: im && `-${im}` }),
    };
    const test = ({ test: sign, a, b }) => `${emit(a).re} ${sign} ${emit(b).re}`;

    function emit(node) {
      switch (node.op) {
        case "number": return real(String(node.value));
        case "size": return real(String(size(node.name)));
        case "index": return real(node.name);
        case "cell": {
          const { number, complex: hasImaginary } = place(node.name);
          used.add(number);
          const where = fresh(offset(node.name, node.index));
          return keep({ re: `re${number}[${where}]`, im: complex && hasImaginary ? `im${number}[${where}]` : null });
        }
        case "bracket": return keep(real(`${test(node.where)} ? 1 : 0`));
        case "div": return keep(real(`Math.floor(${emit(node.a).re} / ${emit(node.b).re})`));
        case "mod": return keep(real(`${emit(node.a).re} % ${emit(node.b).re}`));
        case "pair": return keep(real(`${emit(node.a).re} ^ 1`));
        case "+":
        case "-": return keep(add(emit(node.a), emit(node.b), node.op));
        case "*": return keep(product(node));
        case "/": return keep(quotient(node));
        case "square": return keep(power(emit(node.a), node.power));
        case "sum":
        case "max": return loop(node);
        default: return keep(call[node.op](emit(node.a)));
      }
    }
    function power(a, n) {
      let value = a;
      for (let i = 1; i < n; i++) value = keep(multiply(value, a));
      return value;
    }
    function product(node) {
      for (const [factor, other] of [[node.a, node.b], [node.b, node.a]])
        if (factor.op === "bracket") return guard(emit(factor).re, emit(other));
      return multiply(emit(node.a), emit(node.b));
    }
    /* 1[...] x / y is (1[...] x) / y for the parser: the strong zero is to hide y, too */
    function quotient(node) {
      const { a, b } = node;
      for (const [factor, other] of a.op === "*" ? [[a.a, a.b], [a.b, a.a]] : [])
        if (factor.op === "bracket") return guard(emit(factor).re, keep(divide(emit(other), emit(b))));
      return divide(emit(a), emit(b));
    }
    const guard = (zero, { re, im }) => ({ re: `${zero} ? ${re} : 0`, im: im && `${zero} ? ${im} : 0` });
    function loop(node) {
      const total = `v${names++}`;
      const start = lines.length;
      if (node.where) lines.push(`if (!(${test(node.where)})) continue;`);
      const term = emit(node.a);
      const add = node.op === "sum";
      if (add) lines.push(`${total} += ${term.re};`, term.im ? `${total}i += ${term.im};` : "");
      else lines.push(`if (${term.re} > ${total}) { ${total} = ${term.re}; ${term.im ? `${total}i = ${term.im};` : ""} }`);
      const body = lines.splice(start);
      lines.push(`let ${total} = ${add ? 0 : -Infinity}${term.im ? `, ${total}i = 0` : ""};`);
      lines.push(...node.over.map((name) => head(name)), ...body, "}".repeat(node.over.length));
      return { re: total, im: term.im && `${total}i` };
    }
    const head = (name) => `for (let ${name} = 0; ${name} < ${size(name)}; ${name}++) {`;

    const target = place(definition.symbol);
    const value = emit(definition.expression);
    const where = fresh(offset(definition.symbol, definition.index));
    lines.push(`re${target.number}[${where}] = ${value.re};`);
    if (complex) lines.push(`im${target.number}[${where}] = ${value.im ?? 0};`);
    used.add(target.number);
    const arrays = [...used].map((n) => `const re${n} = re[${n}]${complex ? `, im${n} = im[${n}]` : ""};`);
    const loops = definition.indices.map(head);
    const code = ['"use strict";', ...arrays, ...loops, ...lines, "}".repeat(loops.length)].join("\n");
    if (!compiled.has(code)) compiled.set(code, new Function("re", "im", code));
    return compiled.get(code);
  }

  return { Problem, parse, evaluate, visitCells, occurrences, solve, tuples, chosen, holds, compile };
})();

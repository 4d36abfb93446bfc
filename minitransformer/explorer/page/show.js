/* Prints numbers, names, cells and formulas: with letters as nodes of MathML, and with numbers as pieces {text, cell, zero}.
   `Dom.formula` makes elements of both. */
const Show = (() => {
  "use strict";

  const SYMBOLS = {
    x_hat: "x̂", mu: "μ", sigma: "σ", gamma: "γ", beta: "β", p_star: "p*", smoothing: "ε", eps: "ε",
    dp_mean: "⟨dp⟩", dx_hat_mean: "⟨dx̂⟩", dx_hat_x_hat_mean: "⟨dx̂ x̂⟩",
  };
  const TESTS = { "==": "=", "!=": "≠", ">": ">", "<": "<", ">=": "≥", "<=": "≤" };
  const OWN = new Set(["M", "dM"]); // a place that has its own calls the model's by its owner, the encoder
  const MOST_TERMS = 8, MOST_INNER_TERMS = 3;
  const SUM = 1, PRODUCT = 2, ATOM = 3; // how tightly the parts of an expression hold together

  /* A number for people: three digits or so, and a real minus sign. */
  function number(x) {
    if (Number.isNaN(x)) return "NaN";
    if (!Number.isFinite(x)) return x > 0 ? "∞" : "−∞";
    const size = Math.abs(x);
    let text = String(size);
    if (Number.isInteger(size) && size < 1e5) return (x < 0 ? "−" : "") + text;
    if (size >= 1e5 || (size > 0 && size < 1e-3)) text = size.toExponential(2).replace("e+", "e");
    else text = size >= 100 ? size.toFixed(1) : size >= 0.1 ? size.toFixed(3) : size.toPrecision(3);
    return (x < 0 ? "−" : "") + text.replace("e-", "e−");
  }

  /* All digits, as they must be typed to give the same number again. */
  const exact = (x) => String(x).replace("-", "−").replace("e-", "e−");

  /* A symbol as a piece: "W_q" has an index of its own, "dgamma" is d and gamma. */
  function symbol(name) {
    if (SYMBOLS[name]) return { text: SYMBOLS[name] };
    const d = /^d(?=[A-Za-z])/.test(name) ? "d" : "";
    const rest = name.slice(d.length);
    if (SYMBOLS[rest]) return { text: d + SYMBOLS[rest] };
    const [letter, sub] = rest.split("_");
    return sub ? { text: d + letter, sub } : { text: d + rest };
  }

  /* "cross.dW_q" as text: cross dWq is hard to read, so indices of a name keep their underscore. */
  function nameText(name) {
    const at = name.lastIndexOf(".") + 1;
    const { text, sub } = symbol(name.slice(at));
    return (at ? `${name.slice(0, at - 1)} ` : "") + text + (sub ? `_${sub}` : "");
  }

  /* Whether an array or a cell is blue or orange. */
  const kind = ({ name }) => (App.machine.get(name).role === "gradient" ? "gradient" : "value");

  /* What an array is called in words, which may depend on the kind of its place: "gradient of the query". */
  function word({ symbol: name, place, role }) {
    const of = (letter) => Strings.symbols[`${place.kind}.${letter}`] ?? Strings.symbols[letter];
    return of(name) ?? (role === "gradient" && of(name.slice(1)) ? Strings.gradientOf(of(name.slice(1))) : "");
  }

  /* --- formulas with letters, as MathML: a node is {tag, text} or {tag, parts}, and that of a symbol names its `array` --- */

  const mi = (text) => ({ tag: "mi", text });
  const mo = (text, form = null) => ({ tag: "mo", text, form });
  const infix = (text) => mo(text, "infix");
  const row = (parts) => (parts.length === 1 ? parts[0] : { tag: "mrow", parts });
  const tree = (tag, ...groups) => ({ tag, parts: groups.map(row) });
  const fenced = (parts, level, least) => (level >= least ? parts : [row([mo("("), ...parts, mo(")")])]);
  const TIMES = infix("\u2062"), APPLY = mo("\u2061"); // both are invisible, and spoken

  /* The letters of a symbol, without the index in its name: "dx̂" is d and an x with a hat. */
  function base(text) {
    const one = (part) => {
      if (part.endsWith("\u0302")) return tree("mover", [mi(part[0])], [mo("^")]);
      return "⟨⟩".includes(part) ? mo(part) : mi(part);
    };
    return text.match(/[⟨\u0302]/u) ? text.match(/[⟨⟩]|\S\u0302|\S/gu).map(one) : text.match(/^d(?=.)|.+/gu).map(one);
  }

  /* The symbol of an array with an index, a list of nodes for each axis, as it is called in `place`. */
  function named(array, index = [], place = array.place) {
    const { text, sub } = symbol(array.symbol);
    const letters = index.every((nodes) => nodes.length === 1 && nodes[0].tag === "mi");
    const axes = index.flatMap((nodes, n) => (n && !letters ? [mo(","), ...nodes] : nodes));
    const below = [...(sub ? [mi(sub)] : []), ...(sub && axes.length ? [{ tag: "mtext", text: "\u2005" }] : []), ...axes];
    const star = text.endsWith("*");
    const node = star ? tree("msubsup", [mi(text[0])], below, [mo("*")]) : below.length ? tree("msub", base(text), below) : row(base(text));
    const away = array.place.name !== place.name && (array.place.name || (place.name && OWN.has(array.symbol) ? Strings.cell.encoders : ""));
    return { ...(away ? row([{ tag: "mtext", text: `${away}\u00a0` }, node]) : node), array: array.name };
  }

  /* The right side of a definition with letters. */
  function letters({ place, expression }, machine) {
    function of(node) {
      switch (node.op) {
        case "number": return [[{ tag: "mn", text: exact(node.value) }], ATOM]; // as it was typed
        case "size": return [[mi(SYMBOLS[node.name] ?? node.name)], ATOM];
        case "index": return [[mi(node.name)], ATOM];
        case "cell": return [[named(machine.find(place, node.name), node.index.map((part) => of(part)[0]), place)], ATOM];
        case "+":
        case "-": {
          const [a] = of(node.a), [b, level] = of(node.b);
          return [[...a, infix(node.op === "+" ? "+" : "−"), ...(node.op === "-" ? fenced(b, level, PRODUCT) : b)], SUM];
        }
        case "*": return [[...strong(node.a), TIMES, ...strong(node.b)], PRODUCT];
        case "/": return [[tree("mfrac", of(node.a)[0], of(node.b)[0])], PRODUCT];
        case "negative": return [[mo("−", "prefix"), ...strong(node.a)], PRODUCT];
        case "square": return [[tree("msup", strong(node.a, ATOM), [{ tag: "mn", text: String(node.power) }])], ATOM];
        case "sqrt": return [[tree("msqrt", of(node.a)[0])], ATOM];
        case "bracket": return [[row([{ tag: "mn", text: "1" }, mo("["), ...condition(node.where), mo("]")])], ATOM];
        case "sum":
        case "max": {
          const over = node.over.flatMap((name, n) => [...(n ? [mo(",")] : []), mi(name)]);
          const below = node.where ? [...over, infix(":"), ...condition(node.where)] : over;
          return [[tree("munder", [mo(node.op === "sum" ? "∑" : "max", "prefix")], below), ...strong(node.a)], PRODUCT];
        }
        default: {
          const inner = [node.a, node.b].filter(Boolean).flatMap((part, n) => [...(n ? [mo(",")] : []), ...of(part)[0]]);
          return [[mi(node.op === "relu" ? "ReLU" : node.op), APPLY, row([mo("("), ...inner, mo(")")])], ATOM];
        }
      }
    }
    const strong = (node, least = PRODUCT) => fenced(...of(node), least);
    function condition({ test, a, b }) {
      const isTrue = test === "==" && b.op === "number" && b.value === 1 && a.op === "cell"; // of a mask
      return isTrue ? of(a)[0] : [...of(a)[0], infix(TESTS[test]), ...of(b)[0]];
    }
    return of(expression)[0];
  }

  /* A whole definition: its left side, =, and its right side. */
  function equation(definition, machine) {
    const { place, symbol: name, index } = definition;
    return [...letters({ place, expression: { op: "cell", name, index } }, machine), infix("="), ...letters(definition, machine)];
  }

  /* --- with numbers --- */

  const plain = (text) => ({ text });
  const inside = (pieces, level, least) => (level >= least ? pieces : [plain("("), ...pieces, plain(")")]);

  /* The same with the numbers of one cell filled in. Each number that is a cell can be followed. */
  function numbers(definition, machine, given) {
    const { place, scope } = definition;
    const value = (node, at) => Language.evaluate(node, scope, at);
    let depth = 0;
    function of(node, at) {
      switch (node.op) {
        case "number": return [[plain(exact(node.value))], ATOM];
        case "size":
        case "index": return [[plain(number(value(node, at)))], ATOM];
        case "cell": {
          const array = machine.find(place, node.name);
          const flat = machine.offsetOf(array.name, node.index.map((part) => value(part, at)));
          const x = machine.value(array.name, flat);
          const piece = { text: number(x), cell: { name: array.name, flat }, zero: x === 0 };
          return [[piece], x < 0 ? SUM : ATOM];
        }
        case "+":
        case "-": {
          const [a] = of(node.a, at), [b, level] = of(node.b, at);
          const bare = node.op === "+" && !b[0].text.startsWith("−");
          return [[...a, plain(node.op === "+" ? " + " : " − "), ...(bare ? b : inside(b, level, PRODUCT))], SUM];
        }
        case "*": return [[...strong(node.a, at), plain(" · "), ...strong(node.b, at)], PRODUCT];
        case "/": return [[...strong(node.a, at), plain(" / "), ...strong(node.b, at, ATOM)], PRODUCT];
        case "negative": return [[plain("−"), ...strong(node.a, at)], SUM];
        case "square": return [[...strong(node.a, at, ATOM), plain("⁰¹²³⁴⁵⁶⁷⁸⁹"[node.power])], ATOM];
        case "bracket": {
          const holds = Language.holds(node.where, scope, at);
          return [[{ text: "1[", zero: !holds }, ...condition(node.where, at), { text: "]", zero: !holds }], ATOM];
        }
        case "sum":
        case "max": return series(node, at);
        case "sqrt": {
          const [a, level] = of(node.a, at);
          return [[plain("√"), ...inside(a, level, ATOM)], ATOM];
        }
        default: {
          const [a] = of(node.a, at);
          return [[plain(`${node.op === "relu" ? "ReLU" : node.op}(`), ...a, plain(")")], ATOM];
        }
      }
    }
    const strong = (node, at, least = PRODUCT) => inside(...of(node, at), least);
    function condition({ test, a, b }, at) {
      return [...of(a, at)[0], plain(` ${TESTS[test]} `), ...of(b, at)[0]];
    }
    function series(node, at) {
      const terms = [...Language.chosen(node, scope, at)];
      const most = depth++ ? MOST_INNER_TERMS : MOST_TERMS;
      const pieces = [];
      let single = PRODUCT;
      const between = node.op === "sum" ? " + " : ", ";
      terms.slice(0, most).forEach((inner, n) => {
        const [term, level] = of(node.a, inner);
        single = level;
        pieces.push(...(n ? [plain(between)] : []), ...(node.op === "sum" ? inside(term, n ? level : ATOM, PRODUCT) : term));
      });
      depth--;
      if (terms.length === 0) pieces.push(plain("0"));
      if (terms.length > most) pieces.push(plain(`${between}… (${terms.length})`));
      if (node.op === "max") return [[plain("max("), ...pieces, plain(")")], ATOM];
      return [pieces, terms.length > 1 ? SUM : single];
    }
    return of(definition.expression, given)[0];
  }

  return { number, exact, symbol, nameText, kind, word, named, letters, equation, numbers };
})();

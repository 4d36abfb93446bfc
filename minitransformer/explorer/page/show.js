/* Prints numbers, names, cells and formulas, as pieces {text, sub, cell, zero, kind} that a view turns into elements. */
const Show = (() => {
  "use strict";

  const SYMBOLS = {
    x_hat: "x̂", mu: "μ", sigma: "σ", gamma: "γ", beta: "β", p_star: "p*", smoothing: "ε", eps: "ε",
    dp_mean: "⟨dp⟩", dx_hat_mean: "⟨dx̂⟩", dx_hat_x_hat_mean: "⟨dx̂ x̂⟩",
  };
  const TESTS = { "==": "=", "!=": "≠", ">": ">", "<": "<", ">=": "≥", "<=": "≤" };
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
    const d = /^d(?=[A-Za-z])/.test(name) && name !== "dE" && name !== "dM" ? "d" : "";
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

  const plain = (text) => ({ text });
  const inside = (pieces, level, least) => (level >= least ? pieces : [plain("("), ...pieces, plain(")")]);

  function subscript(index, nameOf) {
    const texts = index.map((node) => indexText(node, nameOf));
    return texts.every((text) => text.length === 1) ? texts.join("") : texts.join(",");
  }

  /* An index as text; `nameOf(name)` is the text of an array's name. */
  function indexText(node, nameOf) {
    const text = (part) => indexText(part, nameOf);
    const of = (part) => (part.op === "+" ? `(${text(part)})` : text(part));
    switch (node.op) {
      case "index":
      case "size": return node.name;
      case "number": return String(node.value);
      case "+": return `${text(node.a)}+${text(node.b)}`;
      case "*": return `${of(node.a)}${of(node.b)}`;
      case "cell": return `${nameOf(node.name)}(${subscript(node.index, nameOf)})`;
      case "sum": return `#{${node.over[0]}: ${conditionText(node.where, nameOf)}}`; // of ones: how many there are
      case "max": return `last ${node.over[0]}: ${conditionText(node.where, nameOf)}`;
      default: return `${node.op}(${text(node.a)}, ${text(node.b)})`;
    }
  }

  function conditionText({ test, a, b }, nameOf) {
    if (test === "==" && b.op === "number" && b.value === 1 && a.op === "cell") return indexText(a, nameOf);
    return `${indexText(a, nameOf)} ${TESTS[test]} ${indexText(b, nameOf)}`;
  }

  /* The right side of a definition with letters. */
  function letters(definition, machine) {
    const { place } = definition;
    function nameOf(name) {
      const array = machine.find(place, name);
      const piece = symbol(array.symbol);
      const foreign = array.place.name !== place.name && array.place.name;
      return { ...piece, place: foreign || null, array: array.name };
    }
    const textOf = (name) => {
      const { place: at, text } = nameOf(name);
      return at ? `${at} ${text}` : text;
    };
    function of(node) {
      switch (node.op) {
        case "number": return [[plain(number(node.value))], ATOM];
        case "size": return [[plain(SYMBOLS[node.name] ?? node.name)], ATOM];
        case "index": return [[plain(node.name)], ATOM];
        case "cell": {
          const piece = nameOf(node.name);
          return [[{ ...piece, index: subscript(node.index, textOf) }], ATOM];
        }
        case "+":
        case "-": {
          const [a] = of(node.a), [b, level] = of(node.b);
          return [[...a, plain(node.op === "+" ? " + " : " − "), ...(node.op === "-" ? inside(b, level, PRODUCT) : b)], SUM];
        }
        case "*": return [[...strong(node.a), plain(" "), ...strong(node.b)], PRODUCT];
        case "/": return [[...strong(node.a), plain(" / "), ...strong(node.b, ATOM)], PRODUCT];
        case "negative": return [[plain("−"), ...strong(node.a)], PRODUCT];
        case "square": return [[...strong(node.a, ATOM), plain("²")], ATOM];
        case "bracket": return [[plain(`1[${conditionText(node.where, textOf)}]`)], ATOM];
        case "sum":
        case "max": {
          const sub = node.where ? `${node.over.join(",")}: ${conditionText(node.where, textOf)}` : node.over.join(",");
          return [[{ text: node.op === "sum" ? "Σ" : "max ", index: sub }, plain(" "), ...strong(node.a)], PRODUCT];
        }
        case "sqrt": {
          const [a, level] = of(node.a);
          return [[plain("√"), ...inside(a, level, ATOM)], ATOM];
        }
        default: {
          const [a] = of(node.a);
          return [[plain(`${node.op === "relu" ? "ReLU" : node.op}(`), ...a, plain(")")], ATOM];
        }
      }
    }
    const strong = (node, least = PRODUCT) => inside(...of(node), least);
    return of(definition.expression)[0];
  }

  /* The same with the numbers of one cell filled in. Each number that is a cell can be followed. */
  function numbers(definition, machine, given) {
    const { place, scope } = definition;
    const value = (node, at) => Language.evaluate(node, scope, at);
    let depth = 0;
    function of(node, at) {
      switch (node.op) {
        case "number":
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
        case "square": return [[...strong(node.a, at, ATOM), plain("²")], ATOM];
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

  return { number, exact, symbol, nameText, letters, numbers };
})();

/* Makes elements, and formulas of them. */
const Dom = (() => {
  "use strict";

  const SVG = "http://www.w3.org/2000/svg";
  const MATH = "http://www.w3.org/1998/Math/MathML";
  const MATH_TAGS = new Set(["math", "mrow", "mi", "mn", "mo", "mtext", "msub", "msup", "msubsup", "munder", "mover", "mfrac", "msqrt"]);
  const SVG_TAGS = new Set(["svg", "path", "line", "rect", "text", "g", "polyline"]);

  /* element("button", {class: "primary", onclick: f}, "text", another element, ...). null and false are left out. */
  function element(tag, attributes = {}, ...children) {
    const space = SVG_TAGS.has(tag) ? SVG : MATH_TAGS.has(tag) ? MATH : null;
    const made = space ? document.createElementNS(space, tag) : document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) {
      if (value === null || value === undefined || value === false) continue;
      if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
      else if (name === "value") made.value = value;
      else made.setAttribute(name, value === true ? "" : value);
    }
    made.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
    return made;
  }

  const button = (label, onclick, attributes = {}) => element("button", { type: "button", onclick, ...attributes }, label);
  /* Whether tokens are those of the answer; nothing if nobody has checked that. */
  const mark = (isRight) => App.answer().origin !== "model" && element("span", { class: `verdict ${isRight ? "right" : "wrong"}` },
    element("span", { "aria-hidden": "true" }, isRight ? "✓" : "✗"), element("span", { class: "unseen" }, Strings.marks[isRight ? "right" : "wrong"]));

  function table(headings, rows) {
    return element("table", { class: "facts" },
      element("thead", {}, element("tr", {}, headings.map((heading) => element("th", { scope: "col" }, heading)))),
      element("tbody", {}, rows));
  }

  const note = (...children) => element("p", { class: "note" }, children);

  /* select(attributes, options, the chosen one, act(option), textOf(option)) */
  const select = (attributes, options, chosen, act, textOf = String) => element("select", { ...attributes, onchange: ({ target }) => act(options[target.selectedIndex]) },
    options.map((value) => element("option", { value, selected: value === chosen }, textOf(value))));

  /* A link to a number in the view Numbers, or to a whole array. */
  function cellLink({ name, flat = null }, text = App.cellText(name, flat), changes = {}) {
    return element("a", { href: App.link({ view: "cell", cell: App.setCell({ name, flat }), ...changes }) }, text);
  }

  /* Nodes and pieces of `Show` as elements. A piece with a cell is a button that calls follow(cell). */
  function formula(pieces, follow = null) {
    if (pieces.some(({ tag }) => tag)) return [math(pieces)];
    return words(pieces.map(({ text, sub, cell, zero }) => {
      if (cell && follow) {
        const name = App.cellText(cell.name, cell.flat);
        return button(text, () => follow(cell), {
          class: `number ${Show.kind(cell)}${zero ? " zero" : ""}`, title: name, "aria-label": `${name}: ${text}`, "data-cell": `${cell.name} ${cell.flat}`,
        });
      }
      return sub || zero ? element("span", { class: zero ? "symbol zero" : "symbol" }, text, sub && element("sub", {}, sub)) : text;
    }));
  }

  /* A formula as MathML. Each term and each factor is a row of its own, before which a line may end. */
  function math(nodes) {
    const split = (parts) => parts.reduce((rows, node) => (node.form === "infix" || !rows.length ? [...rows, [node]] : [...rows.slice(0, -1), [...rows.at(-1), node]]), []);
    const of = ({ tag = "mo", text, parts, array, form }) =>
      element(tag, { form: tag === "mo" && form, lspace: text === "\u2062" && ".15em", "data-array": array }, parts ? parts.map(of) : text);
    return element("math", { displaystyle: "true" }, split(nodes).map((row) => element("mrow", { class: "term" }, row.map(of))));
  }

  /* Elements and texts in which a line ends at a space alone, so that a bracket stays with its number. */
  function words(parts) {
    const made = [[]];
    for (const part of parts)
      for (const piece of typeof part === "string" ? part.split(/( )/) : [part]) {
        if (piece === " ") made.push([" "], []);
        else if (piece !== "") made.at(-1).push(piece);
      }
    return made.map((word) => (word.length > 1 ? element("span", { class: "word" }, word) : word)).flat();
  }

  return { element, button, mark, table, note, select, cellLink, formula };
})();

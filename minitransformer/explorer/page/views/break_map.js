/* The trail of wrong numbers: the arrays that a mistake makes wrong, in the order of the computation, with a link to each. */
const BreakMap = (() => {
  "use strict";

  const { element } = Dom;
  const text = Strings.break;
  let unfolded = false; // whether a person wants to see all of them

  function section() {
    const all = Experiments.differences(), wrong = all.filter(({ differs }) => differs);
    const first = all.indexOf(wrong[0]);
    return element("section", { class: "trail", "aria-label": text.trail }, element("h3", {}, text.trail),
      first < 0 ? element("p", {}, text.trailNone(Measures.largest(all.map(({ most }) => most)))) : [
        element("p", {}, text.trailStart, element("span", { "data-first": wrong[0].name }, Dom.cellLink(wrong[0])),
          text.trailBefore(first), text.trailAfter(wrong.length - 1, all.length - 1 - first)),
        element("details", { open: unfolded, ontoggle: ({ target }) => { unfolded = target.open; } },
          element("summary", { "data-focus": "trail" }, text.trailAll(wrong.length)),
          pass("value", wrong.filter(({ phase }) => phase === "forward")), pass("gradient", wrong.filter(({ phase }) => phase === "backward")))]);
  }

  const placeOf = ({ name }) => App.machine.get(name).place.name;

  function pass(kind, wrong) {
    const rows = [...new Set(wrong.map(placeOf))].map((place) => element("div", { class: "row" }, element("code", {}, place || App.globalName()),
      element("span", { class: "arrays" }, wrong.filter((array) => placeOf(array) === place).map(chip))));
    return rows.length > 0 && element("div", { class: `pass ${kind}` }, element("h4", {}, Strings.cell[kind === "value" ? "forward" : "backward"]), rows);
  }

  function chip({ name, most, changed }) {
    const about = `${Show.nameText(name)}, ${text.differsBy(Show.number(most))}${changed ? `, ${text.lineChanged}` : ""}`;
    return element("a", {
      class: changed ? "chip edited" : "chip", href: App.link({ view: "cell", cell: name }), title: about, "aria-label": about, "data-chip": name,
    }, ...Dom.formula([Show.symbol(App.machine.get(name).symbol)]));
  }

  return { section };
})();

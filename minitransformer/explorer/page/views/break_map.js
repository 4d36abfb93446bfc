/* The wrong arrays in the order of the computation, and by how much they are wrong. One of them can be compared with the
   right one. */
const BreakMap = (() => {
  "use strict";

  const { element } = Dom;
  let unfolded = false; // whether a person wants to see them

  function section() {
    const text = Strings.break;
    const all = Experiments.differences(), wrong = all.filter(({ differs }) => differs);
    const first = all.indexOf(wrong[0]), open = App.cell();
    const isListed = unfolded && wrong.some(({ name }) => name === open?.name);
    return element("section", { class: "trail", "aria-label": text.trail }, element("h3", {}, text.trail),
      first < 0 ? element("p", {}, text.trailNone) : [
        element("p", {}, text.trailStart, arrayLink(wrong[0].name), text.trailBefore(first), text.trailAfter(wrong.length - 1, all.length - 1 - first)),
        open && !isListed && comparison(open), details(wrong, open)]);
  }

  /* The wrong arrays, which are drawn when they are asked for. The comparison of the chosen one is then among them. */
  function details(wrong, open) {
    const text = Strings.break;
    const toggle = ({ target }) => {
      if (unfolded === target.open) return;
      unfolded = target.open;
      App.set({});
    };
    return element("details", { open: unfolded, ontoggle: toggle }, element("summary", { "data-focus": "trail" }, text.trailAll(wrong.length)),
      unfolded && [Dom.note(text.trailHelp), chips(wrong, open)]);
  }

  const arrayLink = (name) => element("a", { href: App.link({ cell: name }), "data-first": name }, Show.nameText(name));
  const placeOf = ({ name }) => App.machine.get(name).place.name;

  /* The passes, the places of each, and their wrong arrays. Only one array is a stop for the Tab key. */
  function chips(wrong, open) {
    const text = Strings.break;
    const stop = (wrong.find(({ name }) => name === open?.name) ?? wrong[0]).name;
    const pass = (phase, title, kind) => {
      const own = wrong.filter((array) => array.phase === phase);
      const rows = [...new Set(own.map(placeOf))].map((place) => row(place, own.filter((array) => placeOf(array) === place), stop, open));
      return rows.length > 0 && element("div", { class: `pass ${kind}` }, element("h4", {}, title), rows);
    };
    return element("div", { onkeydown: move }, pass("forward", Strings.cell.forward, "value"), pass("backward", Strings.cell.backward, "gradient"));
  }

  function row(place, arrays, stop, open) {
    const label = place || App.globalName();
    return [
      element("div", { class: "row", role: "group", "aria-label": label }, element("code", {}, label),
        element("span", { class: "arrays" }, arrays.map((array) => chip(array, stop, open)))),
      arrays.some(({ name }) => name === open?.name) && comparison(open)];
  }

  function chip({ name, most, relative, changed }, stop, open) {
    const text = Strings.break;
    const size = Math.max(12, 100 * Math.sqrt(Math.min(1, relative)));
    const about = `${Show.nameText(name)}, ${text.differsBy(Show.number(most))}${changed ? `, ${text.lineChanged}` : ""}`;
    return Dom.button(element("span", {}, "≠ ", ...Dom.formula([Show.symbol(App.machine.get(name).symbol)])), () => App.set({ cell: name === open?.name ? "" : name }), {
      class: changed ? "chip edited" : "chip", title: about, "aria-label": about, style: `--size: ${size}%`,
      "aria-expanded": String(name === open?.name), tabindex: name === stop ? null : -1, "data-chip": name, "data-focus": `chip-${name}`,
    });
  }

  function move(event) {
    const every = [...event.currentTarget.querySelectorAll(".chip")], here = every.indexOf(event.target);
    const to = every[{ ArrowRight: here + 1, ArrowLeft: here - 1, Home: 0, End: every.length - 1 }[event.key]];
    if (here < 0 || !to) return;
    event.preventDefault();
    every[here].tabIndex = -1;
    to.tabIndex = 0;
    to.focus();
  }

  /* --- one array, three times --- */

  function comparison({ name, flat }) {
    const text = Strings.break;
    const [a, b] = [Experiments.right().data(name), App.machine.data(name)];
    const difference = b.map((x, i) => x - a[i]);
    const largest = Math.max(Measures.largest(a), Measures.largest(b));
    const label = Show.nameText(name);
    const maps = [["right", a, largest], ["wrong", b, largest], ["difference", difference, Measures.largest(difference)]];
    return element("div", { class: "comparison", role: "region", "aria-label": text.compare(label) },
      Dom.button("×", () => App.set({ cell: "" }), { class: "close", "aria-label": Strings.cell.close }),
      element("h4", {}, text.compare(label)),
      flat !== null && cellLine(name, flat, a, b),
      element("div", { class: "maps" }, maps.map(([which, values, most]) => map(name, flat, which, values, most))),
      element("p", {}, element("a", { href: App.link({ view: "cell" }) }, text.comparePlace)));
  }

  function cellLine(name, flat, a, b) {
    const values = [a[flat], b[flat], b[flat] - a[flat]].map(Show.number);
    return element("p", { "aria-live": "polite" }, element("a", { href: App.link({ view: "cell" }) }, Strings.break.cellValues(App.cellText(name, flat), ...values)));
  }

  function map(name, flat, which, values, largest) {
    const text = Strings.break;
    const canvas = Heatmap.heatmap({
      name, values, width: width(), largest, selected: flat, what: text[which],
      select: (to) => App.set({ cell: App.setCell({ name, flat: to }) }), open: (to) => App.select({ name, flat: to }),
      summary: (at) => `${App.cellText(name, at)}, ${text[which]}: ${Show.number(values[at])}`,
    });
    canvas.dataset.focus = `map-${which}`;
    canvas.dataset.which = which;
    return element("figure", { class: `map ${Show.kind({ name })}` }, element("figcaption", {}, text[which]), element("div", {}, canvas));
  }

  function width() {
    const all = Math.min(window.innerWidth, 1500);
    if (all < 700) return all - 56;
    return Math.floor((all - (all >= 1100 ? 360 : 80)) / 3) - 20;
  }

  return { section };
})();

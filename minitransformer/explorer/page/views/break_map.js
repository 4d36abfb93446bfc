/* All arrays in the order of the computation: which are wrong, and by how much. One of them can be compared with the
   right one. */
const BreakMap = (() => {
  "use strict";

  const { element } = Dom;
  let unfolded = false; // whether a person wants to see all arrays

  function section() {
    const text = Strings.break;
    const all = Experiments.differences();
    const first = all.findIndex(({ differs }) => differs);
    const wrong = all.filter(({ differs }) => differs).length;
    const chosen = App.cell();
    const open = chosen && all.some(({ name }) => name === chosen.name) ? chosen : null;
    return element("section", { class: "trail", "aria-label": text.trail }, element("h3", {}, text.trail),
      first < 0 ? element("p", {}, text.trailNone) : [
        element("p", {}, text.trailStart, arrayLink(all[first].name), text.trailBefore(first), text.trailAfter(wrong - 1, all.length - 1 - first)),
        open && !unfolded && comparison(open), details(all, all[first].name, open)]);
  }

  /* All arrays, which are drawn when they are asked for. The comparison of the chosen one is then among them. */
  function details(all, first, open) {
    const text = Strings.break;
    const toggle = ({ target }) => {
      if (unfolded === target.open) return;
      unfolded = target.open;
      App.set({});
    };
    return element("details", { open: unfolded, ontoggle: toggle }, element("summary", { "data-focus": "trail" }, text.trailAll(all.length)),
      unfolded && [element("p", { class: "note" }, text.trailHelp), chips(all, first, open)]);
  }

  const arrayLink = (name) => element("a", { href: App.link({ cell: name }), "data-first": name }, Show.nameText(name));

  /* The passes, the places of each, and their arrays. Only one array is a stop for the Tab key. */
  function chips(all, first, open) {
    const text = Strings.break;
    const stop = open?.name ?? first;
    const groups = [];
    for (const array of all) {
      const place = App.machine.get(array.name).place.name;
      if (groups.at(-1)?.place !== place || groups.at(-1).phase !== array.phase) groups.push({ place, phase: array.phase, arrays: [] });
      groups.at(-1).arrays.push(array);
    }
    const rows = (phase) => groups.filter((group) => group.phase === phase).map((group) => row(group, stop, first, open));
    const pass = (phase, title, kind) => element("div", { class: `pass ${kind}` }, element("h4", {}, title), rows(phase));
    return element("div", { class: "chips", onkeydown: move },
      pass("forward", text.forwardPass, "value"), pass("backward", text.backwardPass, "gradient"));
  }

  function row({ place, arrays }, stop, first, open) {
    const text = Strings.break;
    const label = place || (App.machine.isPair ? "E, M" : "E");
    const equal = arrays.every(({ differs, name }) => !differs && name !== open?.name);
    return [
      element("div", { class: "row", role: "group", "aria-label": label }, element("code", {}, label),
        equal ? element("span", { class: "note" }, `= ${text.allEqual(arrays.length)}`)
          : element("span", { class: "arrays" }, arrays.map((array) => chip(array, stop, first, open)))),
      arrays.some(({ name }) => name === open?.name) && comparison(open)];
  }

  function chip({ name, differs, most, relative, changed }, stop, first, open) {
    const text = Strings.break;
    const { symbol } = App.machine.get(name);
    const size = Math.max(12, 100 * Math.sqrt(Math.min(1, relative)));
    const about = [Show.nameText(name), differs ? text.differsBy(Show.number(most)) : text.equal, changed && text.lineChanged].filter(Boolean).join(", ");
    return element("button", {
      type: "button", class: `chip${differs ? " differs" : ""}${changed ? " edited" : ""}${name === first ? " first" : ""}`, title: about, "aria-label": about,
      "aria-expanded": String(name === open?.name), tabindex: name === stop ? null : -1, "data-chip": name, "data-focus": `chip-${name}`,
      onclick: () => App.set({ cell: name === open?.name ? "" : name }),
    }, element("span", {}, `${differs ? "≠" : "="} `, ...Dom.formula([Show.symbol(symbol)])), differs && element("span", { class: "bar", style: `width:${size}%` }));
  }

  function move(event) {
    const here = event.target.closest(".chip");
    if (!here) return;
    const every = [...event.currentTarget.querySelectorAll(".chip")];
    const rows = [...event.currentTarget.querySelectorAll(".row")].map((each) => each.querySelector(".chip")).filter(Boolean);
    const step = (list, at, by) => list[Math.max(0, Math.min(list.length - 1, at + by))];
    const rowAt = rows.indexOf(here.closest(".row").querySelector(".chip"));
    const to = {
      ArrowRight: () => step(every, every.indexOf(here), 1), ArrowLeft: () => step(every, every.indexOf(here), -1),
      ArrowDown: () => step(rows, rowAt, 1), ArrowUp: () => step(rows, rowAt, -1), Home: () => every[0], End: () => every.at(-1),
    }[event.key]?.();
    if (!to) return;
    event.preventDefault();
    here.tabIndex = -1;
    to.tabIndex = 0;
    to.focus();
  }

  /* --- one array, three times --- */

  function comparison({ name, flat }) {
    const text = Strings.break;
    const [a, b] = [Experiments.right().data(name), App.machine.data(name)];
    const difference = b.map((x, i) => x - a[i]);
    const size = (values) => values.reduce((most, x) => Math.max(most, Math.abs(x)), 0);
    const largest = Math.max(size(a), size(b));
    const label = Show.nameText(name);
    const maps = [["right", a, largest], ["wrong", b, largest], ["difference", difference, size(difference)]];
    return element("div", { class: "comparison", role: "region", "aria-label": text.compare(label) },
      element("button", { type: "button", class: "close", "aria-label": text.closeArray, onclick: () => App.set({ cell: "" }) }, "×"),
      element("h4", {}, text.compare(label)),
      flat === null ? element("p", { class: "note" }, text.hint) : cellLine(name, flat, a, b),
      element("div", { class: "maps" }, maps.map(([which, values, most]) => map(name, flat, which, values, most))),
      element("p", {}, element("a", { href: App.link({ view: "cell" }) }, text.comparePlace)));
  }

  function cellLine(name, flat, a, b) {
    const values = [a[flat], b[flat], b[flat] - a[flat]].map(Show.number);
    return element("p", { "aria-live": "polite" }, element("a", { href: App.link({ view: "cell" }) }, Strings.break.cellValues(App.cellText(name, flat), ...values)));
  }

  function map(name, flat, which, values, largest) {
    const text = Strings.break;
    const kind = App.machine.get(name).role === "gradient" ? "gradient" : "value";
    const canvas = Heatmap.heatmap({
      name, values, kind, width: width(), largest, selected: flat, label: text.mapLabel(Show.nameText(name), text[which]),
      select: (to) => App.set({ cell: App.setCell({ name, flat: to }) }), open: (to) => App.select({ name, flat: to }),
      summary: (at) => `${App.cellText(name, at)}, ${text[which]}: ${Show.number(values[at])}`,
    });
    canvas.dataset.focus = `map-${which}`;
    canvas.dataset.which = which;
    return element("figure", { class: `map ${kind}` }, element("figcaption", {}, text[which]), element("div", {}, canvas));
  }

  function width() {
    const all = Math.min(window.innerWidth, 1500);
    if (all < 700) return all - 56;
    return Math.floor((all - (all >= 1100 ? 360 : 80)) / 3) - 20;
  }

  return { section };
})();

/* The table of all mistakes and all tests. */
const BreakTable = (() => {
  "use strict";

  const { element } = Dom;
  const text = Strings.break;
  let running = null; // the input that the table is being filled for

  const left = () => Experiments.missing(Experiments.allPairs()).length;
  const isRunning = () => running === Experiments.input() && left() > 0;

  function section() {
    const head = element("thead", {}, element("tr", {}, element("th", { scope: "col" }, text.mistake),
      Mistakes.detectors.map(({ id }) => element("th", { scope: "col", class: "turned" }, element("span", {}, Strings.detectors[id].name)))));
    const cells = (mistake) => Mistakes.detectors.map(({ id }) => element("td", { "data-result": `${mistake}/${id}` }, cell(mistake, id)));
    return element("section", { class: "all", "aria-label": text.table }, element("h2", { id: "all", tabindex: -1 }, text.table),
      element("p", { class: "intro" }, text.tableIntro), element("div", { class: "controls" }, controls()),
      element("table", {}, head, element("tbody", {}, Experiments.rows().map((mistake) => element("tr", { class: mistake === App.state.mistake ? "current" : null },
        element("th", { scope: "row" }, BreakView.plantLink(mistake, { look: "skip" }, { "data-focus": `row-${mistake}` }, BreakView.nameOf(mistake))), cells(mistake))))));
  }

  /* The button that starts or stops, and how far it is. */
  function controls() {
    const all = Experiments.allPairs().length, done = all - left();
    const button = (label, input, kind) => Dom.button(label, () => { running = input; App.set({}); }, { class: kind, "data-focus": "table" });
    return [isRunning() ? button(text.stop, null) : done < all && button(text.runAll(Mistakes.list.length), Experiments.input(), "primary"),
      isRunning() && element("progress", { value: done, max: all, "aria-label": text.progress }), element("span", {}, text.done(done, all))].filter(Boolean);
  }

  function cell(mistake, id) {
    const found = Experiments.result(mistake, id);
    if (!found) return element("span", { class: "unknown" }, element("span", { class: "unseen" }, text.unguessed), element("span", { "aria-hidden": "true" }, "?"));
    const label = text.cellLabel(BreakView.nameOf(mistake), Strings.detectors[id].name, found.rings ? text.rings : text.silent);
    return BreakView.plantLink(mistake, { look: "skip" }, {
      class: found.rings ? "ring" : "silence", "aria-label": label, title: label, "data-focus": `cell-${mistake}-${id}`,
    }, found.rings ? BreakView.bell(true) : "–");
  }

  /* The button stays the same element until the end, or a click on it could be lost. */
  function progress() {
    const place = document.querySelector(".all .controls"), focused = place.contains(document.activeElement);
    const parts = controls();
    if (left() > 0) return parts.slice(1).forEach((part, n) => place.children[n + 1].replaceWith(part));
    place.replaceChildren(...parts);
    if (focused) document.getElementById("all").focus({ preventScroll: true });
  }

  /* A result has come, or a part of it. */
  function arrived(mistake, id, part) {
    if (part < 1) return;
    const place = document.querySelector(`[data-result="${mistake}/${id}"]`);
    place.replaceChildren(cell(mistake, id));
    progress();
  }

  return { section, arrived, isRunning };
})();

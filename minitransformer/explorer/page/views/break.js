/* A mistake is planted: what it changes, which tests notice it, and where the trail of wrong numbers begins. */
const BreakView = (() => {
  "use strict";

  const { element, button, note } = Dom;
  const text = Strings.break;
  const MOST_LINES = 3; // the others are folded
  let ticked = { mistake: "", ids: new Set() }; // guesses that are not shown yet
  let unfolded = false; // whether a person wants to see all wrong arrays

  const nameOf = (id) => (id === "own" ? `${Strings.line.name}: ${App.state.line}` : id ? Strings.mistakes[id].name : text.none);
  const isShown = () => ["", "own"].includes(App.state.mistake) || App.state.look !== "";
  const guesses = () => (App.state.look === "guessed" && App.state.mistake !== "own" ? new Set(App.state.guess.split(",").filter(Boolean)) : null);

  function render(content) {
    const { mistake } = App.state;
    content.append(
      element("div", { class: "break-head" }, element("h1", {}, text.title), element("p", { class: "intro" }, text.intro)),
      menu(),
      element("div", { class: "experiment" },
        element("h2", { id: "planted", tabindex: -1 }, nameOf(mistake)),
        mistake ? changed(mistake) : element("p", {}, text.noneText),
        witnesses(), element("div", { class: "verdicts" }), mistake && isShown() && trail()));
    verdicts();
    Experiments.plan(isShown() && arrived);
  }

  /* --- choosing a mistake --- */

  /* Follow a link within this view, to the heading with this id. */
  function follow(event, changes, id) {
    App.instead(event, () => {
      App.set(changes, { remember: true });
      const heading = document.getElementById(id), { top } = heading.getBoundingClientRect();
      if (top >= 0 && top <= window.innerHeight / 2) return;
      heading.focus({ preventScroll: true });
      heading.scrollIntoView();
    });
  }

  function menu() {
    const { mistake, look } = App.state;
    const item = (id) => {
      const changes = { mistake: id, cell: "", guess: "", look: look === "skip" ? "skip" : "" };
      return element("li", {}, element("a", {
        href: App.link(changes), onclick: (event) => follow(event, changes, "planted"), "aria-current": id === mistake ? "true" : null, "data-focus": `plant-${id}`,
      }, nameOf(id)));
    };
    const group = (kind) => [element("h3", {}, text[kind]), element("ul", {}, Mistakes.list.filter((each) => each.kind === kind).map(({ id }) => item(id)))];
    return element("nav", { class: "menu", "aria-label": text.list },
      element("details", { open: !mistake || window.innerWidth >= 1100 }, element("summary", { "data-focus": "menu" }, text.list),
        element("ul", {}, item("")), group("forward"), group("backward")));
  }

  /* --- what is changed --- */

  /* The right line and the wrong one, and the places of the arrays that they belong to. */
  function compared(right, wrong, names = []) {
    const places = names.map((name) => App.machine.get(name).place.name).filter(Boolean);
    const rows = [["good", `✓ ${text.right}`, right], ["bad", `✗ ${text.wrong}`, wrong]];
    return element("dl", { class: "lines" },
      rows.map(([kind, label, formula]) => [element("dt", { class: kind }, label), element("dd", { class: "formula", "aria-label": label }, formula)]),
      places.length > 0 && element("dd", { class: "note" }, text.inPlaces(places)));
  }

  /* The right line of somebody's own is there for those who ask. */
  function changed(id) {
    const lines = Experiments.changedLines().map(({ names, right, wrong }) => compared(Dom.formula(right), Dom.formula(wrong), names));
    const mask = App.planted().causal === false;
    if (id === "own") return lines.length > 0 && element("details", { class: "changed" }, element("summary", {}, Strings.line.show), lines);
    return element("section", { class: "changed" }, element("p", {}, Strings.mistakes[id].text), element("h3", {}, text.changed),
      mask && compared(text.maskRight, text.maskWrong),
      lines.slice(0, MOST_LINES),
      lines.length > MOST_LINES && element("details", {}, element("summary", {}, text.moreLines(lines.length - MOST_LINES)), lines.slice(MOST_LINES)));
  }

  /* --- the six tests --- */

  function witnesses() {
    const { state } = App;
    const shown = isShown();
    const mistakeToGuess = !["", "own"].includes(state.mistake);
    if (ticked.mistake !== state.mistake) ticked = { mistake: state.mistake, ids: new Set() };
    const look = () => App.set({ look: "guessed", guess: [...ticked.ids].join(",") });
    const again = () => App.set({ look: "", guess: "" });
    return element("section", { class: "who", "aria-label": text.who }, element("h3", { id: "who", tabindex: -1 }, text.who),
      !shown && element("p", {}, text.guess),
      (state.steps > 0 || state.edits) && note(text.note),
      element("ul", { class: "detectors" }, Mistakes.detectors.map(({ id }) => element("li", { "data-detector": id }, shown ? finding(id) : guess(id)))),
      !shown && element("p", { class: "buttons" },
        button(text.look, look, { class: "primary", "data-focus": "look" }), button(text.skip, () => App.set({ look: "skip", guess: "" }), { "data-focus": "skip" })),
      shown && mistakeToGuess && element("p", {}, button(text.guessAgain, again, { class: "quiet", "data-focus": "look" })));
  }

  function guess(id) {
    const { name, text } = Strings.detectors[id];
    const toggle = (event) => ticked.ids[event.target.checked ? "add" : "delete"](id);
    return [
      element("label", { class: "check" }, element("input", {
        type: "checkbox", checked: ticked.ids.has(id), "aria-describedby": `about-${id}`, "data-focus": `guess-${id}`, onchange: toggle,
      }), element("strong", {}, name)),
      element("p", { class: "note", id: `about-${id}` }, text),
    ];
  }

  /* A test's name, and whether it rings. */
  function head(id, found) {
    const said = !found ? text.running : found.rings ? text.rings : text.silent;
    const { name, text: about } = Strings.detectors[id];
    return element("p", { class: "head", title: about }, element("strong", {}, name), " ", element("span", { class: found && (found.rings ? "ring" : "silence") }, said));
  }

  function finding(id) {
    const found = Experiments.result(id);
    return [
      head(id, found),
      found && element("p", {}, ...numbersOf(id, found), " ", remark(id, found.rings)),
      note(Strings.detectors[id].text),
    ];
  }

  /* What a test found, in words, with a link to where it was. */
  function numbersOf(id, found) {
    const number = Show.number(found.number);
    const link = (name) => Dom.cellLink({ name });
    return [
      id === "falls" ? text.ends(number, Show.number(found.right)) : text.largest(number), found.rings && found.where ? [text.in, link(found.where), ". "] : ". ",
      id === "complex" && text.gradients(found.wrong.length, found.arrays.length),
      id === "formula" && found.first && [text.firstIn, link(found.first), "."]].flat().filter(Boolean);
  }

  function remark(id, rings) {
    const guessed = guesses()?.has(id);
    if (guessed === undefined || (!guessed && !rings)) return null; // a box without a tick is no guess
    const right = guessed && rings;
    return element("span", { class: right ? "verdict right" : "verdict wrong" }, right ? `✓ ${text.guessRight}` : `✗ ${text.guessWrong(rings)}`);
  }

  /* --- what it shows --- */

  /* A result has come. */
  function arrived(id) {
    document.querySelector(`[data-detector="${id}"]`).replaceChildren(...finding(id).filter(Boolean));
    verdicts();
  }

  /* The sentences that need all results. */
  function verdicts() {
    const { mistake } = App.state;
    const results = Mistakes.detectors.map(({ id }) => ({ id, ...Experiments.result(id) }));
    const place = document.querySelector(".verdicts");
    if (!mistake || !isShown()) return;
    if (results.some(({ rings }) => rings === undefined)) return;
    const names = results.filter(({ rings }) => rings).map(({ id }) => Strings.detectors[id].name);
    const differing = Experiments.differences().filter(({ differs }) => differs).length;
    const falls = differing > 0 && !results[0].rings && results[0].number < results[0].first;
    place.replaceChildren(element("section", { class: "moral" }, element("h3", {}, text.moral),
      element("p", { role: "status" }, text.verdict({ names, all: results.length, differing }), " ", falls && text.lossSilent),
      mistake !== "own" && element("p", {}, Strings.mistakes[mistake].moral),
      differing === 0 && mistake !== "own" && offer()));
  }

  /* Nothing differs: another word, or other weights, for which the mistake matters. */
  function offer() {
    const first = App.ids().source.filter((id) => id > Engine.EOS)[0];
    const word = MODEL.example ? "toot" : App.words([first, first]);
    const isTwice = App.state.mistake === "token-twice";
    if (!isTwice && (App.weights === "trained" || !MODEL.weights.trained)) return null;
    const [changes, label] = isTwice ? [{ word, answer: "", edits: "" }, text.tryWord(word)] : [{ weights: "trained" }, text.tryTrained];
    return element("p", {}, element("a", { class: "offer", href: App.link(changes), onclick: (event) => follow(event, changes, "who") }, label));
  }

  /* --- the trail of wrong numbers --- */

  /* The arrays that a mistake makes wrong, in the order of the computation, with a link to each. */
  function trail() {
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

  return { render, head };
})();

/* The tour: one gradient on its way home, from the loss of one row to a weight. One question at each station. */
const TourView = (() => {
  "use strict";

  const { element, button } = Dom;
  const END = Stations.names.length + 1; // the summary
  const answers = new Map(); // what was answered, for each station and state of the numbers

  const at = () => Math.max(1, Math.min(END, Math.floor(App.state.station)));
  const key = (n) => JSON.stringify([MODEL.title, App.run.key, App.state.steps, n]);

  function render(content) {
    const road = Stations.road(App.machine);
    const parts = road ? [progress(), at() === END ? summary(road) : station(road)] : [element("p", {}, Strings.tour.other)];
    content.append(element("h1", {}, Strings.tour.title), ...parts);
  }

  function go(n) {
    App.set({ station: n }, { remember: true });
    document.querySelector(".view-tour h2")?.focus();
  }

  function progress() {
    const dots = [...Stations.names, "end"].map((name, n) => element("li", {}, element("a", {
      href: App.link({ station: n + 1 }), class: answers.has(key(n + 1)) ? "done" : null, "aria-current": n + 1 === at() ? "step" : null,
      title: Strings.tour[name].name, onclick: (event) => App.instead(event, () => go(n + 1)),
    }, element("span", {}, Strings.tour[name].name))));
    return element("nav", { "aria-label": Strings.tour.progress }, element("ol", { class: "dots" }, dots));
  }

  function station(road) {
    const name = Stations.names[at() - 1], text = Strings.tour[name], guess = answers.get(key(at())), known = guess !== undefined;
    const given = Stations.at(name, road), facts = told({ ...given.facts, row: App.label(App.machine.get("output.z"), 0, road.t) });
    const answer = (value) => {
      answers.set(key(at()), value);
      App.set({});
      document.querySelector("[data-focus=next]").focus({ preventScroll: true });
    };
    return element("article", { class: "station" },
      element("h2", { tabindex: -1 }, Strings.tour.at(at(), END - 1, text.name)),
      element("p", { class: "sentence" }, rich(text.text(facts))),
      formula(given.cell, text.formula, known, given.short ? text.short(facts) : null), given.before && pictures(given, known, text, facts, road.h),
      given.run && steps(given.run, known),
      element("section", { class: "ask", "aria-label": Strings.tour.question }, element("p", {}, rich(text.ask(facts))),
        !known && element("div", { class: "buttons" }, given.options
          ? given.options.map((option) => button(optionText(option, text, facts), () => answer(option), { class: "choice" })) : estimate(given, answer),
        button(Strings.tour.show, () => answer(null), { class: "quiet" })),
        element("p", { role: "status" }, known && [element("strong", {}, verdict(given, guess, text, facts)),
          given.options && guess !== null && !given.right.includes(guess) && text.but && rich(` ${text.but(facts, guess)}`), rich(` ${text.why(facts, given.right)}`)])),
      element("p", { class: "note others" }, Dom.cellLink(given.cell, Strings.tour.see, given.weights && { weights: given.weights }),
        onSite(text.lesson, Strings.lesson(text.lesson.slice(0, 2)))),
      onward(button(Strings.tour.next, () => go(at() + 1), { class: "primary", "data-focus": "next", disabled: !known }),
        !known && element("a", { href: App.link(), onclick: (event) => App.instead(event, ask) }, Strings.tour.first)));
  }

  /* A sentence with its *symbols* in italics, which letters are not. */
  const rich = (text) => text.split("*").map((part, n) => (n % 2 ? element("i", {}, part) : part));
  const ask = () => document.querySelector(".choice")?.focus();

  /* The way back and on, which stays where it is. */
  const onward = (...parts) => element("div", { class: "onward" }, button(Strings.tour.back, () => go(at() - 1), { disabled: at() === 1 }), parts);

  /* Facts with numbers as people read them. */
  const told = (facts) => JSON.parse(JSON.stringify(facts, (_, fact) => (typeof fact === "number" ? Show.number(fact) : fact)));

  /* A link to a page of the lessons, where they are a part of the same site. */
  function onSite(page, text, otherwise = null) {
    const site = document.querySelector("meta[name=site]")?.content;
    return site ? element("a", { href: `${site}lessons/${page}.html` }, text) : otherwise;
  }

  /* The line of the engine, with letters, and with numbers once the guess is made. */
  function formula({ name, flat }, own, known, short) {
    const { machine } = App, { definition } = machine.get(name);
    if (own) return element("div", { class: "formula" }, own);
    const lines = short ?? [Dom.formula(Show.equation(definition, machine)), known && ["= ", Dom.formula(Show.numbers(definition, machine, machine.givenOf(name, flat)), (cell) => App.select(cell))]];
    return element("div", { class: `formula ${Show.kind({ name })}` }, element("p", {}, lines[0]), known && element("p", {}, lines[1]),
      known && element("p", {}, "= ", element("strong", {}, Show.number(machine.value(name, flat)))), !short && element("p", { class: "note" }, words(name)));
  }

  /* What the letters of a line mean, indices at last. */
  function words(name) {
    const { machine } = App, arrays = [name, ...machine.get(name).definition.uses].map((each) => machine.get(each)), { indices } = Strings.tour;
    const letters = [...new Set(arrays.flatMap(({ letters: own }) => own))].filter((letter) => letter in indices);
    const named = arrays.map((array) => [Show.nameText(array.symbol), Show.word(array)]).filter(([, word]) => word);
    return [...named, ...letters.map((letter) => [letter, indices[letter]])].map((pair) => pair.join(": ")).join(" · ");
  }

  const optionText = (option, text, facts) => facts.names?.[option] ?? text.options?.[option] ?? Strings.tour.signs[option];

  function estimate({ from, to }, answer) {
    const output = element("output", {}), show = () => { output.textContent = Show.number(Number(input.value)); };
    const input = element("input", {
      type: "range", min: from, max: to, step: (to - from) / 100, value: (from + to) / 2, class: "choice", "aria-label": Strings.tour.estimate, oninput: show,
    });
    show();
    return [element("strong", {}, output), element("span", { class: "note ends" }, Show.exact(from), input, Show.exact(to)),
      button(Strings.tour.set, () => answer(Number(input.value)))];
  }

  /* One step for each press: the loss, and how likely each right letter is. */
  function steps({ losses, rows, steps: most, firstRight }, known) {
    const text = Strings.tour, taken = key("steps"), output = element("output", {}), chart = element("div", {}), bars = element("ol", { class: "likely" });
    const show = (n) => {
      answers.set(taken, n);
      output.textContent = text.taken(n, Show.number(losses[0]), Show.number(losses[n]));
      bars.replaceChildren(...rows[n].map(({ probability: p, right, written }) => element("li", { style: `--share: ${100 * p}%` },
        element("span", {}, App.tokenText(right), " ", Dom.mark(right === written)), element("b", {}, Strings.home.percent(p)))));
      chart.replaceChildren(descent(losses.slice(0, n + 1), most, output.textContent));
    };
    const take = (count) => button(text.take(count), () => show(Math.min(most, answers.get(taken) + count)), { class: count === 1 && "primary" });
    show(Math.max(answers.get(taken) ?? 0, known ? firstRight : 0));
    return [element("div", { class: "trial" }, element("div", { class: "buttons" }, [1, 10].map(take)), output),
      element("div", { class: "pictures trial" }, element("figure", {}, element("figcaption", {}, text.likely), bars), chart)];
  }

  /* The loss after each step so far, of as many as there may be, with its first and its present value. */
  function descent(losses, most, label) {
    const finite = losses.filter(Number.isFinite), last = finite.length - 1, width = Math.min(600, window.innerWidth - 44), height = 180;
    const x = (n) => 24 + ((width - 90) * n) / most, y = (n) => height - 30 - ((height - 54) * finite[n]) / Math.max(...finite);
    const write = (text, left, top) => element("text", { x: left, y: top }, text);
    return element("svg", { class: "descent", viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label },
      element("line", { x1: x(0), x2: x(most), y1: height - 30, y2: height - 30 }),
      element("polyline", { points: finite.map((_, n) => [x(n), y(n)]).join(" ") }),
      write(Strings.tour.firstLoss(Show.number(finite[0])), 0, y(0) - 8), last > 0 && write(Show.number(finite[last]), x(last) + 6, y(last) + 4),
      write(Strings.tour.axis(most), x(0), height - 12));
  }

  /* How far a guess goes. */
  function verdict({ options, right, number, from, to }, guess, text, facts) {
    const words = Strings.tour, truth = options ? right.map((option) => optionText(option, text, facts)).join(", ") : Show.number(number);
    if (guess === null) return words.truth(truth);
    if (options) return (right.includes(guess) ? words.agree : words.differ)(optionText(guess, text, facts), truth);
    return words[Math.abs(guess - number) < Math.max(0.1 * Math.abs(number), 0.02 * (to - from)) ? "close" : "differ"](Show.number(guess), truth);
  }

  /* What the question needs, framed, and the array of the answer: before the guess it is an empty grid. */
  function pictures({ cell, before, first, marked }, known, { captions }, facts, h) {
    const { here, asked } = Strings.tour, { machine } = App, { place } = machine.get(cell.name);
    const isAsked = !before.some(({ name }) => name === cell.name);
    const caption = (name, own = here) => {
      const array = machine.get(name);
      return own(Show.nameText(array.place === place ? array.symbol : name), Show.word(array), array.letters[0] === "h" && Strings.heatmap.head(h));
    };
    return element("div", { class: "pictures" }, before.map((given, n) => picture(given, captions ? captions(facts)[n] : caption(given.name), h)),
      isAsked && picture({ name: cell.name, first, marked, selected: marked && !known ? null : cell.flat, isHidden: !known }, captions?.(facts)[before.length] ?? caption(cell.name, known ? here : asked), h),
      element("p", { class: "note" }, Strings.legend.negative));
  }

  /* An array, or the part of it with the `first` indices; of heads, one is shown. */
  function picture({ name, first, marked = [], selected = null, isHidden }, caption, h) {
    const whole = App.machine.get(name), start = first ?? (whole.shape.length > 2 ? [h] : []), offset = App.machine.offsetOf(name, start);
    const [shape, letters] = [whole.shape, whole.letters].map((list) => list.slice(start.length)), size = shape.reduce((a, b) => a * b, 1);
    const summary = (flat) => App[isHidden ? "cellText" : "cellSummary"](name, flat + offset);
    return element("figure", { class: Show.kind({ name }) }, element("figcaption", {}, caption), element("div", { class: "map" }, Heatmap.heatmap({
      name, array: { ...whole, shape, letters, size }, values: isHidden ? [] : App.machine.data(name).subarray(offset, offset + size),
      marked: marked.map((flat) => flat - offset).filter((flat) => flat >= 0 && flat < size), selected: selected === null ? null : selected - offset, summary,
      width: Math.min(460, window.innerWidth - 44), open: (flat) => App.select({ name, flat: flat + offset }),
    })));
  }

  /* All roads to the weight, and ours among them. */
  function summary({ roads, w, dW, key }) {
    const text = Strings.tour.end, { machine, heaviest: { i, share }, all } = roads;
    const home = machine.indexOf(dW.name, dW.flat).join(", "), count = all.length.toLocaleString(Strings.language);
    const ours = text.ours(App.tokenText(w), key(i), Strings.home.percent(share));
    const toLadder = element("a", { href: App.link({ view: "home" }), onclick: (event) => App.instead(event, Ladder.focus) }, Strings.ladder.title);
    const doors = [toLadder, element("a", { href: App.link({ view: "break" }) }, Strings.views.break), ...["README", "one_sitting"].map((page, n) => onSite(page, text.doors[n], text.doors[n]))];
    return element("article", { class: "end" }, element("h2", { tabindex: -1 }, text.title),
      element("p", { class: "sentence" }, rich(text.text(home, count))), Roads.picture(roads, Math.min(1050, window.innerWidth - (window.innerWidth > 899 ? 470 : 44))),
      share > 0 && [text.balance(Show.number(roads.dW)), ours].map((each) => element("p", { class: "sentence" }, rich(each))),
      element("ul", {}, doors.map((to, n) => element("li", {}, to, " ", text.lead[n]))),
      onward(button(text.again, () => { answers.clear(); go(1); })));
  }

  return { render };
})();

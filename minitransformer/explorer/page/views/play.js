/* The bar that plays the computation in the graph of the model: its arrays light up in the order of the computation, and
   those that are still to come are pale. */
const PlayBar = (() => {
  "use strict";

  const { element } = Dom;
  const text = Strings.play;
  const RATES = [2, 4, 8, 30]; // arrays a second
  let at = null; // how many arrays are computed; null is the graph as it is without the bar
  let rate = 2; // slow enough to read what is said of each
  let timer = 0;

  const isStill = () => window.matchMedia("(prefers-reduced-motion: reduce)").matches;

  /* What is computed, as far as the graph shows it. */
  function steps() {
    const { machine, state } = App;
    return machine.definitions.filter(({ phase }) => state.show === "both" || (phase === "forward") === (state.show === "values"));
  }

  function bar() {
    const button = (kind, label, by, sign) => Dom.button(sign, () => step(by), { class: kind, "aria-label": label, title: label, "data-focus": kind });
    const moves = !isStill();
    return element("div", { class: "play", role: "group", "aria-label": text.title, onkeydown: press },
      element("div", { class: "controls" },
        button("back", text.before, -1, "←"),
        moves && Dom.button("", toggle, { class: "primary start", "data-focus": "play" }),
        button("forward", text.after, 1, "→"),
        element("input", { type: "range", min: 0, "aria-label": text.slider, "data-focus": "step", oninput: (event) => goTo(Number(event.target.value)) }),
        moves && Dom.select({ "aria-label": text.speed, "data-focus": "speed" }, RATES, rate, (each) => { rate = each; if (timer) start(); }, text.rate)),
      element("div", { class: "step" }, element("span", { class: "picture" }), element("output", {})));
  }

  function press(event) {
    if (event.target.matches("select")) return;
    const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (by) step(by);
    else if (event.key === " " && !event.target.matches("button") && !isStill()) toggle();
    else return;
    event.preventDefault();
  }

  function step(by) {
    goTo(at === null ? (by > 0 ? 1 : steps().length) : at + by);
  }

  function goTo(count) {
    stop();
    at = Math.max(0, Math.min(steps().length, count));
    show();
  }

  function stop() {
    clearInterval(timer);
    timer = 0;
  }

  function start() {
    stop();
    if (at === null || at >= steps().length) at = 0;
    timer = setInterval(tick, 1000 / rate);
  }

  function toggle() {
    (timer ? stop : start)();
    show();
  }

  function tick() {
    at++;
    if (!document.querySelector(".play") || at >= steps().length) stop();
    show();
  }

  /* Bring the graph and the bar to the present step. */
  function show() {
    const place = document.querySelector(".play");
    if (!place) return;
    const all = steps();
    if (at > all.length) at = all.length;
    const waiting = new Set(at === null ? [] : all.slice(at).map(({ name }) => name));
    const now = at ? all[at - 1] : null;
    for (const part of document.querySelectorAll(".stacks [data-array]")) {
      part.classList.toggle("pale", waiting.has(part.dataset.array));
      part.classList.toggle("now", part.dataset.array === now?.name);
    }
    for (const box of document.querySelectorAll(".stacks [data-place]")) {
      const chosen = box.dataset.place === now?.place.name;
      for (const [kind, phase] of [["value", "forward"], ["gradient", "backward"]]) box.classList.toggle(kind, chosen && now.phase === phase);
      box.classList.toggle("now", chosen);
    }
    describe(place, all, now);
    if (!now) return;
    document.querySelector(".stacks").style.setProperty("--bar", `${place.offsetHeight}px`); // it covers what is behind it
    document.querySelector(".stacks .box.now, .stacks .now")?.scrollIntoView({ block: "nearest" });
  }

  function describe(place, all, now) {
    const { machine } = App;
    const slider = place.querySelector("input");
    Object.assign(slider, { max: all.length, value: at ?? all.length });
    const none = at === null ? text.all(all.length) : text.none(all.length);
    slider.setAttribute("aria-valuetext", now ? text.step(at, all.length, Show.nameText(now.name)) : none);
    const play = place.querySelector(".start");
    if (play) play.textContent = timer ? text.pause : text.play;
    const output = place.querySelector("output");
    output.setAttribute("aria-live", timer ? "off" : "polite");
    const picture = place.querySelector(".picture");
    if (!now) {
      picture.replaceChildren();
      return output.replaceChildren(none);
    }
    const { name } = now;
    const array = machine.get(name);
    picture.replaceChildren(Heatmap.heatmap({ name, compact: true, width: 120 }));
    const link = element("a", { class: `name ${Show.kind(now)}`, href: App.link({ view: "cell", cell: name }), "data-cell": name }, Show.nameText(name));
    output.replaceChildren(link, ` (${array.shape.join(", ")}): ${Show.word(array)}`,
      element("p", { class: "formula" }, Dom.formula(Show.equation(now, machine))));
  }

  return { bar, show };
})();

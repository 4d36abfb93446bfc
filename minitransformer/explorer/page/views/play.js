/* Plays the computation in the graph of the model: ten stops in words, from the letters that are read to the gradient of each
   weight. What a stop computes is framed, and what is still to come is pale. */
const PlayBar = (() => {
  "use strict";

  const { element } = Dom;
  const text = Strings.play;
  const PAUSE = 4000; // milliseconds to read what a stop says
  const FORWARD = { source: { embedding: 0, self: 1, ffn: 2 }, target: { embedding: 3, self: 3, attention: 4, ffn: 5, output: 6 } };
  const BACKWARD = { output: 7, ffn: 7, attention: 8, self: 8, matrix: 9 }, ENCODER = 9;
  let at = null; // how many stops are computed; null is the graph as it is without them
  let timer = 0;

  const isStill = () => window.matchMedia("(prefers-reduced-motion: reduce)").matches;

  /* The stops that the graph shows, in the order of the computation: {n, phase, names, places}. What belongs to none, such as a
     norm, goes with what is before it, and so does all of a later layer: no stop comes twice. */
  function stops() {
    const { machine } = App, found = [];
    let last = 0;
    for (const { name, phase, place } of machine.definitions) {
      const { stack, kind } = place, isEncoder = machine.isPair && stack === "source";
      last = Math.max(last, (phase === "forward" ? FORWARD[stack][kind] : isEncoder ? ENCODER : BACKWARD[kind]) ?? 0);
      found[last] ??= { n: last, phase, names: new Set(), places: new Set() };
      found[last].names.add(name);
      found[last].places.add(place.name);
    }
    return found.filter(Boolean);
  }

  function bar() {
    const button = (kind, label, by, sign) => Dom.button(sign, () => step(by), { class: kind, "aria-label": label, title: label, "data-focus": kind });
    return element("div", { class: "play", role: "group", "aria-label": text.title, onkeydown: press },
      button("back", text.before, -1, "←"), !isStill() && Dom.button("", toggle, { class: "primary start", "data-focus": "play" }),
      button("forward", text.after, 1, "→"), element("output", {}));
  }

  /* All stops below each other, to go to one. */
  function list() {
    return element("ol", { class: "stops" }, stops().map(({ n, phase }, index) => element("li", { class: phase === "forward" ? "value" : "gradient" },
      Dom.button(text.stops[n][0], () => goTo(index + 1), { "data-focus": `stop${n}` }), " ", text.stops[n][1](App.machine.isPair))));
  }

  function press(event) {
    const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!by) return;
    step(by);
    event.preventDefault();
  }

  const step = (by) => goTo(at === null ? (by > 0 ? 1 : stops().length) : at + by);

  function goTo(count) {
    stop();
    at = Math.max(0, Math.min(stops().length, count));
    show();
  }

  function stop() {
    clearInterval(timer);
    timer = 0;
  }

  function toggle() {
    if (timer) stop();
    else {
      at = at === null || at >= stops().length ? 1 : at + 1;
      timer = setInterval(tick, PAUSE);
    }
    show();
  }

  function tick() {
    if (!document.querySelector(".play") || at >= stops().length) stop();
    else at++;
    show();
  }

  /* Bring the graph, the bar and the list to the present stop. */
  function show() {
    const bar = document.querySelector(".play");
    if (!bar) return;
    const all = stops(), now = at ? all[Math.min(at, all.length) - 1] : null;
    const waiting = new Set(at === null ? [] : all.slice(at).flatMap(({ names }) => [...names]));
    for (const part of document.querySelectorAll(".stacks [data-array]")) part.classList.toggle("pale", waiting.has(part.dataset.array));
    for (const box of document.querySelectorAll(".stacks [data-place]")) {
      const isNow = Boolean(now?.places.has(box.dataset.place));
      for (const [kind, phase] of [["value", "forward"], ["gradient", "backward"]]) box.classList.toggle(kind, isNow && now.phase === phase);
      box.classList.toggle("now", isNow);
    }
    document.querySelectorAll(".stops li").forEach((item, n) => item.setAttribute("aria-current", all[n] === now ? "step" : "false"));
    if (bar.querySelector(".start")) bar.querySelector(".start").textContent = timer ? text.pause : text.play;
    const [title, about] = now ? text.stops[now.n] : [text.none(all.length), () => ""];
    bar.querySelector("output").replaceChildren(element("strong", { class: now && (now.phase === "forward" ? "value" : "gradient") }, now ? `${at}. ${title}` : title), ` ${about(App.machine.isPair)}`);
    document.querySelector(".stacks").style.setProperty("--bar", `${bar.offsetHeight}px`); // it covers what is behind it
    if (now) document.querySelector(".stacks .box.now")?.scrollIntoView({ block: "nearest" });
  }

  return { bar, list, show };
})();

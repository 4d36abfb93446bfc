// The fields of the lessons: a guess opens what was measured, and a line is judged by the explorer's engine.
"use strict";

(() => {
  const STORED = "minitransformer.answers"; // {key of a field: {text, done}}
  const SCRIPTS = ["data", "strings", "language", "formulas", "engine", "mistakes", "line"]; // of the explorer, in this order
  const NEAR = 1e-4; // relative: what a known mistake gives is recorded with six digits
  const explorer = new URL("../explorer/", document.currentScript.src).href;
  const all = (selector, of = document) => [...of.querySelectorAll(selector)];
  let answers = {};
  let loading = null;

  function element(tag, attributes, ...children) {
    const made = Object.assign(document.createElement(tag), attributes);
    made.append(...children);
    return made;
  }

  const say = (form, ...paragraphs) => form.querySelector(".said").replaceChildren(...paragraphs.map((parts) => element("p", {}, ...parts)));

  function keep(form, text, done) {
    answers[form.dataset.key] = { text, done };
    try {
      localStorage.setItem(STORED, JSON.stringify(answers));
    } catch { /* then it is kept until the page is left */ }
  }

  function remember() {
    try {
      answers = JSON.parse(localStorage.getItem(STORED)) ?? {};
    } catch { /* nothing is kept, or nothing may be */ }
  }

  /* --- guesses --- */

  function numberIn(text) {
    const plain = text.trim().replace(/[−–]/g, "-").replace(/,(?=\d{3}\b)/g, "").replace(/\s*%$/, "");
    return plain === "" ? NaN : Number(plain);
  }

  const rounded = (x) => Number(x.toPrecision(2)).toLocaleString("en", { maximumSignificantDigits: 2 });

  /* How far a guess is from the measured number, in words. */
  function distance(guess, value) {
    if (guess === value) return "exactly right";
    const ratio = guess / value;
    if (!(ratio > 0) || !Number.isFinite(ratio)) return `off by ${rounded(Math.abs(guess - value))}`;
    if (Math.abs(ratio - 1) < 0.005) return "right within half a per cent";
    const side = Math.abs(guess) > Math.abs(value) ? "large" : "small";
    const factor = Math.max(ratio, 1 / ratio);
    return factor >= 2 ? `${rounded(factor)} times too ${side}` : `${rounded(100 * Math.abs(ratio - 1))} % too ${side}`;
  }

  function compare(shown) {
    const { key, value } = shown.dataset;
    if (!answers[key]) return;
    const { text } = answers[key];
    const guess = numberIn(text);
    shown.querySelector("span").textContent = `Your guess: ${text}${Number.isNaN(guess) ? "" : `, ${distance(guess, Number(value))}`}.`;
  }

  /* Bring everything on the page up to date that depends on answers. */
  function update() {
    all(".measured").forEach(compare);
    for (const form of all(".gate .guess")) {
      const [first] = all(`.guess[data-key="${form.dataset.key}"]`);
      const isAskedNearby = first !== form && first.closest("section") === form.closest("section");
      form.hidden = isAskedNearby || Boolean(answers[form.dataset.key]);
    }
    for (const gate of all(".gate")) {
      const fold = gate.nextElementSibling;
      if (fold?.matches("details.gated") && all("form", gate).every(({ dataset }) => answers[dataset.key]?.done)) fold.open = true;
    }
  }

  function guess(form, text) {
    keep(form, text, true);
    update();
    const shown = document.querySelector(`.measured[data-key="${form.dataset.key}"]`);
    if (form.hidden) {
      shown.tabIndex = -1;
      shown.focus();
    } else if (form.matches(".words")) say(form, ["Compare it with the answer, which is open below. In your own copy of the lesson, Python judges it."]);
    else say(form, ["Noted. It is compared with what the lesson measures, further down."]);
  }

  /* --- lines --- */

  const load = () => (loading ??= SCRIPTS.reduce((before, name) => before.then(() => new Promise((done, fail) => {
    document.head.append(element("script", { src: `${explorer}${name}.js`, onload: done, onerror: () => fail(new Error(name)) }));
  })), Promise.resolve()));

  /* The context of a test, as the explorer makes it for its own sequence and trained weights. */
  function contextOf(mistake) {
    const { weights, source, source_end: end, target } = MODEL;
    return Mistakes.context(MODEL, { weights: weights.trained, source: [...source, ...end], target, mistake });
  }

  const numbers = (text) => text.split(" ").map(Number);
  const isNear = (a, b) => a.length === b.length && a.every((x, n) => Math.abs(x - b[n]) <= NEAR * Math.max(...b.map(Math.abs)));

  /* {problem, at, length}, {right: true}, or {right: false, known, rings, most, text, array}. */
  function judge({ place, symbol, before, after, start, count, times, right, wrong }, typed) {
    const opening = `${place && `${place}.`}${before}`;
    const found = OwnLine.read(`${opening}${typed}${after}`);
    if (found.problem) {
      const { kind, at, length, facts } = found.problem;
      return { problem: Strings.line.problems[kind](facts), at: Math.min(typed.length, Math.max(0, at - opening.length)), length };
    }
    const context = contextOf(found.mistake);
    const [good, own] = [contextOf(null).right(), context.wrong()];
    const most = Mistakes.compared(good, own, found.array).difference;
    if (most <= Mistakes.EXACT) return { right: true };
    const [expected, usual, given] = [numbers(right), good.data(found.array), own.data(found.array)];
    const theirs = Array.from({ length: count }, (_, n) => expected[n] + times * (given[start + n] - usual[start + n]));
    const known = Object.keys(wrong).find((said) => isNear(theirs, numbers(wrong[said])));
    const rings = Mistakes.detectors.filter(({ id, run }) => id !== "falls" && run(context).rings); // that one trains, which takes long
    return { right: false, known, rings: rings.map(({ id }) => Strings.detectors[id].name), most, text: found.text, array: found.array, symbol };
  }

  function wrongLine({ known, rings, most, text, array, symbol }) {
    const address = `${explorer}index.html#${new URLSearchParams({ view: "break", mistake: "own", line: text, cell: array })}`;
    const notice = rings.length > 0 ? `Of the explorer’s tests, ${rings.length === 1 ? "this one rings" : "these ring"}: ${rings.join(", ")}. ` : "None of the explorer’s tests rings. ";
    return [
      [element("strong", {}, "Not yet: "), known ? known.replace(/([^.?!])$/, "$1.") : `${symbol} is off by up to ${rounded(most)}.`],
      [notice, element("a", { href: address }, "See your line in the explorer"), "."],
    ];
  }

  async function line(form, field) {
    const data = JSON.parse(form.dataset.line);
    const typed = field.value.replace(/^\s*[\w.]+(\[[^\]]*\])?\s*=(?!=)/, "").trim(); // with or without its left side
    field.value = typed;
    await load();
    const found = judge(data, typed);
    keep(form, typed, Boolean(found.right));
    field.setAttribute("aria-invalid", String(!found.right));
    if (found.problem) {
      say(form, [`${Strings.line.at(found.at + 1)} ${found.problem}`]);
      field.focus();
      field.setSelectionRange(found.at, found.at + found.length);
    } else if (found.right) say(form, [element("strong", {}, "Right."), ` Every number of ${data.symbol} is the true one.`]);
    else say(form, ...wrongLine(found));
    update();
  }

  /* The names that a line may use, as soon as somebody asks. */
  async function names({ target: fold }) {
    const { place, symbol } = JSON.parse(fold.closest("form").dataset.line);
    await load();
    fold.lastChild.textContent = Strings.line.namesOf(...OwnLine.names(`${place && `${place}.`}${symbol}`));
  }

  /* --- the page --- */

  async function submit(event) {
    event.preventDefault();
    const form = event.target;
    const field = form.querySelector("input");
    if (field.value.trim() === "") return field.focus();
    if (!form.matches(".line")) return guess(form, field.value.trim());
    try {
      await line(form, field);
    } catch (error) {
      say(form, ["The explorer, which judges lines, could not be loaded."]);
      throw error;
    }
  }

  function start() {
    remember();
    for (const form of all("form.ask")) {
      form.hidden = false;
      form.querySelector("input").value = answers[form.dataset.key]?.text ?? "";
      form.addEventListener("submit", submit);
    }
    for (const form of all("form.line")) {
      form.addEventListener("focusin", load, { once: true });
      form.append(element("details", { ontoggle: names }, element("summary", {}, "Names that may be used"), element("p", {})));
    }
    update();
  }

  document.addEventListener("DOMContentLoaded", start);
})();

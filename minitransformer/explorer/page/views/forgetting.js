/* A part of the view of training: what happens to words that are not trained. */
const ForgettingView = (() => {
  "use strict";

  const { element } = Dom;
  const WORDS = ["opt", "tops", "pot", "post", "spot"], SHOWN = 4; // one of them may be the trained word
  const PART = 20; // words between two looks at the clock
  const PATIENCE = 50; // milliseconds
  const machines = new Map(); // for words of each length
  const tested = new WeakMap(); // run -> Map(steps -> how many of all words are right)

  function section(run) {
    const text = Strings.train;
    const trained = App.words(App.ids().source.filter((id) => id !== Engine.PAD));
    const now = weightsOf(run);
    const rows = WORDS.filter((word) => word !== trained).slice(0, SHOWN).map((word) => {
      const source = [...word].map((letter) => MODEL.tokens.indexOf(letter));
      return { word, before: read(source, run.start), now: read(source, now) };
    });
    const rose = rows.filter((each) => each.now.loss > each.before.loss).length;
    return element("section", {}, element("h2", {}, text.others), element("p", { class: "note" }, text.othersIntro),
      TrainView.table([text.word, text.loss(text.before), text.loss(text.now), text.before, text.now], rows.map(row)),
      element("p", {}, text.othersRose(rose, rows.length)), allWords(run));
  }

  function row({ word, before, now }) {
    const spell = ({ rows }) => rows.map(({ written }) => App.tokenText(written)).join(" ");
    return element("tr", {}, element("th", { scope: "row" }, word), element("td", {}, Show.number(before.loss)), element("td", {}, Show.number(now.loss)),
      [before, now].map((each) => element("td", { class: "written" }, `${spell(each)} `, TrainView.mark(isRight(each)))));
  }

  const weightsOf = ({ machine }) => Object.fromEntries(machine.weights().map((name) => [name, machine.data(name)]));

  const isRight = ({ rows }) => rows.every(({ right, written }) => right === written);

  /* What a model with other weights makes of a word: the loss, and what each row writes. */
  function read(source, weights) {
    const { smoothing, mistake, line } = App.state;
    const sequences = { source, target: [...source].reverse() };
    const key = `${source.length} ${smoothing} ${mistake} ${line}`;
    if (!machines.has(key)) machines.set(key, App.build({ sequences }));
    const machine = machines.get(key);
    machine.fill(weights, MODEL.PE, sequences);
    return { loss: machine.run(machine.forward), rows: Training.rowsOf(machine) };
  }

  /* How many words are right, counted on demand and remembered for each number of steps. */
  function allWords(run) {
    const text = Strings.train;
    if (!tested.has(run)) tested.set(run, new Map());
    const counts = tested.get(run);
    const words = everyWord();
    const list = element("ul", { class: "counts" });
    const heading = element("p", { class: "note" }, text.tested(words.length));
    const show = () => {
      heading.hidden = counts.size === 0;
      list.replaceChildren(...[...counts].sort(([a], [b]) => a - b)
        .map(([steps, count]) => element("li", {}, `${text.testedAt(steps)} `, element("strong", {}, String(count)))));
    };
    const button = element("button", {
      type: "button", "data-focus": "test", onclick: async () => {
        const states = [[0, run.start], [run.steps, weightsOf(run)]].filter(([steps]) => !counts.has(steps));
        const found = await count(words, states, (done, all) => { button.textContent = text.testing(done, all); }, () => button.isConnected);
        found?.forEach(([steps, right]) => counts.set(steps, right));
        button.textContent = text.testAll(words.length);
        show();
      },
    }, text.testAll(words.length));
    show();
    return element("div", { class: "all-words" }, button, element("div", { "aria-live": "polite" }, heading, list));
  }

  function everyWord() {
    const letters = MODEL.tokens.map((_, id) => id).slice(3);
    let longest = [[]];
    const words = [];
    for (let length = 1; length <= Models.LEARNED; length++) {
      longest = longest.flatMap((word) => letters.map((letter) => [...word, letter]));
      words.push(...longest);
    }
    return words;
  }

  /* states [[steps, weights]] -> [[steps, how many words are right]], or null if it is not wanted any more. */
  async function count(words, states, report, wanted) {
    const found = [];
    let end = performance.now() + PATIENCE;
    for (const [place, [steps, weights]] of states.entries()) {
      let right = 0;
      for (const [n, word] of words.entries()) {
        right += Number(isRight(read(word, weights)));
        if (n % PART || performance.now() < end) continue;
        report(place * words.length + n, states.length * words.length);
        await new Promise((resolve) => { setTimeout(resolve, 0); });
        if (!wanted()) return null;
        end = performance.now() + PATIENCE;
      }
      found.push([steps, right]);
    }
    return found;
  }

  return { section };
})();

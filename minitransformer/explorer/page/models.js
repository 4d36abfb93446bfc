/* The models of the page: that of data.js and, for words that the running example does not know, a second one, whose script
   replaces MODEL. It is loaded by a tag when it is needed: fetch fails in a page from the disk. */
const Models = (() => {
  "use strict";

  const SECOND = "letters", MOST = 10; // its longest words
  const LEARNED = 4; // letters of the longest words that the running example has learned
  const found = { "": complete(MODEL) }; // name in the address -> model

  /* Beside trained weights alone, the page draws untrained ones. */
  function complete(model) {
    if (Object.keys(model.weights).length === 1) model.weights.untrained = Engine.initialWeights(model.weights.trained);
    return model;
  }

  const isReady = (name) => MODEL === found[name];

  /* Make MODEL the one called `name` -> whether it is there. If not, load it, and then call done(), or fail(). */
  function use(name, done, fail) {
    globalThis.MODEL = found[name] ?? MODEL;
    if (!found[name]) load(name, done, fail);
    return name in found;
  }

  /* A line at the lower edge says so; what went wrong stands there until the next word is typed. */
  function load(name, done, fail) {
    if (document.querySelector(`script[src="${name}.js"]`)) return; // it is on its way, and will call done()
    const line = Dom.element("p", { id: "loading", role: "status" }, Strings.models.loading);
    const script = Dom.element("script", {
      src: `${name}.js`,
      onload: () => { found[name] = complete(MODEL); line.remove(); done(); },
      onerror: () => { script.remove(); line.textContent = Strings.models.failed; fail(); },
    });
    document.getElementById("loading")?.remove();
    document.body.append(line, script);
  }

  /* Whether the address may name this model: a person's own run stays alone. */
  const isKnown = (name) => name === "" || (name === SECOND && Boolean(found[""].example));

  /* What is wrong with a typed word, or what it changes in the state: {problem, changes}; null for a person's own run. A word
     that the running example has not learned goes to the second model, where the page then stays. */
  function changes(text) {
    document.getElementById("loading")?.remove();
    if (!found[""].example) return null;
    const word = text.trim().toLowerCase();
    const odd = [...word].find((letter) => !/[a-z]/.test(letter));
    const known = word.length <= LEARNED && [...word].every((letter) => found[""].tokens.includes(letter));
    return {
      problem: odd ? Strings.models.odd(odd) : word.length > MOST ? Strings.models.long(MOST) : null,
      changes: { word, model: known ? App.state.model : SECOND },
    };
  }

  /* Which model is shown if it is not the first, with the way back. */
  function note() {
    const text = Strings.models;
    if (MODEL === found[""]) return null;
    const count = Object.values(MODEL.weights.trained).reduce((sum, rows) => sum + Engine.flatten(rows).length, 0);
    return Dom.element("p", { class: "note model" }, `${text.second(count.toLocaleString(Strings.language), MOST)} `,
      Dom.button(text.back, () => App.set({ model: "", word: "", answer: "", edits: "" }, { remember: true }), { class: "quiet", "data-focus": "first-model" }));
  }

  return { use, isReady, isKnown, changes, note };
})();

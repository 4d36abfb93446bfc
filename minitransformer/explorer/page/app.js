/* The page: its state, which stands in the URL after #, the machine that belongs to it, and the frame around the views.
   What is shown is a function of the state alone, so that a link shows another person the same numbers. */
const App = (() => {
  "use strict";

  const { element, button, select: selection } = Dom;
  const DEFAULTS = {
    view: "home", cell: "", word: "", answer: "", padding: 0, smoothing: 0, weights: "", mistake: "",
    steps: 0, lr: Engine.LR, edits: "", compare: "", look: "", guess: "", model: "",
    line: "", station: 1, rung: 1, write: "", embed: "", turn: "",
  };
  const NUMBERS = new Set(["padding", "smoothing", "steps", "lr", "station", "rung"]);
  const DISPLAY = new Set(["view", "cell", "compare", "look", "guess", "line", "station", "rung", "write", "embed", "turn"]); // they change no number
  const MOST_STEPS = 100; // of Adam, taken at once
  const RATES = [0.001, 0.003, 0.01, 0.03, 0.1];
  const VIEWS = { home: HomeView, tour: TourView, model: ModelView, cell: CellView, compare: CompareView, break: BreakView, embed: EmbedView };
  const state = { ...DEFAULTS };
  const answers = new Map(); // what the trained model writes, by model and source
  let refused = null; // a word of the address that cannot be shown: {name, text, why}
  let made = null; // the last run, and the key that says what it was computed from
  let shown = {}; // what the parts of the frame depend on, as they are shown now
  const scheme = window.matchMedia("(prefers-color-scheme: dark)");

  const app = {
    state, set, open, instead, field, answer, written, cell, setCell, select, ids, label, globalName, cellText, cellSummary, title, tokenText, words, build, planted, edit, edits, link,
    rates: RATES,
    get weights() { return weights(); },
    get run() { return made; },
    get machine() { return made.machine; },
  };

  /* --- state and URL --- */

  function read() {
    const given = new URLSearchParams(location.hash.slice(1));
    for (const [name, usual] of Object.entries(DEFAULTS)) {
      const text = given.get(name);
      state[name] = text === null ? usual : NUMBERS.has(name) ? Number(text) || 0 : text;
    }
    if (!Object.hasOwn(VIEWS, state.view) || state.view === "embed") state.view = DEFAULTS.view;
    if (state.view === "tour") state.steps = 0; // it is about the weights before
    if (state.embed) state.view = "embed";
    if (!Object.hasOwn(MODEL.weights, state.weights)) state.weights = "";
    if (!["", "guessed", "skip"].includes(state.look)) state.look = "";
    state.steps = Math.max(0, Math.min(MOST_STEPS, Math.floor(state.steps)));
    if (!RATES.includes(state.lr)) state.lr = DEFAULTS.lr;
    state.padding = Math.max(0, Math.min(3, Math.floor(state.padding)));
    state.smoothing = state.smoothing ? 0.1 : 0;
    if (!Models.isKnown(state.model)) state.model = "";
    const typed = !state.model && problem(state.word) ? Models.changes(state.word) : null;
    if (typed && !typed.problem) Object.assign(state, typed.changes); // a link with somebody's own word
    if (!Models.use(state.model, open, withoutModel)) return false;
    if (!planted()) state.mistake = "";
    refused = null;
    for (const name of ["word", "answer"]) {
      const why = problem(state[name]) && ((name === "word" && typed?.problem) || problem(state[name]));
      if (why) [refused, state[name]] = [{ name, text: state[name], why }, ""];
    }
    return true;
  }

  /* Show what the address says, as soon as its model is there. */
  function open() {
    if (read()) render();
  }

  const withoutModel = () => set({ model: "", word: "", answer: "", edits: "" });

  function link(changes = {}) {
    const given = new URLSearchParams();
    const wanted = { ...state, ...changes };
    for (const [name, usual] of Object.entries(DEFAULTS)) if (wanted[name] !== usual) given.set(name, wanted[name]);
    return `#${given.toString().replaceAll("%5B", "[").replaceAll("%5D", "]").replaceAll("%2C", ",")}`;
  }

  /* Change the state, the URL and the page. The browser's Back takes back another view, other numbers, and what it shall
     `remember`. */
  function set(changes, { remember = false } = {}) {
    const viewChanges = changes.view && changes.view !== state.view;
    const counts = Object.keys(changes).some((name) => !DISPLAY.has(name) && changes[name] !== state[name]);
    Object.assign(state, changes);
    if (state.view === "tour") state.steps = 0;
    refused = null;
    if (!state.embed) history[viewChanges || counts || remember ? "pushState" : "replaceState"](null, "", link()); // a page around it has its own
    if (!Models.use(state.model, open, withoutModel)) return;
    render();
    if (viewChanges) document.getElementById("content").focus({ preventScroll: true });
    if (viewChanges) window.scrollTo(0, 0);
  }

  /* --- tokens --- */

  function tokenText(id) {
    const text = (isFirst() && Strings.home.special[id]) || (MODEL.tokens[id] ?? "?");
    return text === " " ? "␣" : text;
  }

  /* Ids as a person types them. */
  function words(list) {
    return list.map((id) => MODEL.tokens[id]).join(MODEL.separator);
  }

  function parse(text) {
    const parts = MODEL.separator ? text.trim().split(/\s+/).filter(Boolean) : [...text];
    return parts.map((part) => MODEL.tokens.indexOf(part, 3));
  }

  /* What is wrong with a typed sequence, or null. "" means the model's own. */
  function problem(text) {
    if (text === "") return null;
    const list = parse(text);
    const parts = MODEL.separator ? text.trim().split(/\s+/) : [...text];
    if (list.length === 0) return Strings.input.empty;
    const unknown = list.indexOf(-1);
    if (unknown >= 0) return Strings.input.unknown(parts[unknown], MODEL.tokens.slice(3).map((token) => (token === " " ? "␣" : token)).join(", "));
    return list.length > MODEL.max_length ? Strings.input.long(MODEL.max_length) : null;
  }

  /* The ids that the model reads and is to write, with padding. */
  function ids() {
    const source = state.word ? parse(state.word) : MODEL.source;
    const target = answer().ids;
    const padding = Array(state.padding).fill(Engine.PAD);
    return { source: [...source, ...MODEL.source_end, ...padding], target: [...target, ...padding] };
  }

  /* What the model should write -> {ids, origin}: "task" by the rule of the task, "own" if a person gave it, or "model" if it
     is what the trained model writes, which nobody has checked. */
  function answer() {
    const source = state.word ? parse(state.word) : MODEL.source;
    const right = Tasks.solve(source);
    const given = state.answer ? parse(state.answer) : !state.word && MODEL.answer === "given" ? MODEL.target : null;
    if (given) return { ids: given, origin: String(given) === String(right) ? "task" : "own" };
    return right ? { ids: right, origin: "task" } : { ids: answerOfModel(source), origin: "model" };
  }

  function answerOfModel(source) {
    const key = `${MODEL.title} ${source}`;
    if (!answers.has(key)) answers.set(key, decode(MODEL.weights[Object.keys(MODEL.weights)[0]], [...source, ...MODEL.source_end]));
    return answers.get(key);
  }

  const decode = (weights, source, options = {}) =>
    Engine.greedyDecode(MODEL.sizes, { eps: MODEL.norm_eps, ...options }, weights, source, MODEL.max_length);

  /* The ids that the model writes by itself; null if numbers other than weights are changed by hand, because they belong to
     the rows of the given answer. */
  function written() {
    const { machine, steps } = made;
    if (made.written?.steps === steps) return made.written.ids;
    if (edits().some(({ name }) => machine.arrays.get(name)?.role !== "weight")) return null;
    const { source, target } = ids();
    const rows = Training.rowsOf(machine);
    const allRight = rows.every((row) => row.right === row.written); // then its own tokens are the given ones
    const weights = Object.fromEntries(machine.weights().map((name) => [name, machine.data(name)]));
    made.written = { steps, ids: allRight ? target.filter((id) => id !== Engine.PAD) : decode(weights, source, planted()?.options) };
    return made.written.ids;
  }

  /* --- computing --- */

  /* The mistake of an id; "own" is the line that the reader has written. Undefined if there is none. */
  function planted(id = state.mistake) {
    return id === "own" ? OwnLine.read(state.line).mistake : Mistakes.list.find((mistake) => mistake.id === id);
  }

  /* If nobody has chosen weights, steps of Adam begin with the untrained ones. */
  function weights() {
    const usual = state.steps > 0 ? "untrained" : "trained";
    return state.weights || (usual in MODEL.weights ? usual : Object.keys(MODEL.weights)[0]);
  }

  /* A machine for the present input, computed once: build({weights: "untrained", mistake: ""}). Other sequences have no
     changes by hand. */
  function build({ weights: chosen = weights(), mistake = state.mistake, sequences = null } = {}) {
    const changes = sequences ? [] : edits();
    sequences ??= ids();
    const machine = Engine.build(MODEL.sizes, {
      S: sequences.source.length, T: sequences.target.length + 1, eps: MODEL.norm_eps,
      smoothing: state.smoothing, ...planted(mistake)?.options,
    });
    for (const { name, flat, amount } of changes) {
      const array = machine.arrays.get(name);
      if (array && array.role !== "ids" && flat < array.size) machine.edit(name, flat, amount);
    }
    machine.fill(MODEL.weights[chosen], sequences);
    machine.run();
    return machine;
  }

  /* Compute what belongs to the state. */
  function compute() {
    const { model, word, answer, padding, smoothing, mistake, line, edits: byHand, lr, steps } = state;
    const key = JSON.stringify([model, word, answer, padding, smoothing, weights(), mistake, mistake === "own" && line, byHand, lr]);
    if (made?.key !== key || made.steps > steps)
      made = Object.assign(new Training.Run(build(), new Engine.Adam(lr)), { key });
    made.advance(steps);
  }

  /* --- cells --- */

  /* The cell with this text as {name, flat}, or null. */
  function cell(text = state.cell) {
    const match = /^([\w.]+)(?:\[([\d,]*)\])?$/.exec(text);
    if (!match || !made.machine.arrays.has(match[1])) return null;
    const { shape } = made.machine.get(match[1]);
    if (match[2] === undefined) return { name: match[1], flat: null };
    const index = match[2] ? match[2].split(",").map(Number) : [];
    if (index.length > shape.length && index.slice(shape.length).every((i) => i === 0)) index.length = shape.length;
    if (index.length !== shape.length || index.some((i, axis) => !(i < shape[axis]))) return { name: match[1], flat: null };
    return { name: match[1], flat: made.machine.offsetOf(match[1], index) };
  }

  function setCell({ name, flat }) {
    return flat === null ? name : `${name}[${made.machine.indexOf(name, flat).join(",")}]`;
  }

  function select(chosen, changes = {}, options = {}) {
    set({ view: "cell", cell: setCell(chosen), ...changes }, options);
  }

  /* Do something instead of following a link, unless the person wants it in another tab. */
  function instead(event, act) {
    if (event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    act();
  }

  /* The name of an index along an axis: a token, "p→o" for a row of the decoder, or a number. */
  function label(array, axis, index, short = false) {
    const letter = array.letters[axis], { rows, keys } = array.place, { machine } = made;
    const read = (sequence) => tokenText(machine.data(`${sequence}.ids`)[index]);
    const cut = (text, most = 5) => (short && text.length > most ? `${text.slice(0, most - 1)}…` : text);
    if (letter === "w") return cut(tokenText(index));
    if (array.role === "input") return String(index);
    if (letter === "i") return cut(read(keys));
    if (letter !== "t") return String(index);
    const writes = rows === "target" && index >= machine.firstRow; // the rows of a prompt write nothing that counts
    return writes ? cut(`${read(rows)}→${tokenText(machine.data("output.ids")[index])}`, isFirst() ? 7 : 5) : cut(read(rows));
  }

  /* What the place of the arrays is called that belong to the whole model. */
  function globalName() {
    return made.machine.isPair ? "E, M" : "E";
  }

  function cellText(name, flat) {
    const array = made.machine.get(name);
    if (flat === null || array.shape.length === 0) return Show.nameText(name);
    const index = made.machine.indexOf(name, flat);
    const parts = index.map((i, axis) => (array.letters[axis] === "h" ? Strings.heatmap.head(i) : label(array, axis, i)));
    return `${Show.nameText(name)} [${parts.join(", ")}]`;
  }

  function cellSummary(name, flat) {
    const partner = made.machine.partner(name);
    const other = partner ? `; ${Show.nameText(partner)} ${Show.number(made.machine.value(partner, flat))}` : "";
    return `${cellText(name, flat)}: ${Show.number(made.machine.value(name, flat))}${other}`;
  }

  /* --- changes by hand: "cross.s:6:0.5,cross.allowed:3:-1" --- */

  function edits() {
    return state.edits.split(",").filter(Boolean).map((text) => {
      const [name, flat, amount] = text.split(":");
      return { name, flat: Number(flat), amount: Number(amount) };
    }).filter(({ flat, amount }) => Number.isInteger(flat) && flat >= 0 && Number.isFinite(amount));
  }

  /* Add `amount` to what a cell has now; null takes the change back. */
  function edit({ name, flat }, amount) {
    const others = edits().filter((other) => other.name !== name || other.flat !== flat);
    const before = edits().find((other) => other.name === name && other.flat === flat)?.amount ?? 0;
    const now = amount === null ? 0 : before + amount;
    const all = now ? [...others, { name, flat, amount: now }] : others;
    set({ edits: all.map((each) => `${each.name}:${each.flat}:${each.amount}`).join(",") });
  }

  /* --- the frame --- */

  /* Somebody who has just come needs no settings yet. */
  const isFirst = () => ["home", "tour"].includes(state.view);
  const quiet = () => isFirst() || Boolean(state.embed);

  function header() {
    const links = Object.entries(Strings.views).map(([view, text]) => element("a", {
      href: link({ view }), "aria-current": view === state.view ? "page" : null,
      onclick: (event) => instead(event, () => set({ view })),
    }, text));
    return element("header", { class: "top" },
      element("a", { class: "skip", href: "#content", onclick: (event) => { event.preventDefault(); document.getElementById("content").focus(); } }, Strings.skip),
      element("div", { class: "title" }, state.view !== "home" && element("strong", {}, title()), element("span", {}, Strings.heading)),
      element("nav", { "aria-label": Strings.navigation }, links));
  }

  /* A field for the word or for its right answer. */
  function field(name, label = Strings.input[name]) {
    const text = Strings.input;
    const { source, target } = ids();
    const given = name === "word" ? source.slice(0, source.length - MODEL.source_end.length - state.padding) : target;
    const value = words(given.filter((id) => id !== Engine.PAD));
    const message = element("span", { class: "problem", role: "alert", id: `problem-${name}` });
    let fresh = false; // whether the field has the focus since the last click
    const typed = element("input", {
      type: "text", value, size: Math.max(8, Math.min(24, value.length + 2)), "data-focus": name, autocomplete: "off", spellcheck: "false", autocapitalize: "off",
      "aria-describedby": message.id, onfocus: () => { typed.select(); fresh = true; },
      onclick: () => { if (fresh) typed.select(); fresh = false; }, // the click has put the cursor
      onchange: () => {
        const found = name === "word" ? Models.changes(typed.value) : null;
        const wrong = typed.value.trim() === "" ? text.empty : found ? found.problem : problem(typed.value);
        message.textContent = wrong ?? "";
        typed.setAttribute("aria-invalid", String(Boolean(wrong)));
        if (!wrong) later(() => set(name === "word" ? { word: typed.value, answer: "", edits: "", ...found?.changes } : { answer: typed.value, edits: "" }));
      },
    });
    return element("div", {}, element("label", {}, label, typed), message);
  }

  function inputs() {
    if (quiet()) return element("form", { hidden: true });
    const text = Strings.input;
    return element("form", { class: "inputs", "aria-label": text.legend, onsubmit: (event) => event.preventDefault() },
      field("word"), field("answer", text.answers[answer().origin]),
      element("label", {}, text.weights, selection({ "data-focus": "weights" }, Object.keys(MODEL.weights), weights(), (weights) => set({ weights }), Strings.compare.weightsOf)),
      Models.note());
  }

  /* Act after the Tab key or the click that ended the typing: the page is drawn anew. */
  let pressed = false;
  window.addEventListener("pointerdown", () => { pressed = true; }, true);
  for (const end of ["pointerup", "pointercancel"]) window.addEventListener(end, () => { pressed = false; }, true);
  function later(act) {
    if (pressed) window.addEventListener("pointerup", () => setTimeout(act), { once: true });
    else setTimeout(act);
  }

  function status() {
    const { machine } = app;
    const spell = (list) => list.map(tokenText).join(" ");
    const own = written();
    const { ids: wanted, origin } = answer();
    const rows = Training.rowsOf(machine);
    const predicted = spell(rows.map((row) => row.written));
    const right = own && String(own) === String(wanted);
    const edited = [...machine.edits.values()].reduce((sum, { size }) => sum + size, 0);
    const text = Strings.status;
    const quietly = (label, act) => button(label, act, { class: "quiet", "data-focus": label });
    const untouched = quiet() && !refused && !changed(["word", "model"]);
    return element("p", { class: untouched ? "status unseen" : "status", role: "status" },
      refused && element("span", { class: "problem" }, text.refused(refused.text, refused.why, words(ids().source.filter((id) => id > Engine.EOS))), " · "),
      element("strong", {}, text.loss(Show.number(machine.loss))),
      own && [" · ", text.writes(spell(own) || text.nothing), " ", origin === "model" ? text.unchecked : Dom.mark(right)],
      !right && [" · ", text.predicts(predicted)],
      state.steps > 0 && [" · ", text.steps(state.steps)],
      edited > 0 && [" · ", text.edits(edited)],
      state.mistake && element("span", { class: "planted" }, " · ", state.mistake === "own" ? Strings.line.planted(state.line) : text.mistake(Strings.mistakes[state.mistake].name), " ",
        quietly(text.remove, () => set({ mistake: "" }))),
      changed() && !untouched && [" ", quietly(text.reset, () => set({ ...DEFAULTS, ...Object.fromEntries([...DISPLAY].map((name) => [name, state[name]])) }))]);
  }

  /* "stop → pots": what is read and what is to be written. */
  function title() {
    const own = (list) => words(list.filter((id) => id > Engine.EOS));
    const { source, target } = ids();
    return `${own(source)} → ${own(target)}`;
  }

  const changed = (except = []) => Object.entries(DEFAULTS).some(([name, usual]) => !DISPLAY.has(name) && !except.includes(name) && state[name] !== usual);

  function footer() {
    const site = document.querySelector("meta[name=site]")?.content; // where it is from here, if this page is a part of it
    return element("footer", {}, element("p", {}, Strings.proved), element("p", {}, Strings.made),
      site && element("p", {}, Object.entries(Strings.site).map(([page, text]) => element("a", { href: site + page }, text))));
  }

  function render() {
    if (!Models.isReady(state.model)) return;
    compute();
    const frame = document.getElementById("app");
    const active = document.activeElement;
    const inside = frame.contains(active);
    document.title = Strings.title(title());
    document.documentElement.classList.toggle("embedded", Boolean(state.embed));
    const fresh = differs("numbers", [made, made.steps]);
    replace(frame, [
      differs("header", [title(), link()]) && header(),
      differs("inputs", [MODEL, quiet(), title(), state.word, state.answer, answer().origin, weights()]) && inputs(),
      status(),
      differs("content", contentKey()) && element("main", { id: "content", tabindex: -1, class: `view-${state.view}` }),
      differs("footer", [MODEL]) && footer(),
    ]);
    fill(document.getElementById("content"), fresh);
    if (!inside || active.isConnected) return;
    const focused = active.getAttribute("data-focus");
    const same = focused && document.querySelector(`[data-focus="${CSS.escape(focused)}"]`);
    (same || document.getElementById("content")).focus({ preventScroll: true });
  }

  /* Whether a part of the page is made of other things now than when it was last asked about. */
  function differs(part, key) {
    const before = shown[part];
    shown[part] = key;
    return before?.length !== key.length || key.some((each, n) => each !== before[n]);
  }

  /* What the elements of a view depend on; a view without a key() is always drawn anew. */
  function contentKey() {
    const { key = () => [{}] } = VIEWS[state.view];
    const { definitions, lengths } = made.machine;
    made.structure ??= [lengths.source, lengths.target, ...definitions.map(({ text }) => text)].join();
    return [state.view, MODEL, state.mistake, made.structure, window.innerWidth, scheme.matches, ...key()];
  }

  /* An empty content is rendered; otherwise its elements stay and are brought up to date. */
  function fill(content, fresh) {
    const view = VIEWS[state.view];
    if (content.childElementCount === 0) return view.render(content);
    for (const a of content.querySelectorAll("a[data-cell]")) a.setAttribute("href", link({ view: "cell", cell: a.dataset.cell }));
    return view.update(content, fresh);
  }

  /* The status line stays and gets new text, because a screen reader speaks changes of a line, but not a new line. */
  function replace(frame, parts) {
    const old = [...frame.children];
    if (old.length === 0) return frame.append(...parts);
    parts.forEach((part, n) => {
      if (!part) return;
      if (part.getAttribute("role") !== "status") return old[n].replaceWith(part);
      old[n].className = part.className;
      if (part.textContent !== old[n].textContent) old[n].replaceChildren(...part.childNodes);
    });
  }

  function start() {
    document.documentElement.lang = Strings.language; // once: it makes the browser style everything anew
    open();
    performance.mark("ready");
    window.addEventListener("popstate", open); // also after a link to another state
    let width = window.innerWidth;
    window.addEventListener("resize", () => {
      if (Math.abs(window.innerWidth - width) < 8) return;
      width = window.innerWidth;
      render();
    });
    scheme.addEventListener("change", render);
  }

  document.addEventListener("DOMContentLoaded", start);
  return app;
})();

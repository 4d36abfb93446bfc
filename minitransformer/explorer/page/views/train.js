/* Training on one word: what steps of Adam do to the loss, to the answer and to each weight. */
const TrainView = (() => {
  "use strict";

  const { element, note } = Dom;
  const text = Strings.train;
  const TWO_COLUMNS = 776; // pixels that the window needs for them

  function render(content) {
    const { run } = App;
    const changes = Training.changes(run);
    content.append(...[
      element("h1", {}, text.title), element("p", { class: "intro" }, text.intro), controls(run),
      element("div", { class: "seen" }, seen(run, changes).map((sentences) => element("p", {}, sentences.join(" ")))),
      element("div", { class: "columns" }, curve(run), answer(run)),
      run.steps > 0 ? WeightsView.section(run, changes) : note(text.none),
    ].filter(Boolean));
  }

  function controls(run) {
    const { state, set } = App;
    const take = (count) => Dom.button(text.stepButton(count), () => set({ steps: Math.min(App.mostSteps, state.steps + count) }), {
      class: count === 1 && "primary big", "data-focus": `steps-${count}`,
    });
    return element("div", { class: "steps" }, [1, 10, 50, 100].map(take), Dom.button(text.back, () => set({ steps: 0 }), { "data-focus": "steps-0" }),
      element("label", {}, text.rate, " ", Dom.select({ "data-focus": "lr" }, App.rates, state.lr, (lr) => set({ lr }))),
      run.steps >= App.mostSteps && note(text.most(App.mostSteps)));
  }

  /* What the numbers say: paragraphs of sentences. */
  function seen(run, changes) {
    const { losses, steps } = run;
    const [first, now] = [losses[0], losses.at(-1)];
    if (steps === 0) return [[text.guess(Show.number(first), run.adam.lr)]];
    const went = text.went(Show.number(first), Show.number(now), steps);
    if (steps > 1) return [[went, rightness(run)]];
    return [[went, now > first ? text.rose : "", text.promised(Show.number(promised(run, changes))), rightness(run)]];
  }

  /* The loss after Adam's first step, were it a straight line; the first mean is (1 - beta_1) times the gradient. */
  function promised({ adam, losses }, changes) {
    return changes.reduce((loss, { name, values }) => {
      const [m1] = adam.means.get(name);
      return values.reduce((sum, change, i) => sum + (change * m1[i]) / (1 - adam.beta_1), loss);
    }, losses[0]);
  }

  function rightness({ firstRight }) {
    if (App.answer().origin === "model") return "";
    return firstRight < 0 ? text.rightNever : text.rightSince(firstRight);
  }

  function curve(run) {
    const { losses, steps } = run;
    const label = text.curveLabel(Show.number(losses[0]), Show.number(losses.at(-1)), steps);
    return element("section", {}, element("h2", {}, text.curve),
      Dom.chart(losses, {
        label, width: Math.min(600, window.innerWidth < TWO_COLUMNS ? window.innerWidth - 44 : (window.innerWidth - 72) / 2), x: text.step, y: text.lossAxis,
      }));
  }

  /* The probabilities of the right tokens. */
  function answer(run) {
    const rows = run.rows.at(-1).map((now, n) => {
      const before = run.rows[0][n];
      const cell = { name: "output.p", flat: now.t * MODEL.sizes.V + now.right };
      const isRight = now.written === now.right;
      return element("tr", {}, element("th", { scope: "row" }, App.tokenText(now.right)),
        element("td", {}, Show.number(before.probability)),
        element("td", {}, Dom.cellLink(cell, Show.number(now.probability), { weights: App.weights })),
        element("td", { class: "written" }, `${App.tokenText(now.written)} `, mark(isRight)));
    });
    return element("section", {}, element("h2", {}, text.answer(App.answer().origin)),
      table([text.row, text.before, text.now, text.predicts], rows));
  }

  /* Whether tokens are those of the answer; nothing if nobody has checked that. */
  const mark = (isRight) => App.answer().origin !== "model" && element("span", { class: `verdict ${isRight ? "right" : "wrong"}` }, element("span", { "aria-hidden": "true" }, isRight ? "✓" : "✗"),
    element("span", { class: "unseen" }, isRight ? text.right : text.wrong));

  function table(headings, rows) {
    return element("table", { class: "facts" },
      element("thead", {}, element("tr", {}, headings.map((heading) => element("th", { scope: "col" }, heading)))),
      element("tbody", {}, rows));
  }

  return { render, table, mark };
})();

/* Every text that a person reads, except for letters of formulas and names of arrays. To translate the page, translate
   this file. Functions make texts with numbers or names in them. */
const Strings = {
  language: "en",
  title: (name) => `${name} · minitransformer explorer`,
  heading: "Every number of a Transformer, forward and backward",
  skip: "Skip to the content",
  views: {
    model: "Model",
    cell: "Numbers",
    train: "Train",
    compare: "Compare",
    break: "Break it",
  },
  navigation: "Views",
  input: {
    legend: "Input",
    word: "Source",
    answer: "Right answer",
    padding: "Padding",
    smoothing: "Label smoothing 0.1",
    weights: "Weights",
    trained: "trained",
    untrained: "untrained",
    show: "Show",
    both: "values and gradients",
    values: "values",
    gradients: "gradients",
    more: "More settings",
    unknown: (text, tokens) => `There is no token “${text}”. The tokens are: ${tokens}.`,
    empty: "At least one token is needed.",
    long: (most) => `At most ${most} tokens fit.`,
  },
  status: {
    loss: (loss) => `Loss ${loss}`,
    writes: (text) => `The model writes: ${text}`,
    steps: (steps) => `after ${steps} ${steps === 1 ? "step" : "steps"} of Adam`,
    edits: (count) => (count === 1 ? "1 number changed by hand" : `${count} numbers changed by hand`),
    mistake: (name) => `A mistake is planted: ${name}.`,
    remove: "Remove it",
    reset: "Undo all changes",
  },
  agreement: (count, worst) =>
    `These ${count} arrays were computed in this page. They differ from the library's by at most ${worst}.`,
  disagreement: (count, worst) => `These ${count} arrays differ from the library's by up to ${worst}. Please report this.`,
  made: "minitransformer: the Transformer by hand, in NumPy, without autograd.",
  legend: { value: "value", gradient: "gradient", negative: "negative numbers are striped" },

  model: {
    title: "The whole model",
    intro: "Numbers flow down, in blue. Gradients flow back up, in orange. Choose a box to see all of its numbers.",
    encoder: "Encoder",
    decoder: "Decoder",
    reads: (text) => `reads ${text}`,
    writes: (text) => `is to write ${text}`,
    residual: "residual path",
    memory: "memory",
    toMemory: "to cross-attention",
    loss: "Loss",
  },
  places: {
    embedding: { name: "Embedding + position", text: "A row of E for each token, times √C, plus sinusoids." },
    self: { name: "Self-attention", text: "Each token looks at the tokens of its own sequence." },
    masked: { name: "Masked self-attention", text: "Each token looks at itself and at the tokens before it." },
    attention: { name: "Cross-attention", text: "Each target token looks at the source." },
    norm: { name: "Add & norm", text: "Input plus output of the sub-layer, normalized: mean 0, variance 1." },
    ffn: { name: "Feed-forward", text: "Each token by itself: 6 features to 8, ReLU, and back." },
    output: { name: "Softmax and loss", text: "Logits with the shared matrix E, probabilities, cross-entropy." },
    matrix: { name: "Shared matrix and memory", text: "E is used three times. M is what the encoder hands over." },
  },
  feedForward: (C, F) => `Each token by itself: ${C} features to ${F}, ReLU, and back to ${C}.`,
  layer: (l) => `layer ${l}`,

  heatmap: {
    role: "heat map",
    head: (h) => `head ${h}`,
    label: (name, shape, kind) => `${name}, ${shape}, ${kind}. Arrow keys choose a number.`,
    picture: (name, shape) => `${name}, ${shape}`,
    shape: (shape) => (shape.length ? `shape ${shape.join(" × ")}` : "one number"),
  },
  axis: { head: "head", row: "row", column: "column", feature: "feature", position: "position" },

  cell: {
    title: "Numbers of a place",
    places: "Places",
    values: "Values, in the order of the forward pass",
    weights: "Weights",
    inputs: "Inputs",
    back: "Only in the backward pass",
    none: "no gradient of its own",
    choose: "Choose a number in a heat map.",
    close: "Close",
    forward: "Forward",
    backward: "Backward",
    weight: "A weight: it was learned, and nothing computes it.",
    input: "An input.",
    edited: (amount) => `You have added ${amount}.`,
    comesFrom: "Comes from",
    goesTo: "Goes to",
    nothing: "nothing",
    more: (count) => `… and ${count} more`,
    witnesses: "Two witnesses",
    nudge: "Nudge it by h",
    quotient: "(L(x + h) − L(x − h)) / 2h",
    complex: "Complex step, Im L(x + ih) / h",
    gradient: "Backward pass",
    off: (error) => `off by ${error}`,
    agrees: "agrees",
    set: "Set it to",
    apply: "Apply",
    undo: "Undo",
    lockedWeights: "Weights can be changed by hand before the first step of training.",
    path: "Follow the largest terms to the loss",
    pathIntro: "Each number is the largest term of the one before it:",
    zero: "This gradient is exactly 0, because each of its terms has a factor that is exactly 0:",
    cancel: "This gradient is exactly 0, because its terms cancel:",
    noGradient: "The backward pass needs no gradient of it: it is a step on the way, or no weight depends on it.",
    share: "Copy a link to this cell",
    copied: "Copied",
    invalid: "This is not a number.",
  },

  "break": {
    title: "Break it: who notices?",
    intro: "A model with a mistake usually runs, and even learns. Plant one of these, guess which of the six tests notice "
      + "it, and then see where the wrong numbers begin.",
    list: "Mistakes",
    none: "No mistake: the right model",
    noneText: "Nothing is planted. A test that rings here would itself be wrong.",
    forward: "In the forward pass",
    backward: "In the backward pass",
    start: "Choose a mistake from the list.",

    changed: "What is changed",
    right: "right",
    wrong: "planted",
    inPlaces: (names) => `in ${names.join(", ")}`,
    moreLines: (count) => (count === 1 ? "1 more line" : `${count} more lines`),
    maskRight: "The mask allows key i for query t if key i is not padding, and i ≤ t.",
    maskWrong: "The mask allows key i for query t if key i is not padding.",
    planted: "planted mistake; the right line is: ",
    plantedMask: "planted mistake; the right mask also forbids every key after the query",

    who: "Who notices?",
    guess: "Who will notice? Tick the tests that you expect to ring, then look.",
    look: "Look",
    skip: "Skip guessing",
    guessAgain: "Guess first",
    rings: "rings",
    silent: "silent",
    running: "running …",
    waiting: "not yet",
    unguessed: "not run yet",
    guessRight: (rings) => (rings ? "You guessed so." : "You guessed so: silent."),
    guessWrong: (rings) => (rings ? "You did not expect that." : "You expected it to ring."),
    score: (right, all) => `${right} of your ${all} guesses are right.`,
    note: "The tests start from the weights above, without your steps and changes by hand.",
    found: {
      falls: ({ steps, last, right }) => `Loss after ${steps} steps: ${last}; with the right model: ${right}`,
      complex: ({ number }) => `Largest relative error: ${number}`,
      rows: ({ number }) => `Largest error of a sum: ${number}`,
      leak: ({ number }) => `Largest change of a logit: ${number}`,
      padding: ({ number }) => `Largest change: ${number}`,
      formula: ({ number }) => `Largest difference: ${number}`,
    },
    in: ", in ",
    firstIn: "The first is in ",
    gradients: (wrong, all) => (wrong === 0 ? `All ${all} gradients are right.` : `${wrong} of ${all} gradients are wrong.`),

    moral: "What this shows",
    verdict: ({ names, all, differing }) => {
      if (names.length === 0 && differing === 0) return "Nobody notices, and nobody can: with this input and these weights, the mistake changes no number.";
      if (names.length === 0) return `Nobody notices, although ${differing} arrays are wrong.`;
      if (names.length === 1) return `Only one of the ${all} notices: ${names[0]}.`;
      return `${names.length} of ${all} notice: ${names.join(", ")}.`;
    },
    lossTells: (last, right) => `The loss tells: it ends at ${last}, and with the right model at ${right}.`,
    lossSilent: (last, right) => `The loss falls all the same, to ${last}; with the right model, to ${right}.`,
    lossStays: (last, right) => `The loss tells nothing: it ends at ${last}, and with the right model at ${right}.`,
    tryWord: (word) => `Try it with “${word}”`,
    tryTrained: "Try it with trained weights",
    tryUntrained: "Watch it learn from untrained weights",

    loss: "The loss while both models learn",
    lossLabel: (steps) => `The loss during ${steps} steps of Adam, with the right model and with the mistake`,
    step: "step",
    rightModel: "right model",
    wrongModel: "with the mistake",

    trail: "Where does the trail of wrong numbers begin?",
    trailStart: "It begins in ",
    trailBefore: (count) => (count === 0 ? ", the first array of all. " : `. The ${count} arrays before it are equal. `),
    trailAfter: (wrong, count) => (count === 0 ? "It is the last array, so no other is wrong." : `Of the ${count} after it, ${wrong} are wrong.`),
    trailNone: "No array differs from the right one.",
    trailHelp: "All arrays in the order of the computation, forward and then backward. A wrong one has the sign ≠, and a bar for the "
      + "size of its error. Arrow keys go from one to the next. Choose one to compare it with the right one.",
    forwardPass: "Forward",
    backwardPass: "Backward",
    allEqual: (count) => (count === 1 ? "1 array, equal" : `${count} arrays, all equal`),
    equal: "equal",
    differsBy: (most) => `wrong by up to ${most}`,
    lineChanged: "its line is changed",
    difference: "difference",
    compare: (name) => `${name}: right, planted, and the difference`,
    comparePlace: "All numbers of this place",
    hint: "Choose a cell to see how it is computed, and what the complex step says. With arrow keys, Enter opens it.",
    cellValues: (cell, right, wrong, difference) => `${cell}: right ${right}, planted ${wrong}, difference ${difference}`,
    mapLabel: (name, which) => `${name}, ${which}. Arrow keys choose a number, Enter opens it.`,
    closeArray: "Close the comparison",

    table: "All mistakes, all tests",
    tableIntro: (count) => `${count} mistakes, one row each, and the right model. A bell: the test rings. A dash: it is silent.`,
    runAll: (count) => `Run all ${count}`,
    stop: "Stop",
    progress: "Results so far",
    done: (done, all) => `${done} of ${all} results`,
    mistake: "Mistake",
    counts: "found",
    countOf: (found, all) => `${found} of ${all}`,
    cellLabel: (mistake, detector, verdict) => `${mistake}, ${detector}: ${verdict}`,
    summaryOnly: (names) => `Only the comparison with the paper finds: ${names.join("; ")}.`,
    summaryNobody: (names) => `Nobody finds, with this input and these weights: ${names.join("; ")}.`,
    summaryLoss: (found, all) => `The loss alone finds ${found} of ${all}.`,
summaryBest: (name, found, all) => `The test that finds most, ${name}, finds ${found} of ${all}.`,
  },

  mistakes: {
    "no-scale": {
      name: "No 1/√D, forward and backward",
      text: "The scores are not divided by √D. The backward pass fits this forward pass, so every gradient is right.",
      moral: "The gradients fit the wrong formula, so no test of the model against itself can find it. Something "
        + "from outside can: a formula of the paper, or another implementation.",
    },
    "no-scale-backward": {
      name: "No 1/√D in the backward pass",
      text: "The forward pass divides the scores by √D, but dq and dk forget the factor.",
      moral: "dq and dk are too large by the factor √D. Adam divides each gradient by its usual size, so a "
        + "constant factor changes little.",
    },
    "mask-after-softmax": {
      name: "The mask after the softmax",
      text: "Forbidden keys still count in the sum under the fraction, and are set to 0 only afterwards.",
      moral: "The forbidden keys still count in the sum, so later tokens and padding change every weight p. And "
        + "the backward pass belongs to another softmax.",
    },
    "causal-mask-off": {
      name: "No causal mask",
      text: "In the decoder, each token sees the tokens after it, which it is to predict.",
      moral: "The backward pass fits, and padding is still masked. It takes a test that asks what a position may "
        + "know.",
    },
    "heads-reshaped": {
      name: "Heads split by a reshape alone",
      text: "A reshape without a transpose gives the right shape, but a head gets features of other tokens. "
        + "The heads are merged by the reverse of it.",
      moral: "Splitting and merging undo each other, so every gradient is right. Which numbers meet depends on the "
        + "length, so padding gives it away.",
    },
    "variance-over-c-1": {
      name: "Variance divided by C − 1",
      text: "LayerNorm divides the sum of squares by C − 1 instead of C, forward and backward.",
      moral: "Every x̂ is too small by almost the same factor, √((C − 1)/C), and the backward pass fits. No test "
        + "of the model against itself can find it.",
    },
    "gamma-outside-sums": {
      name: "LayerNorm's γ outside the sums",
      text: "The backward pass takes the two means of dy instead of γ dy, and multiplies by γ at the end. "
        + "That is right only if all γ are equal.",
      moral: "The line is right while all γ are equal, as they are before training. So test gradients with trained "
        + "weights, too.",
    },
    "softmax-entry-by-entry": {
      name: "Softmax's gradient entry by entry",
      text: "ds = p (1 − p) dp is only the diagonal of the Jacobian: each score also moves the weights of the other keys.",
      moral: "Each row of ds must sum to 0. This check needs no derivative, only a fact that the formula must "
        + "fulfill.",
    },
    "keys-reshaped": {
      name: "The keys' gradient reshaped",
      text: "dk is computed transposed, and then reshaped instead of transposed back.",
      moral: "The shape is right, so no line complains. Which numbers a reshape moves depends on the length, so "
        + "padding changes the gradients.",
    },
    "relu-gated-by-gradient": {
      name: "ReLU gated by the gradient",
      text: "The backward pass of ReLU asks whether the gradient is positive, instead of the input.",
      moral: "Only positive gradients pass, so a step can push a hidden number down, and never up.",
    },
    "residual-forgotten": {
      name: "A residual's gradient forgotten",
      text: "Around cross-attention, the gradient of the residual path is never added.",
      moral: "A gradient still arrives through the queries of cross-attention, so the layers before it learn, but "
        + "not from the true gradient.",
    },
    "memory-through-values": {
      name: "Memory's gradient through the values only",
      text: "The memory M makes keys and values. The gradient through the keys is forgotten.",
      moral: "The encoder still gets the gradient through the values, so it learns, but not from the true "
        + "gradient.",
    },
    "token-twice": {
      name: "One gradient for a repeated token",
      text: "If a token comes twice in a sequence, only the gradient of its last place is added to dE.",
      moral: "A test sees only the paths that its input uses. If no token comes twice in a sequence, this line is "
        + "right.",
    },
    "mean-and-sum": {
      name: "The loss a mean, its gradient a sum",
      text: "The loss is the mean over the tokens, but dz is not divided by their number.",
      moral: "All gradients are too large by the same factor, the number of tokens. Adam divides each gradient by "
        + "its usual size, so its steps are the same.",
    },
  },
  detectors: {
    falls: {
      name: "Does the loss fall?",
      text: "100 steps of Adam from these weights. It rings if the loss ends more than 0.04 above the loss of the right model.",
    },
    complex: {
      name: "Complex step",
      text: "The derivative along one random direction for each array of weights, compared with the gradient. "
        + "It rings if the relative error is above 1e-9.",
    },
    rows: {
      name: "Sums that must be 0",
      text: "Rows of p sum to 1; rows of ds, of dz and of a norm's dx sum to 0, as does dk over the keys; "
        + "dx is orthogonal to x̂, except for ε. It rings above 1e-9.",
    },
    leak: {
      name: "Leak test",
      text: "Other target tokens from some position on must not change the logits before it. It rings above 1e-9.",
    },
    padding: {
      name: "Padding test",
      text: "Padding after the source or the target must not change the logits, the loss or a gradient. It rings above 1e-9.",
    },
    formula: {
      name: "Comparison with the paper",
      text: "All arrays of the forward pass, compared with those of the right formulas. It rings above 1e-9.",
    },
  },
};

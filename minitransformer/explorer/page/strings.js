/* Every text that a person reads, except for letters of formulas and names of arrays. To translate the page, translate
   this file. */
const Strings = {
  mistakes: {
    "no-scale": {
      name: "No 1/√D, forward and backward",
      text: "The scores are not divided by √D. The backward pass fits this forward pass, so every gradient is right.",
    },
    "no-scale-backward": {
      name: "No 1/√D in the backward pass",
      text: "The forward pass divides the scores by √D, but dq and dk forget the factor.",
    },
    "mask-after-softmax": {
      name: "The mask after the softmax",
      text: "Forbidden keys still count in the sum under the fraction, and are set to 0 only afterwards.",
    },
    "causal-mask-off": {
      name: "No causal mask",
      text: "In the decoder, each token sees the tokens after it, which it is to predict.",
    },
    "heads-reshaped": {
      name: "Heads split by a reshape alone",
      text: "A reshape without a transpose gives the right shape, but a head gets features of other tokens. "
        + "The heads are merged by the reverse of it.",
    },
    "variance-over-c-1": {
      name: "Variance divided by C − 1",
      text: "LayerNorm divides the sum of squares by C − 1 instead of C, forward and backward.",
    },
    "gamma-outside-sums": {
      name: "LayerNorm's γ outside the sums",
      text: "The backward pass takes the two means of dy instead of γ dy, and multiplies by γ at the end. "
        + "That is right only if all γ are equal.",
    },
    "softmax-entry-by-entry": {
      name: "Softmax's gradient entry by entry",
      text: "ds = p (1 − p) dp is only the diagonal of the Jacobian: each score also moves the weights of the other keys.",
    },
    "keys-reshaped": {
      name: "The keys' gradient reshaped",
      text: "dk is computed transposed, and then reshaped instead of transposed back.",
    },
    "relu-gated-by-gradient": {
      name: "ReLU gated by the gradient",
      text: "The backward pass of ReLU asks whether the gradient is positive, instead of the input.",
    },
    "residual-forgotten": {
      name: "A residual's gradient forgotten",
      text: "Around cross-attention, the gradient of the residual path is never added.",
    },
    "memory-through-values": {
      name: "Memory's gradient through the values only",
      text: "The memory M makes keys and values. The gradient through the keys is forgotten.",
    },
    "token-twice": {
      name: "One gradient for a repeated token",
      text: "If a token comes twice in a sequence, only the gradient of its last place is added to dE.",
    },
    "mean-and-sum": {
      name: "The loss a mean, its gradient a sum",
      text: "The loss is the mean over the tokens, but dz is not divided by their number.",
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

/* Which section of which lesson derives an array. Only the explorer's copy on the site has this script, because there the
   lessons are beside it. */
globalThis.Lessons = (() => {
  "use strict";

  const LINEAR = "02_linear_relu.html#follow-each-number-to-the-loss";
  const RESIDUAL = "11_residuals.html#one-sum-two-paths-back";
  const SOFTMAX = "03_softmax_cross_entropy.html#from-seven-logits-to-one-number";
  const ATTENTION = {
    "05_scaled_dot_product.html#a-dictionary-that-always-answers": "x M q k v W_q W_k W_v b_q b_k b_v",
    "05_scaled_dot_product.html#one-row-asks-four-letters": "s p o",
    [SOFTMAX]: "m n",
    "07_masks.html#before-the-softmax-or-after-it": "allowed",
    "08_multi_head.html#w-o-adds-what-the-heads-found": "W_o b_o y",
    "06_attention_backward.html#the-price-of-a-look": "dp dv",
    "06_attention_backward.html#better-than-the-average-i-attend-to": "dp_mean ds",
    "06_attention_backward.html#query-and-key-turn-towards-each-other": "dq dk",
    "08_multi_head.html#backward-every-number-goes-home": "dy do dx dM",
    [LINEAR]: "dW_q dW_k dW_v dW_o db_q db_k db_v db_o",
  };
  const SECTIONS = {
    attention: ATTENTION,
    self: ATTENTION,
    embedding: {
      "04_embeddings.html#looking-up-is-multiplying": "ids e",
      "04_embeddings.html#why-times-c": "x de",
      [RESIDUAL]: "dx",
    },
    norm: {
      [RESIDUAL]: "x dy",
      "10_layer_norm.html#one-size-for-every-token": "mu sigma x_hat y gamma beta",
      "10_layer_norm.html#three-paths": "dx_hat dx_hat_mean dx_hat_x_hat_mean dx dgamma dbeta",
    },
    ffn: {
      "02_linear_relu.html#four-units-of-eight-are-on": "x a r y W_1 b_1 W_2 b_2",
      [LINEAR]: "dy dr da dx dW_1 db_1 dW_2 db_2",
    },
    output: {
      "04_embeddings.html#the-way-out": "y z dy",
      [SOFTMAX]: "m n p share loss L",
      "07_masks.html#the-answer-is-in-the-next-row": "ids",
      "03_softmax_cross_entropy.html#a-loss-that-cannot-reach-0": "p_star",
      "03_softmax_cross_entropy.html#what-the-loss-says": "dz",
    },
    matrix: {
      "04_embeddings.html#looking-up-is-multiplying": "E",
      "09_positions.html#a-clock-for-positions": "PE",
      "04_embeddings.html#three-gradients-for-one-row": "dE",
      "12_transformer.html#where-values-are-used-more-than-once": "M dM",
    },
  };

  /* Where an array is derived, as "06_attention_backward.html#the-price-of-a-look", or undefined. */
  function sectionOf({ place, symbol }) {
    const sections = Object.entries(SECTIONS[place.kind] ?? {});
    return sections.find(([, symbols]) => symbols.split(" ").includes(symbol))?.[0];
  }

  function link(array) {
    const section = sectionOf(array);
    return section && Dom.element("a", { class: "lesson", href: `../lessons/${section}` }, Strings.lesson(section.slice(0, 2)));
  }

  return { link };
})();

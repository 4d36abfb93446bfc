"""The engine of the explorer: how a test lets it compute a case."""

import numpy as np

from minitransformer.explorer.export import sizes_of
from minitransformer.vocabulary import EOS

BUILD = """
function build({sizes, options, weights, ids, smoothing, eps, allowed, edits}) {
  const listed = Mistakes.list.find(({id}) => id === options.mistake)?.options ?? options;
  const planted = options.line ? OwnLine.read(options.line).mistake.options : listed;
  const lengths = {S: ids.source.length, T: ids.target.length + 1};
  const machine = Engine.build(sizes, {...lengths, eps, smoothing, ...planted});
  for (const [name, flat, amount] of edits) machine.edit(name, flat, amount);
  machine.fill(weights ?? MODEL.weights.trained, ids);
  for (const [place, mask] of Object.entries(allowed)) machine.data(`${place}.allowed`).set(mask);
  machine.run();
  return machine;
}
"""


def to_page(case):
    """A case as `build` takes it; weights are null where the page has them itself."""
    example, config = case.example, case.example.model.config
    target = [int(i) for i in example.target_out[0] if i != EOS]
    return {
        "sizes": sizes_of(example.model),
        "eps": config.norm_eps,
        "weights": case.weights and {name: np.asarray(case.weights[name]).tolist() for name in case.weights},
        "ids": {"source": example.source[0].tolist(), "target": target},
        "smoothing": case.smoothing,
        "allowed": {place: mask.astype(int).ravel().tolist() for place, mask in case.allowed.items()},
        "options": case.options,
        "edits": case.edits,
    }

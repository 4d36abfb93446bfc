"""Bugs of LSTM and GRU, among them those published in other libraries."""

from minitransformer import functional as F
from minitransformer import layers as L
from minitransformer.exercises.planting import Exhibit
from minitransformer.functional.recurrent.gru import _slopes as gru_slopes
from minitransformer.functional.recurrent.gru import _steps as gru_steps
from minitransformer.functional.recurrent.lstm import _steps as lstm_steps
from minitransformer.functional.recurrent.lstm import _steps_back as lstm_steps_back
from minitransformer.functional.recurrent.steps import activate, from_steps

PUBLISHED = (
    Exhibit(
        "the last step's dc is missing: the LSTM's memory gets its first gradient one step too late",
        "The last c has no next step, but its own h has a gradient. Found in DL4J (#8838).",
        lstm_steps_back,
        "dc += new",
        "dc += new if t < len(da) - 1 else 0.0 * new",
    ),
    Exhibit(
        "the gradient of the LSTM's final c is dropped",
        "A decoder starts from (h, c): both carry its gradient back to the encoder.",
        F.lstm_backward,
        'check_shape("dc", dc, (B, R))',
        "dc = xp.zeros((B, R), dy.dtype)",
    ),
    Exhibit(
        "the biases of the input and the output gate are those of the forget gate",
        "Copied lines with one letter unchanged; invisible as long as all biases are 0. Found in learn_dl (#53).",
        lstm_steps,
        "a += b",
        "a += xp.concatenate([b[:, 2 * R : 3 * R]] * 3 + [b[:, 3 * R :]], axis=1)",
    ),
    Exhibit(
        "the derivative of tanh is taken of its input, when what is stored is its output",
        "1 - tanh(y)^2 where y is tanh(c) already. Found in rnn_lstm_from_scratch (#1).",
        lstm_steps_back,
        "xp.multiply(tanh_c[t], tanh_c[t], out=new)",
        "xp.tanh(tanh_c[t], out=new)\n        new *= new",
    ),
    Exhibit(
        "the gradient of the recurrent matrix takes h after the step for h before it",
        "h has T + 1 entries, and U multiplies the first T of them. Found in zero_to_gpt (#9).",
        F.lstm_backward,
        "h[:-1].reshape(-1, R).T @ da_rows",
        "h[1:].reshape(-1, R).T @ da_rows",
    ),
    Exhibit(
        "the encoder gets the gradient of the decoder's last step alone",
        "Every step has looked at the memory, so its gradient is a sum over all of them.",
        F.additive_attention_backward,
        "dv = weights.swapaxes(-1, -2) @ dy",
        "dv = weights[:, -1:].swapaxes(-1, -2) @ dy[:, -1:]",
    ),
    Exhibit(
        "the encoder gets the mean of the gradients of the decoder's steps",
        "A sum over the steps, not a mean: a longer answer says more about the source.",
        L.MemoryAttention.backward,
        "dh = dh + ",
        "dmemory /= dy.shape[1]\n    dh = dh + ",
    ),
    Exhibit(
        "additive attention passes on the keys' gradient of the last query alone",
        "One key is compared with T queries.",
        F.additive_attention_backward,
        "de.sum(axis=1)",
        "de[:, -1]",
    ),
    Exhibit(
        "the LSTM's memory is carried into the padding",
        "The final state must be that after the last token, or the decoder starts from a state that has read padding.",
        F.lstm,
        "xp.copyto(gates[..., 2 * R : 3 * R], xp.inf, where=padding)  # f = 1",
        "pass",
    ),
    Exhibit(
        "the LSTM's h is lost in the padding",
        "o = 0 makes y 0 in padding, but the state must stay what it was.",
        lstm_steps,
        "xp.multiply(h[t], padding[t], out=h[t + 1])",
        "h[t + 1] = 0.0",
    ),
    Exhibit(
        "the GRU's state is carried into the padding",
        "Half a mask: the output is 0 there, and the state goes on.",
        F.gru,
        "xp.copyto(gates[..., R : 2 * R], xp.inf, where=~mask)  # z = 1",
        "pass",
    ),
)

LSTM = (
    Exhibit(
        "the LSTM's memory forgets nothing, as before 2000",
        "Without the forget gate c is a sum, and its gradient never shrinks. Is f in the formula?",
        lstm_steps,
        "xp.multiply(f, c[t], out=c[t + 1])",
        "c[t + 1] = c[t]",
    ),
    Exhibit(
        "dc passes the forget gate unchanged",
        "Right only where f = 1: then the gradient reaches any distance.",
        lstm_steps_back,
        "dc *= f",
        "pass",
    ),
    Exhibit(
        "the forget gate's gradient takes c after the step",
        "f multiplies the memory that it may forget: the one before.",
        lstm_steps_back,
        "(dc, c[t])",
        "(dc, c[t + 1])",
    ),
    Exhibit(
        "input and forget gate are exchanged in forward",
        "PyTorch's order is i, f, g, o; Keras has i, f, c, o; here it is o, i, f, g.",
        lstm_steps,
        "o, i, f, g = a[:, :R], a[:, R : 2 * R], a[:, 2 * R : 3 * R], a[:, 3 * R :]",
        "o, f, i, g = a[:, :R], a[:, R : 2 * R], a[:, 2 * R : 3 * R], a[:, 3 * R :]",
    ),
    Exhibit(
        "the LSTM's output is that of the memory before the step",
        "h_t = o tanh(c_t), not c_{t-1}: else the newest token is seen one step late.",
        lstm_steps,
        "xp.tanh(c[t + 1], out=tanh_c[t])",
        "xp.tanh(c[t], out=tanh_c[t])",
    ),
    Exhibit(
        "the LSTM's dh of a step is overwritten by dy instead of added",
        "h_t has two readers: the output, and the next step.",
        lstm_steps_back,
        "dh += dy[t]",
        "dh[...] = dy[t]",
    ),
    Exhibit(
        "the derivative of the sigmoid is applied twice",
        "s (1 - s) belongs to each gate once.",
        lstm_steps_back,
        "d *= slope  # s (1 - s), and (1 + g) (1 - g)",
        "d *= slope\n        d[:, : 3 * R] *= a[:, : 3 * R] * slope[:, : 3 * R]",
    ),
    Exhibit(
        "the LSTM forgets the state that it was given",
        "A decoder without its encoder's state has read nothing.",
        F.lstm,
        "h[0], c[0] = h0, c0",
        "h[0], c[0] = 0.0 * h0, 0.0 * c0",
    ),
    Exhibit(
        "the gradient of h stops at padding",
        "With two directions one of them begins in the padding: its initial state has a gradient all the same.",
        lstm_steps_back,
        "xp.multiply(dh, padding[t], out=new)",
        "new[...] = 0.0",
    ),
    Exhibit(
        "the LSTM's biases count twice in the gates",
        "The sigmoid is made of tanh(a / 2): all of a must be halved, b too.",
        F.lstm,
        "b * scale",
        "b + 0.0 * scale",
    ),
    Exhibit(
        "gates lie between -1/2 and 1/2",
        "sigma(2a) = (1 + tanh(a)) / 2, and the one half was forgotten.",
        activate,
        "a += shift",
        "pass",
    ),
    Exhibit(
        "the gradient of the LSTM's input comes back in the order of the steps",
        "A direction that reads from the end must return dx from the beginning.",
        F.lstm_backward,
        "from_steps(dx, reverse)",
        "from_steps(dx, False)",
    ),
    Exhibit(
        "the outputs of the backward direction stay in the order in which they were made",
        "Then token 1 gets the output of the last token.",
        from_steps,
        "y[::-1] if reverse else y",
        "y",
    ),
    Exhibit(
        "upstream gradients of padding flow into the LSTM",
        "y is 0 in padding whatever happens, so its gradient must not count.",
        F.lstm_backward,
        "dy = dy * mask",
        "pass",
    ),
)

GRU = (
    Exhibit(
        "the GRU's update gate keeps what it should replace",
        "Cho et al. 2014 weight the old state by z, Chung et al. 2014 the new one. Weights of one fail in the other.",
        gru_steps,
        """xp.subtract(1.0, z, out=new)
        new *= n
        old = product[:, :R]  # the product is not needed any more
        xp.multiply(z, h[t], out=old)""",
        """old = product[:, :R]
        xp.subtract(1.0, z, out=old)
        old *= h[t]
        xp.multiply(z, n, out=new)""",
    ),
    Exhibit(
        "the GRU's second bias is outside the reset gate",
        "n = tanh(x W + b + r (h U) + d): then d and b are one, and PyTorch's two biases are not.",
        gru_steps,
        "xp.multiply(r, k, out=new)",
        "xp.multiply(r, k - d, out=new)\n        new += d",
    ),
    Exhibit(
        "the GRU's gradient passes the reset gate unchanged",
        "What comes out of h U_n is multiplied by r, and so is its gradient.",
        gru_slopes,
        "xp.multiply(da_n, r, out=da[:, :, 2])",
        "da[:, :, 2] = da_n",
    ),
    Exhibit(
        "the gradient of the GRU's second bias is that of the first",
        "They differ by r.",
        F.gru_backward,
        "column_sum(da_rows[:, 2 * R : 3 * R])",
        "column_sum(da_rows[:, 3 * R :])",
    ),
    Exhibit(
        "the GRU's input gets the gradient after the reset gate",
        "r acts on the recurrent product alone.",
        F.gru_backward,
        "da[:, :, 2] = da[:, :, 3]",
        "pass",
    ),
    Exhibit(
        "the GRU's direct way back is missing",
        "h_t = z h + ...: without this way the gradient vanishes as in a plain recurrent network.",
        F.gru_backward,
        "dh += passed",
        "pass",
    ),
    Exhibit(
        "the update gate's gradient takes h after the step",
        "z weighs the state before the step against n.",
        gru_slopes,
        "xp.subtract(h[:-1], n, out=da_z)",
        "xp.subtract(h[1:], n, out=da_z)",
    ),
    Exhibit(
        "the GRU's output in padding is the state that it carries",
        "PyTorch's packed sequences give 0 there, and a mean over the outputs would count the last token many times.",
        F.gru,
        "h[1:] * mask",
        "h[1:]",
    ),
    Exhibit(
        "upstream gradients of padding flow into the GRU",
        "As in the LSTM, where y does not depend on anything, dy must not count.",
        F.gru_backward,
        "dy = dy * mask",
        "pass",
    ),
)

EXHIBITS = (*PUBLISHED, *LSTM, *GRU)

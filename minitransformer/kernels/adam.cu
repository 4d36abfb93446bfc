// m <- b1 m + (1 - b1) g    v <- b2 v + (1 - b2) g^2    theta <- theta - step m / (sqrt(v) + eps)        all in place
//
// Seven arrays are passed through the memory once, where the formula in separate steps takes more than twenty.
// The gradient is g = scale grad. `scale` comes as an array of one number, so that the factor of clipping never has to
// be brought to the host, which would wait for it. `step` and `eps` carry the corrections for the early steps.
extern "C" __global__ void adam_update(real* data, const real* grad, real* m, real* v, const real* scale, long long n,
                                       real beta1, real one_minus_beta1, real beta2, real one_minus_beta2, real step,
                                       real eps) {
    long long i = entry_of_thread();
    if (i >= n) return;
    real g = grad[i] * scale[0];
    m[i] = beta1 * m[i] + one_minus_beta1 * g;
    v[i] = beta2 * v[i] + one_minus_beta2 * g * g;
    data[i] -= step * m[i] / (sqrt(v[i]) + eps);
}

// share_n = 1 / count for a token that counts and 0 for padding        one block for all
extern "C" __global__ void share_of_tokens(const long long* targets, real* share, long long N, long long pad) {
    real count = 0;
    for (long long n = threadIdx.x; n < N; n += blockDim.x) count += targets[n] != pad;
    count = team_sum(count);  // exact: whole numbers
    for (long long n = threadIdx.x; n < N; n += blockDim.x) share[n] = targets[n] != pad ? 1 / count : 0;
}

// p = softmax(z)    loss = -sum_v p*_v log p_v,  p*_v = (1 - smoothing) 1[v = target] + smoothing / V      by rows of V
//
// With z less its largest entry, log p_v = z_v - log(total), so loss = log(total) - (1 - smoothing) z_target -
// smoothing mean(z): no logarithm of a small p is taken. What total = likely + others has rounded off is added to its
// logarithm, for a total near 1, where the right word is nearly sure. The thread that meets the target's entry on its way writes the
// loss. Without smoothing the mean is left out, for it may be -inf, and 0 times that is NaN.
// p may be the logits' own array: a thread writes only entries that it alone has read.
extern "C" __global__ void cross_entropy(const real* logits, const long long* targets, real* p, real* losses,
                                         long long rows, long long V, real smoothing) {
    long long row = row_of_team();
    if (row >= rows) return;
    logits += row * V;
    p += row * V;

    real largest = minus_infinity();
    for (long long v = threadIdx.x; v < V; v += blockDim.x) largest = fmax(largest, logits[v]);
    largest = team_max(largest);

    real likely = 0, others = 0, mean = 0;
    for (long long v = threadIdx.x; v < V; v += blockDim.x) {
        real z = logits[v] - largest;
        (v == targets[row] ? likely : others) += exp(z);
        if (smoothing) mean += z;
    }
    likely = team_sum(likely);
    others = team_sum(others);
    mean = team_sum(mean) / V;
    real total = likely + others, lost = others - (total - likely);

    for (long long v = threadIdx.x; v < V; v += blockDim.x) {
        real z = logits[v] - largest;
        if (v == targets[row]) losses[row] = log(total) + lost / total - (1 - smoothing) * z - smoothing * mean;
        p[v] = exp(z) / total;
    }
}

// dz_v = (p_v - p*_v) weight,  weight = dloss / count, and 0 for padding        by rows; dz may be p's own array
extern "C" __global__ void cross_entropy_backward(const real* p, const long long* targets, const real* weights, real* dz,
                                                  long long rows, long long V, real smoothing) {
    long long row = row_of_team();
    if (row >= rows) return;
    p += row * V;
    dz += row * V;
    for (long long v = threadIdx.x; v < V; v += blockDim.x) {
        real wanted = smoothing / V + (v == targets[row] ? 1 - smoothing : 0);
        dz[v] = (p[v] - wanted) * weights[row];
    }
}

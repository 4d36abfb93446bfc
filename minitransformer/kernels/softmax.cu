// p_i = exp(s_i - max s) / sum_j exp(s_j - max s) over the entries of a row that are allowed, 0 for the others.
//
// The scores are rows of a (B, H, T, S) array. The mask has strides of its own, which are 0 along an axis for which it
// is broadcast: one mask for all heads is stored once and never spelt out. `allowed` is null where there is no mask.
// A row in which nothing is allowed has the maximum -inf and the sum 0; it must become 0, not NaN. A row in which all
// allowed scores have overflowed to -inf has the same maximum; it must become NaN, not 0.
// p may be the scores' own array: a thread writes only entries that it alone has read.
extern "C" __global__ void softmax(const real* scores, const bool* allowed, real* p, long long rows, long long S,
                                   long long H, long long T, long long stride_b, long long stride_h,
                                   long long stride_t, long long stride_s) {
    long long row = row_of_team();
    if (row >= rows) return;
    scores += row * S;
    p += row * S;
    const bool* mask = allowed + row / (T * H) * stride_b + row / T % H * stride_h + row % T * stride_t;
    auto may_attend = [=](long long i) { return !allowed || mask[i * stride_s]; };

    real largest = minus_infinity();
    for (long long i = threadIdx.x; i < S; i += blockDim.x)
        if (may_attend(i)) largest = fmax(largest, scores[i]);
    largest = team_max(largest);
    bool empty = false;
    if (allowed && largest == minus_infinity()) {  // the same for all threads of the team
        real some = 0;
        for (long long i = threadIdx.x; i < S; i += blockDim.x)
            if (may_attend(i)) some = 1;
        empty = team_max(some) == 0;
    }
    if (empty) largest = 0;

    real total = 0;
    for (long long i = threadIdx.x; i < S; i += blockDim.x)
        if (may_attend(i)) total += exp(scores[i] - largest);
    total = team_sum(total);
    if (empty) total = 1;

    for (long long i = threadIdx.x; i < S; i += blockDim.x)
        p[i] = (may_attend(i) ? exp(scores[i] - largest) : 0) / total;
}

// ds_j = p_j (dp_j - sum_i dp_i p_i)        one sum over the row, then one pass over it
extern "C" __global__ void softmax_backward(const real* dp, const real* p, real* ds, long long rows, long long S) {
    long long row = row_of_team();
    if (row >= rows) return;
    dp += row * S;
    p += row * S;
    ds += row * S;

    real average = 0;
    for (long long i = threadIdx.x; i < S; i += blockDim.x) average += dp[i] * p[i];
    average = team_sum(average);

    for (long long i = threadIdx.x; i < S; i += blockDim.x) ds[i] = (dp[i] - average) * p[i];
}

const real SMALLEST = 1e-37, SMALL_EPS = 1e-30, FAR = 10;  // as in functional/reductions.py and layer_norm.py

// 1 / sqrt(mean(c^2) + eps) over the entries c(i) of a row, given to each thread of the team
//
// An infinite mean of squares shows as a result of 0. Then the row is first multiplied by a power of 2 that makes its
// largest entry about 1.
template <class Entry>
__device__ real inverse_rms(Entry c, long long C, real eps) {
    real sum = 0;
    for (long long i = threadIdx.x; i < C; i += blockDim.x) sum += c(i) * c(i);
    real inverse = 1 / sqrt(team_sum(sum) / C + eps);
    if (eps >= SMALL_EPS && inverse != 0) return inverse;  // the same for all threads of the team

    real largest = 0;
    for (long long i = threadIdx.x; i < C; i += blockDim.x) largest = fmax(largest, fabs(c(i)));
    real scale = exp2(-floor(log2(fmax(team_max(largest), fmax(sqrt(eps), SMALLEST)))));
    sum = 0;
    for (long long i = threadIdx.x; i < C; i += blockDim.x) sum += (c(i) * scale) * (c(i) * scale);
    return scale / sqrt(team_sum(sum) / C + eps * scale * scale);
}

// x_hat = (x - mean(x)) r    r = 1 / sqrt(mean((x - mean(x))^2) + eps)    y = gamma x_hat + beta        by rows
//
// The variance is summed from the differences, in a second pass: mean(x^2) - mean(x)^2 would be one pass, and lose all
// digits where the mean is large. There the mean itself is not exact enough either, so what its rounding has left in the
// differences is subtracted as well.
extern "C" __global__ void layer_norm(const real* x, const real* gamma, const real* beta, real* y, real* x_hat,
                                      real* rstd, long long rows, long long C, real eps) {
    long long row = row_of_team();
    if (row >= rows) return;
    x += row * C;
    y += row * C;
    x_hat += row * C;

    real mean = 0, first = 0, rest = 0;
    auto centred = [&](long long i) { return x[i] - mean - first - rest; };
    for (long long i = threadIdx.x; i < C; i += blockDim.x) mean += x[i];
    mean = team_sum(mean) / C;
    real r = inverse_rms(centred, C, eps);
    if (fabs(mean * r) > FAR) {
        first = x[0] - mean;  // so that entries that are all equal become exactly 0
        real sum = 0;
        for (long long i = threadIdx.x; i < C; i += blockDim.x) sum += centred(i);
        rest = team_sum(sum) / C;
        r = inverse_rms(centred, C, eps);
    }

    if (threadIdx.x == 0) rstd[row] = r;
    for (long long i = threadIdx.x; i < C; i += blockDim.x) {
        x_hat[i] = centred(i) * r;
        y[i] = x_hat[i] * gamma[i] + beta[i];
    }
}

// dx = r (dx_hat - mean(dx_hat) - x_hat mean(dx_hat x_hat)),  dx_hat = gamma dy        both means in one pass by rows
extern "C" __global__ void layer_norm_backward_rows(const real* dy, const real* x_hat, const real* rstd,
                                                    const real* gamma, real* dx, long long rows, long long C) {
    long long row = row_of_team();
    if (row >= rows) return;
    dy += row * C;
    x_hat += row * C;
    dx += row * C;

    real through_mean = 0, through_std = 0;
    for (long long i = threadIdx.x; i < C; i += blockDim.x) {
        real dx_hat = dy[i] * gamma[i];
        through_mean += dx_hat;
        through_std += dx_hat * x_hat[i];
    }
    through_mean = team_sum(through_mean) / C;
    through_std = team_sum(through_std) / C;

    for (long long i = threadIdx.x; i < C; i += blockDim.x)
        dx[i] = (dy[i] * gamma[i] - through_mean - x_hat[i] * through_std) * rstd[row];
}

// dgamma_c = sum_n dy_nc x_hat_nc    dbeta_c = sum_n dy_nc        sums down the columns, in two stages
//
// A block of 32 x 8 threads takes 32 columns and one chunk of the rows, so that there is work for the whole GPU; the
// chunks' sums, (chunks, 2C) with dgamma's beside dbeta's, are then added by `column_sum`. Atomic additions would do it
// in one stage, but in an order that changes from run to run, and so do the last digits of the sums.
extern "C" __global__ void layer_norm_backward_columns(const real* dy, const real* x_hat, real* sums, long long N,
                                                       long long C, long long rows_of_chunk) {
    long long c = (long long)blockIdx.x * COLUMNS + threadIdx.x, chunk = blockIdx.y;
    long long first = chunk * rows_of_chunk, end = min(first + rows_of_chunk, N);

    real dgamma = 0, dbeta = 0;
    if (c < C)
        for (long long n = first + threadIdx.y; n < end; n += PARTS) {
            dgamma += dy[n * C + c] * x_hat[n * C + c];
            dbeta += dy[n * C + c];
        }
    dgamma = sum_parts_of_column(dgamma);
    dbeta = sum_parts_of_column(dbeta);
    if (threadIdx.y == 0 && c < C) {
        sums[chunk * 2 * C + c] = dgamma;
        sums[chunk * 2 * C + C + c] = dbeta;
    }
}

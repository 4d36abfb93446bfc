// What the kernels share. Every kernel is compiled twice, with `real` standing for float and for double.
//
// A row of numbers (a query's scores, a token's features, a token's logits) belongs to one team of threads:
//     a short row to one warp, the 32 threads that run in step, with 8 rows to a block:    blockDim = (32, 8)
//     a long row to a whole block:                                                         blockDim = (256, 1)
// In both, threadIdx.x is the place in the team and blockDim.x its size, and a thread takes the entries i of its row
// with i = threadIdx.x modulo blockDim.x. So threads side by side read numbers side by side, which the memory delivers
// in one go ("coalesced"). A kernel that reads its row three times pays for it once: the second time it is in the cache.

typedef REAL real;

const int WARP = 32;
const unsigned ALL_LANES = 0xffffffff;  // everybody in the warp takes part

// The row of this thread's team. In the last block of short rows there may be none left for it.
__device__ long long row_of_team() { return (long long)blockIdx.x * blockDim.y + threadIdx.y; }

// The place of this thread in one long vector, for kernels that treat every number alike.
__device__ long long entry_of_thread() { return (long long)blockIdx.x * blockDim.x + threadIdx.x; }

// NVRTC, the compiler behind CuPy, does not know INFINITY.
__device__ real minus_infinity() { return -1 / (real)0; }

struct Sum {
    __device__ real operator()(real a, real b) const { return a + b; }
};

struct Max {
    __device__ real operator()(real a, real b) const { return fmax(a, b); }
};

// Combine the x of all lanes of a warp, and give each the result: in five exchanges, with the lane 16, 8, 4, 2 and 1
// places away. The order is fixed, so the same numbers always give the same bits.
template <class Combine>
__device__ real combine_warp(real x, Combine combine) {
    for (int distance = WARP / 2; distance > 0; distance /= 2)
        x = combine(x, __shfl_xor_sync(ALL_LANES, x, distance));
    return x;
}

// Combine the x of all threads of a team, and give each the result. `neutral` changes nothing when combined.
template <class Combine>
__device__ real combine_team(real x, Combine combine, real neutral) {
    x = combine_warp(x, combine);
    if (blockDim.x == WARP) return x;

    __shared__ real of_warp[WARP];
    int warp = threadIdx.x / WARP, lane = threadIdx.x % WARP, warps = blockDim.x / WARP;
    if (lane == 0) of_warp[warp] = x;
    __syncthreads();  // now all warps have written
    x = combine_warp(lane < warps ? of_warp[lane] : neutral, combine);
    __syncthreads();  // now all warps have read, and the next call may write
    return x;
}

__device__ real team_sum(real x) { return combine_team(x, Sum(), (real)0); }

__device__ real team_max(real x) { return combine_team(x, Max(), minus_infinity()); }

// For blocks of 32 x 8 threads in which a thread has a part of column threadIdx.x: the sum of a column's eight parts,
// given to the thread with threadIdx.y = 0.
const int COLUMNS = 32, PARTS = 8;

__device__ real sum_parts_of_column(real x) {
    __shared__ real part[PARTS][COLUMNS];
    part[threadIdx.y][threadIdx.x] = x;
    __syncthreads();
    real sum = 0;
    if (threadIdx.y == 0)
        for (int y = 0; y < PARTS; y++) sum += part[y][threadIdx.x];
    __syncthreads();
    return sum;
}

// out_c = sum_n x_nc        x (N, C), out (C,)        a block of 32 x 8 threads for 32 columns
extern "C" __global__ void column_sum(const real* x, real* out, long long N, long long C) {
    long long c = (long long)blockIdx.x * COLUMNS + threadIdx.x;
    real sum = 0;
    if (c < C)
        for (long long n = threadIdx.y; n < N; n += PARTS) sum += x[n * C + c];
    sum = sum_parts_of_column(sum);
    if (threadIdx.y == 0 && c < C) out[c] = sum;
}

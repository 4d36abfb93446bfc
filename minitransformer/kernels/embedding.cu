// dE_vc += scale sum over all n with id_n = v of dy_nc
//
// Sorted, equal ids stand together in a run: run r has the id ids[r], and its places in dy are order[first[r]] to
// order[first[r + 1] - 1]. A block of 32 x 8 threads takes 32 columns of one run, whose rows its eight parts share.
// So no two blocks write to one place, no atomic additions are needed, and the order of the sum never changes.
extern "C" __global__ void embedding_backward(const real* dy, const long long* ids, const long long* first,
                                              const long long* order, real* dE, long long C, real scale) {
    long long run = blockIdx.x, c = (long long)blockIdx.y * COLUMNS + threadIdx.x;
    real sum = 0;
    if (c < C)
        for (long long n = first[run] + threadIdx.y; n < first[run + 1]; n += PARTS) sum += dy[order[n] * C + c];
    sum = sum_parts_of_column(sum);
    if (threadIdx.y == 0 && c < C) dE[ids[run] * C + c] += sum * scale;
}

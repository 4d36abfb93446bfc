// table_vc += sum over all n with id_n = v of rows_nc
//
// After sorting, equal ids form a run: run r has the id ids[r], and its places in rows are order[first[r]] to
// order[first[r + 1] - 1]. A block of 32 x 8 threads takes 32 columns of one run and shares its rows among eight parts.
// So no two blocks write to one place, no atomic additions are needed, and the order of the sum never changes.
extern "C" __global__ void scatter_add(const real* rows, const long long* ids, const long long* first,
                                       const long long* order, real* table, long long C) {
    long long run = blockIdx.x, c = (long long)blockIdx.y * COLUMNS + threadIdx.x;
    real sum = 0;
    if (c < C)
        for (long long n = first[run] + threadIdx.y; n < first[run + 1]; n += PARTS) sum += rows[order[n] * C + c];
    sum = sum_parts_of_column(sum);
    if (threadIdx.y == 0 && c < C) table[ids[run] * C + c] += sum;
}

// keep_i = 1[bits_i >= dropped]    y_i = x_i keep_i scale        where bits are from 0 to 65535, all equally likely
extern "C" __global__ void dropout(const real* x, const unsigned short* bits, real* y, bool* keep, long long n,
                                   long long dropped, real scale) {
    long long i = entry_of_thread();
    if (i >= n) return;
    keep[i] = bits[i] >= dropped;
    y[i] = x[i] * keep[i] * scale;
}

// dx_i = dy_i keep_i scale
extern "C" __global__ void dropout_backward(const real* dy, const bool* keep, real* dx, long long n, real scale) {
    long long i = entry_of_thread();
    if (i < n) dx[i] = dy[i] * keep[i] * scale;
}

// dx_i = dy_i 1[y_i > 0]
extern "C" __global__ void relu_backward(const real* dy, const real* y, real* dx, long long n) {
    long long i = entry_of_thread();
    if (i < n) dx[i] = dy[i] * (y[i] > 0);
}

// CUDA's words for a C++ compiler, so that the source of our kernels runs on a CPU, unchanged and without a GPU.
//
// The threads of a block are fibers: each runs until it must wait for others or ends, then the next one of its warp
// runs; and each warp runs as far ahead as it can, then the next one runs. So a block is a loop in one real thread, and a
// run can be repeated exactly. A second run with all threads, warps and blocks taken in reverse order gives the same
// bits, unless a kernel lacks a barrier or two blocks write to one place.
// This is stricter than a GPU: where threads wait for others that have ended or wait elsewhere, the run reports it.

#include <algorithm>
#include <cstring>
#include <functional>
#include <math.h>
#include <setjmp.h>
#include <type_traits>
#include <ucontext.h>
#include <utility>
#include <vector>

#define __global__
#define __device__
#define __shared__ static __attribute__((section("shared_memory")))  // one block runs at a time

// Where the linker has put the variables of that section, if there are any.
extern char __start_shared_memory[] __attribute__((weak, visibility("hidden")));
extern char __stop_shared_memory[] __attribute__((weak, visibility("hidden")));

struct dim3 {
    unsigned x, y, z;
};

static dim3 gridDim, blockDim, blockIdx, threadIdx;

using std::max;
using std::min;

namespace on_cpu {

const int LANES = 32, STACK = 1 << 15;
enum State { READY, AT_WARP_BARRIER, AT_BLOCK_BARRIER, ENDED };

struct Thread {
    ucontext_t beginning;  // of the fiber, which then goes on from `pause` after each wait
    jmp_buf pause;
    bool begun;
    std::vector<char> stack;
    dim3 index;
    int warp, lane;
    State state;
    unsigned exchanges;  // how many shuffles it has taken part in
};

struct Slot {
    char bytes[8];
};

static std::vector<Thread> threads;
static std::vector<Slot> slots;  // of each warp two sets of one slot a lane: a lane may be one shuffle ahead of another
static Thread* current;
static jmp_buf scheduler;
static std::function<void()> kernel_call;

// Fibers are begun with contexts, but change with jumps, which are ten times faster: they ask nothing of the system.
inline void wait_at(State state) {
    current->state = state;
    if (!_setjmp(current->pause)) _longjmp(scheduler, 1);
}

inline void run_thread() {
    kernel_call();
    wait_at(ENDED);
}

// Run the current thread until it waits or ends.
__attribute__((noinline)) void run_on() {
    if (_setjmp(scheduler)) return;
    if (current->begun) _longjmp(current->pause, 1);
    current->begun = true;
    setcontext(&current->beginning);
}

inline void start(Thread& thread, int i) {
    thread.stack.resize(STACK);
    thread.index = {i % blockDim.x, i / blockDim.x % blockDim.y, i / blockDim.x / blockDim.y};
    thread.warp = i / LANES, thread.lane = i % LANES, thread.state = READY, thread.exchanges = 0;
    thread.begun = false;
    getcontext(&thread.beginning);
    thread.beginning.uc_stack.ss_sp = thread.stack.data();
    thread.beginning.uc_stack.ss_size = STACK;
    makecontext(&thread.beginning, run_thread, 0);
}

// Let threads[begin:end] go on if all of them are in `state`.
inline bool release(int begin, int end, State state) {
    for (int i = begin; i < end; i++)
        if (threads[i].state != state) return false;
    for (int i = begin; i < end; i++) threads[i].state = READY;
    return true;
}

// Run one warp as far ahead of the others as it can come: until it waits for the block, or ends.
inline void run_warp(int first, bool backwards) {
    do
        for (int i = 0; i < LANES; i++) {
            current = &threads[first + (backwards ? LANES - 1 - i : i)];
            threadIdx = current->index;
            if (current->state == READY) run_on();
        }
    while (release(first, first + LANES, AT_WARP_BARRIER));
}

// Whether the block came to its end.
inline bool run_block(bool backwards) {
    int count = threads.size();
    memset(__start_shared_memory, 0xff, __stop_shared_memory - __start_shared_memory);  // NaN: no block sees another's
    for (int i = 0; i < count; i++) start(threads[i], i);
    do
        for (int i = 0; i < count; i += LANES) run_warp(backwards ? count - LANES - i : i, backwards);
    while (release(0, count, AT_BLOCK_BARRIER));
    return release(0, count, ENDED);
}

template <class... P, size_t... I>
void call(void (*kernel)(P...), void** arguments, std::index_sequence<I...>) {
    kernel(*static_cast<std::remove_cv_t<P>*>(arguments[I])...);
}

// Run a whole grid -> 0, 1 where a block cannot be cut into warps, or 2 where threads wait for ever.
template <class... P>
int launch(void (*kernel)(P...), const unsigned* grid, const unsigned* block, void** arguments, bool backwards) {
    gridDim = {grid[0], grid[1], grid[2]}, blockDim = {block[0], block[1], block[2]};
    size_t count = (size_t)block[0] * block[1] * block[2], blocks = (size_t)grid[0] * grid[1] * grid[2];
    if (count % LANES) return 1;
    threads.resize(count), slots.resize(2 * count);
    kernel_call = [=] { call(kernel, arguments, std::index_sequence_for<P...>()); };
    for (size_t i = 0; i < blocks; i++) {
        unsigned b = backwards ? blocks - 1 - i : i;
        blockIdx = {b % grid[0], b / grid[0] % grid[1], b / grid[0] / grid[1]};
        if (!run_block(backwards)) return 2;
    }
    return 0;
}

}  // namespace on_cpu

inline void __syncthreads() { on_cpu::wait_at(on_cpu::AT_BLOCK_BARRIER); }

// Lay down one's own value, wait for the warp, pick up that of the lane whose number differs in the bits of `distance`.
template <class T>
T __shfl_xor_sync(unsigned, T value, int distance) {
    static_assert(sizeof(T) <= sizeof(on_cpu::Slot), "a shuffle moves 4 or 8 bytes");
    on_cpu::Thread& self = *on_cpu::current;
    on_cpu::Slot* set = &on_cpu::slots[(2 * self.warp + self.exchanges++ % 2) * on_cpu::LANES];
    memcpy(&set[self.lane], &value, sizeof(T));
    on_cpu::wait_at(on_cpu::AT_WARP_BARRIER);
    memcpy(&value, &set[self.lane ^ distance], sizeof(T));
    return value;
}

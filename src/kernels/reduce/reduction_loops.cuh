/* The loops of reductions on GPUs: `along_rows` with a team of threads on a result, `across_rows` with a thread on each of
 * neighbouring results; in parts, which `join` of reduction.cu or reduce.cu combines. All orders are fixed. This file is compiled at
 * run time too (reduce_source.c), so it includes nothing.
 *
 * R is a row (reduction_rows.cuh), P the kernel's parameter, and ITEM what a thread loads at once:
 *
 *   N, SIDES, PLACE, native   elements; sides of p.base.kept; the side of p.base.summed that counts elements; their type
 *   locate_row, load, get     the row of a result; item i of it; element e of the item
 *   element                   one element of the row, behind its last item
 *   at                        number of the first element among those reduced over
 *   put                       a part's state to the workspace, or the result's to acc
 */
#ifndef DMI_REDUCTION_LOOPS_CUH
#define DMI_REDUCTION_LOOPS_CUH

enum { REDUCE_THREADS = 256, REDUCE_WARP = 32, REDUCE_DEPTH = 4 };

/* --- states of neighbouring threads --- */
template <typename S> static __device__ __forceinline__ S state_below(S a, int by)
{
    union words {
        S s;
        uint32_t word[sizeof(S) / 4];
        __device__ words()
        {
        }
    } u;
    u.s = a;
#pragma unroll
    for (int i = 0; i < (int)(sizeof(S) / 4); i++) {
        u.word[i] = __shfl_down_sync(0xffffffffu, u.word[i], by);
    }
    return u.s;
}
/* Sums over `width` threads, which all of them have. */
static __device__ __forceinline__ double sum_over(double v, int width)
{
    for (int by = width / 2; by > 0; by /= 2) {
        v += __shfl_xor_sync(0xffffffffu, v, by);
    }
    return v;
}

/* The states of `width` threads combined, in the first; width: a power of two up to REDUCE_WARP. Of moments and
 * exponentials all at once, which takes one division or exponential instead of one a step. */
template <typename R>
static __device__ __forceinline__ typename R::state warp_state(typename R::state s, int width)
{
    if constexpr (R::kind == KIND_LOGSUM) {
        double top = s.top;
        for (int by = width / 2; by > 0; by /= 2) {
            const double other = __shfl_xor_sync(0xffffffffu, top, by);
            top = other > top ? other : top;
        }
        s.sum = sum_over(s.sum * (s.top == top ? 1 : exp(s.top - top)), width);
        s.top = top;
    } else if constexpr (R::kind == KIND_MOMENTS) {
        const double n = sum_over(s.n, width), sum = sum_over(s.n * s.mean, width), mean = n > 0 ? sum / n : 0;
        const double d = s.n > 0 ? s.mean - mean : 0;
        s.squares = sum_over(s.squares + d * d * s.n, width);
        s.n = n;
        s.mean = mean;
    } else {
        for (int by = width / 2; by > 0; by /= 2) {
            R::combine(s, state_below(s, by));
        }
    }
    return s;
}

/* The team's states combined, in its first thread; team: a power of two up to REDUCE_WARP, or REDUCE_THREADS.
 */
template <typename R>
static __device__ __forceinline__ typename R::state team_state(typename R::state s, int team)
{
    typedef typename R::state S;
    const int warps = REDUCE_THREADS / REDUCE_WARP;
    __shared__ alignas(16) char memory[warps * sizeof(S)];
    S *of_warp = (S *)memory;
    s = warp_state<R>(s, team < REDUCE_WARP ? team : REDUCE_WARP);
    if (team > REDUCE_WARP) {
        __syncthreads();
        if (threadIdx.x % REDUCE_WARP == 0) {
            of_warp[threadIdx.x / REDUCE_WARP] = s;
        }
        __syncthreads();
        if (threadIdx.x < REDUCE_WARP) {
            s = warp_state<R>(of_warp[threadIdx.x % warps], warps);
        }
    }
    return s;
}

/* --- many elements into a state at once --- */
template <typename T, bool KEEPS> struct wide_unless {
    typedef double type;
};
template <typename T> struct wide_unless<T, true> {
    typedef T type;
};

/* Fewer divisions than one by one, and these by a reciprocal; M is a power of two. */
template <typename S, int M> static __device__ __forceinline__ void take_moments(S &s, const double (&x)[M])
{
    double half[2] = {x[0], M > 1 ? x[M / 2] : 0}, squares[2] = {0, 0};
#pragma unroll
    for (int i = 1; i < M / 2; i++) {
        half[0] += x[i];
        half[1] += x[M / 2 + i];
    }
    const double mean = (half[0] + half[1]) * (1.0 / M), n = s.n + M, away = mean - s.mean;
#pragma unroll
    for (int i = 0; i < M; i++) {
        const double d = x[i] - mean;
        squares[i % 2] = __fma_rn(d, d, squares[i % 2]);
    }
    double part = (double)__frcp_rn((float)n); /* 1 / n, by two of Newton's steps */
    part = __fma_rn(part, __fma_rn(-n, part, 1.0), part);
    part = M * __fma_rn(part, __fma_rn(-n, part, 1.0), part);
    s.squares += squares[0] + squares[1] + away * away * (s.n * part);
    s.mean = __fma_rn(away, part, s.mean);
    s.n = n;
}

template <typename S, int M>
static __device__ __forceinline__ void take_exponentials(S &s, const double (&x)[M])
{
    double top = s.top;
#pragma unroll
    for (int i = 0; i < M; i++) {
        top = x[i] > top ? x[i] : top;
    }
    if (top > s.top) {
        s.sum *= exp(s.top - top);
        s.top = top;
    }
#pragma unroll
    for (int i = 0; i < M; i++) {
        s.sum += x[i] == top ? 1 : exp(x[i] - top);
    }
}

/* 2^(i / 16) of i below 16, which the threads of a warp read without conflicts. */
static __device__ __forceinline__ double *powers_of_two()
{
    __shared__ double power[16];
    return power;
}
static __device__ __forceinline__ void make_powers()
{
    if (threadIdx.x < 16) {
        powers_of_two()[threadIdx.x] = exp2(threadIdx.x / 16.0);
    }
    __syncthreads();
}

/* Of floats, whose exponentials in f64 would be slower than the memory: s.top is k log(2) of a whole number k,
 * and e^x is 2^(a + b / 16 + f) of whole numbers a and b, a power of the table and a series in f, with relative
 * errors below 1e-14. What is beyond 2^-1000 of the largest counts as 0. */
template <typename S, int M> static __device__ __forceinline__ void take_exponentials(S &s, const float (&x)[M])
{
    const double per_e = 1.4426950408889634, log_2 = 0.6931471805599453;
    const double magic =
        422212465065984.0; /* 1.5 * 2^48: a sum with it is rounded to 1/16, counted by its low word */
    float top = x[0];
#pragma unroll
    for (int i = 1; i < M; i++) {
        top = fmaxf(top, x[i]);
    }
    double old = rint(s.top * per_e), k = ceil((double)top * per_e);
    if (!(fabsf(top) < 1e6f && s.top < 1e6 && (s.top == lowest(0.0) || old * log_2 == s.top))) {
        double wide[M]; /* infinities, NaN alone, and what followed them */
#pragma unroll
        for (int i = 0; i < M; i++) {
            wide[i] = (double)x[i];
        }
        take_exponentials(s, wide);
        return;
    }
    if (k > old) {
        const double less = old - k;
        s.sum *= less < -1000 ? 0.0 : __hiloint2double((1023 + (int)less) << 20, 0);
        s.top = k * log_2;
    } else {
        k = old;
    }
    const double shift = magic - k;
    const float least = (float)((k - 1000) * log_2);
    double sum[2] = {s.sum, 0};
#pragma unroll
    for (int i = 0; i < M; i++) {
        const bool far = x[i] < least;
        const double v = (double)(far ? top : x[i]), shifted = __fma_rn(v, per_e, shift);
        const double f = __fma_rn(v, per_e, -__dsub_rn(shifted, shift)); /* |f| <= 1/32 */
        const int low = __double2loint(shifted);
        const double power = powers_of_two()[low & 15];
        const double scaled =
            __hiloint2double(far ? 0 : __double2hiint(power) + ((low >> 4) << 20), __double2loint(power));
        double e = __fma_rn(f, 0.0013333818813265916, 0.009618354745280723);
        e = __fma_rn(e, f, 0.05550410865209371);
        e = __fma_rn(e, f, 0.24022650687646974);
        e = __fma_rn(e, f, 0.6931471805599468);
        e = __fma_rn(e, f, 1.0);
        sum[i % 2] = __fma_rn(scaled, e, sum[i % 2]);
    }
    s.sum = sum[0] + sum[1];
}

/* The best of the batch, and of equal ones the first, whose numbers rise from one to the next. */
template <typename R, typename T, int COUNT, int EACH>
static __device__ __forceinline__ void take_places(typename R::state &s, const T (&x)[COUNT * EACH],
                                                   const int64_t (&item)[COUNT], int64_t step)
{
    const int M = COUNT * EACH;
    T best = x[0];
    bool nan = x[0] != x[0];
    int first = 0;
#pragma unroll
    for (int i = 1; i < M; i++) {
        best = value_row<R>::better(best, x[i]);
        nan = nan || x[i] != x[i];
    }
    if (nan) {
#pragma unroll
        for (int i = 0; i < M; i++) {
            R::take(s, as_number<typename R::number>(x[i]), item[i / EACH] + i % EACH * step);
        }
        return;
    }
#pragma unroll
    for (int i = M - 1; i >= 0; i--) {
        first = x[i] == best ? i : first;
    }
    int64_t at = item[0];
#pragma unroll
    for (int k = 1; k < COUNT; k++) {
        at = first >= k * EACH ? item[k] : at;
    }
    R::take(s, as_number<typename R::number>(best), at + first % EACH * step);
}

/* COUNT items; element e of each, or (e < 0) all. step: from the number of an element to the next one's. */
template <typename R, typename ITEM, int COUNT, int FIRST, int EACH, int CHAINS>
static __device__ __forceinline__ void take_batch(typename R::state *s, const ITEM *v, int64_t step,
                                                  bool ordered)
{
    typedef typename ITEM::native T;
    const int M = COUNT * EACH;
    if constexpr (R::kind == KIND_MOMENTS || R::kind == KIND_LOGSUM) {
        typename wide_unless<T, R::kind == KIND_LOGSUM && same_type<T, float>::value>::type x[M];
#pragma unroll
        for (int i = 0; i < M; i++) {
            x[i] = v[i / EACH].get(FIRST + i % EACH);
        }
        if constexpr (R::kind == KIND_LOGSUM) {
            take_exponentials(s[0], x);
        } else {
            take_moments(s[0], x);
        }
    } else if constexpr (R::kind == KIND_PLACE) {
        T x[M];
        int64_t item[COUNT];
#pragma unroll
        for (int k = 0; k < COUNT; k++) {
            item[k] = v[k].at;
#pragma unroll
            for (int i = 0; i < EACH; i++) {
                x[k * EACH + i] = v[k].get(FIRST + i);
            }
        }
        if (ordered) {
            take_places<R, T, COUNT, EACH>(s[0], x, item, step);
        } else {
#pragma unroll
            for (int i = 0; i < M; i++) {
                R::take(s[0], as_number<typename R::number>(x[i]), item[i / EACH] + i % EACH * step);
            }
        }
    } else {
#pragma unroll
        for (int i = 0; i < M; i++) {
            R::take(s[i % CHAINS], as_number<typename R::number>(v[i / EACH].get(FIRST + i % EACH)), 0);
        }
    }
}

/* States of a thread along a row: several, where one state waits for the other. */
template <typename R, typename ITEM> struct chains_of {
    static const bool batches = R::kind == KIND_MOMENTS || R::kind == KIND_LOGSUM || R::kind == KIND_PLACE;
    static const int value = batches || ITEM::N < 4 ? 1 : 4;
};

/* The items first, first + by, ... before `end`, REDUCE_DEPTH at most. ACROSS: element e of an item goes to
 * state e, else all to the first. */
template <typename R, typename ITEM, int COUNT, bool ACROSS, int E = 0>
static __device__ __forceinline__ void take_items(typename R::state *s, const ITEM *v, int64_t step,
                                                  bool ordered)
{
    if constexpr (!ACROSS) {
        take_batch<R, ITEM, COUNT, 0, ITEM::N, chains_of<R, ITEM>::value>(s, v, step, ordered);
    } else if constexpr (E < ITEM::N) {
        take_batch<R, ITEM, COUNT, E, 1, 1>(s + E, v, step, ordered);
        take_items<R, ITEM, COUNT, true, E + 1>(s, v, step, ordered);
    }
}
template <typename R, typename ITEM, bool ACROSS, typename P>
static __device__ __forceinline__ void take_some(const P &p, const int64_t (&row)[ITEM::SIDES], uint32_t first,
                                                 uint32_t by, uint32_t end, typename R::state *s)
{
    const int D = REDUCE_DEPTH;
    ITEM v[D];
    const int64_t step =
        p.base.summed.stride[ITEM::PLACE][0] / ITEM::N; /* of groups along: within the innermost dim */
#pragma unroll
    for (int k = 0; k < D; k++) {
        if (first + k * by < end) {
            v[k].load(p, row, first + k * by);
        }
    }
    if (first + (D - 1) * by < end) {
        take_items<R, ITEM, D, ACROSS>(s, v, step, p.ordered);
        return;
    }
#pragma unroll
    for (int k = 0; k < D; k++) {
        if (first + k * by < end) {
            take_items<R, ITEM, 1, ACROSS>(s, v + k, step, p.ordered);
        }
    }
}

template <typename R, typename ITEM, typename P>
static __device__ __forceinline__ void along_rows(const P &p, void *out)
{
    const int CHAINS = chains_of<R, ITEM>::value;
    const uint32_t team = p.base.team, teams = REDUCE_THREADS / team, lane = threadIdx.x % team;
    const int64_t jobs = (int64_t)p.base.kept.items * p.base.parts;
    if constexpr (R::kind == KIND_LOGSUM) {
        make_powers();
    }
    for (int64_t base = (int64_t)blockIdx.x * teams; base < jobs; base += (int64_t)gridDim.x * teams) {
        const int64_t job = base + threadIdx.x / team;
        int64_t row[ITEM::SIDES];
        bool active = job < jobs;
        uint32_t result = active ? (uint32_t)(job / p.base.parts) : 0,
                 part = active ? (uint32_t)(job % p.base.parts) : 0;
        ITEM::locate_row(p, result, row);
        uint32_t begin = part * p.base.items_per_part, end = begin + p.base.items_per_part;
        end = !active ? begin : end < p.base.summed.items ? end : p.base.summed.items;
        typename R::state s[CHAINS];
#pragma unroll
        for (int c = 0; c < CHAINS; c++) {
            s[c] = R::start();
        }
        for (uint32_t first = begin + lane; first < end; first += team * REDUCE_DEPTH) {
            take_some<R, ITEM, false>(p, row, first, team, end, s);
        }
        if constexpr (ITEM::N > 1) { /* elements of the one row behind the last group */
            const int64_t step = p.base.summed.stride[ITEM::PLACE][0] / ITEM::N;
            for (uint32_t i = lane; active && part + 1 == p.base.parts && i < p.base.tail; i += team) {
                const int64_t at = p.base.tail_at + i;
                R::take(s[0], as_number<typename R::number>(ITEM::element(p, row, at)), p.place + at * step);
            }
        }
        if constexpr (R::kind == KIND_SUM) {
            close_sums(s, [&](auto take) {
                for (uint32_t i = begin + lane; i < end; i += team) {
                    ITEM v;
                    v.load(p, row, i);
                    for (int e = 0; e < ITEM::N; e++) {
                        take(as_number<typename R::number>(v.get(e)));
                    }
                }
                for (uint32_t i = lane; ITEM::N > 1 && active && part + 1 == p.base.parts && i < p.base.tail;
                     i += team) {
                    take(as_number<typename R::number>(ITEM::element(p, row, p.base.tail_at + i)));
                }
            });
        }
#pragma unroll
        for (int c = 1; c < CHAINS; c++) {
            R::combine(s[0], s[c]);
        }
        s[0] = team_state<R>(s[0], (int)team);
        if (active && lane == 0) {
            ITEM::template put<R>(p, out, part, result, s[0]);
        }
    }
}

template <typename R, typename ITEM, typename P>
static __device__ __forceinline__ void across_rows(const P &p, void *out)
{
    typedef typename R::state S;
    const int N = ITEM::N;
    __shared__ alignas(16) char memory[REDUCE_THREADS * sizeof(S)];
    S *shared = (S *)memory;
    const uint32_t team = p.base.team, rows = REDUCE_THREADS / team, x = threadIdx.x % team,
                   y = threadIdx.x / team;
    const uint32_t columns = (p.base.kept.items + team - 1) / team;
    if constexpr (R::kind == KIND_LOGSUM) {
        make_powers();
    }
    for (int64_t job = blockIdx.x; job < (int64_t)columns * p.base.parts; job += gridDim.x) {
        uint32_t part = (uint32_t)(job / columns), result = (uint32_t)(job % columns) * team + x;
        bool active = result < p.base.kept.items;
        uint32_t begin = part * p.base.items_per_part, end = begin + p.base.items_per_part;
        end = end < p.base.summed.items ? end : p.base.summed.items;
        int64_t column[ITEM::SIDES];
        ITEM::locate_row(p, active ? result : 0, column);
        S s[N];
#pragma unroll
        for (int e = 0; e < N; e++) {
            s[e] = R::start();
        }
        for (uint32_t first = begin + y; active && first < end; first += rows * REDUCE_DEPTH) {
            take_some<R, ITEM, true>(p, column, first, rows, end, s);
        }
#pragma unroll
        for (int e = 0; R::kind == KIND_SUM && e < N; e++) {
            if constexpr (R::kind == KIND_SUM) {
                S one[1] = {s[e]};
                close_sums(one, [&](auto take) {
                    for (uint32_t i = begin + y; active && i < end; i += rows) {
                        ITEM v;
                        v.load(p, column, i);
                        take(as_number<typename R::number>(v.get(e)));
                    }
                });
                s[e] = one[0];
            }
        }
#pragma unroll
        for (int e = 0; e < N; e++) {
            __syncthreads();
            shared[threadIdx.x] = s[e];
            for (uint32_t by = rows / 2; by > 0; by /= 2) {
                __syncthreads();
                if (y < by) {
                    R::combine(shared[threadIdx.x], shared[threadIdx.x + by * team]);
                }
            }
            if (y == 0 && active) {
                ITEM::template put<R>(p, out, part, (int64_t)result * N + e, shared[threadIdx.x]);
            }
        }
    }
}

#endif

/* The loops of reductions on GPUs: `along_rows` with a team of threads on a result, `across_rows` with a thread on each of
 * neighbouring results; in parts, which `join` of reduction.cu or reduce.cu combines, or, of one result, the last thread block. All
 * orders are fixed. This file is compiled at run time too (reduce_source.c), so it includes nothing.
 *
 * R is a row (reduction_rows.cuh), P the kernel's parameter, and ITEM what a thread loads at once:
 *
 *   N, SIDES, PLACE, native   elements; sides of p.base.kept; the side of p.base.summed that counts elements; their type
 *   locate_row, load, get     the row of a result; item i of it; element e of the item
 *   element                   one element of the row, behind its last item
 *   at                        number of the first element among those reduced over
 *   put                       a part's state to the workspace, or (last) the result's to acc
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

/* Tops that the loop for floats makes: whole multiples of log(2). */
static __device__ __forceinline__ bool usual_top(double top)
{
    return fabs(top) < 1e5;
}
/* e^(from - to), from <= to. POWERS: usual tops are of that loop, so that it is a power of two. */
template <bool POWERS> static __device__ __forceinline__ double part_of_top(double from, double to)
{
    if (from == to) {
        return 1;
    }
    if (POWERS && usual_top(from) && usual_top(to)) {
        const double k = rint((from - to) * 1.4426950408889634);
        return k < -1000 ? 0.0 : __hiloint2double((1023 + (int)k) << 20, 0);
    }
    return exp(from - to);
}

/* The states of `width` threads combined, in the first; width: a power of two up to REDUCE_WARP. Of moments and
 * exponentials all at once, which takes one division or exponential instead of one a step. */
template <typename R, bool POWERS>
static __device__ __forceinline__ typename R::state warp_state(typename R::state s, int width)
{
    if constexpr (R::kind == KIND_LOGSUM) {
        double top = s.top;
        for (int by = width / 2; by > 0; by /= 2) {
            const double other = __shfl_xor_sync(0xffffffffu, top, by);
            top = other > top ? other : top;
        }
        s.sum = sum_over(s.sum * part_of_top<POWERS>(s.top, top), width);
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
template <typename R, bool POWERS = false>
static __device__ __forceinline__ typename R::state team_state(typename R::state s, int team)
{
    typedef typename R::state S;
    const int warps = REDUCE_THREADS / REDUCE_WARP;
    __shared__ alignas(16) char memory[warps * sizeof(S)];
    S *of_warp = (S *)memory;
    s = warp_state<R, POWERS>(s, team < REDUCE_WARP ? team : REDUCE_WARP);
    if (team > REDUCE_WARP) {
        __syncthreads();
        if (threadIdx.x % REDUCE_WARP == 0) {
            of_warp[threadIdx.x / REDUCE_WARP] = s;
        }
        __syncthreads();
        if (threadIdx.x < REDUCE_WARP) {
            s = warp_state<R, POWERS>(of_warp[threadIdx.x % warps], warps);
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

/* 2^(i / 16) of i below 16, which the threads of a warp read without conflicts; i << 16 is taken off the upper words. */
static __device__ __forceinline__ uint2 *powers_of_two()
{
    __shared__ uint2 power[16];
    return power;
}
static __constant__ uint2 power_words[16] = {
    {0x00000000u, 0x3ff00000u}, {0x6cf9890fu, 0x3fefb558u}, {0x3c7d517bu, 0x3fef72b8u}, {0x6e756238u, 0x3fef387au},
    {0x0a31b715u, 0x3fef06feu}, {0x4c123422u, 0x3feedea6u}, {0xd5362a27u, 0x3feebfdau}, {0xdd485429u, 0x3feeab07u},
    {0x667f3bcdu, 0x3feea09eu}, {0x73eb0187u, 0x3feea114u}, {0x422aa0dbu, 0x3feeace5u}, {0x82a3f090u, 0x3feec491u},
    {0x995ad3adu, 0x3feee89fu}, {0xdd85529cu, 0x3fef199bu}, {0xdcfba487u, 0x3fef5818u}, {0xa2a490dau, 0x3fefa4afu}};
static __device__ __forceinline__ void make_powers()
{
    if (threadIdx.x < 16) {
        powers_of_two()[threadIdx.x] = power_words[threadIdx.x];
    }
    __syncthreads();
}

/* Infinities, NaN, numbers beyond 10^5 and what follows them, one by one, which is slow. A top that is a usual number is made one
 * of those that the loop of the others knows. */
template <typename S> static __device__ __noinline__ S with_other(S s, float x)
{
    const double per_e = 1.4426950408889634, log_2 = 0.6931471805599453;
    const double v[1] = {(double)x};
    take_exponentials(s, v);
    if (usual_top(s.top)) {
        const double top = ceil(s.top * per_e) * log_2;
        s.sum *= exp(s.top - top);
        s.top = top;
    }
    return s;
}
template <typename S, int M> static __device__ __forceinline__ void take_others(S &s, const float (&x)[M])
{
#pragma unroll
    for (int i = 0; i < M; i++) {
        s = with_other(s, x[i]);
    }
}

/* Of floats, whose exponentials in f64 would be slower than the memory: s.top is k log(2) of a whole number k, and e^(x - top)
 * is 2^(n / 16 + f / 16) of a whole number n, which is a power of the table, an exponent and a series in f, with relative
 * errors below 1e-14. What is beyond 2^-1000 of the largest counts as 2^-1000 of it, which changes no sum. */
template <typename S, int M> static __device__ __forceinline__ void take_exponentials(S &s, const float (&x)[M])
{
    const double per_e = 1.4426950408889634, log_2 = 0.6931471805599453;
    const double whole = 6755399441055744.0; /* 1.5 * 2^52: a sum with it is rounded to a whole number */
    float top = x[0];
#pragma unroll
    for (int i = 1; i < M; i++) {
        top = larger_or_nan(top, x[i]);
    }
    if (!((double)top <= s.top)) {
        if (!(usual_top(top) && (usual_top(s.top) || s.top == lowest(0.0)))) {
            take_others(s, x);
            return;
        }
        const double higher = ceil((double)top * per_e), less = rint(s.top * per_e) - higher;
        s.sum *= less < -1000 ? 0.0 : __hiloint2double((1023 + (int)less) << 20, 0);
        s.top = higher * log_2;
    } else if (!usual_top(s.top)) {
        take_others(s, x);
        return;
    }
    /* A float plus 1.5 * 2^23 is rounded to a whole number, which its bits count, and its bits are the lower word of a double
     * that is 2^52 more than they count. */
    const double k = __dsub_rn(__fma_rn(s.top, per_e, whole), whole);
    const float shift = (float)(12582912.0 - 16 * k), least = (float)(s.top - 693.0);
    const double bits_of_0 = 4503599627370496.0 + 0x4b400000 - 16 * k;
    double sum[2] = {s.sum, 0};
#pragma unroll
    for (int i = 0; i < M; i++) {
        const float v = larger_or_nan(x[i], least), shifted = __fmaf_rn(v, 23.083120f, shift);
        const int bits = __float_as_int(shifted);
        const double f = __fma_rn((double)v, 16 * per_e, -__dsub_rn(__hiloint2double(0x43300000, bits), bits_of_0));
        const uint2 power = powers_of_two()[bits & 15];
        const double scaled = __hiloint2double((int)(power.y + ((uint32_t)bits << 16)), (int)power.x);
        double e = __fma_rn(f, 0.0013333818813265916 / 1048576, 0.009618354745280723 / 65536);
        e = __fma_rn(e, f, 0.05550410865209371 / 4096);
        e = __fma_rn(e, f, 0.24022650687646974 / 256);
        e = __fma_rn(e, f, 0.6931471805599468 / 16);
        e = __fma_rn(e, f, 1.0);
        sum[i % 2] = __fma_rn(scaled, e, sum[i % 2]);
    }
    s.sum = sum[0] + sum[1];
}

/* The best of the batch, and of equal ones the first; numbers rise from one to the next, and from batch to batch. */
template <typename R, typename T, int COUNT, int EACH>
static __device__ __forceinline__ void take_places(typename R::state &s, const T (&x)[COUNT * EACH],
                                                   const int64_t (&item)[COUNT], int64_t step)
{
    const int M = COUNT * EACH;
    T best = x[0];
    int first = 0;
#pragma unroll
    for (int i = 1; i < M; i++) {
        best = value_row<R>::better(best, x[i]);
    }
    if (s.at != NOWHERE && value_row<R>::behind(best, s.v)) { /* nothing new, as in most batches of long rows */
        return;
    }
    if (best != best) {
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

/* Of a row that keeps places, where numbers rise from item to item: the best of a thread's items, of equal ones the first, with its
 * number in place of the element's. */
template <typename R, typename ITEM, typename P>
static __device__ __forceinline__ typename R::state best_item(const P &p, const int64_t (&row)[ITEM::SIDES], uint32_t first,
                                                              uint32_t by, uint32_t end)
{
    typedef typename R::number T;
    const int D = REDUCE_DEPTH;
    typename R::state s = R::start();
    T best = value_row<R>::worst(T());
    uint32_t number = first; /* where all are as bad as can be, the first is the best */
    const bool any = first < end;
    for (; first < end; first += by * D) {
        ITEM v[D];
#pragma unroll
        for (int k = 0; k < D; k++) {
            if (first + k * by < end) {
                v[k].load(p, row, first + k * by);
            }
        }
#pragma unroll
        for (int k = 0; k < D; k++) {
            if (first + k * by < end) {
                T x = as_number<T>(v[k].get(0));
#pragma unroll
                for (int e = 1; e < ITEM::N; e++) {
                    x = value_row<R>::better(x, as_number<T>(v[k].get(e)));
                }
                const bool ahead = !value_row<R>::behind(x, best) && best == best;
                best = ahead ? x : best;
                number = ahead ? first + k * by : number;
            }
        }
    }
    if (any) {
        s.v = best;
        s.at = number;
    }
    return s;
}
/* The element of an item that made it the best: its number. */
template <typename R, typename ITEM, typename P>
static __device__ __forceinline__ int64_t place_in_item(const P &p, const int64_t (&row)[ITEM::SIDES],
                                                        const typename R::state &s, int64_t step)
{
    typedef typename R::number T;
    ITEM v;
    int first = 0;
    v.load(p, row, (uint32_t)s.at);
#pragma unroll
    for (int e = ITEM::N - 1; e >= 0; e--) {
        const T x = as_number<T>(v.get(e));
        first = x == s.v || (x != x && s.v != s.v) ? e : first;
    }
    return v.at + first * step;
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

/* What this thread has of the parts of one result, combined. */
template <typename R>
static __device__ __forceinline__ typename R::state joined_parts(const typename R::state *in, uint32_t parts)
{
    const int DEPTH = 8;
    typename R::state s = R::start(), v[DEPTH];
    for (uint32_t part = threadIdx.x; part < parts; part += DEPTH * REDUCE_THREADS) {
#pragma unroll
        for (int k = 0; k < DEPTH; k++) { /* all on their way at once */
            v[k] = part + k * REDUCE_THREADS < parts ? in[part + k * REDUCE_THREADS] : R::start();
        }
#pragma unroll
        for (int k = 0; k < DEPTH; k++) {
            if (part + k * REDUCE_THREADS < parts) {
                R::combine(s, v[k]);
            }
        }
    }
    return s;
}

template <typename R, typename ITEM, typename P>
static __device__ __forceinline__ void along_rows(const P &p, void *out)
{
    const int CHAINS = chains_of<R, ITEM>::value;
    const bool POWERS = R::kind == KIND_LOGSUM && same_type<typename ITEM::native, float>::value;
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
        const int64_t step = p.base.summed.stride[ITEM::PLACE][0] / ITEM::N;
        bool items = false; /* s[0].at is the number of an item */
        if constexpr (R::kind == KIND_PLACE && ITEM::N > 1) {
            items = p.ordered;
        }
        if constexpr (R::kind == KIND_PLACE) {
            if (items) {
                s[0] = team_state<R>(best_item<R, ITEM>(p, row, begin + lane, team, end), (int)team);
                if (lane == 0 && s[0].at != NOWHERE) {
                    s[0].at = place_in_item<R, ITEM>(p, row, s[0], step);
                }
            }
        }
        for (uint32_t first = begin + lane; !items && first < end; first += team * REDUCE_DEPTH) {
            take_some<R, ITEM, false>(p, row, first, team, end, s);
        }
        if constexpr (ITEM::N > 1) { /* elements of the one row behind the last group; where items are done, by the first thread */
            const uint32_t by = items ? 1 : team, from = items && lane > 0 ? p.base.tail : lane;
            for (uint32_t i = from; active && part + 1 == p.base.parts && i < p.base.tail; i += by) {
                const int64_t at = p.base.tail_at + i;
                if constexpr (POWERS) {
                    s[0] = with_other(s[0], ITEM::element(p, row, at));
                } else {
                    R::take(s[0], as_number<typename R::number>(ITEM::element(p, row, at)), p.place + at * step);
                }
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
        if (!items) {
            s[0] = team_state<R, POWERS>(s[0], (int)team);
        }
        if (active && lane == 0) {
            ITEM::template put<R>(p, p.last, out, part, result, s[0]);
        }
    }
    if (p.base.ticket && last_block(p.base.ticket)) {
        const typename R::state all = team_state<R>(joined_parts<R>((const typename R::state *)out, p.base.parts), REDUCE_THREADS);
        if (threadIdx.x == 0) {
            ITEM::template put<R>(p, true, p.base.acc, 0, 0, all);
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
                ITEM::template put<R>(p, p.last, out, part, (int64_t)result * N + e, shared[threadIdx.x]);
            }
        }
    }
}

#endif

/* The loops of all reductions for one carrier. The file that includes this has included ewise_loops.h, whose definitions
 * serve here too, and has defined
 *   REDUCERS               the name of the table made here
 *   WIDE_NUMBER WIDE_MUL   the wide type, and products in it
 *   ABSOLUTE SQUARED       in f64; of floats and complex numbers only
 *   HIGHEST LOWEST         of real types only */
#include "kernels/reduce/reducer_cpu.h"

#include <string.h>

enum { LANES = DMI_REDUCE_LANES, NOWHERE = -1 };

#define AHEAD(better, x, i)                                                                                    \
    ((A.at == NOWHERE) | (better) | ((x != x) & (A.v == A.v)) |                                                \
     (((x == A.v) | ((x != x) & (A.v != A.v))) & (i < A.at)))

typedef struct {
    NUMBER v;
} state_VALUE;
typedef struct {
    WIDE_NUMBER v;
} state_WIDE;
typedef struct {
    double v;
} state_REAL;
typedef struct {
    int64_t n;
} state_COUNT;
typedef struct {
    uint8_t n;
} state_BYTE;
typedef struct {
    NUMBER v;
    int64_t at;
} state_PLACE;
typedef struct {
    double n, mean, squares;
} state_MOMENTS;
typedef struct {
    double top, sum;
} state_LOGSUM;
typedef NUMBER result_SAME;
typedef WIDE_NUMBER result_WIDE;
typedef int64_t result_WHOLE;
typedef double result_REAL;

/* Moments and sums in f64 are work enough for the widest vectors. The others wait for memory, or for the one vector that all lanes
 * then are. */
#define COMPILED_VALUE DMI_TWICE
#define COMPILED_WIDE DMI_TWICE
#define COMPILED_COUNT DMI_TWICE
#define COMPILED_PLACE DMI_TWICE
#define COMPILED_LOGSUM DMI_TWICE
#define COMPILED_REAL COMPILED
#define COMPILED_MOMENTS COMPILED

#define TAKE_ONE(state, kept, element, place, take)                                                            \
    do {                                                                                                       \
        const NUMBER X = (element);                                                                            \
        const int64_t INDEX = (place);                                                                         \
        state_##state A = (kept);                                                                              \
        (void)INDEX;                                                                                           \
        take;                                                                                                  \
        (kept) = A;                                                                                            \
    } while (0);
#define ALONG_LANES(name, state, take)                                                                         \
    DMI_BODY void JOIN(along_##name, _body)(void *lanes, const void *elements, int64_t n, int64_t index,       \
                                            int64_t step)                                                      \
    {                                                                                                          \
        const NUMBER *x = elements;                                                                            \
        state_##state s[LANES];                                                                                \
        memcpy(s, lanes, sizeof s);                                                                            \
int64_t i = 0;                                                                                                 \
        for (; i + LANES <= n; i += LANES) {                                                                   \
            DMI_PREFETCH(x + i, DMI_AHEAD, LANES * sizeof *x)                                                  \
            DMI_LANES_LOOP                                                                                     \
            for (int l = 0; l < LANES; l++) {                                                                  \
                TAKE_ONE(state, s[l], x[i + l], index + (i + l) * step, take)                                  \
            }                                                                                                  \
        }                                                                                                      \
        for (int l = 0; i + l < n; l++) {                                                                      \
            TAKE_ONE(state, s[l], x[i + l], index + (i + l) * step, take)                                      \
        }                                                                                                      \
        memcpy(lanes, s, sizeof s);                                                                            \
    }
#define ALONG_VALUE ALONG_LANES
#define ALONG_WIDE ALONG_LANES
#define ALONG_REAL ALONG_LANES
#define ALONG_LOGSUM ALONG_LANES
/* Elements are 0 or 1: as many as a byte counts are counted in bytes. */
#define ALONG_COUNT(name, state, take)                                                                         \
    DMI_BODY void JOIN(along_##name, _body)(void *lanes, const void *elements, int64_t n, int64_t index,       \
                                            int64_t step)                                                      \
    {                                                                                                          \
        enum { MANY = 4 * LANES, MOST = 255 * MANY };                                                          \
        state_COUNT s;                                                                                         \
        memcpy(&s, lanes, sizeof s);                                                                           \
        (void)index, (void)step;                                                                               \
        for (int64_t first = 0; first < n; first += MOST) {                                                    \
            const NUMBER *x = (const NUMBER *)elements + first;                                                \
            const int64_t count = n - first < MOST ? n - first : MOST;                                         \
            state_BYTE v[MANY];                                                                                \
            int64_t i = 0;                                                                                     \
            memset(v, 0, sizeof v);                                                                            \
            for (; i + MANY <= count; i += MANY) {                                                             \
                DMI_LANES_LOOP                                                                                 \
                for (int l = 0; l < MANY; l++) {                                                               \
                    TAKE_ONE(BYTE, v[l], x[i + l], 0, take)                                                    \
                }                                                                                              \
            }                                                                                                  \
            for (int l = 0; l < MANY; l++) {                                                                   \
                s.n += v[l].n;                                                                                 \
            }                                                                                                  \
            for (; i < count; i++) {                                                                           \
                TAKE_ONE(COUNT, s, x[i], 0, take)                                                              \
            }                                                                                                  \
        }                                                                                                      \
        memcpy(lanes, &s, sizeof s);                                                                           \
    }
#define ALONG_MOMENTS ALONG_LANES
/* Most elements come nowhere near the best. So the best of a block is found first, by vectors without places; only if it comes before
 * the state's, its place is looked for. The first lane has them all. */
#define ALONG_PLACE(name, state, take)                                                                         \
    DMI_BODY state_PLACE JOIN(best_, name)(const NUMBER *x, int64_t n)                                         \
    {                                                                                                          \
        state_PLACE best = {.v = x[0], .at = 0};                                                               \
        NUMBER v[LANES];                                                                                       \
        int64_t i = 0;                                                                                         \
        for (int l = 0; l < LANES; l++) {                                                                      \
            v[l] = x[0];                                                                                       \
        }                                                                                                      \
        for (; i + LANES <= n; i += LANES) {                                                                   \
            DMI_PREFETCH(x + i, DMI_AHEAD, LANES * sizeof *x)                                                  \
            DMI_LANES_LOOP                                                                                     \
            for (int l = 0; l < LANES; l++) {                                                                  \
                state_PLACE kept = {.v = v[l], .at = 0};                                                       \
                TAKE_ONE(PLACE, kept, x[i + l], 0, take)                                                       \
                v[l] = kept.v;                                                                                 \
            }                                                                                                  \
        }                                                                                                      \
        for (; i < n; i++) {                                                                                   \
            TAKE_ONE(PLACE, best, x[i], 0, take)                                                               \
        }                                                                                                      \
        for (int l = 0; l < LANES; l++) {                                                                      \
            TAKE_ONE(PLACE, best, v[l], 0, take)                                                               \
        }                                                                                                      \
        return best;                                                                                           \
    }                                                                                                          \
    DMI_BODY void JOIN(along_##name, _body)(void *lanes, const void *elements, int64_t n, int64_t index,       \
                                            int64_t step)                                                      \
    {                                                                                                          \
        enum { BLOCK = 64 * LANES };                                                                           \
        state_PLACE s;                                                                                         \
        memcpy(&s, lanes, sizeof s);                                                                           \
        for (int64_t first = 0; first < n; first += BLOCK) {                                                   \
            const NUMBER *x = (const NUMBER *)elements + first;                                                \
            const int64_t count = n - first < BLOCK ? n - first : BLOCK;                                       \
            const NUMBER best = JOIN(best_, name)(x, count).v;                                                 \
            state_PLACE would = s;                                                                             \
            TAKE_ONE(PLACE, would, best, index + first * step, take)                                           \
            int64_t i = would.at != s.at ? 0 : count;                                                          \
            for (int hits = 0; i + LANES <= count; i += LANES) {                                               \
                DMI_LANES_LOOP                                                                                 \
                for (int l = 0; l < LANES; l++) {                                                              \
                    hits += (x[i + l] == best) | ((x[i + l] != x[i + l]) & (best != best));                    \
                }                                                                                              \
                if (hits > 0) {                                                                                \
                    break;                                                                                     \
                }                                                                                              \
            }                                                                                                  \
            for (; i < count; i++) {                                                                           \
                if ((x[i] == best) | ((x[i] != x[i]) & (best != best))) {                                      \
                    TAKE_ONE(PLACE, s, x[i], index + (first + i) * step, take)                                 \
                    break;                                                                                     \
                }                                                                                              \
            }                                                                                                  \
        }                                                                                                      \
        memcpy(lanes, &s, sizeof s);                                                                           \
    }
#define REDUCE_1(name, state, start, take, combine, result, finish)                                            \
    static void JOIN(clear_, name)(void *states, int64_t n)                                                    \
    {                                                                                                          \
        state_##state *s = states;                                                                             \
        for (int64_t i = 0; i < n; i++) {                                                                      \
            state_##state A;                                                                                   \
            memset(&A, 0, sizeof A);                                                                           \
            start;                                                                                             \
            s[i] = A;                                                                                          \
        }                                                                                                      \
    }                                                                                                          \
    ALONG_##state(name, state, take)                                                                           \
    COMPILED_##state(static, along_##name,                                                                     \
                     (void *lanes, const void *elements, int64_t n, int64_t index, int64_t step),              \
                     (lanes, elements, n, index, step))                                                        \
    DMI_BODY void JOIN(across_##name, _body)(void *states, const void *elements, int64_t n, int64_t index)     \
    {                                                                                                          \
        const NUMBER *restrict x = elements;                                                                   \
        state_##state *restrict s = states;                                                                    \
        for (int64_t i = 0; i < n; i++) {                                                                      \
TAKE_ONE(state, s[i], x[i], index, take)                                                                       \
        }                                                                                                      \
    }                                                                                                          \
    COMPILED_##state(static, across_##name, (void *states, const void *elements, int64_t n, int64_t index),    \
                     (states, elements, n, index))                                                             \
    static void JOIN(scan_, name)(void *kept, const void *elements, int64_t n, double S, void *out)             \
    {                                                                                                          \
        const NUMBER *x = elements;                                                                            \
        result_##result *o = out;                                                                              \
        state_##state s;                                                                                       \
        memcpy(&s, kept, sizeof s);                                                                            \
        (void)S;                                                                                               \
        for (int64_t i = 0; i < n; i++) {                                                                      \
            TAKE_ONE(state, s, x[i], i, take)                                                                  \
            const state_##state A = s;                                                                         \
            o[i] = finish;                                                                                     \
        }                                                                                                      \
        memcpy(kept, &s, sizeof s);                                                                            \
    }                                                                                                          \
    static void JOIN(combine_, name)(void *into, int64_t into_stride, const void *from, int64_t from_stride,   \
                                     int64_t n)                                                                \
    {                                                                                                          \
        state_##state *a = into;                                                                               \
        const state_##state *b = from;                                                                         \
        for (int64_t i = 0; i < n; i++) {                                                                      \
            state_##state A = a[i * into_stride], B = b[i * from_stride];                                      \
            combine;                                                                                           \
            a[i * into_stride] = A;                                                                            \
        }                                                                                                      \
    }                                                                                                          \
    static void JOIN(finish_, name)(const void *states, int64_t n, double S, void *out)                        \
    {                                                                                                          \
        const state_##state *s = states;                                                                       \
        result_##result *o = out;                                                                              \
        (void)S;                                                                                               \
        for (int64_t i = 0; i < n; i++) {                                                                      \
            const state_##state A = s[i];                                                                      \
            o[i] = finish;                                                                                     \
        }                                                                                                      \
    }
#define REDUCE_0(name, state, start, take, combine, result, finish)
#define REDUCER_1(name, state)                                                                                 \
    [DMI_REDUCTION_##name] = {sizeof(state_##state), clear_##name, along_##name,                               \
                              across_##name,         scan_##name,  combine_##name,  finish_##name},
#define REDUCER_0(name, state)

#define DMI_REDUCTION(name, domain, state, start, take, combine, result, finish)                               \
    JOIN(REDUCE_, IN_##domain)(name, state, start, take, combine, result, finish)
#include "kernels/reduce/reduce.def"
#undef DMI_REDUCTION

#define DMI_REDUCTION(name, domain, state, start, take, combine, result, finish)                               \
    JOIN(REDUCER_, IN_##domain)(name, state)
const dmi_reducer REDUCERS[DMI_REDUCTIONS] = {
#include "kernels/reduce/reduce.def"
};

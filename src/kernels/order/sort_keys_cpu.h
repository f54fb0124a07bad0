/* Elements to keys and back. The file that includes this has defined KEY (an unsigned type), RAW (the same, for
 * the memory of elements of any type), BITS, NAME(x) and JOIN(a, b). KEY and BITS end here. */

/* Keys of n elements; *odd: some of them are zeros with a sign, or no numbers, of which the key does not say
 * all. */
static void NAME(encode)(const sort_job *job, const void *x, int64_t stride, bool *odd)
{
    const RAW *from = x;
    int64_t n = job->n;
    KEY *key = job->keys.key[0];
    const KEY top = (KEY)((KEY)1 << (BITS - 1)), flip = job->descending ? (KEY) ~(KEY)0 : 0;
    KEY strange = 0;
    *odd = false;
    if (job->kind != DMI_SORT_FLOAT) {
        KEY sign = job->kind == DMI_SORT_SIGNED ? top : 0;
        for (int64_t i = 0; i < n; i++) {
            key[i] = (KEY)(from[i * stride] ^ sign ^ flip);
        }
        return;
    }
    const KEY most = (KEY)job->most_bits;
    for (int64_t i = 0; i < n; i++) {
        KEY bits = from[i * stride], size = (KEY)(bits & (KEY)~top);
        KEY k = bits & top ? (KEY)(top - size) : (KEY)(bits | top); /* -0 as 0 */
        k = size > most ? (KEY) ~(KEY)0 : k;
        strange |= (KEY)(size > most) | (KEY)(bits == top);
        key[i] = (KEY)(k ^ flip);
    }
    *odd = strange != 0;
}

/* The first key that is not below `lo`. */
static int64_t NAME(find)(const KEY *key, int64_t n, KEY lo)
{
    int64_t from = 0;
    while (n > 0) {
        int64_t half = n / 2;
        if (key[from + half] < lo) {
            from += half + 1;
            n -= half + 1;
        } else {
            n = half;
        }
    }
    return from;
}

/* The elements of the keys, in their order; `to` may be the keys' own memory. Zeros and NaNs are then put in
 * the order in which x has them, for their keys do not tell their bits. */
static void NAME(decode)(const sort_job *job, bool odd, const void *x, int64_t stride, void *to)
{
    const KEY *key = job->keys.key[0];
    const RAW *from = x;
    RAW *out = to;
    const KEY top = (KEY)((KEY)1 << (BITS - 1)), flip = job->descending ? (KEY) ~(KEY)0 : 0;
    const KEY sign = job->kind == DMI_SORT_SIGNED ? top : 0;
    int64_t n = job->n, zero = 0, none = 0;
    if (job->kind != DMI_SORT_FLOAT) {
        for (int64_t i = 0; i < n; i++) {
            out[i] = (KEY)(key[i] ^ flip ^ sign);
        }
        return;
    }
    if (odd) { /* before the keys are written over */
        zero = NAME(find)(key, n, (KEY)(top ^ flip));
        none = job->descending ? 0 : NAME(find)(key, n, (KEY) ~(KEY)0);
    }
    for (int64_t i = 0; i < n; i++) {
        KEY k = (KEY)(key[i] ^ flip);
        out[i] = k & top ? (KEY)(k ^ top) : (KEY)(top | (KEY)(top - k));
    }
    for (int64_t i = 0; i < n && odd; i++) {
        KEY bits = from[i * stride], size = (KEY)(bits & (KEY)~top);
        if (size == 0) {
            out[zero++] = bits;
        } else if (size > (KEY)job->most_bits) {
            out[none++] = bits;
        }
    }
}

/* The sorts, with places of either width. */
#define PLACE uint32_t
#define PLACED(name) JOIN(name##_short_, BITS)
#include "kernels/order/sort_loops_cpu.h"
#undef PLACE
#undef PLACED
#define PLACE uint64_t
#define PLACED(name) JOIN(name##_wide_, BITS)
#include "kernels/order/sort_loops_cpu.h"
#undef PLACE
#undef PLACED
#undef KEY
#undef BITS

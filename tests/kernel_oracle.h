/* What the kernel tests hold the kernels against: elements as long doubles, which hold every value of every
 * type exactly, encoded and decoded by arithmetic alone. */
#ifndef KERNEL_ORACLE_H
#define KERNEL_ORACLE_H

#include "kernels/kernel.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

typedef long double real;

/* Real types; the first 4 are floating, the first 7 those of elementwise kernels. */
enum { ALL_DTYPES = 15 };
static const dm_dtype all_dtypes[ALL_DTYPES] = {DM_F64,  DM_F32, DM_F16, DM_BF16, DM_I64, DM_I32, DM_U8,
                                                DM_BOOL, DM_I8,  DM_I16, DM_U16,  DM_U32, DM_U64, DM_F8E4M3, DM_F8E5M2};

static inline int64_t width_of(dm_dtype t)
{
    static const int8_t widths[] = {0, 8, 4, 2, 2, 8, 4, 1, 1, 1, 2, 2, 4, 8, 8, 16, 1, 1};
    return widths[t];
}
static inline bool floating(dm_dtype t)
{
    return t == DM_F64 || t == DM_F32 || t == DM_F16 || t == DM_BF16 || t == DM_F8E4M3 || t == DM_F8E5M2;
}
static inline bool has_sign(dm_dtype t)
{
    return floating(t) || t == DM_I64 || t == DM_I32 || t == DM_I16 || t == DM_I8;
}

/* --- 16-bit floats: `fraction` bits behind the point, exponents from `low` to `high` ------ */
static inline real small_decode(uint16_t h, int fraction, int bias)
{
    int exponent_bits = 15 - fraction, e = (h >> fraction) & ((1 << exponent_bits) - 1);
    int m = h & ((1 << fraction) - 1);
    real r;
    if (e == (1 << exponent_bits) - 1) {
        r = m != 0 ? (real)NAN : (real)INFINITY;
    } else if (e == 0) {
        r = ldexpl((real)m, 1 - bias - fraction);
    } else {
        r = ldexpl((real)(m + (1 << fraction)), e - bias - fraction);
    }
    return h & 0x8000 ? -r : r;
}
static inline uint16_t small_encode(real x, int fraction, int bias)
{
    uint16_t sign = signbit(x) ? 0x8000 : 0, inf = (uint16_t)(((1 << (15 - fraction)) - 1) << fraction);
    real a = fabsl(x);
    if (isnan(x)) {
        return inf | 1;
    }
    if (isinf(x)) {
        return sign | inf;
    }
    int e = a == 0 ? 1 - bias : ilogbl(a);
    e = e < 1 - bias ? 1 - bias : e;
    real units = rintl(ldexpl(a, fraction - e)); /* to nearest even */
    if (units >= (real)(1 << (fraction + 1))) {
        units /= 2;
        e++;
    }
    if (e > bias) {
        return sign | inf;
    }
    int u = (int)units;
    return u < 1 << fraction ? sign | (uint16_t)u
                             : sign | (uint16_t)(((e + bias) << fraction) + (u - (1 << fraction)));
}

/* f8e5m2 is an f16 cut short. f8e4m3 by search: its 127 numbers from 0 to 448, then NaN. */
static inline real e4m3_value(int i)
{
    return i < 8 ? ldexpl(i, -9) : ldexpl(8 + i % 8, i / 8 - 10);
}
static inline uint8_t e4m3_encode(real x)
{
    uint8_t sign = signbit(x) ? 0x80 : 0;
    real a = fabsl(x);
    int i = 0;
    if (isnan(x) || a > 464) {
        return sign | 0x7f;
    }
    while (i < 0x7e && e4m3_value(i + 1) <= a) {
        i++;
    }
    real below = a - e4m3_value(i), above = e4m3_value(i + 1) - a; /* 480 would follow 448 */
    return sign | (uint8_t)(below < above || (below == above && i % 2 == 0) ? i : i + 1);
}
static inline real e4m3_decode(uint8_t v)
{
    real x = (v & 0x7f) == 0x7f ? (real)NAN : e4m3_value(v & 0x7f);
    return v & 0x80 ? -x : x;
}
static inline uint8_t e5m2_encode(real x)
{
    uint8_t sign = signbit(x) ? 0x80 : 0;
    real a = fabsl(x);
    int e = a > 0 && !isinf(a) ? ilogbl(a) : 0;
    real unit = ldexpl(1, (e < -14 ? -14 : e) - 2), rounded = isnan(x) || isinf(x) ? a : rintl(a / unit) * unit;
    return sign | (isnan(x) ? 0x7e : rounded >= 65536 ? 0x7c : small_encode(rounded, 10, 15) >> 8);
}

static inline real decode(dm_dtype t, const void *at) /* little-endian hosts */
{
    double d;
    float f;
    uint64_t bits = 0;
    memcpy(&bits, at, (size_t)width_of(t));
    switch (t) {
    case DM_F64:
        memcpy(&d, at, sizeof d);
        return d;
    case DM_F32:
        memcpy(&f, at, sizeof f);
        return f;
    case DM_F16:
        return small_decode((uint16_t)bits, 10, 15);
    case DM_BF16:
        return small_decode((uint16_t)bits, 7, 127);
    case DM_F8E4M3:
        return e4m3_decode((uint8_t)bits);
    case DM_F8E5M2:
        return small_decode((uint16_t)(bits << 8), 10, 15);
    default: {
        real range = ldexpl(1, (int)(8 * width_of(t)));
        return has_sign(t) && bits >> (8 * width_of(t) - 1) ? (real)bits - range : (real)bits;
    }
    }
}

/* The 64 bits of a whole number from -2^63 to 2^64 - 1. */
static inline uint64_t wrapped(real x)
{
    return x < 0 ? (uint64_t)(int64_t)x : (uint64_t)x;
}

/* The value of a floating type, rounded to type t. */
static inline void encode_float(dm_dtype t, real x, void *at)
{
    double d = (double)x;
    float f = (float)x;
    if (t == DM_F64 || t == DM_F32) {
        memcpy(at, t == DM_F64 ? (const void *)&d : &f, (size_t)width_of(t));
        return;
    }
    if (floating(t)) {
        uint16_t h = t == DM_F16      ? small_encode(x, 10, 15)
                     : t == DM_BF16   ? small_encode(x, 7, 127)
                     : t == DM_F8E4M3 ? e4m3_encode(x)
                                      : e5m2_encode(x);
        memcpy(at, &h, (size_t)width_of(t));
        return;
    }
    real range = ldexpl(1, (int)(8 * width_of(t))), low = has_sign(t) ? -range / 2 : 0, high = low + range - 1;
    real c = isnan(x) ? 0 : truncl(x);
    uint64_t bits = t == DM_BOOL ? x != 0 : wrapped(c < low ? low : c > high ? high : c);
    memcpy(at, &bits, (size_t)width_of(t));
}
/* The value of an integer type: integers wrap. */
static inline void encode_int(dm_dtype t, int64_t x, void *at)
{
    if (floating(t) || t == DM_BOOL) {
        encode_float(t, (real)x, at);
        return;
    }
    memcpy(at, &x, (size_t)width_of(t));
}
static inline void convert_one(dm_dtype from, const void *src, dm_dtype to, void *dst)
{
    real x = decode(from, src);
    if (floating(from) || floating(to)) {
        encode_float(to, x, dst);
    } else {
        encode_int(to, (int64_t)wrapped(x), dst);
    }
}

/* --- complex types: two numbers of the type of their parts --- */
static inline bool is_complex(dm_dtype t)
{
    return t == DM_C64 || t == DM_C128;
}
static inline dm_dtype part_of(dm_dtype t)
{
    return t == DM_C64 ? DM_F32 : t == DM_C128 ? DM_F64 : t;
}
static inline int parts_in(dm_dtype t)
{
    return is_complex(t) ? 2 : 1;
}

/* The same bits, or both NaN. */
static inline bool same_element(dm_dtype t, const void *a, const void *b)
{
    if (memcmp(a, b, (size_t)width_of(t)) == 0) {
        return true;
    }
    return floating(t) && isnan(decode(t, a)) && isnan(decode(t, b));
}

/* Every one of n elements has the bits of the expected one, or both are NaN. Of a real type. */
static inline void check_same(const char *what, dm_dtype t, const void *got, const void *expected, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        const char *g = (const char *)got + i * width_of(t), *e = (const char *)expected + i * width_of(t);
        if (!same_element(t, g, e)) {
            fail_msg("%s: element %lld of %lld (%s): %.20Lg, not %.20Lg", what, (long long)i, (long long)n,
                     dmi_dtype_name(t), decode(t, g), decode(t, e));
        }
    }
}

/* The same of any type: complex numbers part by part. */
static inline void check_parts(const char *what, dm_dtype t, const void *got, const void *expected, int64_t n)
{
    check_same(what, part_of(t), got, expected, n * parts_in(t));
}

/* --- test data ------------------------------------------------------------------------------ */
typedef struct rng {
    uint64_t s;
} rng;
static inline uint64_t rng_next(rng *r)
{
    r->s ^= r->s << 13;
    r->s ^= r->s >> 7;
    r->s ^= r->s << 17;
    return r->s * 0x2545F4914F6CDD1Du;
}
static inline int64_t rng_in(rng *r, int64_t lo, int64_t hi) /* lo .. hi */
{
    return lo + (int64_t)((rng_next(r) >> 8) % (uint64_t)(hi - lo + 1));
}
/* Any type, complex ones too. */
static inline dm_dtype any_dtype(rng *r)
{
    int64_t i = rng_in(r, 0, ALL_DTYPES + 1);
    return i < ALL_DTYPES ? all_dtypes[i] : i == ALL_DTYPES ? DM_C64 : DM_C128;
}
/* Random elements: arbitrary bits, special values, and numbers of middling size. */
static inline void random_element(rng *r, dm_dtype t, void *at)
{
    static const double special[] = {0,   -0.0,     1,         -1,      0.5,    -2.5,    3.5,       255,
                                     256, 1e5,      65519.0,   65520.0, 0x1p31, -0x1p31, 0x1p63,    -0x1p63,
                                     NAN, INFINITY, -INFINITY, 1e300,   1e-300, 0x1p-24, 0x1.8p-25, 0x1p-133};
    uint64_t bits = rng_next(r);
    switch (rng_in(r, 0, 2)) {
    case 0:
        bits &= t == DM_BOOL ? 1 : UINT64_MAX;
        memcpy(at, &bits, (size_t)width_of(t));
        return;
    case 1:
        encode_float(t, special[rng_in(r, 0, DMI_COUNT(special) - 1)], at);
        return;
    default:
        encode_float(t, (real)rng_in(r, -100000, 100000) / (floating(t) ? 64 : 700), at);
        return;
    }
}
/* Small whole numbers: sums and products of them are exact in every type. */
static inline void small_element(rng *r, dm_dtype t, void *at)
{
    encode_int(t, rng_in(r, has_sign(t) ? -4 : 0, 4), at);
}

/* Strides for the extents in a random order of the dims, with gaps; returns how many elements it spans. */
static inline int64_t random_strides(rng *r, int ndim, const int64_t *extent, int64_t *stride)
{
    int order[DM_MAX_DIMS];
    int64_t span = 1, gap = rng_in(r, 0, 2) == 0 ? rng_in(r, 1, 3) : 1;
    bool shuffled = rng_in(r, 0, 1) == 1;
    for (int d = 0; d < ndim; d++) {
        order[d] = ndim - 1 - d;
    }
    for (int d = ndim - 1; d > 0 && shuffled; d--) {
        int other = (int)rng_in(r, 0, d), t = order[d];
        order[d] = order[other];
        order[other] = t;
    }
    for (int d = 0; d < ndim; d++) {
        stride[order[d]] = span * (d == 0 ? gap : 1);
        span = stride[order[d]] * (extent[order[d]] + (rng_in(r, 0, 3) == 0 ? rng_in(r, 0, 2) : 0));
        span = span > 0 ? span : 1;
    }
    return span;
}

/* --- random copies ----------------------------------------------------------------------------- */
typedef struct geometry {
    dmi_copy d;
    dmi_run *runs[DM_MAX_DIMS];
    int64_t src_span, dst_span; /* elements, offsets included */
} geometry;

/* Runs of one dim: one, equal ones, or any. Returns how many elements; the positions they span in *a and *b. */
static inline int64_t random_runs(rng *r, int64_t longest, dmi_run **out, int64_t *nrun, int64_t *a, int64_t *b)
{
    int64_t kind = rng_in(r, 0, 3), n = kind == 0 ? 1 : rng_in(r, kind == 1 ? 0 : 1, 6), count = 0;
    int64_t len = rng_in(r, 1, longest), gap_a = rng_in(r, 0, 2), gap_b = rng_in(r, 0, 2);
    dmi_run *runs = calloc((size_t)n + 1, sizeof *runs);
    assert_non_null(runs);
    *a = *b = 0;
    for (int64_t i = 0; i < n; i++) {
        int64_t l = kind == 2 ? rng_in(r, 1, longest) : len;
        *a += kind == 2 ? rng_in(r, 0, 2) : gap_a;
        *b += kind == 2 ? rng_in(r, 0, 2) : gap_b;
        runs[i] = (dmi_run){.index = -1, .a = *a, .b = *b, .len = l};
        *a += l;
        *b += l;
        count += l;
    }
    *out = runs;
    *nrun = n;
    return count;
}

static inline void make_geometry(rng *r, int ndim, int64_t longest, geometry *g)
{
    int64_t src_extent[DM_MAX_DIMS], dst_extent[DM_MAX_DIMS];
    memset(g, 0, sizeof *g);
    g->d.ndim = ndim;
    g->d.count = 1;
    for (int k = 0; k < ndim; k++) {
        int64_t most = rng_in(r, 0, 3) == 0 ? 1 : longest;
        g->d.count *= random_runs(r, most, &g->runs[k], &g->d.nrun[k], &src_extent[k], &dst_extent[k]);
        g->d.run[k] = g->runs[k];
    }
    g->d.src_offset = rng_in(r, 0, 5);
    g->d.dst_offset = rng_in(r, 0, 5);
    g->src_span = g->d.src_offset + random_strides(r, ndim, src_extent, g->d.src_stride);
    g->dst_span = g->d.dst_offset + random_strides(r, ndim, dst_extent, g->d.dst_stride);
    if (ndim > 0 && rng_in(r, 0, 5) == 0) {
        g->d.src_stride[rng_in(r, 0, ndim - 1)] = 0; /* broadcast */
    }
}

static inline void free_geometry(geometry *g)
{
    for (int k = 0; k < g->d.ndim; k++) {
        free(g->runs[k]);
    }
}

static inline void *random_array(rng *r, dm_dtype t, int64_t n)
{
    char *p = malloc((size_t)(n * width_of(t)) + 1);
    assert_non_null(p);
    for (int64_t i = 0; i < n * parts_in(t); i++) {
        random_element(r, part_of(t), p + i * width_of(part_of(t)));
    }
    return p;
}

/* --- fills --- */
static inline void whole_fill(int kind, dm_dtype t, int ndim, const int64_t *shape, dmi_fill *d)
{
    int64_t stride = 1;
    memset(d, 0, sizeof *d);
    d->kind = kind;
    d->dtype = t;
    d->region.ndim = ndim;
    for (int k = ndim - 1; k >= 0; k--) {
        d->shape[k] = shape[k];
        d->region.dim[k] = dmi_dimset_interval(0, shape[k]);
        d->region.stride[k] = stride;
        stride *= shape[k];
    }
    d->region.count = stride;
}

/* Strides of a box, dense in half of the cases: the elements from the first to the last. */
static inline int64_t some_strides(rng *r, int ndim, const int64_t *extent, int64_t *stride)
{
    int64_t dense = 1;
    if (rng_in(r, 0, 1)) {
        return random_strides(r, ndim, extent, stride);
    }
    for (int k = ndim - 1; k >= 0; k--) {
        stride[k] = dense;
        dense *= extent[k];
    }
    return dense;
}

/* Any fold of addends of type `type` to a result of type `out`. span: elements of the rows, the result, the
 * addend that is none of them; at least one each. */
static inline void random_fold(rng *r, dm_dtype type, dm_dtype out, dmi_fold *d, int64_t span[3])
{
    dmi_acc_store *s = &d->store;
    int64_t n = 1;
    memset(d, 0, sizeof *d);
    d->dtype = type;
    d->addends = (int)rng_in(r, 1, 6);
    d->own = (int)rng_in(r, -1, d->addends - 1);
    s->acc = dmi_acc_of(type);
    s->out_dtype = out;
    s->ndim = (int)rng_in(r, 0, 3);
    for (int k = 0; k < s->ndim; k++) {
        s->extent[k] = rng_in(r, 0, 20) == 0 ? 0 : rng_in(r, 1, s->ndim == 1 ? 1300 : s->ndim == 2 ? 40 : 9);
        n *= s->extent[k];
    }
    d->pitch = rng_in(r, 0, 1) ? (n + 7) / 8 * 8 : n + rng_in(r, 0, 3);
    s->out_offset = 4 * rng_in(r, 0, 2) + (rng_in(r, 0, 3) == 0);
    d->own_offset = 4 * rng_in(r, 0, 2) + (rng_in(r, 0, 3) == 0);
    span[0] = d->pitch * d->addends + 1;
    span[1] = s->out_offset + some_strides(r, s->ndim, s->extent, s->out_stride) + 1;
    span[2] = d->own_offset + some_strides(r, s->ndim, s->extent, d->own_stride) + 1;
}

#endif

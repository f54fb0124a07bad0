/* Random elements by their row-major index in the array, i.
 *
 * Words: Philox4x32-10 with key (k0, k1) = (low, high half of the seed) and counter (c0, c1, c2, c3) =
 * (low, high half of the counter number, stream, 0); the stream is 0 for UNIFORM and 1 for NORMAL. The four
 * words w0..w3 of a counter serve UNIFORM f64, integers, bool:  two elements, counter i / 2: i % 2 == 0 has
 * (w1:w0), 1 has (w3:w2), w0 and w2 the low halves. f64 uses the upper 53 bits, integers all 64 UNIFORM f32,
 * f16, bf16:     four elements, counter i / 4, word i % 4, its upper 24 bits NORMAL  f64:                two
 * elements, counter i / 2: radius from (w1:w0), angle from (w3:w2); i % 2 == 0 is the cosine, 1 the sine NORMAL
 * f32, f16, bf16:     four elements, counter i / 4: two such pairs, radius and angle from w0, w1 and from w2,
 * w3 The arithmetic from there on is in kernels/random/random.h. The 16-bit floats are the f32 values, rounded. */
#include "kernels/cpu/simd.h"
#include "kernels/random/distributions.h"
#include "kernels/random/fill_random.h"

#include <assert.h>
#if defined(__SSE2__)
#include <immintrin.h>
#endif

enum { COUNTERS = DMI_BATCH_COUNTERS };

typedef struct words {
    uint32_t w0[COUNTERS], w1[COUNTERS], w2[COUNTERS], w3[COUNTERS];
} words;

static void make_words_plain(uint64_t first, int n, uint32_t stream, uint64_t seed, words *out)
{
    uint32_t c0 = (uint32_t)first, c1 = (uint32_t)(first >> 32);
    for (int j = 0; j < n; j++) {
        uint32_t low = c0 + (uint32_t)j;
        dmi_words w = dmi_philox_block(low, c1 + (low < c0), stream, 0, (uint32_t)seed, (uint32_t)(seed >> 32));
        out->w0[j] = w.w0;
        out->w1[j] = w.w1;
        out->w2[j] = w.w2;
        out->w3[j] = w.w3;
    }
}

#if defined(DMI_HAVE_WIDE)
/* One word in each 64-bit vector lane: the multiplication reads the lower halves alone, so what the upper ones
 * hold is of no matter until the end. */
DMI_WIDE static __m256i low_halves(__m256i a, __m256i b)
{
    __m256i ab = _mm256_castps_si256(_mm256_shuffle_ps(_mm256_castsi256_ps(a), _mm256_castsi256_ps(b), 0x88));
    return _mm256_permute4x64_epi64(ab, 0xd8);
}
DMI_WIDE static void make_words_wide(uint64_t first, int n, uint32_t stream, uint64_t seed, words *out)
{
    const __m256i left = _mm256_set1_epi64x(0xD2511F53), right = _mm256_set1_epi64x(0xCD9E8D57);
    const __m256i four = _mm256_set1_epi64x(4);
    __m256i counter = _mm256_add_epi64(_mm256_set1_epi64x((int64_t)first), _mm256_set_epi64x(3, 2, 1, 0));
    for (int j = 0; j < n; j += 8) { /* COUNTERS is a multiple of 8: the arrays have room for the last batch */
        __m256i c0[2], c1[2], c2[2], c3[2];
        uint32_t k0 = (uint32_t)seed, k1 = (uint32_t)(seed >> 32);
        for (int h = 0; h < 2; h++) {
            c0[h] = counter;
            c1[h] = _mm256_srli_epi64(counter, 32);
            c2[h] = _mm256_set1_epi64x(stream);
            c3[h] = _mm256_setzero_si256();
            counter = _mm256_add_epi64(counter, four);
        }
        for (int round = 0; round < 10; round++) {
            const __m256i key0 = _mm256_set1_epi64x(k0), key1 = _mm256_set1_epi64x(k1);
            for (int h = 0; h < 2; h++) {
                __m256i p = _mm256_mul_epu32(c0[h], left), q = _mm256_mul_epu32(c2[h], right);
                c0[h] = _mm256_xor_si256(_mm256_srli_epi64(q, 32), _mm256_xor_si256(c1[h], key0));
                c2[h] = _mm256_xor_si256(_mm256_srli_epi64(p, 32), _mm256_xor_si256(c3[h], key1));
                c1[h] = q;
                c3[h] = p;
            }
            k0 += 0x9E3779B9u;
            k1 += 0xBB67AE85u;
        }
        _mm256_storeu_si256((__m256i *)(out->w0 + j), low_halves(c0[0], c0[1]));
        _mm256_storeu_si256((__m256i *)(out->w1 + j), low_halves(c1[0], c1[1]));
        _mm256_storeu_si256((__m256i *)(out->w2 + j), low_halves(c2[0], c2[1]));
        _mm256_storeu_si256((__m256i *)(out->w3 + j), low_halves(c3[0], c3[1]));
    }
}
#endif

static void make_words(uint64_t first, int n, uint32_t stream, uint64_t seed, words *out)
{
#if defined(DMI_HAVE_WIDE)
    if (dmi_cpu_wide()) {
        make_words_wide(first, n, stream, seed, out);
        return;
    }
#endif
    make_words_plain(first, n, stream, seed, out);
}

DMI_BODY void uniform_f64_body(const words *w, int n, const dmi_uniform64 *r, double *out)
{
    dmi_uniform64 range = *r;
    for (int j = 0; j < n; j++) {
        out[2 * j] = dmi_uniform64_at(&range, w->w0[j], w->w1[j]);
        out[2 * j + 1] = dmi_uniform64_at(&range, w->w2[j], w->w3[j]);
    }
}
DMI_TWICE(static, uniform_f64, (const words *w, int n, const dmi_uniform64 *r, double *out), (w, n, r, out))

DMI_BODY void uniform_f32_body(const words *w, int n, const dmi_uniform32 *r, float *out)
{
    dmi_uniform32 range = *r;
    for (int j = 0; j < n; j++) {
        out[4 * j] = dmi_uniform32_at(&range, w->w0[j]);
        out[4 * j + 1] = dmi_uniform32_at(&range, w->w1[j]);
        out[4 * j + 2] = dmi_uniform32_at(&range, w->w2[j]);
        out[4 * j + 3] = dmi_uniform32_at(&range, w->w3[j]);
    }
}
DMI_TWICE(static, uniform_f32, (const words *w, int n, const dmi_uniform32 *r, float *out), (w, n, r, out))

/* Square roots in place. Written out, for a sqrt() that may set errno keeps a loop from being vectorised. */
static void sqrt_row_f64(double *x, int n)
{
    int i = 0;
#if defined(__SSE2__)
    for (; i + 2 <= n; i += 2) {
        _mm_storeu_pd(x + i, _mm_sqrt_pd(_mm_loadu_pd(x + i)));
    }
#endif
    for (; i < n; i++) {
        x[i] = DMI_SQRT(x[i]);
    }
}
static void sqrt_row_f32(float *x, int n)
{
    int i = 0;
#if defined(__SSE2__)
    for (; i + 4 <= n; i += 4) {
        _mm_storeu_ps(x + i, _mm_sqrt_ps(_mm_loadu_ps(x + i)));
    }
#endif
    for (; i < n; i++) {
        x[i] = DMI_SQRTF(x[i]);
    }
}

/* Box-Muller in two passes, before and after the square roots. */
DMI_BODY void radius2_f64_body(const words *w, int n, double *r)
{
    for (int j = 0; j < n; j++) {
        r[j] = dmi_radius2_64(w->w0[j], w->w1[j]);
    }
}
DMI_TWICE(static, radius2_f64, (const words *w, int n, double *r), (w, n, r))

DMI_BODY void turn_f64_body(const words *w, const double *r, int n, double mean, double deviation, double *out)
{
    for (int j = 0; j < n; j++) {
        dmi_pair64 t = dmi_turn_64(w->w2[j], w->w3[j]);
        out[2 * j] = DMI_FMA(deviation, DMI_MUL(r[j], t.c), mean);
        out[2 * j + 1] = DMI_FMA(deviation, DMI_MUL(r[j], t.s), mean);
    }
}
DMI_TWICE(static, turn_f64,
          (const words *w, const double *r, int n, double mean, double deviation, double *out),
          (w, r, n, mean, deviation, out))

DMI_BODY void radius2_f32_body(const words *w, int n, float *r)
{
    for (int j = 0; j < n; j++) {
        r[j] = dmi_radius2_32(w->w0[j]);
    }
    for (int j = 0; j < n; j++) {
        r[COUNTERS + j] = dmi_radius2_32(w->w2[j]);
    }
}
DMI_TWICE(static, radius2_f32, (const words *w, int n, float *r), (w, n, r))

DMI_BODY void turn_f32_body(const words *w, const float *r, int n, float mean, float deviation, float *out)
{
    for (int j = 0; j < n; j++) {
        dmi_pair32 t = dmi_turn_32(w->w1[j]), u = dmi_turn_32(w->w3[j]);
        out[4 * j] = DMI_FMAF(deviation, DMI_MULF(r[j], t.c), mean);
        out[4 * j + 1] = DMI_FMAF(deviation, DMI_MULF(r[j], t.s), mean);
        out[4 * j + 2] = DMI_FMAF(deviation, DMI_MULF(r[COUNTERS + j], u.c), mean);
        out[4 * j + 3] = DMI_FMAF(deviation, DMI_MULF(r[COUNTERS + j], u.s), mean);
    }
}
DMI_TWICE(static, turn_f32, (const words *w, const float *r, int n, float mean, float deviation, float *out),
          (w, r, n, mean, deviation, out))

static void normal_f64(const words *w, int n, double mean, double deviation, double *out)
{
    double r[COUNTERS];
    radius2_f64(w, n, r);
    sqrt_row_f64(r, n);
    turn_f64(w, r, n, mean, deviation, out);
}
static void normal_f32(const words *w, int n, float mean, float deviation, float *out)
{
    float r[2 * COUNTERS];
    radius2_f32(w, n, r);
    sqrt_row_f32(r, n);
    sqrt_row_f32(r + COUNTERS, n);
    turn_f32(w, r, n, mean, deviation, out);
}

/* --- gamma, Poisson: an element a counter --- */
static bool single(int kind)
{
    return kind == DMI_FILL_GAMMA || kind == DMI_FILL_POISSON;
}

static void single_f64(const dmi_random *g, uint64_t first, int n, double *out)
{
    const dmi_fill_values *v = &g->values;
    double p0 = dmi_single_parameter(g->kind == DMI_FILL_GAMMA, v);
    for (int j = 0; j < n; j++) {
        uint64_t index = first + (uint64_t)j;
        out[j] = g->kind == DMI_FILL_GAMMA ? DMI_MUL(v->p1, dmi_gamma_at(p0, index, v->seed))
                                           : dmi_poisson_at(p0, index, v->seed);
    }
}

/* --- all kinds --- */
void dmi_random_init(int kind, dm_dtype dtype, const dmi_fill_values *v, dmi_random *out)
{
    out->kind = kind;
    out->values = *v;
    out->make = single(kind) ? DM_F64 : !dmi_dtype_is_float(dtype) ? DM_I64 : dtype != DM_F64 ? DM_F32 : DM_F64;
    out->per = single(kind) ? 1 : out->make == DM_F32 ? 4 : 2;
    out->width = dmi_uniform_width(dtype != DM_U64, v->i0, v->i1);
    out->range64 = dmi_uniform64_make(v->p0, v->p1);
    out->range32 = dmi_uniform32_of(dtype, v->p0, v->p1);
}

_Static_assert(DMI_FILL_UNIFORM + 4 == DMI_FILL_KINDS,
               "a kind that dmi_random_batch does not know would be uniform");
void dmi_random_batch(const dmi_random *g, uint64_t first, int n, dmi_chunk *out)
{
    const dmi_fill_values *v = &g->values;
    bool normal = g->kind == DMI_FILL_NORMAL;
    assert(g->kind >= DMI_FILL_UNIFORM && g->kind < DMI_FILL_KINDS);
    words w;
    if (single(g->kind)) {
        single_f64(g, first, n, out->f64);
        return;
    }
    make_words(first, n, normal ? DMI_STREAM_NORMAL : DMI_STREAM_UNIFORM, v->seed, &w);
    if (g->make == DM_F64) {
        if (normal) {
            normal_f64(&w, n, v->p0, v->p1, out->f64);
        } else {
            uniform_f64(&w, n, &g->range64, out->f64);
        }
    } else if (g->make == DM_F32) {
        if (normal) {
            normal_f32(&w, n, (float)v->p0, (float)v->p1, out->f32);
        } else {
            uniform_f32(&w, n, &g->range32, out->f32);
        }
    } else {
        for (int j = 0; j < n; j++) {
            out->i64[2 * j] = dmi_uniform_int_at(v->i0, g->width, w.w0[j], w.w1[j]);
            out->i64[2 * j + 1] = dmi_uniform_int_at(v->i0, g->width, w.w2[j], w.w3[j]);
        }
    }
}

#include "support/host.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* One allocation each, so that the sanitizers see the ends of every tensor. */
typedef struct chunk {
    struct chunk *next;
    max_align_t memory[];
} chunk;

void *dmt_alloc(dmt_scratch *scratch, int64_t bytes)
{
    chunk *c = calloc(1, sizeof *c + (size_t)bytes);
    if (!c) {
        fprintf(stderr, "the test is out of memory\n");
        abort();
    }
    c->next = scratch->head;
    scratch->head = c;
    return c->memory;
}

void dmt_scratch_free(dmt_scratch *scratch)
{
    for (chunk *c = scratch->head; c;) {
        chunk *next = c->next;
        free(c);
        c = next;
    }
    scratch->head = NULL;
}

int64_t dmt_count(int ndim, const int64_t *shape)
{
    int64_t count = 1;
    for (int d = 0; d < ndim; d++) {
        count *= shape[d];
    }
    return count;
}

int64_t dmt_linear(int ndim, const int64_t *shape, const int64_t *index)
{
    int64_t linear = 0;
    for (int d = 0; d < ndim; d++) {
        linear = linear * shape[d] + index[d];
    }
    return linear;
}

void dmt_unlinear(int ndim, const int64_t *shape, int64_t linear, int64_t *index)
{
    for (int d = ndim - 1; d >= 0; d--) {
        index[d] = linear % shape[d];
        linear /= shape[d];
    }
}

bool dmt_next(int ndim, const int64_t *shape, int64_t *index)
{
    for (int d = ndim - 1; d >= 0; d--) {
        if (++index[d] < shape[d]) {
            return true;
        }
        index[d] = 0;
    }
    return false;
}

int64_t dmt_broadcast(const dmt_host *h, const dmt_host *out, int64_t linear)
{
    int64_t index[DM_MAX_DIMS], own[DM_MAX_DIMS];
    dmt_unlinear(out->ndim, out->shape, linear, index);
    for (int d = 0; d < h->ndim; d++) {
        own[d] = h->shape[d] == 1 ? 0 : index[out->ndim - h->ndim + d];
    }
    return dmt_linear(h->ndim, h->shape, own);
}

dmt_host *dmt_host_make(dmt_scratch *scratch, dm_dtype dtype, int ndim, const int64_t *shape)
{
    dmt_host *h = dmt_alloc(scratch, sizeof *h);
    h->dtype = dtype;
    h->ndim = ndim;
    for (int d = 0; d < ndim; d++) {
        h->shape[d] = shape[d];
    }
    h->count = dmt_count(ndim, shape);
    h->v = dmt_alloc(scratch, h->count * (int64_t)sizeof *h->v);
    return h;
}

dmt_host *dmt_host_copy(dmt_scratch *scratch, const dmt_host *h)
{
    dmt_host *copy = dmt_host_make(scratch, h->dtype, h->ndim, h->shape);
    memcpy(copy->v, h->v, (size_t)h->count * sizeof *h->v);
    return copy;
}

static long double random_whole(dm_dtype dtype, dmt_random *r, int kind)
{
    int64_t most = kind == DMT_SMALL ? 4 : 100;
    long double low = dmt_int_min(dtype), high = dmt_int_max(dtype);
    if (kind == DMT_WILD) {
        return dmt_from_whole(dtype, (int64_t)dmt_bits(r));
    }
    return (long double)dmt_int(r, low < 0 ? -most : 0, high < most ? (int64_t)high : most);
}

static long double random_real(dm_dtype dtype, dmt_random *r, int kind)
{
    static const double specials[] = {NAN, INFINITY, -INFINITY, 0.0, -0.0};
    if (kind == DMT_SMALL) {
        return (long double)dmt_int(r, -4, 4);
    }
    if (kind == DMT_WILD) {
        uint64_t bits = dmt_bits(r);
        /* Half of them in the range where the narrower types have numbers too, so that all of rounding is met.
         */
        return dmt_chance(r, 50) ? dmt_decode(dtype, &bits)
                                 : dmt_from_real(dtype, ldexpl((long double)dmt_int(r, -0x40000000, 0x40000000),
                                                               (int)dmt_int(r, -60, -10)));
    }
    if (kind == DMT_ODD && dmt_chance(r, 5)) {
        return dmt_from_real(dtype, specials[dmt_int(r, 0, 4)]);
    }
    return dmt_from_real(dtype, 4.0L * (long double)dmt_unit(r) - 2.0L);
}

void dmt_host_random(dmt_host *h, dmt_random *r, int kind)
{
    for (int64_t i = 0; i < h->count; i++) {
        h->v[i] = dmt_is_float(h->dtype) ? random_real(h->dtype, r, kind) : random_whole(h->dtype, r, kind);
    }
}

void dmt_host_set(dmt_host *h, long double v)
{
    for (int64_t i = 0; i < h->count; i++) {
        h->v[i] = v;
    }
}

void *dmt_host_pack(dmt_scratch *scratch, const dmt_host *h)
{
    int64_t size = dmt_bytes(h->dtype);
    char *bytes = dmt_alloc(scratch, h->count * size);
    for (int64_t i = 0; i < h->count; i++) {
        dmt_encode(h->dtype, h->v[i], bytes + i * size);
    }
    return bytes;
}

void dmt_host_unpack(dmt_host *h, const void *bytes)
{
    int64_t size = dmt_bytes(h->dtype);
    for (int64_t i = 0; i < h->count; i++) {
        h->v[i] = dmt_decode(h->dtype, (const char *)bytes + i * size);
    }
}

/* Copies between a rectangle of h and part, in the direction asked for. */
static void move_part(dmt_host *h, const int64_t *lo, dmt_host *part, bool take)
{
    int64_t index[DM_MAX_DIMS] = {0}, at[DM_MAX_DIMS];
    int64_t i = 0;
    if (part->count == 0) {
        return;
    }
    do {
        for (int d = 0; d < h->ndim; d++) {
            at[d] = lo[d] + index[d];
        }
        int64_t j = dmt_linear(h->ndim, h->shape, at);
        if (take) {
            part->v[i++] = h->v[j];
        } else {
            h->v[j] = part->v[i++];
        }
    } while (dmt_next(part->ndim, part->shape, index));
}

void dmt_host_take(const dmt_host *h, const int64_t *lo, dmt_host *part)
{
    dmt_host view = *h;
    move_part(&view, lo, part, true);
}

void dmt_host_put(dmt_host *h, const int64_t *lo, const dmt_host *part)
{
    dmt_host source = *part;
    move_part(h, lo, &source, false);
}

const char *dmt_shape_text(int ndim, const int64_t *shape, char text[160])
{
    int used = snprintf(text, 160, "[");
    for (int d = 0; d < ndim; d++) {
        used += snprintf(text + used, (size_t)(160 - used), "%s%" PRId64, d ? ", " : "", shape[d]);
    }
    snprintf(text + used, (size_t)(160 - used), "]");
    return text;
}

static bool within(dm_dtype dtype, long double got, long double want, long double bound)
{
    if (isnan(want) && dmt_is_float(dtype)) {
        return isnan(got);
    }
    if (dtype == DM_BOOL) { /* not in order: any number but 0 is 1 */
        bool may_be_0 = want - bound <= 0 && want + bound >= 0, may_be_1 = want != 0 || bound > 0;
        return got == 0 ? may_be_0 : got == 1 && may_be_1;
    }
    long double low = dmt_from_real(dtype, want - bound), high = dmt_from_real(dtype, want + bound);
    if (isnan(want) || isinf(want) || isnan(bound)) {
        low = high = dmt_from_real(dtype, want);
    }
    if (dmt_is_float(dtype) && (isnan(low) || isnan(high))) { /* a type without Inf: around its end */
        return isnan(got) || got == low || got == high;
    }
    return got >= low && got <= high;
}

static bool same(dm_dtype dtype, long double got, long double want)
{
    if (dmt_is_float(dtype) && (isnan(got) || isnan(want))) {
        return isnan(got) && isnan(want);
    }
    return got == want && !signbit(got) == !signbit(want);
}

static void say_where(const dmt_host *got, const dmt_host *want, int64_t at, int64_t wrong, long double bound,
                      char *text, int bytes)
{
    int64_t index[DM_MAX_DIMS];
    char where[160];
    dmt_unlinear(got->ndim, got->shape, at, index);
    snprintf(text, (size_t)bytes,
             "%" PRId64 " of %" PRId64
             " elements differ, first at %s: got %.21Lg, want %.21Lg (%s, bound %.3Lg)",
             wrong, got->count, dmt_shape_text(got->ndim, index, where), got->v[at], want->v[at],
             dmt_name(got->dtype), bound);
}

bool dmt_host_within(const dmt_host *got, const dmt_host *want, const dmt_host *bound, char *text, int bytes)
{
    int64_t first = -1, wrong = 0;
    for (int64_t i = 0; i < got->count; i++) {
        if (!within(got->dtype, got->v[i], want->v[i], bound ? bound->v[i] : 0)) {
            first = wrong++ ? first : i;
        }
    }
    if (wrong) {
        say_where(got, want, first, wrong, bound ? bound->v[first] : 0, text, bytes);
    }
    return wrong == 0;
}

bool dmt_host_same(const dmt_host *got, const dmt_host *want, char *text, int bytes)
{
    int64_t first = -1, wrong = 0;
    for (int64_t i = 0; i < got->count; i++) {
        if (!same(got->dtype, got->v[i], want->v[i])) {
            first = wrong++ ? first : i;
        }
    }
    if (wrong) {
        say_where(got, want, first, wrong, 0, text, bytes);
    }
    return wrong == 0;
}

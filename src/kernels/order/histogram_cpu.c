/* Counts of elements by bins. */
#include "kernels/box/convert.h"
#include "kernels/kernel.h"
#include "kernels/order/search_cpu.h"

#include <assert.h>
#include <string.h>

enum { X, WEIGHT, NOWHERE = -1 };

/* Bins of equal width: from the width, and then by the edges, which rounding may have put on the other side. */
static void places_in_range(const dmi_histogram *d, const double *x, int64_t n, int64_t *place)
{
    const double step = (d->hi - d->lo) / (double)d->bins, scale = (double)d->bins / (d->hi - d->lo);
    const int64_t last = d->bins - 1;
    for (int64_t i = 0; i < n; i++) {
        double v = x[i];
        if (!(v >= d->lo && v <= d->hi)) {
            place[i] = NOWHERE;
            continue;
        }
        int64_t k = (int64_t)((v - d->lo) * scale);
        k = k > last ? last : k;
        k -= k > 0 && v < d->lo + (double)k * step;
        k += k < last && v >= d->lo + (double)(k + 1) * step;
        place[i] = k;
    }
}

static void places_by_edges(const dmi_histogram *d, const void *edges, const void *x, int64_t n, int64_t *place)
{
    int64_t bytes = dmi_dtype_bytes(d->type), left[DMI_CHUNK];
    dmi_search_row(d->type, edges, d->bins + 1, true, false, x, n, place);
    dmi_search_row(d->type, dmi_at(edges, d->bins * bytes), 1, false, false, x, n,
                   left); /* 1: beyond the last edge */
    for (int64_t i = 0; i < n; i++) {
        int64_t k = place[i] - 1;
        place[i] = left[i] > 0 ? NOWHERE : DMI_MIN(k, d->bins - 1);
    }
}

static void places_whole(const dmi_histogram *d, const void *x, int64_t n, int64_t *place)
{
    const int64_t *whole = x;
    for (int64_t i = 0; i < n; i++) { /* a u64 beyond i64 is negative here, and in no bin */
        place[i] = whole[i] >= 0 && whole[i] < d->bins ? whole[i] : NOWHERE;
    }
}

static void count(const int64_t *place, int64_t n, int64_t *counts)
{
    for (int64_t i = 0; i < n; i++) {
        if (place[i] >= 0) {
            counts[place[i]]++;
        }
    }
}

static void count_weights(const dmi_histogram *d, const int64_t *place, const void *weights, int64_t stride,
                          int64_t n, void *counts)
{
    dmi_chunk buffer;
    bool real = dmi_dtype_is_float(d->weights);
    const void *w = dmi_row_load(d->weights, weights, stride, real ? DM_F64 : DM_I64, &buffer, n);
    for (int64_t i = 0; i < n; i++) {
        if (place[i] < 0) {
            continue;
        }
        if (real) {
            ((double *)counts)[place[i]] += ((const double *)w)[i];
        } else {
            ((uint64_t *)counts)[place[i]] += ((const uint64_t *)w)[i];
        }
    }
}

dm_status dmi_histogram_cpu(const dmi_kernel_call *call)
{
    const dmi_histogram *d = call->desc;
    dmi_box box = {.sides = 2};
    const void *weights = d->weights ? call->at[2] : NULL;
    const void *edges = d->kind == DMI_BINS_EDGES ? call->at[d->weights ? 3 : 2] : NULL;
    int64_t index[DMI_BOX_DIMS] = {0}, at[DMI_BOX_SIDES] = {d->offset, d->weight_offset};
    if (!d->adds) {
        memset(call->at[1], 0, (size_t)d->bins * 8);
    }
    for (int dim = 0; dim < d->ndim; dim++) {
        if (d->extent[dim] == 0) {
            return DM_OK;
        }
        box.extent[box.ndim] = d->extent[dim];
        box.stride[X][box.ndim] = d->stride[dim];
        box.stride[WEIGHT][box.ndim++] = d->weight_stride[dim];
    }
    dmi_box_simplify(&box, X);
    int inner = box.ndim - 1;
    int64_t n = box.extent[inner], s = box.stride[X][inner], t = box.stride[WEIGHT][inner];
    do {
        for (int64_t i = 0; i < n && d->bins > 0; i += DMI_CHUNK) {
            dmi_chunk buffer;
            int64_t m = DMI_MIN(DMI_CHUNK, n - i), place[DMI_CHUNK];
            const void *x =
                dmi_row_load(d->dtype, dmi_at(call->at[0], (at[X] + i * s) * dmi_dtype_bytes(d->dtype)), s,
                             d->type, &buffer, m);
            if (d->kind == DMI_BINS_RANGE) {
                places_in_range(d, x, m, place);
            } else if (d->kind == DMI_BINS_EDGES) {
                places_by_edges(d, edges, x, m, place);
            } else {
                places_whole(d, x, m, place);
            }
            if (weights) {
                count_weights(d, place, dmi_at(weights, (at[WEIGHT] + i * t) * dmi_dtype_bytes(d->weights)), t,
                              m, call->at[1]);
            } else {
                count(place, m, call->at[1]);
            }
        }
    } while (dmi_box_next(&box, inner, index, at));
    return DM_OK;
}

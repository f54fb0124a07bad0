/* Layers whose outputs are computed in ranges, one by one (net/split.c). Workers are a grid, parts of the batch
 * by parts of the outputs: worker p * parts[1] + q computes the ranges of part q for the samples of part p. The
 * calls and their shapes are the same in any grid, so the bits are too. By batch there is one part of the
 * outputs, and the bottom is read where it is. */
#include "layers/layers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A part of the outputs: what its ranges read of the bottom, and that on its workers; by batch the bottom
 * itself. */
typedef struct column {
    nn_part read;
    dm_array from, x;
} column;

typedef struct ranges {
    dm_session *session;
    int count, columns;
    nn_range *range;
    column *column;
} ranges;

int nn_ranges_slices(const nn_layer *l)
{
    return l->net->slices == 0 && l->split.form != NN_BATCH ? l->split.parts[0] : l->net->slices;
}

/* --- arrays. Samples are dealt to the workers of column q. map: room for their slices. */
static dm_layout layout_of(const nn_layer *l, int q, int *map, int ndim, const int64_t *shape)
{
    const int *parts = l->split.parts;
    if (l->split.form == NN_BATCH) {
        return dm_layout_batch(l->net->session, shape[0], l->net->slices);
    }
    if (parts[0] == 1) {
        return dm_layout_single(q);
    }
    const int64_t slices = nn_ranges_slices(l);
    const nn_deal d = nn_deal_out(shape[0], (shape[0] + slices - 1) / slices, parts[0]);
    int64_t block[DM_MAX_DIMS] = {d.size};
    memcpy(block + 1, shape + 1, (size_t)(ndim - 1) * sizeof *block);
    for (int i = 0; i < d.ranges; i++) {
        map[i] = i / d.each * parts[1] + q;
    }
    return dm_layout_explicit(ndim, block, map, d.ranges);
}

/* An array like that of a blob, with the channels of a part of it. */
static dm_status make(const nn_layer *l, int q, dm_array like, nn_part part, dm_array *out)
{
    dm_array_info info = {.size = sizeof info};
    dm_status status = dm_array_query(l->net->session, like, &info);
    int *map = status == DM_OK ? calloc((size_t)info.shape[0], sizeof *map) : NULL;
    if (!map) {
        return status == DM_OK ? dm_error_no_memory("the layout of a part", (size_t)info.shape[0] * sizeof *map)
                               : status;
    }
    info.shape[part.dim] = part.count;
    const dm_layout layout = layout_of(l, q, map, info.ndim, info.shape);
    status = dm_array_create(l->net->session, info.dtype, info.ndim, info.shape, &layout, out);
    free(map);
    return status;
}

/* A view of a part of an array; nothing of nothing. */
static dm_status view(const nn_layer *l, dm_array a, nn_part part, dm_array *out)
{
    dm_array_info info = {.size = sizeof info};
    int64_t lo[DM_MAX_DIMS] = {0};
    if (!a.id) {
        return DM_OK;
    }
    dm_status status = dm_array_query(l->net->session, a, &info);
    lo[part.dim] = part.first;
    info.shape[part.dim] = part.count;
    return status == DM_OK ? dm_array_view(l->net->session, a, lo, info.shape, out) : status;
}

/* The channels of the bottom that outputs [first, first + count) depend on. */
static nn_part read_by(const nn_layer *l, int64_t first, int64_t count)
{
    const int64_t groups = nn_split_groups(l), group = l->top[0]->shape[1] / groups,
                  channels = l->bottom[0]->shape[1] / groups;
    const int64_t from = first / group, to = (first + count - 1) / group + 1;
    return (nn_part){nn_array_dim(l->bottom[0], 1), from * channels, (to - from) * channels};
}

static dm_status prepare_column(nn_layer *l, int q, column *c)
{
    const dm_array x = l->bottom[0]->data;
    dm_status status = view(l, x, c->read, &c->from);
    return status == DM_OK && l->split.form != NN_BATCH ? make(l, q, x, c->read, &c->x) : status;
}

static dm_status prepare_range(nn_layer *l, int q, const column *c, nn_range *r)
{
    const nn_blob *top = l->top[0];
    const nn_part outputs = {nn_array_dim(top, 1), r->first, r->count}, bias = {0, r->first, r->count},
                  weights = nn_split_weights(l, r->first, r->count),
                  here = {r->read.dim, r->read.first - c->read.first, r->read.count};
    dm_status status = view(l, nn_param_used(l, 0), weights, &r->w);
    status = status == DM_OK ? view(l, l->param[0]->diff, weights, &r->dw) : status;
    status = status == DM_OK ? view(l, nn_bias_of(l), bias, &r->bias) : status;
    status = status == DM_OK && !l->bias_behind ? view(l, nn_bias_diff(l), bias, &r->dbias) : status;
    status = status == DM_OK ? view(l, top->data, outputs, &r->y) : status;
    status = status == DM_OK ? view(l, top->diff, outputs, &r->dy) : status;
    status = status == DM_OK ? make(l, q, top->data, outputs, &r->mine) : status;
    status = status == DM_OK ? view(l, c->x.id ? c->x : c->from, here, &r->x) : status;
    return status == DM_OK && l->down[0] ? make(l, q, l->bottom[0]->diff, here, &r->part) : status;
}

dm_status nn_ranges_prepare(nn_layer *l)
{
    const int64_t outputs = l->top[0]->shape[1];
    if (l->ranges == 0) {
        return DM_OK;
    }
    const nn_deal deal = nn_deal_out(outputs, nn_split_range(l, &l->split), l->split.parts[1]);
    const int64_t group = outputs / nn_split_groups(l);
    ranges *all = calloc(1, sizeof *all);
    if (!all) {
        return dm_error_no_memory("the ranges of a layer", sizeof *all);
    }
    l->cut = all;
    *all = (ranges){.session = l->net->session, .count = deal.ranges, .columns = deal.holders};
    all->range = calloc((size_t)all->count, sizeof *all->range);
    all->column = calloc((size_t)all->columns, sizeof *all->column);
    if (!all->range || !all->column) {
        return dm_error_no_memory("the ranges of a layer", (size_t)all->count * sizeof *all->range +
                                                               (size_t)all->columns * sizeof *all->column);
    }
    dm_status status = DM_OK;
    for (int q = 0; status == DM_OK && q < all->columns; q++) {
        const int64_t first = q * deal.each * deal.size, end = first + deal.each * deal.size;
        all->column[q].read = read_by(l, first, (end < outputs ? end : outputs) - first);
        status = prepare_column(l, q, &all->column[q]);
    }
    for (int i = 0; status == DM_OK && i < all->count; i++) {
        nn_range *r = &all->range[i];
        r->first = i * deal.size;
        r->count = outputs - r->first < deal.size ? outputs - r->first : deal.size;
        r->groups = (int)((r->count + group - 1) / group);
        r->read = read_by(l, r->first, r->count);
        status = prepare_range(l, i / deal.each, &all->column[i / deal.each], r);
    }
    return status;
}

void nn_ranges_drop(nn_layer *l)
{
    ranges *all = l->cut;
    dm_status status = DM_OK;
    for (int i = 0; all && all->range && i < all->count; i++) {
        const nn_range *r = &all->range[i];
        const dm_array of[] = {r->w, r->bias, r->dw, r->dbias, r->x, r->y, r->dy, r->mine, r->part};
        for (int k = 0; k < NN_COUNT(of); k++) {
            dm_status end = dm_array_destroy(all->session, of[k]);
            status = status == DM_OK ? end : status;
        }
    }
    for (int q = 0; all && all->column && q < all->columns; q++) {
        dm_status end = dm_array_destroy(all->session, all->column[q].from),
                  last = dm_array_destroy(all->session, all->column[q].x);
        status = status != DM_OK ? status : end != DM_OK ? end : last;
    }
    if (status != DM_OK) {
        nn_log(l->net, "an array was gone before its net ended: %s", dm_error_message());
    }
    if (all) {
        free(all->range);
        free(all->column);
        free(all);
    }
    l->cut = NULL;
}

int nn_ranges_arrays(const nn_layer *l, int at, dm_array *out)
{
    const ranges *all = l->cut;
    if (!all || at >= all->columns + all->count) {
        return 0;
    }
    if (at < all->columns) {
        out[0] = all->column[at].x;
        return 1;
    }
    out[0] = all->range[at - all->columns].mine;
    out[1] = all->range[at - all->columns].part;
    return 2;
}

/* --- passes */
dm_status nn_ranges_forward(nn_layer *l, nn_range_call forward)
{
    dm_session *s = l->net->session;
    const ranges *all = l->cut;
    dm_status status = DM_OK;
    for (int q = 0; status == DM_OK && q < all->columns; q++) {
        status = all->column[q].x.id ? dm_copy(s, all->column[q].from, all->column[q].x) : DM_OK;
    }
    for (int i = 0; status == DM_OK && i < all->count; i++) {
        status = forward(l, &all->range[i]);
    }
    for (int i = 0; status == DM_OK && i < all->count; i++) {
        status = dm_copy(s, all->range[i].mine, all->range[i].y);
    }
    return status;
}

/* out = the sum of the parts of these ranges, from the first to the last. */
static dm_status add_parts(const nn_layer *l, const nn_range *range, int count, dm_array out)
{
    enum { TERMS = 8 };
    static const char *const names[TERMS] = {"a", "b", "c", "d", "e", "f", "g", "h"};
    dm_status status = DM_OK;
    for (int i = 0; status == DM_OK && i < count;) {
        char text[4 * TERMS] = "";
        dm_map_arg args[TERMS];
        int n = 0;
        for (; n < TERMS && (i < count || n == 0); n++) {
            bool sum = n == 0 && i > 0; /* of those before */
            args[n] = (dm_map_arg)DM_ARG(names[n], sum ? out : range[i].part);
            snprintf(text + strlen(text), sizeof text - strlen(text), n ? " + %s" : "%s", names[n]);
            i += !sum;
        }
        status =
            n == 1 ? dm_copy(l->net->session, range[0].part, out) : dm_map(l->net->session, text, n, args, out);
    }
    return status;
}

/* Ranges that read the same channels follow one another; those of others have nothing to do with these. */
static dm_status add_all(const nn_layer *l, dm_array down)
{
    const ranges *all = l->cut;
    dm_status status = DM_OK;
    for (int i = 0, n = 1; status == DM_OK && i < all->count; i += n, n = 1) {
        dm_array out = DM_NO_ARRAY;
        while (i + n < all->count && all->range[i + n].read.first == all->range[i].read.first) {
            n++;
        }
        status = view(l, down, all->range[i].read, &out);
        status = status == DM_OK ? add_parts(l, &all->range[i], n, out) : status;
        dm_status end = dm_array_destroy(l->net->session, out);
        status = status == DM_OK ? end : status;
    }
    return status;
}

dm_status nn_ranges_backward(nn_layer *l, const double *beta, nn_range_call data, nn_range_sums weights)
{
    const ranges *all = l->cut;
    dm_status status = DM_OK;
    for (int i = 0; status == DM_OK && i < all->count; i++) {
        status = dm_copy(l->net->session, all->range[i].dy, all->range[i].mine);
    }
    for (int i = 0; status == DM_OK && i < all->count; i++) {
        status = l->down[0] ? data(l, &all->range[i]) : DM_OK;
        status = status == DM_OK ? weights(l, &all->range[i], beta) : status;
    }
    if (status == DM_OK && l->down[0]) {
        dm_array down = nn_down(l, 0);
        status = nn_down_done(l, 0, add_all(l, down));
    }
    return status;
}

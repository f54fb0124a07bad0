#include "support/layers.h"

#include <math.h>
#include <string.h>

dmt_host *dmt_layer_add(dmt_case *c, dmt_layer *l, const char *name, dm_dtype dtype, int ndim,
                        const int64_t *shape)
{
    dm_dtype own = dtype ? dtype : l->all ? l->all : dmt_float_random(c);
    dmt_host *h = dmt_host_make(&c->scratch, own, ndim, shape);
    dmt_host_random(h, &c->random, DMT_SMOOTH);
    l->host[l->count] = h;
    l->name[l->count++] = name;
    return h;
}

dm_dtype dmt_layer_all(dmt_case *c)
{
    static const dm_dtype types[] = {DM_F32, DM_F32, DM_F32, DM_BF16, DM_BF16, DM_F16, 0, 0};
    return types[dmt_int(&c->random, 0, 7)];
}

void dmt_layer_make(dmt_case *c, dmt_layer *l, unsigned written)
{
    for (int i = 0; i < l->count; i++) {
        l->array[i] = DM_NO_ARRAY;
        if (!l->left_out[i]) {
            l->operand[i] = dmt_operand_make(c, l->name[i], l->host[i], written >> i & 1 ? DMT_UNSET : 0);
            l->array[i] = l->operand[i]->array;
        }
    }
}

void dmt_layer_alone(dmt_case *c, const dmt_layer *l, dmt_layer *alone)
{
    dm_layout single = dm_layout_single(0);
    *alone = *l;
    for (int i = 0; i < l->count; i++) {
        if (!l->left_out[i]) {
            alone->operand[i] = dmt_operand_plain(c, l->name[i], l->host[i], &single, "all on worker 0");
            alone->array[i] = alone->operand[i]->array;
        }
    }
}

void dmt_layer_same(dmt_case *c, const dmt_layer *l, const dmt_layer *alone, int i)
{
    if (!l->left_out[i]) {
        dmt_operand_check_same(c, alone->operand[i], l->operand[i]->value);
    }
}

long double dmt_layer_eps(const dmt_layer *l)
{
    for (int i = 0; i < l->count; i++) {
        if (!l->left_out[i] && l->host[i]->dtype == DM_F64) {
            return dmt_eps(DM_F64);
        }
    }
    return dmt_eps(DM_F32);
}

int dmt_layer_slices(dmt_case *c)
{
    return (int)dmt_int(&c->random, dmt_chance(&c->random, 20) ? 0 : 1, 6);
}

dmt_sums dmt_sums_make(dmt_case *c, const dmt_host *like)
{
    dmt_sums s = {dmt_host_make(&c->scratch, like->dtype, like->ndim, like->shape),
                  dmt_host_make(&c->scratch, like->dtype, like->ndim, like->shape), 0};
    return s;
}

void dmt_sums_add(dmt_sums *s, int64_t at, long double a, long double b)
{
    s->want->v[at] += a * b;
    s->bound->v[at] += fabsl(a * b);
    s->terms++;
}

void dmt_sums_end(dmt_sums *s, const dmt_host *old, double beta, long double eps)
{
    long double terms = s->want->count > 0 ? (long double)s->terms / (long double)s->want->count : 0;
    for (int64_t i = 0; i < s->want->count; i++) {
        long double more = old && beta != 0 ? (long double)beta * old->v[i] : 0;
        s->want->v[i] += more;
        s->bound->v[i] = (s->bound->v[i] + fabsl(more)) * eps * (terms + 4);
    }
}

dm_dtype dmt_layer_wire(dmt_case *c, const dmt_host *x, const dmt_host *dy)
{
    bool wire = dmt_chance(&c->random, 30) && x->dtype != DM_F16 && dy->dtype != DM_F16;
    if (wire) {
        dmt_say(c, " wire bf16");
    }
    return wire ? DM_BF16 : (dm_dtype)0;
}

dmt_host *dmt_sums_rounded(dmt_case *c, const dmt_sums *s, dm_dtype dtype)
{
    dmt_host *rounded = dmt_sums_make(c, s->want).bound;
    long double unit =
        dmt_eps(dtype) / (dmt_on_cpu() ? 2 : 1); /* GPUs' libraries may round pieces of a slice */
    for (int64_t i = 0; i < rounded->count; i++) {
        rounded->v[i] = s->bound->v[i] * unit + 16 * dmt_tiny(dtype);
    }
    return rounded;
}

void dmt_sums_widen(dmt_sums *s, const dmt_host *rounded)
{
    for (int64_t i = 0; rounded && i < rounded->count; i++) {
        s->bound->v[i] += rounded->v[i];
    }
}

/* --- convolution */
void dmt_conv_random(dmt_case *c, dmt_conv *v)
{
    dmt_random *r = &c->random;
    const bool wide = dmt_chance(r, 6); /* so many channels that GPUs leave groups to cuDNN, and turn weights */
    int64_t group = wide ? 2 : dmt_int(r, 1, 3);
    v->conv = (dm_conv)DM_CONV_INIT;
    v->conv.group = (int)group;
    v->conv.slices = dmt_layer_slices(c);
    v->x[0] = v->y[0] = dmt_int(r, dmt_chance(r, 10) ? 0 : 1, wide ? 3 : 9);
    v->w[3] = wide ? 8 * dmt_int(r, 1, 8) : dmt_int(r, 1, 4);
    v->x[3] = group * v->w[3];
    v->w[0] = v->y[3] = group * (wide ? 8 * dmt_int(r, 1, 3) : dmt_int(r, 1, 4));
    /* the first layer of a net: few channels, by strides, to many outputs */
    bool first = !wide && dmt_chance(r, 25);
    if (first) {
        v->conv.group = 1;
        v->x[3] = v->w[3];
        v->w[0] = v->y[3] = dmt_int(r, 1, 8) * 8;
    }
    for (int d = 0; d < 2; d++) {
        bool fits = false;
        while (!fits) {
            v->x[1 + d] = dmt_int(r, 1, first ? 20 : wide ? 4 : 9);
            v->w[1 + d] = dmt_int(r, 1, first ? 7 : 4);
            v->conv.stride[d] = wide ? 1 : (int)dmt_int(r, 1, 3);
            v->conv.pad[d] = (int)dmt_int(r, 0, 3);
            v->conv.dilation[d] = first ? 1 : (int)dmt_int(r, 1, 3);
            int64_t last = v->x[1 + d] + 2 * v->conv.pad[d] - 1 - v->conv.dilation[d] * (v->w[1 + d] - 1);
            fits = last >= 0;
            v->y[1 + d] = 0;
            for (int64_t at = 0; at <= last; at += v->conv.stride[d]) {
                v->y[1 + d]++;
            }
        }
    }
    if (dmt_chance(r, 15)) { /* a product of matrices */
        for (int d = 0; d < 2; d++) {
            v->w[1 + d] = v->conv.stride[d] = v->conv.dilation[d] = 1;
            v->conv.pad[d] = 0;
            v->y[1 + d] = v->x[1 + d];
        }
    }
    dmt_say(c, "\n    stride %d %d pad %d %d dilation %d %d group %d slices %d", v->conv.stride[0],
            v->conv.stride[1], v->conv.pad[0], v->conv.pad[1], v->conv.dilation[0], v->conv.dilation[1],
            v->conv.group, v->conv.slices);
}

void dmt_conv_visit(const dmt_conv *v, void *context,
                    void (*visit)(void *context, int64_t x, int64_t w, int64_t y))
{
    int64_t at[4] = {0}, tap[4] = {0}, count = dmt_count(4, v->y);
    for (int64_t i = 0; i < count; i++) {
        int64_t group = at[3] / (v->w[0] / v->conv.group), taps[3] = {v->w[1], v->w[2], v->w[3]};
        memset(tap, 0, sizeof tap);
        do { /* tap: r, s, c */
            int64_t row = at[1] * v->conv.stride[0] + tap[0] * v->conv.dilation[0] - v->conv.pad[0];
            int64_t col = at[2] * v->conv.stride[1] + tap[1] * v->conv.dilation[1] - v->conv.pad[1];
            if (row >= 0 && row < v->x[1] && col >= 0 && col < v->x[2]) {
                int64_t from[4] = {at[0], row, col, group * v->w[3] + tap[2]},
                        by[4] = {at[3], tap[0], tap[1], tap[2]};
                visit(context, dmt_linear(4, v->x, from), dmt_linear(4, v->w, by), i);
            }
        } while (dmt_next(3, taps, tap));
        dmt_next(4, v->y, at);
    }
}

/* --- pooling */
static int64_t pooled(const dm_pool *p, int d, int64_t x)
{
    int64_t count = 0;
    if (p->global) {
        return 1;
    }
    /* windows that begin at a stride, until one reaches the end, or would pass it where sizes are rounded down
     */
    for (int64_t begin = -p->pad[d];; begin += p->stride[d]) {
        int64_t end = begin + p->kernel[d], room = x + p->pad[d];
        if (p->round_down && end > room) {
            break;
        }
        count++;
        if (end >= room) {
            break;
        }
    }
    if ((p->pad[0] > 0 || p->pad[1] > 0) && (count - 1) * p->stride[d] >= x + p->pad[d]) {
        count--;
    }
    return count;
}

void dmt_pool_random(dmt_case *c, dmt_pool *v)
{
    dmt_random *r = &c->random;
    v->pool = (dm_pool)DM_POOL_INIT;
    v->pool.method = dmt_chance(r, 50) ? DM_POOL_MAX : DM_POOL_AVERAGE;
    v->pool.global = dmt_chance(r, 15);
    v->pool.round_down = dmt_chance(r, 25);
    v->pool.slices = dmt_layer_slices(c);
    v->x[0] = v->y[0] = dmt_int(r, dmt_chance(r, 10) ? 0 : 1, 9);
    v->x[3] = v->y[3] = dmt_chance(r, 5) ? 130 : dmt_int(r, 1, 7);
    for (int d = 0; d < 2; d++) {
        do {
            v->x[1 + d] = dmt_int(r, 1, 12);
            v->pool.kernel[d] = (int)dmt_int(r, 1, 5);
            v->pool.stride[d] = (int)dmt_int(r, 1, 4);
            v->pool.pad[d] = (int)dmt_int(r, 0, v->pool.kernel[d] - 1);
        } while (!v->pool.global &&
                 v->x[1 + d] + 2 * v->pool.pad[d] + (v->pool.round_down ? 1 : v->pool.stride[d]) <=
                     v->pool.kernel[d]);
    }
    for (int d = 0; d < 2; d++) {
        v->y[1 + d] = pooled(&v->pool, d, v->x[1 + d]);
    }
    dmt_say(c, "\n    method %d kernel %d %d stride %d %d pad %d %d global %d down %d slices %d",
            v->pool.method, v->pool.kernel[0], v->pool.kernel[1], v->pool.stride[0], v->pool.stride[1],
            v->pool.pad[0], v->pool.pad[1], v->pool.global, v->pool.round_down, v->pool.slices);
}

int64_t dmt_pool_tap(const dmt_pool *v, int64_t at, int64_t element)
{
    int64_t window[4], index[4];
    dmt_unlinear(4, v->y, at, window);
    dmt_unlinear(4, v->x, element, index);
    if (v->pool.global) {
        return index[1] * v->x[2] + index[2];
    }
    return (index[1] - window[1] * v->pool.stride[0] + v->pool.pad[0]) * v->pool.kernel[1] + index[2] -
           window[2] * v->pool.stride[1] + v->pool.pad[1];
}

int64_t dmt_pool_window(const dmt_pool *v, int64_t at, int64_t *elements, int64_t *size)
{
    int64_t index[4], count = 0;
    dmt_unlinear(4, v->y, at, index);
    *size = 0;
    for (int64_t r = 0; r < (v->pool.global ? v->x[1] : v->pool.kernel[0]); r++) {
        for (int64_t s = 0; s < (v->pool.global ? v->x[2] : v->pool.kernel[1]); s++) {
            int64_t row = v->pool.global ? r : index[1] * v->pool.stride[0] - v->pool.pad[0] + r;
            int64_t col = v->pool.global ? s : index[2] * v->pool.stride[1] - v->pool.pad[1] + s;
            bool counts = v->pool.global || (row < v->x[1] + v->pool.pad[0] && col < v->x[2] + v->pool.pad[1]);
            *size += counts;
            if (row >= 0 && row < v->x[1] && col >= 0 && col < v->x[2]) {
                elements[count++] = dmt_linear(4, v->x, (int64_t[]){index[0], row, col, index[3]});
            }
        }
    }
    return count;
}

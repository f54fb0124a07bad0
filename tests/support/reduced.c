#include "support/reduced.h"

void dmt_dims_random(dmt_case *c, const dmt_host *x, dmt_dims *q)
{
    int order[DM_MAX_DIMS];
    *q = (dmt_dims){.ndims = (int)dmt_int(&c->random, 0, x->ndim)};
    dmt_shuffle(&c->random, x->ndim, order);
    for (int i = 0; i < q->ndims; i++) {
        q->dims[i] = order[i];
        q->reduced[order[i]] = true;
    }
    for (int d = 0; d < x->ndim && q->ndims == 0; d++) {
        q->reduced[d] = true;
    }
}

const int *dmt_dims_given(const dmt_dims *q)
{
    return q->ndims ? q->dims : NULL;
}

void dmt_say_dims(dmt_case *c, const dmt_dims *q)
{
    dmt_say(c, "\n    over dims");
    for (int i = 0; i < q->ndims; i++) {
        dmt_say(c, " %d", q->dims[i]);
    }
    dmt_say(c, "%s", q->ndims == 0 ? " (all)" : "");
}

dmt_host *dmt_reduced_make(dmt_case *c, const dmt_host *x, const dmt_dims *q, dm_dtype dtype)
{
    int64_t shape[DM_MAX_DIMS];
    int ndim = 0;
    bool keep = dmt_chance(&c->random, 40);
    for (int d = 0; d < x->ndim; d++) {
        if (!q->reduced[d] || keep) {
            shape[ndim++] = q->reduced[d] ? 1 : x->shape[d];
        }
    }
    return dmt_host_make(&c->scratch, dtype, ndim, shape);
}

const long double *dmt_reduced_take(dmt_case *c, const dmt_host *x, const dmt_dims *q, int64_t at, int64_t *n)
{
    int64_t index[DM_MAX_DIMS] = {0}, count = 0;
    long double *v = dmt_alloc(&c->scratch, (x->count + 1) * (int64_t)sizeof *v);
    for (int64_t i = 0; i < x->count; i++) {
        int64_t place = 0;
        for (int d = 0; d < x->ndim; d++) {
            place = q->reduced[d] ? place : place * x->shape[d] + index[d];
        }
        if (place == at) {
            v[count++] = x->v[i];
        }
        dmt_next(x->ndim, x->shape, index);
    }
    *n = count;
    return v;
}

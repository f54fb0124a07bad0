/* Inputs of elementwise programs that are made from the elements' row-major indices. Elements come in runs
 * along one dim, in which the index grows by one step. */
#include "kernels/ewise/map_cpu.h"
#include "kernels/random/fill_random.h"

#include <string.h>

/* n indices from `first` on, `step` apart. */
typedef struct run {
    int64_t first, step, n;
} run;

static void make_random(const dmi_random *g, const run *r, char *out)
{
    int64_t bytes = dmi_dtype_bytes(g->make), done = 0;
    dmi_chunk chunk;
    while (done < r->n) {
        uint64_t index = (uint64_t)(r->first + done * r->step), per = (uint64_t)g->per;
        int64_t skip = (int64_t)(index % per), many = r->step == 1 ? r->n - done : 1;
        int64_t counters = DMI_MIN((skip + many + g->per - 1) / g->per, DMI_BATCH_COUNTERS);
        int64_t take = DMI_MIN(many, counters * g->per - skip);
        dmi_random_batch(g, index / per, (int)counters, &chunk);
        memcpy(out + done * bytes, (char *)&chunk + skip * bytes, (size_t)(take * bytes));
        done += take;
    }
}

/* How many elements from `at` on in a set are neighbours in the array too. */
static int64_t neighbours(const dmi_dimset *set, int64_t at)
{
    int64_t own = dmi_dimset_index(set, at) + set->origin;
    return set->g == 1 ? set->count - at : DMI_MIN(set->count - at, set->block - own % set->block);
}

/* The next run of the walk along `dim`; at: where it is, which advances. */
static run next_run(const dmi_map_places *p, int dim, int64_t left, int64_t *at)
{
    run r = {.step = 1, .n = 1};
    int64_t weight = 1;
    for (int d = p->ndim - 1; d >= 0; d--) {
        r.first += dmi_dimset_index(&p->index[d], at[d]) * weight;
        r.step = d == dim ? weight : r.step;
        weight *= p->whole[d];
    }
    r.n = dim < 0 ? 1 : DMI_MIN(left, neighbours(&p->index[dim], at[dim]));
    for (int64_t d = dim, by = r.n; d >= 0 && by > 0; d--) {
        at[d] += by;
        by = at[d] == p->extent[d];
        at[d] = by ? 0 : at[d];
    }
    return r;
}

void dmi_map_make(const dmi_map_places *p, int made, dm_dtype dtype, uint64_t seed, int64_t number,
                  int64_t step, int64_t n, void *out)
{
    int64_t at[DM_MAX_DIMS], weight = 1, bytes = dmi_dtype_bytes(dtype), rest = number;
    int dim = -1;
    dmi_random g;
    for (int d = p->ndim - 1; d >= 0; d--) {
        at[d] = rest % p->extent[d];
        rest /= p->extent[d];
        dim = dim < 0 && weight == step && p->extent[d] > 1 ? d : dim;
        weight *= p->extent[d];
    }
    if (made != DMI_MADE_INDEX) {
        int kind = made == DMI_MADE_NORMAL ? DMI_FILL_NORMAL : DMI_FILL_UNIFORM;
        dmi_random_init(kind, dtype, &(dmi_fill_values){.p1 = 1, .i1 = 1, .seed = seed}, &g);
    }
    for (int64_t done = 0; done < n;) {
        run r = next_run(p, dim, n - done, at);
        for (int64_t i = 0; i < r.n && made == DMI_MADE_INDEX; i++) {
            ((int64_t *)out)[done + i] = r.first + i * r.step;
        }
        if (made != DMI_MADE_INDEX) {
            make_random(&g, &r, (char *)out + done * bytes);
        }
        done += r.n;
        if (dim < 0 && done < n) { /* no dim has that step: elements one by one */
            dmi_map_make(p, made, dtype, seed, number + done * step, step, n - done,
                         (char *)out + done * bytes);
            return;
        }
    }
}

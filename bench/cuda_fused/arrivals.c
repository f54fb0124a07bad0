/* Chunks of b that arrive while the product runs. */
#include "fused_bench.h"

#include <time.h>

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Part i of `parts` of from..to, on whole units of its length. */
static void part_of(int64_t from, int64_t to, int parts, int i, int64_t unit, int64_t *begin, int64_t *end)
{
    int64_t length = to - from;
    *begin = from + length * i / parts / unit * unit;
    *end = i == parts - 1 ? to : from + length * (i + 1) / parts / unit * unit;
}

void fused_spread_chunks(const fused_bench *t, const fused_spread *s, dmi_fused *d, dmi_fused_arrival *chunk)
{
    int row_owners = s->by_col ? 1 : s->owners, col_owners = s->by_col ? s->owners : 1;
    d->chunk = chunk;
    d->chunks = 0;
    part_of(0, d->k, row_owners, 0, DMI_FUSED_STEP_K, &d->own_k0, &d->own_k1);
    part_of(0, d->n, col_owners, 0, DMI_FUSED_STEP_N, &d->own_n0, &d->own_n1);
    d->ld_own[1] = d->ldb;
    for (int panel = 0; panel < s->panels; panel++) {
        for (int slice = 0; slice < s->slices; slice++) {
            for (int owner = 1; owner < s->owners; owner++) {
                int row = s->by_col ? 0 : owner, col = s->by_col ? owner : 0;
                dmi_fused_arrival *p = &chunk[d->chunks];
                part_of(0, d->k, row_owners, row, DMI_FUSED_STEP_K, &p->k0, &p->k1);
                part_of(p->k0, p->k1, s->slices, slice, DMI_FUSED_STEP_K, &p->k0, &p->k1);
                part_of(0, d->n, col_owners, col, DMI_FUSED_STEP_N, &p->n0, &p->n1);
                part_of(p->n0, p->n1, s->panels, panel, DMI_FUSED_STEP_N, &p->n0, &p->n1);
                p->counter = t->counter + d->chunks++;
                p->value = t->value;
            }
        }
    }
}

const void *fused_own(const dmi_fused *d, const void *b)
{
    return (const char *)b + 2 * (d->trans_b ? d->own_n0 * d->ldb + d->own_k0 : d->own_k0 * d->ldb + d->own_n0);
}

void fused_wait_gate(fused_bench *t)
{
    if (dmi_cu_wait_value(t->q->stream, t->gate, t->value) != DM_OK) {
        fused_check(cudaErrorUnknown, dmi_error_text());
    }
}

void fused_open_gate(fused_bench *t)
{
    *(volatile uint32_t *)t->gate = t->value;
}

/* What is copied from the host or another GPU needs no multiprocessor, as a copy within this GPU might. */
static void copy_piece(fused_bench *t, const dmi_fused *d, const dmi_fused_arrival *p, const void *b,
                       void *gathered)
{
    int64_t rows = d->trans_b ? p->n1 - p->n0 : p->k1 - p->k0,
            cols = d->trans_b ? p->k1 - p->k0 : p->n1 - p->n0;
    int64_t at = 2 * (d->trans_b ? p->n0 * d->ldb + p->k0 : p->k0 * d->ldb + p->n0);
    size_t pitch = (size_t)(2 * d->ldb), width = (size_t)(2 * cols);
    if (rows > 0 && cols > 0) {
        fused_check(cudaMemcpy2DAsync((char *)gathered + at, pitch, (const char *)b + at, pitch, width,
                                      (size_t)rows, cudaMemcpyDefault, t->arrivals),
                    "copy");
    }
}

void fused_arrive(fused_bench *t, const dmi_fused *d, const void *b, void *gathered, bool gated)
{
    double due = now();
    if (gated && b == NULL) {
        fused_open_gate(t);
    } else if (gated && dmi_cu_wait_value(t->arrivals, t->gate, t->value) != DM_OK) {
        fused_check(cudaErrorUnknown, dmi_error_text());
    }
    for (int i = 0; i < d->chunks; i++) {
        const dmi_fused_arrival *p = &d->chunk[i];
        if (b != NULL) {
            copy_piece(t, d, p, b, gathered);
        }
        due += (double)(2 * (p->k1 - p->k0) * (p->n1 - p->n0)) / t->rate;
        while (b == NULL && now() < due) {
        }
        t->source[i] = t->value;
        fused_check(cudaMemcpyAsync(t->counter + i, t->source + i, 4, cudaMemcpyDefault, t->arrivals),
                    "counter");
    }
    if (gated && b != NULL) {
        fused_open_gate(t);
    }
}

/* Products of the emulated backend. The CPU has none of shorter floats: those go through f32, where a GPU's
 * sum, too, is made, and are rounded once. Where TF32 is allowed operands are rounded to it, as a GPU may do.
 */
#include "kernels/gemm/gemm_emulated.h"
#include "kernels/direct.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

typedef struct gemm_op {
    dmi_emu_op op;
    dmi_gemm d;
    double alpha, beta;
    const void *a, *b;
    void *c;
    float *wide[3]; /* a, b, c in f32, in the workspace; NULL: as they are */
} gemm_op;

/* Of each operand, the elements that need room: dmi_gemm_workspace is their sum. */
static void wide_counts(const dmi_gemm *d, int64_t count[3])
{
    bool narrow = dmi_dtype_bytes(d->dtype) <= 2, rounded = d->dtype == DM_F32 && d->tf32;
    count[0] = narrow || rounded ? d->m * d->k : 0;
    count[1] = narrow || rounded ? d->k * d->n : 0;
    count[2] = narrow && d->c_dtype != DM_F32 ? d->m * d->n : 0;
}

/* rows x cols of one type and leading dimension into another. */
static void convert(int64_t rows, int64_t cols, dm_dtype from, const void *src, int64_t src_offset,
                    int64_t src_ld, dm_dtype to, void *dst, int64_t dst_offset, int64_t dst_ld)
{
    dmi_run row = {.len = rows}, col = {.len = cols};
    dmi_copy d = {.ndim = 2,
                  .src_dtype = from,
                  .dst_dtype = to,
                  .nrun = {1, 1},
                  .run = {&row, &col},
                  .src_stride = {src_ld, 1},
                  .dst_stride = {dst_ld, 1},
                  .src_offset = src_offset,
                  .dst_offset = dst_offset,
                  .count = rows * cols};
    dmi_run_copy(dmi_backend_cpu(), NULL, &d, src, dst);
}

/* Rows and columns of f32, each rounded to the nearest with 10 bits behind the point; infinities and NaN stay. */
static void round_tf32(int64_t rows, int64_t cols, const float *src, int64_t ld, float *dst)
{
    for (int64_t i = 0; i < rows; i++) {
        for (int64_t j = 0; j < cols; j++) {
            uint32_t bits;
            memcpy(&bits, &src[i * ld + j], sizeof bits);
            if ((bits >> 23 & 0xff) != 0xff) {
                bits = (bits + 0xfff + (bits >> 13 & 1)) & ~UINT32_C(0x1fff);
            }
            memcpy(&dst[i * cols + j], &bits, sizeof bits);
        }
    }
}

static void run_tf32(const gemm_op *g, dmi_gemm d)
{
    int64_t a_rows = d.trans_a ? d.k : d.m, a_cols = d.trans_a ? d.m : d.k;
    int64_t b_rows = d.trans_b ? d.n : d.k, b_cols = d.trans_b ? d.k : d.n;
    round_tf32(a_rows, a_cols, (const float *)g->a + d.a_offset, d.lda, g->wide[0]);
    round_tf32(b_rows, b_cols, (const float *)g->b + d.b_offset, d.ldb, g->wide[1]);
    d.a_offset = d.b_offset = 0;
    d.lda = DMI_MAX(a_cols, 1);
    d.ldb = DMI_MAX(b_cols, 1);
    dmi_run_gemm(dmi_backend_cpu(), NULL, &d, g->alpha, g->wide[0], g->wide[1], g->beta, g->c, NULL);
}

static void run_one(const gemm_op *g, const dmi_gemm *d)
{
    dmi_gemm wide = *d;
    const void *a = g->a, *b = g->b;
    void *c = g->c;
    if (d->dtype == DM_F32 && d->tf32) {
        run_tf32(g, *d);
        return;
    }
    if (dmi_dtype_bytes(d->dtype) > 2) {
        dmi_run_gemm(dmi_backend_cpu(), NULL, d, g->alpha, a, b, g->beta, c, NULL);
        return;
    }
    int64_t a_rows = d->trans_a ? d->k : d->m, a_cols = d->trans_a ? d->m : d->k;
    int64_t b_rows = d->trans_b ? d->n : d->k, b_cols = d->trans_b ? d->k : d->n;
    convert(a_rows, a_cols, d->dtype, a, d->a_offset, d->lda, DM_F32, g->wide[0], 0, a_cols);
    convert(b_rows, b_cols, d->b_dtype ? d->b_dtype : d->dtype, b, d->b_offset, d->ldb, DM_F32, g->wide[1], 0,
            b_cols);
    dm_dtype c_dtype = d->c_dtype ? d->c_dtype : d->dtype;
    wide.dtype = wide.c_dtype = DM_F32;
    wide.b_dtype = 0;
    wide.a_offset = wide.b_offset = 0;
    wide.lda = a_cols;
    wide.ldb = b_cols;
    if (g->wide[2]) {
        wide.c_offset = 0;
        wide.ldc = d->n;
        c = g->wide[2];
        if (g->beta != 0) {
            convert(d->m, d->n, c_dtype, g->c, d->c_offset, d->ldc, DM_F32, c, 0, d->n);
        }
    }
    dmi_run_gemm(dmi_backend_cpu(), NULL, &wide, g->alpha, g->wide[0], g->wide[1], g->beta, c, NULL);
    if (g->wide[2]) {
        convert(d->m, d->n, DM_F32, c, 0, d->n, c_dtype, g->c, d->c_offset, d->ldc);
    }
}

static void run_gemm(dmi_emu_stream *s, dmi_emu_op *op)
{
    const gemm_op *g = (const gemm_op *)op;
    (void)s;
    for (int64_t i = 0; i < dmi_gemm_count(&g->d); i++) {
        dmi_gemm one = dmi_gemm_one(&g->d, i);
        run_one(g, &one);
    }
}

bool dmi_emu_gemm(dmi_emu_stream *s, const dmi_gemm *d, double alpha, const void *a, const void *b, double beta,
                  void *c, void *workspace)
{
    int64_t count[3];
    float *room = workspace;
    gemm_op *g = calloc(1, sizeof *g);
    assert(!d->c_dtype || d->c_dtype == d->dtype || dmi_gemm_takes_c(d->dtype, d->c_dtype));
    assert(room || dmi_gemm_workspace(d, &(dmi_device_facts){.gpu = true, .emulated = true}) == 0);
    if (!g) {
        return false;
    }
    wide_counts(d, count);
    for (int i = 0; i < 3; i++) {
        g->wide[i] = count[i] > 0 ? room : NULL;
        room += count[i];
    }
    g->op = (dmi_emu_op){.run = run_gemm};
    g->d = *d;
    g->alpha = alpha;
    g->beta = beta;
    g->a = a;
    g->b = b;
    g->c = c;
    dmi_emu_put(s, &g->op);
    return true;
}

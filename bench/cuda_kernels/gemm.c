/* Products. */
#include "cuda_bench.h"
#include "kernels/direct.h"

#include <inttypes.h>
#include <stdio.h>

static void run_gemm(const bench *t)
{
    dmi_gemm d = {.dtype = t->type,
                  .c_dtype = t->to,
                  .m = t->n,
                  .n = t->n,
                  .k = t->n,
                  .lda = t->n,
                  .ldb = t->n,
                  .ldc = t->n};
    d.trans_a = t->kind & 1;
    d.trans_b = t->kind >> 1 & 1;
    d.tf32 = t->kind >> 2;
    dmi_run_gemm(dmi_backend_cuda(), t->q, &d, 1, t->a, t->b, 0, t->c, NULL);
}

void cuda_bench_gemms(bench *t)
{
    static const struct {
        const char *what;
        dm_dtype type, c;
        int kind; /* 1: a transposed, 2: b transposed, 4: by TF32 */
    } table[] = {{"gemm bf16", DM_BF16, DM_BF16, 0},
                 {"gemm bf16 into f32", DM_BF16, DM_F32, 0},
                 {"gemm bf16, a transposed", DM_BF16, DM_BF16, 1},
                 {"gemm bf16, b transposed", DM_BF16, DM_BF16, 2},
                 {"gemm f16", DM_F16, DM_F16, 0},
                 {"gemm f32", DM_F32, DM_F32, 0},
                 {"gemm f32 by tf32", DM_F32, DM_F32, 4},
                 {"gemm f64", DM_F64, DM_F64, 0}};
    t->n = DMI_MIN(8192, t->cols / 2);
    for (int k = 0; k < DMI_COUNT(table); k++) {
        cuda_bench_fill(t, DMI_FILL_NORMAL, table[k].type, t->n * t->n, 0, 5, t->a);
        cuda_bench_fill(t, DMI_FILL_NORMAL, table[k].type, t->n * t->n, 0, 6, t->b);
        t->type = table[k].type;
        t->to = table[k].c;
        t->kind = table[k].kind;
        float ms = cuda_bench_median(t, run_gemm, 1);
        double flop = 2.0 * (double)t->n * (double)t->n * (double)t->n;
        printf("%-32s %7" PRId64 " %8.1f TFLOP/s %9.3f ms\n", table[k].what, t->n, flop / ms * 1e-9,
               (double)ms);
        fflush(stdout);
    }
}

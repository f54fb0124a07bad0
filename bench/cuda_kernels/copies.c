/* Copies: dense, with gaps, transposed, of blocks, between types. */
#include "cuda_bench.h"
#include "kernels/direct.h"

enum { BLOCK = 96 };

static dmi_copy whole(const bench *t, dmi_run *run)
{
    run[0] = (dmi_run){.len = t->n};
    run[1] = (dmi_run){.len = t->n};
    return (dmi_copy){.ndim = 2,
                      .src_dtype = t->type,
                      .dst_dtype = t->to,
                      .nrun = {1, 1},
                      .run = {&run[0], &run[1]},
                      .src_stride = {t->n, 1},
                      .dst_stride = {t->n, 1},
                      .count = t->n * t->n};
}

void cuda_bench_copy(const bench *t)
{
    dmi_run run[2];
    dmi_copy d = whole(t, run);
    const dmi_run *tables[DM_MAX_DIMS] = {NULL};
    switch (t->kind) {
    case PITCHED:
        d.src_stride[0] = t->n + PITCH;
        break;
    case ODD_PITCH:
        d.src_stride[0] = t->n + 1;
        break;
    case TRANSPOSED:
    case TRANSPOSED_ODD:
        run[0].len = run[1].len = t->n - (t->kind == TRANSPOSED_ODD);
        d.src_stride[0] = run[0].len;
        d.dst_stride[0] = 1;
        d.dst_stride[1] = run[0].len;
        d.count = run[0].len * run[0].len;
        break;
    case CYCLIC: /* every second block of both dims, packed */
    case IRREGULAR:
        d.run[0] = d.run[1] = t->host_runs;
        d.nrun[0] = d.nrun[1] = t->nrun;
        tables[0] = tables[1] = t->gpu_runs;
        t->q->device_run = tables;
        break;
    default:
        break;
    }
    dmi_run_copy(dmi_backend_cuda(), t->q, &d, t->a, t->b);
    t->q->device_run = NULL;
}

/* Blocks of which every second is copied: all alike, or alternating in length. */
static double make_runs(bench *t, int kind)
{
    int64_t at = 0, ordinal = 0;
    t->nrun = 0;
    while (at + 2 * BLOCK <= t->n) {
        int64_t len = kind == CYCLIC ? BLOCK : BLOCK / 2 + BLOCK / 4 * (t->nrun % 3);
        t->host_runs[t->nrun++] = (dmi_run){.a = at, .b = ordinal, .len = len};
        at += 2 * BLOCK;
        ordinal += len;
    }
    cuda_bench_check(
        cudaMemcpy(t->gpu_runs, t->host_runs, (size_t)t->nrun * sizeof(dmi_run), cudaMemcpyHostToDevice),
        "runs");
    cuda_bench_check(cudaDeviceSynchronize(), "runs");
    return (double)ordinal * (double)ordinal;
}

void cuda_bench_copies(bench *t)
{
    static const struct {
        const char *what;
        int kind;
        dm_dtype from, to;
    } table[] = {{"copy f32", DENSE, DM_F32, DM_F32},
                 {"copy f32, pitched rows", PITCHED, DM_F32, DM_F32},
                 {"copy f32, rows of odd pitch", ODD_PITCH, DM_F32, DM_F32},
                 {"copy bf16, rows of odd pitch", ODD_PITCH, DM_BF16, DM_BF16},
                 {"copy f32, every second block", CYCLIC, DM_F32, DM_F32},
                 {"copy f32, runs of several lengths", IRREGULAR, DM_F32, DM_F32},
                 {"transpose f32", TRANSPOSED, DM_F32, DM_F32},
                 {"transpose f32, odd extents", TRANSPOSED_ODD, DM_F32, DM_F32},
                 {"transpose f64", TRANSPOSED, DM_F64, DM_F64},
                 {"transpose bf16", TRANSPOSED, DM_BF16, DM_BF16},
                 {"transpose u8", TRANSPOSED, DM_U8, DM_U8},
                 {"transpose f32 to bf16", TRANSPOSED, DM_F32, DM_BF16},
                 {"cast f32 to bf16", DENSE, DM_F32, DM_BF16},
                 {"cast f32 to f16", DENSE, DM_F32, DM_F16},
                 {"cast bf16 to f32", DENSE, DM_BF16, DM_F32},
                 {"cast f32 to bf16, pitched rows", PITCHED, DM_F32, DM_BF16},
                 {"cast f64 to f32", DENSE, DM_F64, DM_F32},
                 {"cast i64 to f32", DENSE, DM_I64, DM_F32},
                 {"cast f32 to bf16, rows of odd pitch", ODD_PITCH, DM_F32, DM_BF16}};
    for (int k = 0; k < DMI_COUNT(table); k++) {
        bool wide = dmi_dtype_bytes(table[k].from) == 8 || dmi_dtype_bytes(table[k].to) == 8;
        t->kind = table[k].kind;
        t->type = table[k].from;
        t->to = table[k].to;
        t->n = wide ? t->cols / 2 : t->cols;
        double elements = (double)t->n * (double)t->n;
        if (t->kind == CYCLIC || t->kind == IRREGULAR) {
            elements = make_runs(t, t->kind);
        }
        cuda_bench_report(t, table[k].what,
                          elements * (double)(dmi_dtype_bytes(t->type) + dmi_dtype_bytes(t->to)),
                          cuda_bench_copy);
    }
}

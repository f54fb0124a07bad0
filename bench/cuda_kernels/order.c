/* Scans and sorting. */
#include "kernels/order/order.h"
#include "cuda_bench.h"

#include <stdio.h>
#include <stdlib.h>

static void run_kernel(const bench *t, int kernel, const void *d, int refs, void *x, void *y, void *z)
{
    dmi_kernel_call call = {.queue = t->q, .desc = d, .refs = refs, .at = {x, y, z}};
    if (dmi_backend_cuda()->run(kernel, &call) != DM_OK) {
        fprintf(stderr, "%s\n", dmi_error_text());
        exit(1);
    }
}

static void
run_scan(const bench *t) /* kind: a row of reduce.def, and the dim, or 2: of all, 3: other extents */
{
    int dim = t->kind % 4;
    dmi_scan d = {.ndim = 2,
                  .dim = dim,
                  .dtype = t->type,
                  .out_dtype = t->to,
                  .row = t->kind / 4,
                  .extent = {t->n, t->n},
                  .stride = {t->n, 1},
                  .out_stride = {t->n, 1}};
    if (dim == 2) {
        d.ndim = 1;
        d.dim = 0;
        d.extent[0] = t->n * t->n;
        d.stride[0] = d.out_stride[0] = 1;
    } else if (dim == 3) { /* down 64 columns, or along rows of 1024 */
        d.dim = t->m == 64 ? 0 : 1;
        d.extent[0] = t->n * t->n / t->m;
        d.extent[1] = d.stride[0] = d.out_stride[0] = t->m;
    }
    run_kernel(t, DMI_KERNEL_scan, &d, 2, t->a, t->c, NULL);
}

static void describe_sort(const bench *t, dmi_sort *d)
{
    *d = (dmi_sort){.ndim = 1,
                    .dtype = t->type,
                    .descending = t->kind,
                    .values = true,
                    .most = t->n,
                    .extent = {t->n},
                    .stride = {1},
                    .value_stride = {1}};
    d->scratch = dmi_sort_scratch(d, true);
}

static void run_sort(const bench *t)
{
    dmi_sort d;
    describe_sort(t, &d);
    run_kernel(t, DMI_KERNEL_sort, &d, 3, t->a, t->b, t->c);
}

void cuda_bench_order(bench *t)
{
    enum { ROWS, COLUMNS, ALL, OTHER };
    static const struct {
        const char *what;
        int row, dims;
        dm_dtype type;
        int64_t m;
    } scans[] = {{"cumulative sum f32 of all", DMI_REDUCTION_sum, ALL, DM_F32, 0},
                 {"cumulative sum f32 along rows", DMI_REDUCTION_sum, COLUMNS, DM_F32, 0},
                 {"cumulative sum f32 down columns", DMI_REDUCTION_sum, ROWS, DM_F32, 0},
                 {"cumulative sum f32 down 64 columns", DMI_REDUCTION_sum, OTHER, DM_F32, 64},
                 {"cumulative sum f32 along rows of 1024", DMI_REDUCTION_sum, OTHER, DM_F32, 1024},
                 {"cumulative sum f64 of all", DMI_REDUCTION_sum, ALL, DM_F64, 0},
                 {"cumulative sum f64 down columns", DMI_REDUCTION_sum, ROWS, DM_F64, 0},
                 {"cumulative sum bf16 of all", DMI_REDUCTION_sum, ALL, DM_BF16, 0},
                 {"cumulative sum i32 of all", DMI_REDUCTION_sum, ALL, DM_I32, 0},
                 {"cumulative sum u8 to i64 of all", DMI_REDUCTION_sum, ALL, DM_U8, 0},
                 {"cumulative product f32 of all", DMI_REDUCTION_prod, ALL, DM_F32, 0},
                 {"cumulative maximum f32 of all", DMI_REDUCTION_max, ALL, DM_F32, 0},
                 {"cumulative maximum f32 down columns", DMI_REDUCTION_max, ROWS, DM_F32, 0}};
    for (int k = 0; k < DMI_COUNT(scans); k++) {
        t->kind = scans[k].row * 4 + scans[k].dims;
        t->type = scans[k].type;
        t->m = scans[k].m;
        t->to = t->type == DM_U8 ? DM_I64 : t->type;
        t->n = dmi_dtype_bytes(t->to) == 8 ? t->cols / 2 : t->cols;
        double elements = (double)t->n * (double)t->n;
        cuda_bench_report(t, scans[k].what,
                          elements * (double)(dmi_dtype_bytes(t->type) + dmi_dtype_bytes(t->to)), run_scan);
    }
    static const dm_dtype sorted[] = {DM_F32, DM_I32, DM_BF16, DM_F64};
    void *b = t->b;
    for (int k = 0; k < 2 * DMI_COUNT(sorted); k++) {
        dmi_sort d;
        t->type = sorted[k / 2];
        t->kind = k % 2;
        t->n = INT64_C(1) << 26;
        describe_sort(t, &d);
        if (t->n * dmi_dtype_bytes(t->type) > t->rows * t->cols * 4) {
            continue;
        }
        cuda_bench_check(cudaMalloc(&t->b, (size_t)d.scratch), "memory");
        float ms = cuda_bench_median(t, run_sort, 1);
        printf("sort of 64M %-5s%-12s %9.3f ms\n", dmi_dtype_name(t->type), t->kind ? ", descending" : "",
               (double)ms);
        cuda_bench_check(cudaStreamSynchronize(t->q->stream), "sort");
        cuda_bench_check(cudaFree(t->b), "memory");
    }
    t->b = b;
}

/* Memory rates of the CPU kernels beside memcpy: bytes read and written a second, best of some runs.
 *     bench_kernels [MiB of f32 data, default 256]  */
#include "kernels/direct.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct bench {
    int64_t rows, cols; /* the matrices are rows x cols of f32 */
    float *a, *b, *c;
    void *acc;
} bench;

typedef void bench_fn(const bench *t);

static void report(const bench *t, const char *what, int64_t bytes, bench_fn *fn)
{
    int64_t best = INT64_MAX;
    for (int run = 0; run < 5; run++) {
        int64_t begin = dmi_now_ns();
        fn(t);
        best = DMI_MIN(best, dmi_now_ns() - begin);
    }
    printf("%-36s %8.2f GB/s %10.2f ms\n", what, (double)bytes / (double)best, (double)best * 1e-6);
}

static dmi_copy whole(const bench *t, dmi_run *run)
{
    run[0] = (dmi_run){.len = t->rows};
    run[1] = (dmi_run){.len = t->cols};
    return (dmi_copy){.ndim = 2,
                      .src_dtype = DM_F32,
                      .dst_dtype = DM_F32,
                      .nrun = {1, 1},
                      .run = {&run[0], &run[1]},
                      .src_stride = {t->cols, 1},
                      .dst_stride = {t->cols, 1},
                      .count = t->rows * t->cols};
}

static void run_memcpy(const bench *t)
{
    memcpy(t->b, t->a, (size_t)(t->rows * t->cols) * 4);
}
static void run_copy(const bench *t)
{
    dmi_run run[2];
    dmi_copy d = whole(t, run);
    dmi_run_copy(dmi_backend_cpu(), NULL, &d, t->a, t->b);
}
static void run_rows(const bench *t) /* half of each row: runs, not one stretch */
{
    dmi_run run[2];
    dmi_copy d = whole(t, run);
    run[1].len = t->cols / 2;
    d.count /= 2;
    dmi_run_copy(dmi_backend_cpu(), NULL, &d, t->a, t->b);
}
static void run_transpose(const bench *t)
{
    dmi_run run[2];
    dmi_copy d = whole(t, run);
    d.dst_stride[0] = 1;
    d.dst_stride[1] = t->rows;
    dmi_run_copy(dmi_backend_cpu(), NULL, &d, t->a, t->b);
}
static void run_transpose_f64(const bench *t)
{
    dmi_run run[2];
    dmi_copy d = whole(t, run);
    d.src_dtype = d.dst_dtype = DM_F64;
    run[0].len /= 2;
    d.count /= 2;
    d.dst_stride[0] = 1;
    d.dst_stride[1] = t->rows / 2;
    dmi_run_copy(dmi_backend_cpu(), NULL, &d, t->a, t->b);
}
static void run_transpose_u8(const bench *t)
{
    dmi_run run[2];
    dmi_copy d = whole(t, run);
    d.src_dtype = d.dst_dtype = DM_U8;
    d.dst_stride[0] = 1;
    d.dst_stride[1] = t->rows;
    dmi_run_copy(dmi_backend_cpu(), NULL, &d, t->a, t->b);
}
static void run_bf16(const bench *t)
{
    dmi_run run[2];
    dmi_copy d = whole(t, run);
    d.dst_dtype = DM_BF16;
    dmi_run_copy(dmi_backend_cpu(), NULL, &d, t->a, t->b);
}
static void run_f16(const bench *t)
{
    dmi_run run[2];
    dmi_copy d = whole(t, run);
    d.dst_dtype = DM_F16;
    dmi_run_copy(dmi_backend_cpu(), NULL, &d, t->a, t->b);
}
static void run_transpose_bf16(const bench *t)
{
    dmi_run run[2];
    dmi_copy d = whole(t, run);
    d.dst_dtype = DM_BF16;
    d.dst_stride[0] = 1;
    d.dst_stride[1] = t->rows;
    dmi_run_copy(dmi_backend_cpu(), NULL, &d, t->a, t->b);
}
static void run_cyclic(const bench *t) /* rows and columns of every second block of 3: short runs */
{
    dmi_run run[2];
    dmi_copy d = whole(t, run);
    dmi_run *many[2];
    d.count = 1;
    for (int k = 0; k < 2; k++) {
        int64_t n = (k == 0 ? t->rows : t->cols) / 6;
        many[k] = calloc((size_t)n, sizeof(dmi_run));
        if (many[k] == NULL) {
            abort();
        }
        for (int64_t i = 0; i < n; i++) {
            many[k][i] = (dmi_run){.a = 6 * i, .b = 3 * i, .len = 3};
        }
        d.nrun[k] = n;
        d.run[k] = many[k];
        d.count *= 3 * n;
    }
    dmi_run_copy(dmi_backend_cpu(), NULL, &d, t->a, t->b);
    free(many[0]);
    free(many[1]);
}

static void run_map(const bench *t, int row, int64_t b_stride, void *const *at)
{
    const dmi_number number[] = {dmi_number_of(1), dmi_number_of(2)};
    dmi_map d = {.ndim = 2, .extent = {t->rows, t->cols}};
    if (dmi_map_row(row, (dm_dtype[]){DM_F32, DM_F32}, (int[]){0, 1}, DM_F32, &d.program) != DM_OK) {
        abort();
    }
    for (int s = 0; s <= d.program.inputs; s++) {
        d.dtype[s] = DM_F32;
        d.stride[s][0] = s == 1 && d.program.inputs == 2 ? b_stride : t->cols;
        d.stride[s][1] = 1;
    }
    dmi_run_map(dmi_backend_cpu(), NULL, &d, number, 2, at);
}
static void run_add(const bench *t)
{
    run_map(t, DMI_EW_linear, t->cols, (void *[]){t->a, t->b, t->c});
}
static void run_add_in_place(const bench *t)
{
    run_map(t, DMI_EW_linear, t->cols, (void *[]){t->a, t->b, t->b});
}
static void run_bias(const bench *t)
{
    run_map(t, DMI_EW_linear, 0, (void *[]){t->a, t->c, t->b});
}
static void run_relu(const bench *t)
{
    run_map(t, DMI_EW_relu, 0, (void *[]){t->a, t->c});
}
static void run_exp(const bench *t)
{
    run_map(t, DMI_EW_exp, 0, (void *[]){t->a, t->c});
}

static void run_reduce(const bench *t, dm_dtype dtype, unsigned mask)
{
    dmi_reduce d = {.ndim = 2, .dtype = dtype, .reduced = mask};
    d.extent[0] = dtype == DM_F64 ? t->rows / 2 : t->rows;
    d.extent[1] = t->cols;
    d.stride[0] = t->cols;
    d.stride[1] = 1;
    dmi_run_reduce(dmi_backend_cpu(), NULL, &d, t->a, t->acc);
}
static void run_over_rows(const bench *t)
{
    run_reduce(t, DM_F32, 1);
}
static void run_over_cols(const bench *t)
{
    run_reduce(t, DM_F32, 2);
}
static void run_over_all(const bench *t)
{
    run_reduce(t, DM_F32, 3);
}
static void run_over_rows_f64(const bench *t)
{
    run_reduce(t, DM_F64, 1);
}
static void run_over_cols_f64(const bench *t)
{
    run_reduce(t, DM_F64, 2);
}

static void run_fill(const bench *t, int kind, dm_dtype dtype)
{
    int64_t n = t->rows * t->cols * 4 / dmi_dtype_bytes(dtype);
    dmi_fill d = {.kind = kind, .dtype = dtype, .shape = {n}, .region = {.ndim = 1, .stride = {1}, .count = n}};
    dmi_fill_values v = {.p0 = 0, .p1 = 1, .i1 = 1000, .seed = 1};
    d.region.dim[0] = dmi_dimset_interval(0, n);
    dmi_run_fill(dmi_backend_cpu(), NULL, &d, &v, t->c);
}
static void run_const(const bench *t)
{
    run_fill(t, DMI_FILL_CONST, DM_F32);
}
static void run_uniform_f32(const bench *t)
{
    run_fill(t, DMI_FILL_UNIFORM, DM_F32);
}
static void run_uniform_f64(const bench *t)
{
    run_fill(t, DMI_FILL_UNIFORM, DM_F64);
}
static void run_normal_f32(const bench *t)
{
    run_fill(t, DMI_FILL_NORMAL, DM_F32);
}
static void run_normal_f64(const bench *t)
{
    run_fill(t, DMI_FILL_NORMAL, DM_F64);
}

int main(int argc, char **argv)
{
    int64_t mib = argc > 1 ? strtoll(argv[1], NULL, 10) : 256, bytes = mib * 1048576;
    bench t = {.cols = 4096, .rows = mib * 64};
    t.a = malloc((size_t)bytes);
    t.b = malloc((size_t)bytes);
    t.c = malloc((size_t)bytes);
    t.acc = malloc((size_t)DMI_MAX(t.rows, t.cols) * 16);
    if (mib < 1 || t.a == NULL || t.b == NULL || t.c == NULL || t.acc == NULL) {
        fprintf(stderr, "bench_kernels: no memory for 3 x %" PRId64 " MiB\n", mib);
        return 1;
    }
    for (int64_t i = 0; i < bytes / 4; i++) {
        t.a[i] = (float)(i % 1000) * 0.001f;
        t.b[i] = t.c[i] = 1;
    }
    report(&t, "memcpy", 2 * bytes, run_memcpy);
    report(&t, "copy, contiguous", 2 * bytes, run_copy);
    report(&t, "copy, half rows", bytes, run_rows);
    report(&t, "copy, transpose f32", 2 * bytes, run_transpose);
    report(&t, "copy, transpose f64", 2 * bytes, run_transpose_f64);
    report(&t, "copy, transpose u8", bytes / 2, run_transpose_u8);
    report(&t, "copy, f32 to bf16", bytes + bytes / 2, run_bf16);
    report(&t, "copy, f32 to f16", bytes + bytes / 2, run_f16);
    report(&t, "copy, transpose and f32 to bf16", bytes + bytes / 2, run_transpose_bf16);
    report(&t, "copy, cyclic 3 x 3 blocks", bytes / 2, run_cyclic);
    report(&t, "ewise add f32", 3 * bytes, run_add);
    report(&t, "ewise add f32, in place", 3 * bytes, run_add_in_place);
    report(&t, "ewise add row vector f32", 2 * bytes, run_bias);
    report(&t, "ewise relu f32", 2 * bytes, run_relu);
    report(&t, "ewise exp f32", 2 * bytes, run_exp);
    report(&t, "reduce over rows f32", bytes, run_over_rows);
    report(&t, "reduce over columns f32", bytes, run_over_cols);
    report(&t, "reduce over both f32", bytes, run_over_all);
    report(&t, "reduce over rows f64 (compensated)", bytes, run_over_rows_f64);
    report(&t, "reduce over columns f64 (compensated)", bytes, run_over_cols_f64);
    report(&t, "fill constant f32", bytes, run_const);
    report(&t, "fill uniform f32", bytes, run_uniform_f32);
    report(&t, "fill uniform f64", bytes, run_uniform_f64);
    report(&t, "fill normal f32", bytes, run_normal_f32);
    report(&t, "fill normal f64", bytes, run_normal_f64);
    free(t.a);
    free(t.b);
    free(t.c);
    free(t.acc);
    return 0;
}

/* Rates of the CUDA kernels: bytes read and written a second, beside the driver's copy on the device; products
 * in operations a second. Medians of some runs, timed on the device. bench_cuda_kernels [GiB of an f32 matrix,
 * default 4]  */
#include "kernels/cuda/cuda.h"
#include <cuda_runtime_api.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RUNS = 9, PITCH = 64, BLOCK = 96 };

typedef struct bench {
    dmi_queue *q;
    int64_t rows, cols; /* of f32; the buffers have room for a pitch */
    void *a, *b, *c;
    double copy_rate; /* GB/s of the driver's copy */
    dmi_run *host_runs, *gpu_runs;
    int64_t nrun;
    /* what is run: */
    dm_dtype type, to;
    int kind;  /* op, form, axis */
    int64_t n; /* rows and columns where the matrix has other types */
} bench;

static void check(cudaError_t e, const char *what)
{
    if (e != cudaSuccess) {
        fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(e));
        exit(1);
    }
}

static int compare(const void *a, const void *b)
{
    float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

typedef void bench_fn(const bench *t);

static float median_ms(const bench *t, bench_fn *fn, int times)
{
    cudaEvent_t begin, end;
    float ms[RUNS];
    check(cudaEventCreate(&begin), "event");
    check(cudaEventCreate(&end), "event");
    for (int run = -2; run < RUNS; run++) {
        check(cudaEventRecord(begin, t->q->stream), "record");
        for (int k = 0; k < times; k++) {
            fn(t);
        }
        check(cudaEventRecord(end, t->q->stream), "record");
        check(cudaEventSynchronize(end), "kernel");
        check(cudaEventElapsedTime(&ms[run < 0 ? 0 : run], begin, end), "time");
    }
    if (t->q->error != 0) {
        fprintf(stderr, "%s\n", t->q->error_text);
        exit(1);
    }
    check(cudaEventDestroy(begin), "event");
    check(cudaEventDestroy(end), "event");
    qsort(ms, RUNS, sizeof *ms, compare);
    return ms[RUNS / 2] / (float)times;
}

static double report(const bench *t, const char *what, double bytes, bench_fn *fn)
{
    float ms = median_ms(t, fn, 1);
    double rate = bytes / ms * 1e-6;
    printf("%-40s %8.0f GB/s %9.3f ms", what, rate, (double)ms);
    if (t->copy_rate > 0) {
        printf("  %5.2f of copy", rate / t->copy_rate);
    }
    printf("\n");
    fflush(stdout);
    return rate;
}

/* --- copies ------------------------------------------------------------------------------- */
static void run_driver(const bench *t)
{
    check(cudaMemcpyAsync(t->b, t->a, (size_t)(t->rows * t->cols * 4), cudaMemcpyDeviceToDevice, t->q->stream),
          "copy");
}

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

enum { DENSE, PITCHED, ODD_PITCH, TURNED, TURNED_ODD, CYCLIC, IRREGULAR };
static void run_copy(const bench *t)
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
    case TURNED:
    case TURNED_ODD:
        run[0].len = run[1].len = t->n - (t->kind == TURNED_ODD);
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
    dmi_backend_cuda()->copy(t->q, &d, t->a, t->b);
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
    check(cudaMemcpy(t->gpu_runs, t->host_runs, (size_t)t->nrun * sizeof(dmi_run), cudaMemcpyHostToDevice),
          "runs");
    check(cudaDeviceSynchronize(), "runs");
    return (double)ordinal * (double)ordinal;
}

static void copies(bench *t)
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
                 {"transpose f32", TURNED, DM_F32, DM_F32},
                 {"transpose f32, odd extents", TURNED_ODD, DM_F32, DM_F32},
                 {"transpose f64", TURNED, DM_F64, DM_F64},
                 {"transpose bf16", TURNED, DM_BF16, DM_BF16},
                 {"transpose u8", TURNED, DM_U8, DM_U8},
                 {"transpose f32 to bf16", TURNED, DM_F32, DM_BF16},
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
        report(t, table[k].what, elements * (double)(dmi_dtype_bytes(t->type) + dmi_dtype_bytes(t->to)),
               run_copy);
    }
}

/* --- elementwise ----------------------------------------------------------------------------- */
enum { FLAT, BROADCAST, ACROSS };
static void run_ewise(const bench *t)
{
    dmi_ewise d = {
        .op = t->kind & 15, .ndim = 2, .extent = {t->n, t->n}, .a_dtype = t->type, .b_dtype = t->type};
    int form = t->kind >> 4;
    d.out_dtype = t->to;
    d.a_stride[0] = d.b_stride[0] = d.out_stride[0] = t->n;
    d.a_stride[1] = d.b_stride[1] = d.out_stride[1] = 1;
    if (form == BROADCAST) {
        d.b_stride[0] = 0;
    } else if (form == ACROSS) {
        d.b_stride[0] = 1;
        d.b_stride[1] = t->n;
    }
    dmi_backend_cuda()->ewise(t->q, &d, 0.5, t->a, 0.25, t->b, t->c);
}

static void ewises(bench *t)
{
    static const struct {
        const char *what;
        int op, form;
        dm_dtype type, out;
        int operands;
    } table[] = {{"add f32", DMI_EW_ADD, FLAT, DM_F32, DM_F32, 2},
                 {"add bf16", DMI_EW_ADD, FLAT, DM_BF16, DM_BF16, 2},
                 {"add f64", DMI_EW_ADD, FLAT, DM_F64, DM_F64, 2},
                 {"add i32", DMI_EW_ADD, FLAT, DM_I32, DM_I32, 2},
                 {"add u8", DMI_EW_ADD, FLAT, DM_U8, DM_U8, 2},
                 {"add f32, a row to every row", DMI_EW_ADD, BROADCAST, DM_F32, DM_F32, 1},
                 {"add f32 and a transposed f32", DMI_EW_ADD, ACROSS, DM_F32, DM_F32, 2},
                 {"add bf16 into f32", DMI_EW_ADD, FLAT, DM_BF16, DM_F32, 2},
                 {"multiply f32", DMI_EW_MUL, FLAT, DM_F32, DM_F32, 2},
                 {"scale f32", DMI_EW_SCALE, FLAT, DM_F32, DM_F32, 1},
                 {"scale f32 into bf16", DMI_EW_SCALE, FLAT, DM_F32, DM_BF16, 1},
                 {"exp f32", DMI_EW_EXP, FLAT, DM_F32, DM_F32, 1},
                 {"exp bf16", DMI_EW_EXP, FLAT, DM_BF16, DM_BF16, 1},
                 {"exp f64", DMI_EW_EXP, FLAT, DM_F64, DM_F64, 1},
                 {"tanh f32", DMI_EW_TANH, FLAT, DM_F32, DM_F32, 1},
                 {"relu bf16", DMI_EW_RELU, FLAT, DM_BF16, DM_BF16, 1}};
    for (int k = 0; k < DMI_COUNT(table); k++) {
        t->kind = table[k].op | table[k].form << 4;
        t->type = table[k].type;
        t->to = table[k].out;
        t->n = dmi_dtype_bytes(t->type) == 8 ? t->cols / 2 : t->cols;
        double bytes = (double)(table[k].operands * dmi_dtype_bytes(t->type) + dmi_dtype_bytes(t->to));
        report(t, table[k].what, bytes * (double)t->n * (double)t->n, run_ewise);
    }
}

/* --- sums, fills --------------------------------------------------------------------------------- */
static void run_reduce(const bench *t)
{
    dmi_reduce d = {
        .ndim = 2, .dtype = t->type, .reduced = (unsigned)t->kind, .extent = {t->n, t->n}, .stride = {t->n, 1}};
    dmi_backend_cuda()->reduce(t->q, &d, t->a, t->c);
}
static void run_narrow(const bench *t) /* rows of 64 */
{
    dmi_reduce d = {.ndim = 2,
                    .dtype = t->type,
                    .reduced = (unsigned)t->kind,
                    .extent = {t->n * t->n / 64, 64},
                    .stride = {64, 1}};
    dmi_backend_cuda()->reduce(t->q, &d, t->a, t->c);
}
static void run_acc_add(const bench *t)
{
    dmi_run run = {.len = t->n * t->n};
    dmi_acc_add d = {.acc = t->kind};
    d.geometry = (dmi_copy){
        .ndim = 1, .nrun = {1}, .run = {&run}, .src_stride = {1}, .dst_stride = {1}, .count = t->n * t->n};
    dmi_backend_cuda()->acc_add(t->q, &d, t->a, t->c);
}
static void run_acc_store(const bench *t)
{
    dmi_acc_store d = {
        .acc = t->kind, .ndim = 1, .out_dtype = t->type, .extent = {t->n * t->n}, .out_stride = {1}};
    dmi_backend_cuda()->acc_store(t->q, &d, 1, t->a, 0, t->c);
}
static void run_fill(const bench *t)
{
    dmi_fill d = {.kind = t->kind, .dtype = t->type, .shape = {t->n * t->n}};
    dmi_fill_values v = {.p0 = -1, .p1 = 1, .i0 = -9, .i1 = 9, .seed = 11};
    d.region.ndim = 1;
    d.region.count = t->n * t->n;
    d.region.dim[0] = dmi_dimset_interval(0, d.region.count);
    d.region.stride[0] = 1;
    dmi_backend_cuda()->fill(t->q, &d, &v, t->c);
}

static void sums_and_fills(bench *t)
{
    static const struct {
        const char *what;
        bench_fn *fn;
        int kind;
        dm_dtype type;
    } table[] = {{"sum f32 over rows", run_reduce, 1, DM_F32},
                 {"sum f32 over columns", run_reduce, 2, DM_F32},
                 {"sum f32 of all", run_reduce, 3, DM_F32},
                 {"sum f32 of rows of 64", run_narrow, 2, DM_F32},
                 {"sum f32 over rows of 64", run_narrow, 1, DM_F32},
                 {"sum f64 over rows", run_reduce, 1, DM_F64},
                 {"sum f64 over columns", run_reduce, 2, DM_F64},
                 {"sum bf16 over rows", run_reduce, 1, DM_BF16},
                 {"sum bf16 over columns", run_reduce, 2, DM_BF16},
                 {"sum u8 over rows", run_reduce, 1, DM_U8},
                 {"sum u8 over columns", run_reduce, 2, DM_U8},
                 {"fill f32 with one value", run_fill, DMI_FILL_CONST, DM_F32},
                 {"fill f32 arange", run_fill, DMI_FILL_ARANGE, DM_F32},
                 {"fill f32 uniform", run_fill, DMI_FILL_UNIFORM, DM_F32},
                 {"fill f32 normal", run_fill, DMI_FILL_NORMAL, DM_F32},
                 {"fill bf16 normal", run_fill, DMI_FILL_NORMAL, DM_BF16},
                 {"fill f64 uniform", run_fill, DMI_FILL_UNIFORM, DM_F64},
                 {"fill f64 normal", run_fill, DMI_FILL_NORMAL, DM_F64}};
    for (int k = 0; k < DMI_COUNT(table); k++) {
        t->kind = table[k].kind;
        t->type = table[k].type;
        t->n = dmi_dtype_bytes(t->type) == 8 ? t->cols / 2 : t->cols;
        double bytes = (double)t->n * (double)t->n * (double)dmi_dtype_bytes(t->type);
        report(t, table[k].what, bytes, table[k].fn);
    }
    t->n = t->cols / 2;
    double elements = (double)t->n * (double)t->n;
    t->kind = DMI_ACC_F64;
    report(t, "add sums, f64", elements * 24, run_acc_add);
    t->type = DM_F32;
    report(t, "store sums, f64 to f32", elements * 12, run_acc_store);
    t->n = t->cols / 4;
    elements /= 4;
    t->kind = DMI_ACC_DD;
    report(t, "add sums, pairs", elements * 48, run_acc_add);
    t->type = DM_F64;
    report(t, "store sums, pairs to f64", elements * 24, run_acc_store);
}

/* --- products; small kernels ------------------------------------------------------------------------ */
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
    d.trans_b = t->kind >> 1;
    dmi_backend_cuda()->gemm(t->q, &d, 1, t->a, t->b, 0, t->c);
}

static void gemms(bench *t)
{
    static const struct {
        const char *what;
        dm_dtype type, c;
        int trans;
        bool tf32;
    } table[] = {{"gemm bf16", DM_BF16, DM_BF16, 0, false},
                 {"gemm bf16 into f32", DM_BF16, DM_F32, 0, false},
                 {"gemm bf16, a transposed", DM_BF16, DM_BF16, 1, false},
                 {"gemm bf16, b transposed", DM_BF16, DM_BF16, 2, false},
                 {"gemm f16", DM_F16, DM_F16, 0, false},
                 {"gemm f32", DM_F32, DM_F32, 0, false},
                 {"gemm f32 by tf32", DM_F32, DM_F32, 0, true},
                 {"gemm f64", DM_F64, DM_F64, 0, false}};
    t->n = DMI_MIN(8192, t->cols / 2);
    for (int k = 0; k < DMI_COUNT(table); k++) {
        dmi_fill d = {.kind = DMI_FILL_NORMAL, .dtype = table[k].type, .shape = {t->n * t->n}};
        dmi_fill_values v = {.p0 = 0, .p1 = 1, .seed = 5};
        d.region.ndim = 1;
        d.region.count = t->n * t->n;
        d.region.dim[0] = dmi_dimset_interval(0, d.region.count);
        d.region.stride[0] = 1;
        dmi_backend_cuda()->fill(t->q, &d, &v, t->a);
        v.seed = 6;
        dmi_backend_cuda()->fill(t->q, &d, &v, t->b);
        t->type = table[k].type;
        t->to = table[k].c;
        t->kind = table[k].trans;
        t->q->tf32 = table[k].tf32;
        float ms = median_ms(t, run_gemm, 1);
        double flop = 2.0 * (double)t->n * (double)t->n * (double)t->n;
        printf("%-32s %7" PRId64 " %8.1f TFLOP/s %9.3f ms\n", table[k].what, t->n, flop / ms * 1e-9,
               (double)ms);
        fflush(stdout);
    }
}

static void small_kernels(bench *t)
{
    static const int64_t sides[] = {16, 64, 256, 512};
    t->type = t->to = DM_F32;
    for (int k = 0; k < DMI_COUNT(sides); k++) {
        t->n = sides[k];
        t->kind = DENSE;
        float copy = median_ms(t, run_copy, 100);
        t->kind = DMI_EW_ADD;
        float add = median_ms(t, run_ewise, 100);
        t->kind = 3;
        float sum = median_ms(t, run_reduce, 100);
        printf("f32 %" PRId64 " x %" PRId64 ", one after the other: copy %.2f us, add %.2f us, sum %.2f us\n",
               t->n, t->n, (double)copy * 1e3, (double)add * 1e3, (double)sum * 1e3);
    }
}

int main(int argc, char **argv)
{
    bench t = {.copy_rate = 0};
    double gib = argc > 1 ? atof(argv[1]) : 4;
    if (dmi_cuda_queue_create(0, &t.q) != DM_OK) {
        printf("no GPU, nothing measured: %s\n", dmi_error_text());
        return 0;
    }
    while ((double)(t.cols * 2) * (double)(t.cols * 2) * 4 <= gib * 1073741824.0 || t.cols < 1024) {
        t.cols = t.cols == 0 ? 1024 : t.cols * 2;
    }
    t.rows = t.cols;
    size_t bytes = (size_t)(t.rows * (t.cols + PITCH) * 4);
    check(cudaMalloc(&t.a, bytes), "memory");
    check(cudaMalloc(&t.b, bytes), "memory");
    check(cudaMalloc(&t.c, bytes), "memory");
    t.host_runs = calloc((size_t)t.cols, sizeof *t.host_runs);
    check(cudaMalloc((void **)&t.gpu_runs, (size_t)t.cols * sizeof *t.gpu_runs), "memory");
    for (int k = 0; k < 3; k++) { /* never zeros: data may change the speed */
        bench f = t;
        f.kind = DMI_FILL_NORMAL;
        f.type = DM_F32;
        f.n = t.cols;
        f.c = k == 0 ? t.a : k == 1 ? t.b : t.c;
        run_fill(&f);
    }
    printf("f32 %" PRId64 " x %" PRId64 ", %.2f GiB\n", t.rows, t.cols,
           (double)(t.rows * t.cols) / 268435456.0);
    t.copy_rate = report(&t, "the driver's copy", 8.0 * (double)t.rows * (double)t.cols, run_driver);
    copies(&t);
    ewises(&t);
    sums_and_fills(&t);
    gemms(&t);
    small_kernels(&t);
    check(cudaFree(t.gpu_runs), "memory");
    check(cudaFree(t.a), "memory");
    check(cudaFree(t.b), "memory");
    check(cudaFree(t.c), "memory");
    free(t.host_runs);
    dmi_cuda_queue_destroy(t.q);
    return 0;
}

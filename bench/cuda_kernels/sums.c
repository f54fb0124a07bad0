/* Sums, what becomes of them, and fills. */
#include "cuda_bench.h"
#include "kernels/direct.h"

void cuda_bench_reduce(const bench *t)
{
    dmi_reduce d = {
        .ndim = 2, .dtype = t->type, .reduced = (unsigned)t->kind, .extent = {t->n, t->n}, .stride = {t->n, 1}};
    dmi_run_reduce(dmi_backend_cuda(), t->q, &d, t->a, t->c);
}

static void run_row(const bench *t) /* kind: a row of reduce.def, and the dims in the last two bits */
{
    dmi_dimset index[2] = {dmi_dimset_interval(0, t->n), dmi_dimset_interval(0, t->n)};
    dmi_reduce d = {.ndim = 2,
                    .dtype = t->type,
                    .row = t->kind / 4,
                    .reduced = (unsigned)t->kind % 4,
                    .index = index,
                    .whole = {t->n, t->n},
                    .extent = {t->n, t->n},
                    .stride = {t->n, 1}};
    dmi_run_reduce(dmi_backend_cuda(), t->q, &d, t->a, t->c);
}

static void run_narrow(const bench *t) /* rows of 64 */
{
    dmi_reduce d = {.ndim = 2,
                    .dtype = t->type,
                    .reduced = (unsigned)t->kind,
                    .extent = {t->n * t->n / 64, 64},
                    .stride = {64, 1}};
    dmi_run_reduce(dmi_backend_cuda(), t->q, &d, t->a, t->c);
}

static void run_acc_add(const bench *t)
{
    dmi_run run = {.len = t->n * t->n};
    dmi_acc_add d = {.acc = t->kind};
    d.geometry = (dmi_copy){
        .ndim = 1, .nrun = {1}, .run = {&run}, .src_stride = {1}, .dst_stride = {1}, .count = t->n * t->n};
    dmi_run_acc_add(dmi_backend_cuda(), t->q, &d, t->a, t->c);
}

static void run_acc_store(const bench *t)
{
    dmi_acc_store d = {
        .acc = t->kind, .ndim = 1, .out_dtype = t->type, .extent = {t->n * t->n}, .out_stride = {1}};
    dmi_run_acc_store(dmi_backend_cuda(), t->q, &d, 1, t->a, 0, t->c);
}

static void run_fold(const bench *t) /* two rows and one that lies by itself */
{
    int64_t n = t->n * t->n / 4;
    dmi_fold d = {.addends = 3, .own = t->kind, .dtype = t->type, .pitch = n, .own_stride = {1}};
    d.store = (dmi_acc_store){
        .acc = dmi_acc_of(t->type), .ndim = 1, .out_dtype = t->type, .extent = {n}, .out_stride = {1}};
    dmi_run_fold(dmi_backend_cuda(), t->q, &d, 1, t->a, t->b, 0, t->c);
}

void cuda_bench_fill(const bench *t, int kind, dm_dtype type, int64_t n, double mean, uint64_t seed, void *at)
{
    dmi_fill d = {.kind = kind, .dtype = type, .shape = {n}};
    dmi_fill_values v = {.p0 = mean, .p1 = 1, .i0 = -9, .i1 = 9, .seed = seed};
    d.region.ndim = 1;
    d.region.count = n;
    d.region.dim[0] = dmi_dimset_interval(0, n);
    d.region.stride[0] = 1;
    dmi_run_fill(dmi_backend_cuda(), t->q, &d, &v, at);
}

static void run_fill(const bench *t)
{
    cuda_bench_fill(t, t->kind, t->type, t->n * t->n, -1, 11, t->c);
}

void cuda_bench_sums_and_fills(bench *t)
{
    static const struct {
        const char *what;
        bench_fn *fn;
        int kind;
        dm_dtype type;
    } table[] = {{"sum f32 over rows", cuda_bench_reduce, 1, DM_F32},
                 {"sum f32 over columns", cuda_bench_reduce, 2, DM_F32},
                 {"sum f32 of all", cuda_bench_reduce, 3, DM_F32},
                 {"sum f32 of rows of 64", run_narrow, 2, DM_F32},
                 {"sum f32 over rows of 64", run_narrow, 1, DM_F32},
                 {"sum f64 over rows", cuda_bench_reduce, 1, DM_F64},
                 {"sum f64 over columns", cuda_bench_reduce, 2, DM_F64},
                 {"sum bf16 over rows", cuda_bench_reduce, 1, DM_BF16},
                 {"sum bf16 over columns", cuda_bench_reduce, 2, DM_BF16},
                 {"sum u8 over rows", cuda_bench_reduce, 1, DM_U8},
                 {"sum u8 over columns", cuda_bench_reduce, 2, DM_U8},
                 {"max f32 over rows", run_row, DMI_REDUCTION_max * 4 + 1, DM_F32},
                 {"max f32 over columns", run_row, DMI_REDUCTION_max * 4 + 2, DM_F32},
                 {"max f32 of all", run_row, DMI_REDUCTION_max * 4 + 3, DM_F32},
                 {"max bf16 over columns", run_row, DMI_REDUCTION_max * 4 + 2, DM_BF16},
                 {"argmax f32 over columns", run_row, DMI_REDUCTION_argmax * 4 + 2, DM_F32},
                 {"var f32 over columns", run_row, DMI_REDUCTION_var * 4 + 2, DM_F32},
                 {"norm_2 f64 of all", run_row, DMI_REDUCTION_norm_2 * 4 + 3, DM_F64},
                 {"logsumexp f32 over columns", run_row, DMI_REDUCTION_logsumexp * 4 + 2, DM_F32},
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
        cuda_bench_report(t, table[k].what, bytes, table[k].fn);
    }
    static const dm_dtype folded[] = {DM_F32, DM_BF16, DM_F64};
    static const char *const name[] = {"add up three rows, f32", "add up three rows, bf16",
                                       "add up three rows, f64"};
    for (int k = 0; k < DMI_COUNT(folded); k++) {
        t->kind = 1;
        t->type = folded[k];
        t->n = dmi_dtype_bytes(t->type) == 8 ? t->cols / 2 : t->cols;
        cuda_bench_report(t, name[k], (double)t->n * (double)t->n * (double)dmi_dtype_bytes(t->type), run_fold);
    }
    t->n = t->cols / 2;
    double elements = (double)t->n * (double)t->n;
    t->kind = DMI_ACC_F64;
    cuda_bench_report(t, "add sums, f64", elements * 24, run_acc_add);
    t->type = DM_F32;
    cuda_bench_report(t, "store sums, f64 to f32", elements * 12, run_acc_store);
    t->n = t->cols / 4;
    elements /= 4;
    t->kind = DMI_ACC_DD;
    cuda_bench_report(t, "add sums, pairs", elements * 48, run_acc_add);
    t->type = DM_F64;
    cuda_bench_report(t, "store sums, pairs to f64", elements * 24, run_acc_store);
}

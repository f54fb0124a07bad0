/* Elementwise programs: interpreted, and compiled by NVRTC. */
#include "base/config.h"
#include "cuda_bench.h"
#include "kernels/direct.h"
#include <stdio.h>
#include <stdlib.h>

static dmi_map map;
static dmi_map_builder build;

static dmi_map_value apply(int row, dmi_map_value a, dmi_map_value b, dmi_map_value c)
{
    dmi_map_value out;
    if (dmi_map_apply(&build, row, (dmi_map_value[]){a, b, c}, (int[]){0, 1}, &out) != DM_OK) {
        abort();
    }
    return out;
}

/* where(x > 0, 2 * x + y * y, y - 3 * x): six operations. a and b: the inputs' types. */
static void make(dm_dtype a, dm_dtype b, dm_dtype to, bool row)
{
    build = (dmi_map_builder){.numbers = 3, .number = {dmi_number_of(2), dmi_number_of(3), dmi_number_of(0)}};
    dmi_map_value x = dmi_map_input(&build, a), y = dmi_map_input(&build, b), two, three, zero, u, v;
    two = dmi_map_constant(&build, 0, a);
    three = dmi_map_constant(&build, 1, a);
    zero = dmi_map_constant(&build, 2, a);
    u = apply(DMI_EW_add, apply(DMI_EW_multiply, two, x, x), apply(DMI_EW_multiply, y, y, y), x);
    v = apply(DMI_EW_subtract, y, apply(DMI_EW_multiply, three, x, x), x);
    u = apply(DMI_EW_where, apply(DMI_EW_greater, x, zero, x), u, v);
    dmi_map_result(&build, u, to);
    map = (dmi_map){.ndim = 2, .dtype = {a, b, to}, .program = build.program};
    for (int s = 0; s < 3; s++) {
        map.stride[s][1] = 1;
    }
    map.stride[1][0] = row ? 0 : 1; /* 1: to be the row's length */
}

static void run(const bench *t)
{
    void *const at[] = {t->a, t->b, t->c};
    dmi_run_map(dmi_backend_cuda(), t->q, &map, build.number, build.numbers, at);
}

/* sum(x * y), max(abs(x - y)) and so on: `kind` is the dims */
static dmi_reduce reduction;
static void run_reduction(const bench *t)
{
    dmi_kernel_call call = {
        .queue = t->q, .desc = &reduction, .at = {t->a, t->b, t->c}, .number = build.number, .numbers = build.numbers};
    call.workspace = (char *)t->c + t->rows * t->cols * 2; /* half of c: the results are short */
    (void)!dmi_backend_cuda()->run(DMI_KERNEL_reduce, &call);
}

static void make_reduction(int row, int inner, int outer, dm_dtype type, int64_t n)
{
    static dmi_dimset index[2];
    build = (dmi_map_builder){0};
    dmi_map_value x = dmi_map_input(&build, type), y = dmi_map_input(&build, type), v = apply(inner, x, y, x);
    dm_dtype made = dmi_dtype_carrier(type);
    v = outer >= 0 ? apply(outer, v, v, v) : v;
    dmi_map_result(&build, v, made);
    index[0] = index[1] = dmi_dimset_interval(0, n);
    map = (dmi_map){.ndim = 2,
                    .extent = {n, n},
                    .dtype = {type, type, made},
                    .stride = {{n, 1}, {n, 1}},
                    .program = build.program};
    reduction = (dmi_reduce){
        .ndim = 2, .dtype = made, .row = row, .extent = {n, n}, .map = &map, .index = index, .whole = {n, n}};
}

static void bench_reductions(bench *t)
{
    static const struct {
        const char *what;
        int row, inner, outer;
        dm_dtype type;
        unsigned dims;
    } table[] = {{"sum(x * y) f32 of all", DMI_REDUCTION_sum, DMI_EW_multiply, -1, DM_F32, 3},
                 {"sum(x * y) f32 over columns", DMI_REDUCTION_sum, DMI_EW_multiply, -1, DM_F32, 2},
                 {"sum(x * y) f32 over rows", DMI_REDUCTION_sum, DMI_EW_multiply, -1, DM_F32, 1},
                 {"sum(x * y) bf16 of all", DMI_REDUCTION_sum, DMI_EW_multiply, -1, DM_BF16, 3},
                 {"sum(x * y) f64 of all", DMI_REDUCTION_sum, DMI_EW_multiply, -1, DM_F64, 3},
                 {"max(abs(x - y)) f32 over columns", DMI_REDUCTION_max, DMI_EW_subtract, DMI_EW_abs, DM_F32, 2},
                 {"argmax(x * y) f32 over columns", DMI_REDUCTION_argmax, DMI_EW_multiply, -1, DM_F32, 2},
                 {"logsumexp(x * y) f32 over columns", DMI_REDUCTION_logsumexp, DMI_EW_multiply, -1, DM_F32, 2}};
    for (int k = 0; k < DMI_COUNT(table); k++) {
        char what[80];
        int64_t n = dmi_dtype_bytes(table[k].type) == 8 ? t->cols / 2 : t->cols;
        make_reduction(table[k].row, table[k].inner, table[k].outer, table[k].type, n);
        reduction.reduced = table[k].dims;
        for (int compiled = 0; compiled < 2; compiled++) {
            t->q->compile = compiled ? DMI_COMPILE_ALWAYS : DMI_COMPILE_NEVER;
            snprintf(what, sizeof what, "%s%s", table[k].what, compiled ? ", compiled" : ", in pieces");
            cuda_bench_report(t, what, 2 * (double)(n * n * dmi_dtype_bytes(table[k].type)), run_reduction);
        }
    }
}

void cuda_bench_programs(bench *t)
{
    static const struct {
        const char *what;
        dm_dtype a, b, to;
        bool row;
    } table[] = {{"6 operations f32", DM_F32, DM_F32, DM_F32, false},
                 {"6 operations bf16", DM_BF16, DM_BF16, DM_BF16, false},
                 {"6 operations f64", DM_F64, DM_F64, DM_F64, false},
                 {"6 operations f32, y a row", DM_F32, DM_F32, DM_F32, true},
                 {"6 operations f32 and bf16 into bf16", DM_F32, DM_BF16, DM_BF16, false}};
    for (int k = 0; k < DMI_COUNT(table); k++) {
        char what[80];
        make(table[k].a, table[k].b, table[k].to, table[k].row);
        int64_t n = dmi_dtype_bytes(table[k].a) == 8 ? t->cols / 2 : t->cols;
        map.extent[0] = map.extent[1] = n;
        map.stride[0][0] = map.stride[2][0] = n;
        map.stride[1][0] *= n;
        double bytes = (double)(dmi_dtype_bytes(table[k].a) + dmi_dtype_bytes(table[k].to) +
                                (table[k].row ? 0 : dmi_dtype_bytes(table[k].b)));
        for (int compiled = 0; compiled < 2; compiled++) {
            t->q->compile = compiled ? DMI_COMPILE_ALWAYS : DMI_COMPILE_NEVER;
            snprintf(what, sizeof what, "%s%s", table[k].what, compiled ? ", compiled" : ", interpreted");
            cuda_bench_report(t, what, bytes * (double)n * (double)n, run);
        }
    }
    bench_reductions(t);
    t->q->compile = DMI_COMPILE_AUTO;
}

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
    t->q->compile = DMI_COMPILE_AUTO;
}

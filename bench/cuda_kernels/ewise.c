/* Elementwise kernels: same shapes, a row to every row, a transposed operand. */
#include "cuda_bench.h"
#include "kernels/direct.h"
#include <stdlib.h>

enum { FLAT, BROADCAST, ACROSS, ACROSS_ODD }; /* ODD: a row and a column less, so that rows begin anywhere */
void cuda_bench_ewise(const bench *t)
{
    const dmi_number number[] = {dmi_number_of(0.5), dmi_number_of(0.25)};
    int row = t->kind & 255, layout = t->kind >> 8, operands = dmi_ew_rows[row].operands;
    bool across = layout == ACROSS || layout == ACROSS_ODD;
    dmi_map d = {.ndim = 2, .extent = {t->n, t->n}};
    void *const at[] = {t->a, operands > 1 ? t->b : t->c, t->c};
    if (dmi_map_row(row, (dm_dtype[]){t->type, t->type}, (int[]){0, 1}, t->to, &d.program) != DM_OK) {
        abort();
    }
    for (int s = 0; s <= operands; s++) {
        bool row_of_b = s == 1 && operands == 2;
        d.dtype[s] = s == operands ? t->to : t->type;
        d.stride[s][0] = row_of_b && layout == BROADCAST ? 0 : row_of_b && across ? 1 : t->n;
        d.stride[s][1] = row_of_b && across ? t->n : 1;
    }
    dmi_run_map(dmi_backend_cuda(), t->q, &d, number, 2, at);
}

void cuda_bench_ewises(bench *t)
{
    static const struct {
        const char *what;
        int op, layout;
        dm_dtype type, out;
        int operands;
    } table[] = {{"add f32", DMI_EW_linear, FLAT, DM_F32, DM_F32, 2},
                 {"add bf16", DMI_EW_linear, FLAT, DM_BF16, DM_BF16, 2},
                 {"add f64", DMI_EW_linear, FLAT, DM_F64, DM_F64, 2},
                 {"add i32", DMI_EW_linear, FLAT, DM_I32, DM_I32, 2},
                 {"add u8", DMI_EW_linear, FLAT, DM_U8, DM_U8, 2},
                 {"add f32, a row to every row", DMI_EW_linear, BROADCAST, DM_F32, DM_F32, 1},
                 {"add f32 and a transposed f32", DMI_EW_linear, ACROSS, DM_F32, DM_F32, 2},
                 {"add bf16 and a transposed bf16", DMI_EW_linear, ACROSS, DM_BF16, DM_BF16, 2},
                 {"add f64 and a transposed f64", DMI_EW_linear, ACROSS, DM_F64, DM_F64, 2},
                 {"add u8 and a transposed u8", DMI_EW_linear, ACROSS, DM_U8, DM_U8, 2},
                 {"add f32 and a transposed f32, odd rows", DMI_EW_linear, ACROSS_ODD, DM_F32, DM_F32, 2},
                 {"add bf16 into f32", DMI_EW_linear, FLAT, DM_BF16, DM_F32, 2},
                 {"multiply f32", DMI_EW_product, FLAT, DM_F32, DM_F32, 2},
                 {"scale f32", DMI_EW_scale, FLAT, DM_F32, DM_F32, 1},
                 {"scale f32 into bf16", DMI_EW_scale, FLAT, DM_F32, DM_BF16, 1},
                 {"exp f32", DMI_EW_exp, FLAT, DM_F32, DM_F32, 1},
                 {"exp bf16", DMI_EW_exp, FLAT, DM_BF16, DM_BF16, 1},
                 {"exp f64", DMI_EW_exp, FLAT, DM_F64, DM_F64, 1},
                 {"tanh f32", DMI_EW_tanh, FLAT, DM_F32, DM_F32, 1},
                 {"tanh bf16", DMI_EW_tanh, FLAT, DM_BF16, DM_BF16, 1},
                 {"relu bf16", DMI_EW_relu, FLAT, DM_BF16, DM_BF16, 1},
                 {"gelu f32", DMI_EW_gelu, FLAT, DM_F32, DM_F32, 1},
                 {"gelu bf16", DMI_EW_gelu, FLAT, DM_BF16, DM_BF16, 1},
                 {"maximum f32", DMI_EW_maximum, FLAT, DM_F32, DM_F32, 2}};
    for (int k = 0; k < DMI_COUNT(table); k++) {
        t->kind = table[k].op | table[k].layout << 8;
        t->type = table[k].type;
        t->to = table[k].out;
        t->n = dmi_dtype_bytes(t->type) == 8 ? t->cols / 2 : t->cols;
        t->n -= table[k].layout == ACROSS_ODD;
        double bytes = (double)(table[k].operands * dmi_dtype_bytes(t->type) + dmi_dtype_bytes(t->to));
        cuda_bench_report(t, table[k].what, bytes * (double)t->n * (double)t->n, cuda_bench_ewise);
    }
}

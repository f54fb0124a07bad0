/* Elementwise kernels: same shapes, a row to every row, a transposed operand. */
#include "cuda_bench.h"
#include "kernels/direct.h"

enum { FLAT, BROADCAST, ACROSS };
void cuda_bench_ewise(const bench *t)
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
    dmi_run_ewise(dmi_backend_cuda(), t->q, &d, 0.5, t->a, 0.25, t->b, t->c);
}

void cuda_bench_ewises(bench *t)
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
        cuda_bench_report(t, table[k].what, bytes * (double)t->n * (double)t->n, cuda_bench_ewise);
    }
}

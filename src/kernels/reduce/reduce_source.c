/* The source of a reduction: what the elementwise programs have, the rows of reductions with their loops, what
 * a thread loads at once, and four kernels around it. */
#include "kernels/reduce/reduce_source.h"

#include "kernels/ewise/map_args.h"
#include "kernels/ewise/map_source.h"
#include "kernels/reduce/reduce_args.h"

#include <stdio.h>
#include <stdlib.h>

/* The type in which a row takes elements: reduction_rows.cuh has them. */
static const char *number_type(int row, dm_dtype made)
{
    int acc = dmi_acc_for(row, made), state = dmi_reductions[row].state;
    dm_dtype takes = dmi_acc_takes(acc);
    bool keeps = state == DMI_STATE_VALUE || state == DMI_STATE_PLACE;
    if (row == DMI_REDUCTION_sum) {
        return dmi_map_carrier_type((int)made);
    }
    if (dmi_reductions[row].domain == DMI_DOMAIN_LOGIC) {
        return "unsigned char";
    }
    return dmi_dtype_is_complex(takes) ? "wide_complex"
           : dmi_dtype_is_float(takes) ? keeps && takes != DM_F64 ? "float" : "double"
           : takes == DM_U64           ? "uint64_t"
                                       : "int64_t";
}

static void write_item(FILE *to, const dmi_map *d, const char *made, const char *acc)
{
    int inputs = d->program.inputs;
    fprintf(to,
            "template <int COUNT, bool ACROSS> struct made_item : item_base<%s, %s, %d, COUNT> {\n"
            "    typedef item_base<%s, %s, %d, COUNT> base;\n"
            "    const dmi_reduce_args *args;\n"
            "    int64_t at;\n",
            made, acc, inputs, made, acc, inputs);
    for (int i = 0; i < inputs; i++) {
        fprintf(to, "    operands<in_type_%d, COUNT> g%d;\n", i, i);
    }
    fprintf(
        to,
        "    __device__ __forceinline__ void load(const dmi_reduce_args &p, const int64_t (&row)[base::SIDES], "
        "uint32_t i)\n    {\n        int64_t place[%d] = {};\n        advance_in<%d>(p.base.summed, i, "
        "place);\n"
        "        args = &p;\n        at = p.place + place[%d];\n",
        inputs + 1, inputs + 1, inputs);
    for (int i = 0; i < inputs; i++) {
        char at[80], step[120];
        snprintf(at, sizeof at, "row[%d] + place[%d]", i, i);
        snprintf(step, sizeof step, "(ACROSS ? p.base.kept : p.base.summed).stride[%d][0] / COUNT", i);
        fprintf(to, "        g%d = ", i);
        dmi_map_write_load(to, d, i, "COUNT", at, step);
    }
    fprintf(to, "    }\n    __device__ __forceinline__ %s get(int e) const { return program(*args", made);
    for (int i = 0; i < inputs; i++) {
        fprintf(to, ", g%d.at(e)", i);
    }
    fprintf(to,
            "); }\n    static __device__ __forceinline__ %s element(const dmi_reduce_args &p, const int64_t "
            "(&row)[base::SIDES], int64_t at)\n    {\n",
            made);
    for (int i = 0; i < inputs; i++) {
        char number[120];
        snprintf(number, sizeof number,
                 d->program.made[i] ? "row[%d] + at * (p.base.summed.stride[%d][0] / COUNT)"
                                    : "row[%d] + (p.splat[%d] ? 0 : at)",
                 i, i);
        fprintf(to, "        const operands<in_type_%d, 1> e%d = ", i, i);
        dmi_map_write_load(to, d, i, "1", number, "0");
    }
    fprintf(to, "        return program(p");
    for (int i = 0; i < inputs; i++) {
        fprintf(to, ", e%d.at(0)", i);
    }
    fprintf(to, ");\n    }\n};\n\n");
}

static void write_kernels(FILE *to, int row, const dmi_map *d, const char *number)
{
    static const char *const name[] = {
#define X(name) #name,
        DMI_REDUCE_KERNELS(X)
#undef X
    };
    for (int k = 0; k < DMI_COUNT(name); k++) {
        bool across = k >= DMI_REDUCE_KERNEL_across_groups;
        bool groups = k == DMI_REDUCE_KERNEL_along_groups || k == DMI_REDUCE_KERNEL_across_groups;
        fprintf(to,
                "extern \"C\" __global__ void __launch_bounds__(%d) dmath_%s(const __grid_constant__ "
                "dmi_reduce_args p)\n"
                "{\n    %s_rows<reduction_%s<%s>, made_item<%d, %s>>(p, p.out);\n}\n\n",
                DMI_MAP_THREADS, name[k], across ? "across" : "along", dmi_reductions[row].name, number,
                groups ? dmi_map_group_read(d) : 1, across ? "true" : "false");
    }
}

char *dmi_reduce_source(int row, const dmi_map *d)
{
    char *text = NULL;
    size_t bytes = 0;
    dm_dtype made = d->dtype[d->program.inputs];
    int acc = dmi_acc_for(row, made);
    const char *acc_type =
        acc >= 0 && dmi_acc_number(acc) ? dmi_map_element_type((int)dmi_acc_number(acc)) : "double";
    FILE *to = acc >= 0 && acc_type && dmi_map_has_source(d) ? open_memstream(&text, &bytes) : NULL;
    if (!to) {
        return NULL;
    }
    dmi_map_write_types(to, d);
    fputs(dmi_reduce_text, to);
    dmi_map_write_program(to, d, "dmi_reduce_args", NULL);
    write_item(to, d, dmi_map_carrier_type(d->program.result), acc_type);
    write_kernels(to, row, d, number_type(row, made));
    bool whole = !ferror(to);
    if (fclose(to) != 0 || !whole) {
        free(text);
        return NULL;
    }
    return text;
}

/* The source of a program: the types, the embedded text of the rows, one function that computes an element, and
 * two kernels around it. A step is a constant of that function, so that the compiler sees all of the program at
 * once. */
#include "kernels/ewise/map_source.h"
#include "kernels/ewise/map_args.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

_Static_assert((int)DMI_MAP_ARG_SIDES == (int)DMI_MAP_SIDES && DMI_MAP_ARG_DIMS == DM_MAX_DIMS &&
                   (int)DMI_MAP_ARG_NUMBERS == (int)DMI_MAP_NUMBERS,
               "map_args.h has room for every program");

/* Beyond so many units of work in one item, its elements share the code of the program. */
enum { MOST_INLINE = 512 };

/* Types of elements in memory. NULL: no type. */
const char *dmi_map_element_type(int dtype)
{
    static const char *const name[] = {
        [DM_F64] = "double",   [DM_F32] = "float",     [DM_F16] = "f16",       [DM_BF16] = "bf16",
        [DM_I64] = "int64_t",  [DM_I32] = "int32_t",   [DM_U8] = "uint8_t",    [DM_BOOL] = "bool8",
        [DM_I8] = "int8_t",    [DM_I16] = "int16_t",   [DM_U16] = "uint16_t",  [DM_U32] = "uint32_t",
        [DM_U64] = "uint64_t", [DM_F8E4M3] = "f8e4m3", [DM_F8E5M2] = "f8e5m2", [DM_C64] = "dm_c64",
        [DM_C128] = "dm_c128",
    };
    return dtype >= 0 && dtype < DMI_COUNT(name) ? name[dtype] : NULL;
}

/* The same for what dmi_map_has_source has found to have one. */
static const char *known_type(int dtype)
{
    const char *type = dmi_map_element_type(dtype);
    return type ? type : "void";
}

const char *dmi_map_carrier_type(int dtype)
{
    return dtype == DM_BOOL   ? "unsigned char"
           : dtype == DM_C64  ? "c64"
           : dtype == DM_C128 ? "c128"
                              : dmi_map_element_type(dtype);
}

bool dmi_map_has_source(const dmi_map *d)
{
    const dmi_map_program *p = &d->program;
    bool has = p->steps > 0;
    for (int s = 0; s < dmi_map_sides(p); s++) {
        has = has && dmi_map_element_type((int)d->dtype[s]);
    }
    for (int i = 0; i < p->constants; i++) {
        has = has && dmi_map_carrier_type(p->constant_type[i]);
    }
    for (int i = 0; i < p->steps; i++) {
        const dmi_map_step *s = &p->step[i];
        bool cast = s->row == DMI_EW_CAST;
        has = has && dmi_map_carrier_type(s->type) && (!cast || (dmi_map_carrier_type(s->of) && dmi_map_element_type(s->via)));
    }
    return has;
}

/* Of the first so many sides. */
static int group_of(const dmi_map *d, int sides)
{
    int64_t widest = 1;
    for (int s = 0; s < sides; s++) {
        widest = DMI_MAX(widest, dmi_dtype_bytes(d->dtype[s]));
    }
    return (int)(16 / widest);
}

int dmi_map_group(const dmi_map *d)
{
    return group_of(d, dmi_map_sides(&d->program));
}

int dmi_map_group_read(const dmi_map *d)
{
    return d->program.inputs > 0 ? group_of(d, d->program.inputs) : 1;
}

static bool is_inline(const dmi_map *d)
{
    int work = 0;
    for (int i = 0; i < d->program.steps; i++) {
        static const int of_heat[] = {[DMI_HOT] = 1, [DMI_WARM] = 4, [DMI_COLD] = 16};
        int row = d->program.step[i].row;
        work += of_heat[row == DMI_EW_CAST ? DMI_HOT : dmi_ew_rows[row].heat];
    }
    return work * DMI_MAX(dmi_map_group(d), DMI_MAP_DEPTH) <= MOST_INLINE;
}

/* writer[]: the step that has last written each temporary. */
static void write_operand(FILE *to, uint8_t from, const int *writer)
{
    int index = from & DMI_AT_INDEX, kind = from & DMI_AT_KIND;
    if (kind == DMI_AT_TEMPORARY) {
        fprintf(to, "v%d", writer[index]);
    } else {
        fprintf(to, "%c%d", kind == DMI_AT_INPUT ? 'a' : 'c', index);
    }
}

static void write_cast(FILE *to, const dmi_map_step *s, int number, const int *writer)
{
    const char *type = dmi_map_carrier_type(s->type);
    fprintf(to, "    const %s v%d = loaded<%s>(stored<%s>(", type, number, type, dmi_map_element_type(s->via));
    write_operand(to, s->from[0], writer);
    fprintf(to, "));\n");
}

static void write_step(FILE *to, const dmi_map_step *s, int number, const int *writer)
{
    if (s->row == DMI_EW_CAST) {
        write_cast(to, s, number, writer);
        return;
    }
    const dmi_ew_row *row = &dmi_ew_rows[s->row];
    const char *type = dmi_map_carrier_type(s->type);
    bool test = row->form == DMI_FORM_COMPARE || row->form == DMI_FORM_TEST;
    bool part = row->form == DMI_FORM_PART && dmi_dtype_is_complex((dm_dtype)s->type);
    const char *result = test ? "unsigned char" : part ? dmi_map_carrier_type(dmi_dtype_part((dm_dtype)s->type)) : type;
    fprintf(to, "    const %s v%d = row_%s<%s>(", result, number, row->name, type);
    for (int i = 0; i < 3; i++) {
        bool choice = row->form == DMI_FORM_CHOOSE && i == 0;
        if (i < row->operands) {
            fprintf(to, "(%s)(", type);
            write_operand(to, s->from[i], writer);
            fprintf(to, "%s), ", choice ? " != 0" : "");
        } else {
            fprintf(to, "0, ");
        }
    }
    fprintf(to, "number_in<%s>(p.number[%d]), number_in<%s>(p.number[%d]))%s;\n", type,
            s->number[0] % DMI_MAP_NUMBERS, type, s->number[1] % DMI_MAP_NUMBERS,
            test   ? (dmi_dtype_is_complex((dm_dtype)s->type) ? ".re != 0" : " != 0")
            : part ? ".re"
                   : "");
}

void dmi_map_write_program(FILE *to, const dmi_map *d, const char *args, const char *result)
{
    const dmi_map_program *p = &d->program;
    int writer[DMI_MAP_TEMPORARIES] = {0};
    const char *type = result ? result : dmi_map_carrier_type(p->result);
    fprintf(to, "static __device__ %s %s program(const %s &p", is_inline(d) ? "__forceinline__" : "__noinline__", type, args);
    for (int i = 0; i < p->inputs; i++) {
        fprintf(to, ", in_type_%d x%d", i, i);
    }
    for (int k = 0; k < p->kept; k++) {
        fprintf(to, ", kept_type_%d &y%d", k, k);
    }
    fprintf(to, ")\n{\n");
    for (int i = 0; i < p->inputs; i++) {
        type = dmi_map_carrier_type(p->input_type[i]);
        fprintf(to, "    const %s a%d = loaded<%s>(x%d);\n", type, i, type, i);
    }
    for (int i = 0; i < p->constants; i++) {
        type = dmi_map_carrier_type(p->constant_type[i]);
        fprintf(to, "    const %s c%d = number_in<%s>(p.number[%d]);\n", type, i, type,
                p->constant_number[i] % DMI_MAP_NUMBERS);
    }
    for (int i = 0; i < p->steps; i++) {
        write_step(to, &p->step[i], i, writer);
        writer[p->step[i].to] = i;
    }
    for (int k = 0; k < p->kept; k++) {
        fprintf(to, "    y%d = result<kept_type_%d>(v%d);\n", k, k, writer[p->keeps[k]]);
    }
    if (result) {
        fprintf(to, "    return result<%s>(v%d);\n}\n\n", result, p->steps - 1);
    } else {
        fprintf(to, "    return v%d;\n}\n\n", p->steps - 1);
    }
}

static void write_kernels(FILE *to, const dmi_map *d)
{
    int inputs = d->program.inputs, kept = d->program.kept, sides = dmi_map_sides(&d->program);
    fprintf(to,
            "template <int N, int DEPTH> static __device__ __forceinline__ void run(const dmi_map_args &p)\n"
            "{\n"
            "    int64_t at[DEPTH][%d];\n"
            "    bool valid[DEPTH];\n"
            "    locate_all<%d, DEPTH>(p, at, valid);\n",
            sides, sides);
    for (int i = 0; i < inputs; i++) {
        fprintf(to, "    operands<in_type_%d, N> g%d[DEPTH];\n", i, i);
    }
    fprintf(to, "#pragma unroll\n    for (int k = 0; k < DEPTH; k++) {\n        if (valid[k]) {\n");
    for (int i = 0; i < inputs; i++) {
        char number[80], step[40];
        snprintf(number, sizeof number, "at[k][%d]", i);
        snprintf(step, sizeof step, "p.stride[%d][0] / N", i);
        fprintf(to, "            g%d[k] = ", i);
        dmi_map_write_load(to, d, i, "N", number, step);
    }
    fprintf(to, "        }\n    }\n"
                "#pragma unroll\n    for (int k = 0; k < DEPTH; k++) {\n        if (valid[k]) {\n"
                "            group<out_type, N> r;\n");
    for (int k = 0; k < kept; k++) {
        fprintf(to, "            group<kept_type_%d, N> r%d;\n", k, k);
    }
    fprintf(to, "#pragma unroll\n            for (int e = 0; e < N; e++) {\n                r.v[e] = program(p");
    for (int i = 0; i < inputs; i++) {
        fprintf(to, ", g%d[k].at(e)", i);
    }
    for (int k = 0; k < kept; k++) {
        fprintf(to, ", r%d.v[e]", k);
    }
    fprintf(to, ");\n            }\n            store_group<out_type, N>(p, %d, at[k][%d], r);\n", inputs, inputs);
    for (int k = 0; k < kept; k++) {
        const int side = inputs + 1 + k;
        fprintf(to, "            store_group<kept_type_%d, N>(p, %d, at[k][%d], r%d);\n", k, side, side, k);
    }
    fprintf(to, "        }\n    }\n}\n\n");
    fprintf(to,
            "extern \"C\" __global__ void __launch_bounds__(%d) " DMI_MAP_KERNEL_GROUPS
            "(const __grid_constant__ dmi_map_args p)\n{\n    run<%d, 1>(p);\n}\n\n"
            "extern \"C\" __global__ void __launch_bounds__(%d) " DMI_MAP_KERNEL_ITEMS
            "(const __grid_constant__ dmi_map_args p)\n{\n    run<1, %d>(p);\n}\n",
            DMI_MAP_THREADS, dmi_map_group(d), DMI_MAP_THREADS, DMI_MAP_DEPTH);
}

void dmi_map_write_load(FILE *to, const dmi_map *d, int input, const char *count, const char *at, const char *step)
{
    const dmi_map_program *p = &d->program;
    if (p->made[input]) {
        fprintf(to, "made_group<in_type_%d, %d, %s>(p, p.linear.first[%d] + %s, %s, p.number[%d].whole);\n", input,
                p->made[input], count, input, at, step, p->seed[input] % DMI_MAP_NUMBERS);
    } else {
        fprintf(to, "load_group<in_type_%d, %s>(p, %d, %s);\n", input, count, input, at);
    }
}

void dmi_map_write_types(FILE *to, const dmi_map *d)
{
    fprintf(to, "enum dm_dtype {");
#define X(code, name, word, ctype, size) fprintf(to, " DM_%s = %d,", #name, code);
    DM_DTYPE_MAP(X)
#undef X
    fprintf(to, " };\n");
    fputs(dmi_map_text, to);
    for (int i = 0; i < d->program.inputs; i++) {
        fprintf(to, "typedef %s in_type_%d;\n", known_type((int)d->dtype[i]), i);
    }
}

/* A thread keeps its part of the tiles of all inputs, in registers. */
int dmi_map_tile_edge(const dmi_map *d, bool groups)
{
    int group = groups ? dmi_map_group(d) : 1;
    return group >= 8 ? 128 : group == 4 ? 64 : 32;
}

static void write_tiles(FILE *to, const dmi_map *d)
{
    const dmi_map_program *p = &d->program;
    int inputs = p->inputs, bytes = 16 / dmi_map_group_read(d);
    fprintf(to,
            "template <int N, int EDGE> static __device__ __forceinline__ void run(const dmi_tile_args &a)\n{\n"
            "    const dmi_map_args &p = a.map;\n"
            "    typedef tile_of<N, EDGE> tile;\n"
            "    alignas(16) __shared__ char memory[EDGE * (EDGE + 1) * %d];\n"
            "    const tile t(a, %d);\n",
            bytes, inputs + 1);
    for (int i = 0; i < inputs; i++) {
        fprintf(to, "    operands<in_type_%d, N> g%d[tile::GROUPS] = {};\n", i, i);
        if (p->made[i]) {
            fprintf(to, "    t.template make<%d, %d>(p, p.number[%d].whole, g%d);\n", i, p->made[i],
                    p->seed[i] % DMI_MAP_NUMBERS, i);
        } else {
            fprintf(to, "    t.template load<%d>(a, g%d);\n", i, i);
        }
    }
    for (int i = 0; i < inputs; i++) {
        if (!p->made[i]) {
            fprintf(to, "    if (a.turned[%d]) {\n        tile::turn(memory, g%d);\n    }\n", i, i);
        }
    }
    fprintf(to, "#pragma unroll\n    for (int k = 0; k < tile::GROUPS; k++) {\n        group<out_type, N> r;\n"
                "#pragma unroll\n        for (int e = 0; e < N; e++) {\n            r.v[e] = program(p");
    for (int i = 0; i < inputs; i++) {
        fprintf(to, ", g%d[k].at(e)", i);
    }
    fprintf(to, ");\n        }\n        t.template store<%d>(p, k, r);\n    }\n}\n\n", inputs);
    fprintf(to,
            "extern \"C\" __global__ void __launch_bounds__(%d) " DMI_MAP_KERNEL_TILES_OF_GROUPS
            "(const __grid_constant__ dmi_tile_args a)\n{\n    run<%d, %d>(a);\n}\n\n"
            "extern \"C\" __global__ void __launch_bounds__(%d) " DMI_MAP_KERNEL_TILES_OF_ITEMS
            "(const __grid_constant__ dmi_tile_args a)\n{\n    run<1, %d>(a);\n}\n",
            DMI_MAP_THREADS, dmi_map_group(d), dmi_map_tile_edge(d, true), DMI_MAP_THREADS,
            dmi_map_tile_edge(d, false));
}

static char *source_with(const dmi_map *d, void (*write)(FILE *to, const dmi_map *d))
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *to = open_memstream(&text, &bytes);
    if (!to) {
        return NULL;
    }
    dmi_map_write_types(to, d);
    for (int k = 0; k < d->program.kept; k++) {
        fprintf(to, "typedef %s kept_type_%d;\n", known_type((int)d->dtype[d->program.inputs + 1 + k]), k);
    }
    fprintf(to, "typedef %s out_type;\n\n", known_type((int)d->dtype[d->program.inputs]));
    dmi_map_write_program(to, d, "dmi_map_args", "out_type");
    write(to, d);
    bool whole = !ferror(to);
    if (fclose(to) != 0 || !whole) {
        free(text);
        return NULL;
    }
    return text;
}

char *dmi_map_source(const dmi_map *d)
{
    return source_with(d, write_kernels);
}

char *dmi_map_tile_source(const dmi_map *d)
{
    assert(d->program.kept == 0);
    return source_with(d, write_tiles);
}

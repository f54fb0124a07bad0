/* Random elementwise programs over random boxes, for tests of the kernel `map`. */
#ifndef MAP_CASES_H
#define MAP_CASES_H

#include "kernel_oracle.h"
#include "kernels/direct.h"

typedef struct map_case {
    dmi_map d;
    dmi_map_builder m;
    int64_t span[DMI_MAP_SIDES]; /* elements of each side's memory */
} map_case;

static inline int map_pick(rng *r, int many)
{
    return (int)rng_in(r, 0, many - 1);
}

static inline dm_dtype map_dtype(rng *r)
{
    return any_dtype(r);
}

/* Rows whose functions are the same on every device, to the bit; any: all of them. */
static inline int map_row(rng *r, bool any)
{
    static const int exact[] = {DMI_EW_add,      DMI_EW_subtract,   DMI_EW_multiply,    DMI_EW_negative,
                                DMI_EW_abs,      DMI_EW_minimum,    DMI_EW_maximum,     DMI_EW_where,
                                DMI_EW_relu,     DMI_EW_less,       DMI_EW_equal,       DMI_EW_greater,
                                DMI_EW_clip,     DMI_EW_square,     DMI_EW_sign,        DMI_EW_floor,
                                DMI_EW_scale,    DMI_EW_affine,     DMI_EW_linear,      DMI_EW_product,
                                DMI_EW_isfinite, DMI_EW_logical_or, DMI_EW_bitwise_xor, DMI_EW_multiply_add,
                                DMI_EW_divide,   DMI_EW_conj,       DMI_EW_real,        DMI_EW_imag};
    return any ? map_pick(r, DMI_EW_ROWS) : exact[map_pick(r, DMI_COUNT(exact))];
}

/* A tree of at most `depth` rows. False: some row takes no such operands. */
static inline bool map_tree(rng *r, map_case *c, int depth, bool any, dmi_map_value *out)
{
    dmi_map_builder *m = &c->m;
    if (depth == 0 || rng_in(r, 0, 3) == 0) {
        if (rng_in(r, 0, 3) > 0 && m->program.inputs < 6) {
            dm_dtype dtype = map_dtype(r);
            c->d.dtype[m->program.inputs] = dtype;
            *out = dmi_map_input(m, dtype);
        } else {
            *out = dmi_map_constant(m, map_pick(r, 3), map_dtype(r));
        }
        return true;
    }
    int row = map_row(r, any);
    dmi_map_value value[3];
    for (int i = 0; i < dmi_ew_rows[row].operands; i++) {
        if (!map_tree(r, c, depth - 1, any, &value[i])) {
            return false;
        }
    }
    if (!any && (row == DMI_EW_abs || row == DMI_EW_sign) &&
        is_complex(value[0].dtype)) { /* by the C library's hypot */
        return false;
    }
    return dmi_map_apply(m, row, value, (int[]){map_pick(r, 3), map_pick(r, 3)}, out) == DM_OK;
}

/* share: out is exactly input 0, if they have one type. */
static inline void map_box(rng *r, map_case *c, int ndim, int64_t longest, bool share)
{
    int sides = dmi_map_sides(&c->d.program), out = c->d.program.inputs;
    c->d.ndim = ndim;
    for (int k = 0; k < ndim; k++) {
        c->d.extent[k] = rng_in(r, 0, 30) == 0 ? 0 : rng_in(r, 1, rng_in(r, 0, 2) == 0 ? 2 : longest);
    }
    for (int s = 0; s < sides; s++) {
        c->d.offset[s] = rng_in(r, 0, 3);
        c->span[s] = c->d.offset[s] + random_strides(r, ndim, c->d.extent, c->d.stride[s]);
        for (int k = 0; k < ndim && s < out; k++) {
            c->d.stride[s][k] = rng_in(r, 0, 5) == 0 ? 0 : c->d.stride[s][k];
        }
    }
    if (share && out > 0 && c->d.dtype[0] == c->d.dtype[out]) {
        memcpy(c->d.stride[0], c->d.stride[out], sizeof c->d.stride[0]);
        c->d.offset[0] = c->d.offset[out];
        c->span[0] = -1;
    }
}

/* The inputs in turn: turned, a matrix, turned, a row to every row; planes of them. aligned: rows begin at
 * multiples of 16 elements. */
static inline void map_turned_box(rng *r, map_case *c, bool aligned)
{
    const int64_t group = aligned ? 16 : 1, out = c->d.program.inputs;
    const int64_t planes = rng_in(r, 1, 3), rows = rng_in(r, 16, 90), n = rng_in(r, 16, 150);
    memset(c->d.stride, 0, sizeof c->d.stride);
    c->d.ndim = 3;
    c->d.extent[0] = planes;
    c->d.extent[1] = rows;
    c->d.extent[2] = n;
    for (int s = 0; s < dmi_map_sides(&c->d.program); s++) {
        const bool turned = s < out && s % 2 == 0, row = s < out && s % 4 == 3;
        const int64_t pitch = ((turned ? rows : n) + group - 1) / group * group + group * rng_in(r, 0, 1);
        const int64_t plane = pitch * (turned ? n : rows);
        c->d.offset[s] = aligned ? group * rng_in(r, 0, 1) : rng_in(r, 0, 3);
        c->d.stride[s][0] = row ? 0 : plane;
        c->d.stride[s][1] = turned ? 1 : row ? 0 : pitch;
        c->d.stride[s][2] = turned ? pitch : 1;
        c->span[s] = c->d.offset[s] + plane * planes;
    }
}

static inline void map_case_random(rng *r, map_case *c, int depth, bool any)
{
    static const double number[] = {0, 1, -1, 2, -3, 7};
    dmi_map_value value;
    do {
        memset(c, 0, sizeof *c);
        c->m.numbers = 3;
        for (int i = 0; i < 3; i++) {
            c->m.number[i] = dmi_number_of(number[map_pick(r, 6)]);
            c->m.number[i].im = number[map_pick(r, 6)];
        }
    } while (!map_tree(r, c, depth, any, &value) || c->m.full);
    c->d.dtype[c->m.program.inputs] = map_dtype(r);
    dmi_map_result(&c->m, value, c->d.dtype[c->m.program.inputs]);
    c->d.program = c->m.program;
}

/* The carrier of what a step computes. */
static inline dm_dtype map_type(const dmi_map_step *s)
{
    int form = s->row == DMI_EW_CAST ? DMI_FORM_UNARY : dmi_ew_rows[s->row].form;
    return form == DMI_FORM_TEST || form == DMI_FORM_COMPARE ? DM_BOOL
           : form == DMI_FORM_PART                           ? part_of((dm_dtype)s->type)
                                                             : (dm_dtype)s->type;
}

/* Some of what its temporaries hold at the end is kept, too. */
static inline void map_keep(rng *r, map_case *c)
{
    dmi_map_program *p = &c->d.program;
    for (int t = 0; t < p->temporaries && p->kept < 3; t++) {
        int writer = p->steps - 1;
        while (writer >= 0 && p->step[writer].to != t) {
            writer--;
        }
        if (writer < 0 || writer == p->steps - 1) {
            continue;
        }
        for (int times = (int)rng_in(r, 0, 2); times > 0 && p->kept < 3; times--) { /* also into two arrays */
            c->d.dtype[p->inputs + 1 + p->kept] = map_dtype(r);
            p->keeps[p->kept] = (uint8_t)t;
            p->kept_type[p->kept++] = (uint8_t)map_type(&p->step[writer]);
        }
    }
}

#endif

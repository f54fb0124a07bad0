/* Elementwise functions: the rows of ewise.def, and programs of several of them that run in one pass over
 * memory.
 *
 * Values are computed in a *carrier*: bool, i32, i64, u64, f32, f64, c64 or c128. A carrier holds every value
 * of the types that are computed in it (dmi_dtype_carrier). */
#ifndef DMI_EWISE_H
#define DMI_EWISE_H

#include "kernels/ewise/ewise_domains.h"
#include "layout/layout.h"

enum dmi_ew_number {
#define DMI_EW(name, form, domain, class, ...) DMI_EW_##name,
#define DMI_EW_INNER(name, form, domain, class, ...) DMI_EW_##name,
#include "kernels/ewise/ewise.def"
#undef DMI_EW
#undef DMI_EW_INNER
    DMI_EW_ROWS,
    DMI_EW_CAST =
        DMI_EW_ROWS, /* a step that converts: to another carrier, or to the values of a narrower type */
    DMI_EW_KINDS
};

enum {
    DMI_FORM_UNARY,
    DMI_FORM_BINARY,
    DMI_FORM_TERNARY,
    DMI_FORM_TEST,
    DMI_FORM_COMPARE,
    DMI_FORM_CHOOSE,
    DMI_FORM_PART,
    DMI_FORM_NONE
};

#define DMI_FORM_OPERANDS(form)                                                                                        \
    ((form) == DMI_FORM_TERNARY || (form) == DMI_FORM_CHOOSE   ? 3                                                     \
     : (form) == DMI_FORM_BINARY || (form) == DMI_FORM_COMPARE ? 2                                                     \
     : (form) == DMI_FORM_NONE                                 ? 0                                                     \
                                                               : 1)
/* DMI_OPERANDS_<row>: how many operands it has. */
enum {
#define DMI_EW(name, form, domain, class, ...) DMI_OPERANDS_##name = DMI_FORM_OPERANDS(DMI_FORM_##form),
#define DMI_EW_INNER DMI_EW
#include "kernels/ewise/ewise.def"
#undef DMI_EW
#undef DMI_EW_INNER
};

enum { DMI_COLD, DMI_WARM, DMI_HOT };

typedef struct dmi_ew_row {
    const char *name;
    int form, operands;
    unsigned domain;
    int heat; /* DMI_COLD, DMI_WARM, DMI_HOT */
    bool inner;
} dmi_ew_row;
extern const dmi_ew_row dmi_ew_rows[DMI_EW_ROWS];
int dmi_ew_find(const char *name, size_t length); /* a row that is not inner; -1: there is none */

/* The type in which a row takes operands of these types (CHOOSE: its A aside), and the type of its result.
 * False: it takes no such operands. */
bool dmi_ew_types(int row, const dm_dtype *operand, dm_dtype *taken, dm_dtype *result);

/* A number of the call in all forms. */
typedef struct dmi_number {
    double re, im;
    int64_t whole; /* for integer carriers; of u64 its bits */
} dmi_number;
dmi_number dmi_number_of(double value); /* whole: saturated */

/* --- programs */
enum { DMI_MAP_INPUTS = 11, DMI_MAP_NUMBERS = 16, DMI_MAP_TEMPORARIES = 10, DMI_MAP_STEPS = 64, DMI_MAP_KEPT = 7,
       DMI_MAP_SIDES = DMI_MAP_INPUTS + 1 /* inputs and results */ };
/* Where a value is: a temporary, an input, or a constant (a number that fills a tile). */
enum {
    DMI_AT_TEMPORARY = 0,
    DMI_AT_INPUT = 0x20,
    DMI_AT_CONSTANT = 0x40,
    DMI_AT_KIND = 0x60,
    DMI_AT_INDEX = 0x1f
};

typedef struct dmi_map_step {
    uint8_t row;       /* or DMI_EW_CAST */
    uint8_t type;      /* carrier of the operands; CAST: of the result */
    uint8_t of, via;   /* CAST: converts from carrier `of` to type `via`, and that to carrier `type` */
    uint8_t to;        /* temporary that is written; not one that it reads */
    uint8_t from[3];   /* DMI_AT_* | index */
    uint8_t number[2]; /* S and T: numbers of the call */
} dmi_map_step;

static inline int dmi_map_operands(const dmi_map_step *step)
{
    return step->row == DMI_EW_CAST ? 1 : dmi_ew_rows[step->row].operands;
}

/* Inputs that are made from the row-major index of an element in its whole array, not read: the index itself (i64), and the
 * random numbers of fills (random/fill.h) with parameters 0 and 1 (f64 or f32). They are the last ones. */
enum { DMI_MADE_NOT, DMI_MADE_INDEX, DMI_MADE_UNIFORM, DMI_MADE_NORMAL };

/* The last step's result is the program's. It may have more, which it keeps: what temporaries hold at the end. */
typedef struct dmi_map_program {
    uint8_t inputs, constants, temporaries, steps, kept;
    uint8_t result;                     /* its carrier */
    uint8_t keeps[DMI_MAP_KEPT], kept_type[DMI_MAP_KEPT]; /* [kept] temporaries that the last step does not write, and carriers */
    uint8_t input_type[DMI_MAP_INPUTS]; /* carriers */
    uint8_t made[DMI_MAP_INPUTS], seed[DMI_MAP_INPUTS]; /* DMI_MADE_*; a number of the call */
    uint8_t constant_type[DMI_MAP_NUMBERS], constant_number[DMI_MAP_NUMBERS];
    dmi_map_step step[DMI_MAP_STEPS];
} dmi_map_program;
static inline size_t dmi_map_program_bytes(const dmi_map_program *p) /* with the steps that it has */
{
    return sizeof *p - sizeof p->step + p->steps * sizeof p->step[0];
}

static inline int dmi_map_sides(const dmi_map_program *p)
{
    return p->inputs + 1 + p->kept;
}

static inline int dmi_map_inputs_read(const dmi_map_program *p)
{
    int n = 0;
    while (n < p->inputs && p->made[n] == DMI_MADE_NOT) {
        n++;
    }
    return n;
}

/* Which elements of an array these are. Elements are numbered row-major in `extent`. */
typedef struct dmi_map_places {
    int ndim;
    dmi_dimset index[DM_MAX_DIMS];
    int64_t extent[DM_MAX_DIMS], whole[DM_MAX_DIMS]; /* of the elements here, and of the array */
} dmi_map_places;

/* The descriptor of the kernel `map`: out[...] = program(inputs) over a strided box; sides: inputs 0 .. inputs-1, then
 * out, then the arrays of what is kept. An input may be exactly one of these (same address, same strides). References: the
 * sides in their order. A result is converted to its array's type as dmi_copy does. Of an input that is made, offset and strides are those of the
 * elements' numbers, and its reference counts for nothing. */
typedef struct dmi_map {
    int ndim;
    int64_t extent[DM_MAX_DIMS];
    dm_dtype dtype[DMI_MAP_SIDES];
    int64_t stride[DMI_MAP_SIDES][DM_MAX_DIMS], offset[DMI_MAP_SIDES]; /* [inputs] is out's */
    const dmi_map_places *places; /* where an input is made */
    dmi_map_program program;
} dmi_map;

/* --- ewise_build.c: making programs */
typedef struct dmi_map_value {
    dm_dtype dtype;
    uint8_t at;
} dmi_map_value;

typedef struct dmi_map_builder {
    dmi_map_program program;
    dmi_number number[DMI_MAP_NUMBERS];
    int numbers;
    unsigned busy;    /* temporaries in use */
    const char *full; /* what there is no more room for; NULL: all fits */
} dmi_map_builder;

dmi_map_value dmi_map_input(dmi_map_builder *b, dm_dtype dtype);
dmi_map_value dmi_map_made(dmi_map_builder *b, dm_dtype dtype, int made, int seed);
/* A number of the call, for S, T and constants. */
int dmi_map_number(dmi_map_builder *b, dmi_number number);
dmi_map_value dmi_map_constant(dmi_map_builder *b, int number, dm_dtype dtype);
/* As another type: bool by x != 0, else as dm_copy converts. The value given is used up. */
dmi_map_value dmi_map_cast(dmi_map_builder *b, dmi_map_value value, dm_dtype to);
/* Applies a row to values, which are used up, cast to the types it takes. number: S and T, or NULL.
 * DM_ERR_DTYPE: the row does not take these types (no text is set). */
DM_CHECKED dm_status dmi_map_apply(dmi_map_builder *b, int row, const dmi_map_value *values, const int *number,
                                   dmi_map_value *out);
/* A program of one row on inputs of these types. DM_ERR_DTYPE: it does not take them (no text is set). */
DM_CHECKED dm_status dmi_map_row(int row, const dm_dtype *in, const int *number, dm_dtype out,
                                 dmi_map_program *program);
/* Ends the program: its result is `value`, to be stored as type `out`. */
void dmi_map_result(dmi_map_builder *b, dmi_map_value value, dm_dtype out);

#endif

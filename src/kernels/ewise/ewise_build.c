/* Making elementwise programs. A temporary is free again as soon as the step that uses it is made: values are
 * used once. */
#include "kernels/ewise/ewise.h"

#include <string.h>

dmi_map_value dmi_map_input(dmi_map_builder *b, dm_dtype dtype)
{
    if (b->program.inputs == DMI_MAP_INPUTS) {
        b->full = "operands";
        return (dmi_map_value){dtype, DMI_AT_INPUT};
    }
    b->program.input_type[b->program.inputs] = (uint8_t)dmi_dtype_carrier(dtype);
    return (dmi_map_value){dtype, (uint8_t)(DMI_AT_INPUT | b->program.inputs++)};
}

dmi_map_value dmi_map_made(dmi_map_builder *b, dm_dtype dtype, int made, int seed)
{
    int input = b->program.inputs;
    dmi_map_value value = dmi_map_input(b, dtype);
    if (b->program.inputs > input) {
        b->program.made[input] = (uint8_t)made;
        b->program.seed[input] = (uint8_t)seed;
    }
    return value;
}

int dmi_map_number(dmi_map_builder *b, dmi_number number)
{
    if (b->numbers == DMI_MAP_NUMBERS) {
        b->full = "numbers";
        return 0;
    }
    b->number[b->numbers] = number;
    return b->numbers++;
}

dmi_map_value dmi_map_constant(dmi_map_builder *b, int number, dm_dtype dtype)
{
    int c = b->program.constants;
    if (c == DMI_MAP_NUMBERS) {
        b->full = "constants";
        return (dmi_map_value){dtype, DMI_AT_CONSTANT};
    }
    b->program.constant_type[c] = (uint8_t)dmi_dtype_carrier(dtype);
    b->program.constant_number[c] = (uint8_t)number;
    b->program.constants++;
    return (dmi_map_value){dtype, (uint8_t)(DMI_AT_CONSTANT | c)};
}

static void release(dmi_map_builder *b, uint8_t at)
{
    if ((at & DMI_AT_KIND) == DMI_AT_TEMPORARY) {
        b->busy &= ~(1u << (at & DMI_AT_INDEX));
    }
}

/* Adds a step whose operands are used up; returns where its result is. */
static uint8_t add_step(dmi_map_builder *b, dmi_map_step step, int operands, dm_dtype result)
{
    int to = 0;
    while (to < DMI_MAP_TEMPORARIES && b->busy >> to & 1) {
        to++;
    }
    if (to == DMI_MAP_TEMPORARIES || b->program.steps == DMI_MAP_STEPS) {
        b->full = to == DMI_MAP_TEMPORARIES ? "intermediate results" : "steps";
        return DMI_AT_TEMPORARY;
    }
    for (int i = 0; i < operands; i++) {
        release(b, step.from[i]);
    }
    b->busy |= 1u << to;
    step.to = (uint8_t)to;
    b->program.step[b->program.steps++] = step;
    b->program.temporaries = (uint8_t)DMI_MAX(b->program.temporaries, to + 1);
    b->program.result = (uint8_t)dmi_dtype_carrier(result);
    return (uint8_t)to;
}

static uint8_t add_cast(dmi_map_builder *b, uint8_t from, dm_dtype of, dm_dtype via, dm_dtype type)
{
    dmi_map_step step = {
        .row = DMI_EW_CAST, .type = (uint8_t)type, .of = (uint8_t)of, .via = (uint8_t)via, .from = {from}};
    return add_step(b, step, 1, type);
}

dmi_map_value dmi_map_cast(dmi_map_builder *b, dmi_map_value value, dm_dtype to)
{
    dm_dtype have = dmi_dtype_carrier(value.dtype), want = dmi_dtype_carrier(to);
    bool exact = dmi_dtype_promote(value.dtype, to) == to;
    if ((value.at & DMI_AT_KIND) == DMI_AT_CONSTANT && (exact || to == want) && to != DM_BOOL) {
        b->program.constant_type[value.at & DMI_AT_INDEX] = (uint8_t)want; /* a number has all forms */
    } else if (have != want || (!exact && to != want)) {
        value.at = add_cast(b, value.at, have, exact ? want : to, want);
    }
    value.dtype = to;
    return value;
}

/* May an integer result have left the range of a type narrower than its carrier? */
static bool may_leave(int row)
{
#undef DMI_EW_WITHIN
#define DMI_EW(name, ...)
#define DMI_EW_INNER(name, ...)
#define DMI_EW_WITHIN(name, ...) [DMI_EW_##name] = true,
    static const bool within[DMI_EW_ROWS] = {
#include "kernels/ewise/ewise.def"
    };
#undef DMI_EW
#undef DMI_EW_INNER
#undef DMI_EW_WITHIN
    return !within[row];
}

/* The row that computes this one for operands of the type. */
static int row_for(int row, dm_dtype type)
{
#undef DMI_EW_NARROW
#define DMI_EW(name, ...)
#define DMI_EW_INNER(name, ...)
#define DMI_EW_NARROW(name, type, ...) {DMI_EW_##name, DM_##type, DMI_EW_##name##_##type},
    static const struct {
        int row;
        dm_dtype type;
        int narrow;
    } rows[] = {
#include "kernels/ewise/ewise.def"
    };
#undef DMI_EW
#undef DMI_EW_INNER
#undef DMI_EW_NARROW
    for (int i = 0; i < DMI_COUNT(rows); i++) {
        if (rows[i].row == row && rows[i].type == type) {
            return rows[i].narrow;
        }
    }
    return row;
}

/* The value as a number of its own type, which may be narrower than the carrier that it was computed in. */
static dmi_map_value rounded(dmi_map_builder *b, dmi_map_value value)
{
    dm_dtype type = value.dtype;
    if ((value.at & DMI_AT_KIND) == DMI_AT_TEMPORARY && dmi_dtype_is_float(type)) {
        value = dmi_map_cast(b, dmi_map_cast(b, value, dmi_dtype_carrier(type)), type);
    }
    return value;
}

dm_status dmi_map_apply(dmi_map_builder *b, int row, const dmi_map_value *values, const int *number,
                        dmi_map_value *out)
{
    const dmi_ew_row *r = &dmi_ew_rows[row];
    dmi_map_step step = {0};
    dm_dtype operand[3] = {0}, taken, result;
    for (int i = 0; i < r->operands; i++) {
        operand[i] = values[i].dtype;
    }
    if (!dmi_ew_types(row, operand, &taken, &result)) {
        return DM_ERR_DTYPE;
    }
    step.row = (uint8_t)row_for(row, taken);
    bool narrow = step.row != row;
    for (int i = 0; i < r->operands; i++) {
        bool choice = r->form == DMI_FORM_CHOOSE && i == 0;
        dmi_map_value value = narrow ? rounded(b, values[i]) : values[i];
        step.from[i] = dmi_map_cast(b, value, choice ? DM_BOOL : taken).at;
    }
    step.type = (uint8_t)dmi_dtype_carrier(taken);
    for (int i = 0; i < 2 && number; i++) {
        step.number[i] = (uint8_t)number[i];
    }
    out->dtype = result;
    out->at = add_step(b, step, r->operands, result);
    bool leaves = dmi_dtype_is_integer(result) && dmi_dtype_carrier(result) != result && may_leave(row);
    if (leaves || narrow) {
        out->at = add_cast(b, out->at, dmi_dtype_carrier(result), result, dmi_dtype_carrier(result));
    }
    return DM_OK;
}

/* The type that all uses of an input convert it to; 0: some use does not convert, or another way. */
static int converted_to(const dmi_map_program *p, int input)
{
    int type = 0;
    for (int i = 0; i < p->steps; i++) {
        const dmi_map_step *s = &p->step[i];
        int operands = dmi_map_operands(s);
        for (int k = 0; k < operands; k++) {
            if (s->from[k] != (DMI_AT_INPUT | input)) {
                continue;
            }
            bool plain = s->row == DMI_EW_CAST && s->via == s->type && i + 1 < p->steps;
            if (!plain || (type != 0 && type != s->type)) {
                return 0;
            }
            type = s->type;
        }
    }
    return type;
}

/* Takes a step out whose result is the value `from`; the one step that uses it comes later. */
static void take_out(dmi_map_program *p, int step, uint8_t from)
{
    uint8_t to = p->step[step].to;
    for (int i = step + 1; i < p->steps; i++) {
        dmi_map_step *s = &p->step[i];
        int operands = dmi_map_operands(s);
        for (int k = 0; k < operands; k++) {
            if (s->from[k] == (DMI_AT_TEMPORARY | to)) {
                s->from[k] = from;
                memmove(&p->step[step], &p->step[step + 1], (size_t)(p->steps - step - 1) * sizeof *p->step);
                p->steps--;
                return;
            }
        }
    }
}

/* An input that is only used converted is converted when it is read. */
static void fold_casts(dmi_map_program *p)
{
    for (int input = 0; input < p->inputs; input++) {
        int type = p->made[input] ? 0 : converted_to(p, input); /* random numbers depend on the type they are made in */
        for (int i = p->steps - 1; i >= 0 && type != 0; i--) {
            if (p->step[i].row == DMI_EW_CAST && p->step[i].from[0] == (DMI_AT_INPUT | input)) {
                take_out(p, i, (uint8_t)(DMI_AT_INPUT | input));
            }
        }
        p->input_type[input] = type != 0 ? (uint8_t)type : p->input_type[input];
    }
}

void dmi_map_result(dmi_map_builder *b, dmi_map_value value, dm_dtype out)
{
    dmi_map_program *p = &b->program;
    dm_dtype carrier = dmi_dtype_carrier(value.dtype);
    if ((value.at & DMI_AT_KIND) == DMI_AT_CONSTANT) {
        int c = value.at & DMI_AT_INDEX;
        dmi_map_step step = {
            .row = DMI_EW_constant, .type = p->constant_type[c], .number = {p->constant_number[c]}};
        (void)add_step(b, step, 0, (dm_dtype)step.type);
        p->constants -= c + 1 == p->constants;
    } else if ((value.at & DMI_AT_KIND) == DMI_AT_INPUT) {
        (void)add_cast(b, value.at, carrier, carrier, carrier);
    }
    fold_casts(p);
    const dmi_map_step *last = &p->step[DMI_MAX(p->steps, 1) - 1];
    bool wraps = p->steps > 1 && last->row == DMI_EW_CAST && last->of == last->type && last->via == out;
    if (wraps && (dmi_dtype_is_integer(out))) { /* storing does that too */
        p->steps--;
    }
}

dm_status dmi_map_row(int row, const dm_dtype *in, const int *number, dm_dtype out, dmi_map_program *program)
{
    dmi_map_builder m = {.numbers = DMI_MAP_NUMBERS};
    dmi_map_value value[3], result = {0};
    for (int i = 0; i < dmi_ew_rows[row].operands; i++) {
        value[i] = dmi_map_input(&m, in[i]);
    }
    dm_status status = dmi_map_apply(&m, row, value, number, &result);
    if (status == DM_OK) {
        dmi_map_result(&m, result, out);
        *program = m.program;
    }
    return status;
}

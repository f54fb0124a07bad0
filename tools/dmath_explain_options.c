/* dmath explain: from the command line to a call of an operation. */
#include "dmath_explain.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum {
    KEY_M = 256,
    KEY_N,
    KEY_K,
    KEY_A,
    KEY_B,
    KEY_C,
    KEY_TA,
    KEY_TB,
    KEY_ALPHA,
    KEY_BETA,
    KEY_DIM,
    KEY_TRANSPOSE,
    KEY_OUT,
    KEY_WORKER
};

static const struct argp_option options[] = {
    {"m", KEY_M, "ROWS", 0, "rows of the result (gemm: of op(A) and C), of every array otherwise", 0},
    {"n", KEY_N, "COLS", 0, "columns of the result (gemm: of op(B) and C), of every array otherwise", 0},
    {"k", KEY_K, "INNER", 0, "gemm: columns of op(A), rows of op(B)", 0},
    {"dtype", 'd', "TYPE", 0, "element type of the operands (default f32)", 0},
    {"out-dtype", KEY_OUT, "TYPE", 0, "element type of the result (default: that of the operands)", 0},
    {"a-layout", KEY_A, "LAYOUT", 0, "of the first operand: " TOOL_LAYOUTS, 0},
    {"b-layout", KEY_B, "LAYOUT", 0, "of the second operand; copy and sum: of the result", 0},
    {"c-layout", KEY_C, "LAYOUT", 0, "gemm and add: of the result", 0},
    {"trans-a", KEY_TA, NULL, 0, "gemm: A is k x m and is transposed", 0},
    {"trans-b", KEY_TB, NULL, 0, "gemm: B is n x k and is transposed", 0},
    {"alpha", KEY_ALPHA, "X", 0, "gemm and add (default 1)", 0},
    {"beta", KEY_BETA, "X", 0, "gemm (default 0) and add (default 1)", 0},
    {"transpose", KEY_TRANSPOSE, NULL, 0, "copy: the result is n x m", 0},
    {"dim", KEY_DIM, "0|1|all", 0, "sum: over which dimension (default 0)", 0},
    {"worker", KEY_WORKER, "W", 0, "this worker alone, with all its steps", 0},
    {0},
};

static const struct {
    const char *name;
    int op;
} names[] = {{"gemm", DMI_OP_gemm},
             {"copy", DMI_OP_copy},
             {"remap", DMI_OP_copy},
             {"add", DMI_OP_add},
             {"sum", DMI_OP_sum}};

static bool take_op(explain_options *o, const char *name)
{
    for (int i = 0; i < DMI_COUNT(names); i++) {
        if (strcmp(name, names[i].name) == 0) {
            o->op = names[i].op;
            return true;
        }
    }
    return false;
}

static bool take_number(explain_options *o, int key, const char *arg)
{
    int64_t *const extent[] = {&o->m, &o->n, &o->k}, value;
    switch (key) {
    case KEY_M:
    case KEY_N:
    case KEY_K:
        return tool_int_parse(arg, 0, INT64_C(1) << 50, extent[key - KEY_M]);
    case KEY_ALPHA:
        return tool_double_parse(arg, &o->alpha);
    case KEY_BETA:
        return tool_double_parse(arg, &o->beta);
    case KEY_WORKER:
        if (!tool_int_parse(arg, 0, INT32_MAX, &value)) {
            return false;
        }
        o->worker = (int)value;
        return true;
    default: /* KEY_DIM */
        o->dim = strcmp(arg, "all") == 0 ? -1 : strcmp(arg, "1") == 0;
        return o->dim < 0 || ((arg[0] == '0' || arg[0] == '1') && arg[1] == 0);
    }
}

static error_t refuse(struct argp_state *state, const char *option, const char *arg, const char *accepted)
{
    argp_error(state, "--%s: `%s' is not %s", option, arg, accepted);
    return EINVAL;
}

static error_t finish(struct argp_state *state, explain_options *o)
{
    if (isnan(o->beta)) {
        o->beta = o->op == DMI_OP_add ? 1 : 0;
    }
    if (o->op < 0) {
        argp_error(state, "which operation? gemm, copy, add or sum");
        return EINVAL;
    }
    if (o->m < 0 || o->n < 0 || (o->op == DMI_OP_gemm && o->k < 0)) {
        argp_error(state, "%s is needed", o->m < 0 ? "--m" : o->n < 0 ? "--n" : "--k");
        return EINVAL;
    }
    if (o->common.nworkers > 1) {
        argp_error(state, "--workers: one number, not a list");
        return EINVAL;
    }
    return 0;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
    explain_options *o = state->input;
    switch (key) {
    case ARGP_KEY_INIT:
        state->child_inputs[0] = &o->common;
        return 0;
    case 'd':
    case KEY_OUT:
        if (!dmi_dtype_parse(arg, key == 'd' ? &o->dtype : &o->out_dtype)) {
            return refuse(state, key == 'd' ? "dtype" : "out-dtype", arg, "an element type");
        }
        return 0;
    case KEY_A:
    case KEY_B:
    case KEY_C:
        if (!tool_layout_parse(arg, &o->layout[key - KEY_A])) {
            return refuse(state, (const char *const[]){"a-layout", "b-layout", "c-layout"}[key - KEY_A], arg,
                          "a layout (" TOOL_LAYOUTS ")");
        }
        return 0;
    case KEY_TA:
        o->trans_a = DM_T;
        return 0;
    case KEY_TB:
        o->trans_b = DM_T;
        return 0;
    case KEY_TRANSPOSE:
        o->transpose = 1;
        return 0;
    case KEY_M:
    case KEY_N:
    case KEY_K:
    case KEY_ALPHA:
    case KEY_BETA:
    case KEY_DIM:
    case KEY_WORKER:
        for (const struct argp_option *at = options; at->name && !take_number(o, key, arg); at++) {
            if (at->key == key) {
                return refuse(state, at->name, arg, "a number that fits there");
            }
        }
        return 0;
    case ARGP_KEY_ARG:
        if (o->op >= 0 || !take_op(o, arg)) {
            argp_error(state,
                       o->op >= 0 ? "`%s' is one argument too many"
                                  : "`%s' is not one of gemm, copy, remap, add, sum",
                       arg);
            return EINVAL;
        }
        return 0;
    case ARGP_KEY_END:
        return finish(state, o);
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp_child children[] = {{&tool_common_argp, 0, NULL, 0}, {0}};
static const struct argp argp = {
    options,
    parse,
    "gemm|copy|remap|add|sum",
    "What each of any number of workers will do for an operation: steps, bytes, messages, "
    "workspace, flops. No worker is started.",
    children,
    NULL,
    NULL};

bool tool_explain_parse(int argc, char **argv, explain_options *out)
{
    *out = (explain_options){
        .op = -1, .m = -1, .n = -1, .k = -1, .worker = -1, .alpha = 1, .beta = NAN, .dtype = DM_F32};
    for (int i = 0; i < 3; i++) {
        (void)tool_layout_parse("default", &out->layout[i]);
    }
    return argp_parse(&argp, argc, argv, 0, NULL, out) == 0;
}

/* --- the call
 * ------------------------------------------------------------------------------------------------- */

static dm_status make_operand(const explain_options *o, int workers, int which, int layout, dm_dtype dtype,
                              int ndim, const int64_t *shape, dmi_call *call, dmi_layout *layouts[3])
{
    dmi_session planning = {.workers = workers}; /* all that the rules for layouts ask of a session */
    dm_layout asked = tool_layout_make(&o->layout[layout], workers);
    if (ndim == 1 &&
        o->layout[layout].kind == TOOL_SPLIT) { /* rows or columns of a vector: its one dimension */
        asked = tool_layout_make(&(tool_layout){.kind = TOOL_SPLIT}, workers);
    }
    dmi_layout_spec spec;
    dm_status status = dmi_layout_spec_from(&planning, &asked, dtype, ndim, shape, &spec);
    if (status == DM_OK) {
        status = dmi_layout_create(&spec, &layouts[which]);
    }
    if (status == DM_OK) {
        uint32_t number = (uint32_t)which + 1; /* equal layouts have one number */
        for (int i = which - 1; i >= 0; i--) {
            number = dmi_layout_equal(layouts[i], layouts[which]) ? (uint32_t)i + 1 : number;
        }
        call->operand[which] = (dmi_operand){.desc = dmi_desc_whole(dtype, layouts[which], number),
                                             .id = (uint64_t)which + 1,
                                             .memory = (uint32_t)which + 1,
                                             .mode = dmi_ops[call->op].operand[which].mode};
    }
    return status;
}

/* Arguments as the public calls pack them (dm_gemm, dm_copy, dm_transpose, dm_add, dm_sum). */
static void pack_arguments(const explain_options *o, dmi_call *call)
{
    int32_t *i = call->args.i;
    call->numbers = 2;
    call->number[0] = dmi_number_of(o->alpha);
    call->number[1] = dmi_number_of(o->beta);
    switch (o->op) {
    case DMI_OP_gemm:
        i[0] = o->trans_a;
        i[1] = o->trans_b;
        i[2] = o->beta == 0;
        i[3] = o->alpha == 0;
        break;
    case DMI_OP_add:
        i[0] = o->alpha == 0;
        i[1] = o->beta == 0;
        break;
    case DMI_OP_copy:
        i[0] = o->transpose ? 2 : 0;
        i[1] = o->transpose;
        break;
    default:
        i[0] = o->dim < 0 ? -1 : 1 << o->dim;
        i[1] = o->beta == 0;
    }
}

dm_status tool_explain_call(const explain_options *o, int workers, dmi_call *call, dmi_layout *layouts[3])
{
    bool gemm = o->op == DMI_OP_gemm, three = gemm || o->op == DMI_OP_add, sum = o->op == DMI_OP_sum;
    int64_t shape[3][2] = {{o->m, o->n}, {o->m, o->n}, {o->m, o->n}};
    int ndim[3] = {2, 2, 2}, operands = three ? 3 : 2;
    if (gemm) {
        shape[0][o->trans_a ? 1 : 0] = o->m;
        shape[0][o->trans_a ? 0 : 1] = o->k;
        shape[1][o->trans_b ? 1 : 0] = o->k;
        shape[1][o->trans_b ? 0 : 1] = o->n;
    } else if (o->transpose) {
        shape[1][0] = o->n;
        shape[1][1] = o->m;
    } else if (sum) {
        ndim[1] = o->dim < 0 ? 0 : 1;
        shape[1][0] = o->dim == 0 ? o->n : o->m;
    }
    *call = (dmi_call){.op = o->op, .noperand = operands};
    pack_arguments(o, call);
    dm_status status = DM_OK;
    for (int i = 0; i < operands && status == DM_OK; i++) {
        dm_dtype dtype = i == operands - 1 && o->out_dtype ? o->out_dtype : o->dtype;
        if (!(dmi_ops[o->op].operand[i].dtypes >> dtype & 1)) {
            return dmi_fail(DM_ERR_DTYPE, "%s does not take %s", dmi_ops[o->op].name, dmi_dtype_name(dtype));
        }
        status = make_operand(o, workers, i, i, dtype, ndim[i], shape[i], call, layouts);
    }
    return status == DM_OK ? dmi_ops[o->op].check(call) : status;
}

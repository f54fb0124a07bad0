/* Chains: calls made of several reductions and expressions, one command. A chain is a list of texts. The result
 * of each has a name, which later texts use; that of the last is out:
 *     {"m", "max(x)"}, {"s", "sum(exp(x - m))"}, {NULL, "exp(x - m) / s"}
 * Reductions are over the dims of the call, which stay with an extent of 1. The master compiles the texts.
 * Workers get programs, in the tail of the call: a dmi_chain, then a dmi_chain_link with its program for each
 * text. */
#ifndef DMI_OPS_CHAIN_H
#define DMI_OPS_CHAIN_H

#include "ops/ops.h"

#include <dmath/dmath.h>

enum { DMI_CHAIN_NAMES = 14, DMI_CHAIN_LINKS = 4 };

/* What a name stands for. */
enum dmi_chain_kind {
    DMI_CHAIN_ARRAY,      /* an array, which broadcasts */
    DMI_CHAIN_COLUMN,     /* a vector, as a matrix of one column */
    DMI_CHAIN_TRANSPOSED, /* the transpose of a matrix */
    DMI_CHAIN_INDEX,      /* the index along dim `dim`, i64 */
    DMI_CHAIN_NUMBER
};
typedef struct dmi_chain_name {
    const char *name;
    int kind;
    dm_array array;
    int dim;
    double number;
} dmi_chain_name;

typedef struct dmi_chain_text {
    const char *to; /* NULL: out, of the last */
    const char *text;
} dmi_chain_text;

/* out has the shape of the elements, or, where the last text is a reduction, that without the dims. The
 * elements have the shape of the first array if there is a reduction, else out's. Every name must be used. */
typedef struct dmi_chain_call {
    int names, texts;
    const dmi_chain_name *name;
    const dmi_chain_text *text;
    const int *dims; /* NULL, ndims 0: all */
    int ndims;
    double correction; /* of var and std */
    const char *out;   /* its name in messages; NULL: "out" */
} dmi_chain_call;
DM_CHECKED dm_status dmi_chain_submit(dm_session *session, const dmi_chain_call *chain, dm_array out);

/* --- the tail */
typedef struct dmi_chain {
    uint8_t inputs, links;
    uint8_t kind[DMI_CHAIN_NAMES], at[DMI_CHAIN_NAMES]; /* at: the operand, or of an INDEX the dim */
} dmi_chain;
enum { DMI_CHAIN_MAP = 255 };
typedef struct dmi_chain_link {
    uint8_t row;   /* DMI_REDUCTION_*, or DMI_CHAIN_MAP */
    uint8_t scale; /* k: the reduction's divisor is number k - 1 of the call; 0: it has none */
    uint8_t type;  /* of the result */
    uint8_t made;  /* of the elements that the program makes and that are reduced; 0: there is no program */
    uint8_t inputs, in[DMI_MAP_INPUTS]; /* inputs of the chain, then results of the links before */
} dmi_chain_link;

/* The call, before its operands are known. */
typedef struct dmi_chain_made {
    dmi_call call;
    const char *names[DMI_MAX_OPERANDS];
    dm_array array[DMI_MAX_OPERANDS]; /* not the last, which is out */
    char tail[sizeof(dmi_chain) + DMI_CHAIN_LINKS * (sizeof(dmi_chain_link) + sizeof(dmi_map_program))];
} dmi_chain_made;
/* Compiles the texts. dtypes: of the names that are arrays; out: of out. */
DM_CHECKED dm_status dmi_chain_make(const dmi_chain_call *chain, const dm_dtype *dtypes, dm_dtype out,
                                    dmi_chain_made *made);

#endif

/* What the files of expr/ share: tokens, the tree, and errors that point into the text. */
#ifndef DMI_EXPR_PARTS_H
#define DMI_EXPR_PARTS_H

#include "expr/expr.h"

enum { EXPR_NODES = 256, EXPR_DEPTH = 200, EXPR_BYTES = 8192 };

enum expr_token_kind { TOKEN_END, TOKEN_NUMBER, TOKEN_NAME, TOKEN_SIGN };
typedef struct expr_token {
    enum expr_token_kind kind;
    int at, length; /* in the text */
    char sign[3];   /* SIGN: its characters */
    bool whole;     /* NUMBER: an integer, in `integer`; else in `real` */
    __int128 integer;
    double real;
} expr_token;

/* A constant without a type of its own is weak: it takes the type of the other operands. */
enum expr_weak { WEAK_NOT, WEAK_BOOL, WEAK_INT, WEAK_FLOAT };

/* A value known now. */
typedef struct expr_constant {
    dmi_number number;
    bool wide;  /* an integer from 2^63 on: number.whole has the bits of a u64 */
    int origin; /* ORIGIN_TEXT, ORIGIN_MIXED, or a variable */
} expr_constant;
enum { ORIGIN_TEXT = -1, ORIGIN_MIXED = -2, ORIGIN_PLACE = -3 /* and below: those of an index, two each */ };

enum expr_node_kind { NODE_CONSTANT, NODE_INPUT, NODE_ROW, NODE_CAST };
typedef struct expr_node {
    enum expr_node_kind kind;
    int at; /* where an error about it points */
    enum expr_weak weak;
    dm_dtype dtype; /* of its value; of a weak constant the type it has alone */
    dm_dtype taken; /* ROW: what its operands become */
    expr_constant constant;
    int input;
    int row, children, child[3];
    bool raised; /* made by the operator ** */
    int need;    /* temporaries */
} expr_node;

typedef struct expr_parser {
    const char *text;
    int at; /* behind `token` */
    expr_token token;
    int depth, nodes;
    int count;
    const dmi_expr_variable *variable;
    bool used[DMI_EXPR_VARIABLES];
    int input[DMI_EXPR_VARIABLES];
    dm_dtype random_type;
    int arrays, mades;
    struct {
        int kind; /* DMI_MADE_* */
        expr_constant seed;
    } made[DMI_MAP_INPUTS];
    int indices;
    struct {
        int dim, at;
    } index[DMI_MAP_NUMBERS / 2];
    dm_status status; /* the first failure */
    expr_node *node;  /* [EXPR_NODES] */
} expr_parser;

/* --- scan.c */
/* Fails with a line that quotes the text, names the column, and shows it. Returns -1, which is no node. */
int dmi_expr_fail(expr_parser *p, dm_status status, int at, const char *format, ...) DMI_PRINTF(4, 5);
void dmi_expr_next(expr_parser *p); /* the next token; on failure END */
bool dmi_expr_is(const expr_parser *p, const char *sign);
bool dmi_expr_take(expr_parser *p, const char *sign); /* if it is that */

/* --- parse.c */
int dmi_expr_parse(expr_parser *p, dmi_expr *out);
int dmi_expr_elements(expr_parser *p);                         /* operands joined by operators */
int dmi_expr_unexpected(expr_parser *p, const char *expected); /* fails where the token cannot follow */

/* --- reduction.c */
const dmi_expr_reduction *dmi_expr_reduction_named(const char *name, int length); /* NULL: none */
/* The token is the name of a reduction, and ( is behind it: it is around the whole expression. */
int dmi_expr_parse_reduction(expr_parser *p, dmi_expr *out);
/* Fails: the reduction stands where it cannot. */
int dmi_expr_inside(expr_parser *p, int at, const dmi_expr_reduction *r);

/* --- names.c */
int dmi_expr_row(const char *name, int length); /* rows and aliases; -1: none */
/* A constant's value, or false. */
bool dmi_expr_constant_named(const char *name, int length, enum expr_weak *weak, double *value);
/* DMI_MADE_*; DMI_MADE_NOT: none of them. */
int dmi_expr_made_named(const char *name, int length);
/* Why the name is refused though NumPy has it; NULL: it is simply unknown. */
const char *dmi_expr_refused(const char *name, int length);
/* ", did you mean ...?" or "": among functions, else among variables. */
void dmi_expr_suggest(const expr_parser *p, bool function, const char *name, int length, char out[96]);

/* --- type.c: nodes with their types; rows of constants become constants. -1: failed */
int dmi_expr_constant(expr_parser *p, int at, enum expr_weak weak, expr_constant constant);
int dmi_expr_input(expr_parser *p, int at, int variable);
int dmi_expr_random(expr_parser *p, int at, int kind, int seed);
int dmi_expr_index(expr_parser *p, int at, int dim); /* the index of an element along a dim */
int dmi_expr_apply(expr_parser *p, int at, int row, const int *child);
int dmi_expr_cast(expr_parser *p, int at, dm_dtype dtype, int child);

/* --- fold.c: constants */
expr_constant dmi_expr_whole(__int128 value, int origin);
__int128 dmi_expr_integer(const expr_constant *c);
expr_constant dmi_expr_real(double value, int origin);
/* Does the integer fit the integer type? */
bool dmi_expr_fits(const expr_constant *c, dm_dtype dtype);
/* A constant as an element of a real type, by the rules of dm_copy. */
expr_constant dmi_expr_converted(const expr_node *node, dm_dtype to);
/* A row of weak constants. */
int dmi_expr_fold(expr_parser *p, int at, int row, const int *child);

/* --- emit.c */
void dmi_expr_emit(expr_parser *p, int root, dmi_expr *out);
/* In which order to compute children: those first that need more temporaries on the way. */
void dmi_expr_order(const expr_parser *p, int children, const int *child, int *order);

#endif

/* The rows of `dmath bench OP`: how each operation is set up, called and computed by a plain loop. */
#ifndef DMATH_TOOL_BENCH_OP_H
#define DMATH_TOOL_BENCH_OP_H

#include "dmath_bench.h"

enum { TOOL_OP_ARRAYS = 6 };

/* A row while it is measured. Slots: a[i] is an array, h[i] what it held before the first call, as f64, of
 * count[i] elements. */
typedef struct tool_op {
    dm_session *s;
    const struct tool_op_row *row;
    int64_t n, side; /* elements of vectors; rows and columns of matrices */
    dm_dtype dtype;  /* of what is a float */
    dm_array a[TOOL_OP_ARRAYS];
    double *h[TOOL_OP_ARRAYS];
    int64_t count[TOOL_OP_ARRAYS];
    int result;       /* the slot that is compared */
    double *want;     /* [count[result]] by the plain loop */
    double tolerance; /* times the larger of 1 and what is wanted */
    double bytes;     /* 0: those of all arrays, each once */
    double flops;     /* of products, else 0 */
    /* of rows that need them; freed with the row */
    dm_program program;
    void *host;
    char file[64]; /* in the current folder; removed */
} tool_op;

typedef struct tool_op_row {
    const char *name, *family;
    dm_status (*prepare)(tool_op *o);
    dm_status (*call)(tool_op *o);
    void (*plain)(tool_op *o); /* from h to want; NULL: check */
    bool (*check)(const tool_op *o, const double *got);
    const void *with; /* of rows that share functions */
} tool_op_row;

/* Random numbers from lo to hi in a slot; whole ones below hi, if the type is an integer. */
dm_status tool_op_fill(tool_op *o, int slot, dm_dtype dtype, int ndim, const int64_t *shape, double lo,
                       double hi);
/* A slot of zeros, which will be compared. */
dm_status tool_op_result(tool_op *o, int slot, dm_dtype dtype, int ndim, const int64_t *shape);
/* The same of vectors and square matrices. */
dm_status tool_op_vector(tool_op *o, int slot, dm_dtype dtype, double lo, double hi);
dm_status tool_op_matrix(tool_op *o, int slot, dm_dtype dtype, double lo, double hi);

/* A number that lies on the workers, in a slot from 4 on; made by the first call. */
dm_factor tool_op_element(tool_op *o, int slot, double value);

/* The families; each ends with a row without a name. */
const tool_op_row *tool_ops_ewise(void);
extern const tool_op_row tool_ops_reduce[], tool_ops_order[], tool_ops_index[], tool_ops_linalg[],
    tool_ops_fill[], tool_ops_layers[], tool_ops_losses[], tool_ops_host[];

/* One after the other, the first failure. */
#define TOOL_TRY(status, call) ((status) == DM_OK ? (call) : (status))

#endif

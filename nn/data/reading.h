/* What the program's process and its workers tell each other about the records that workers read: the argument
 * and the operands of a function that all workers run (dm_apply). */
#ifndef NN_READING_H
#define NN_READING_H

#include "data/ring.h"

enum nn_read_kind { NN_READ_ASK, NN_READ_OPEN, NN_READ_TAKE, NN_READ_CLOSE, NN_READ_MAP, NN_READ_UNMAP };

/* What rows of images are: no images, windows, whole records. */
enum { NN_READ_FLOATS, NN_READ_WINDOWS, NN_READ_WHOLE };

/* The function's operands: what workers tell; what keeps its calls in order, for others may run at once; then
 * of NN_READ_OPEN the settings, of NN_READ_TAKE the arrays. */
enum { NN_READ_TOLD, NN_READ_TURN, NN_READ_OPERANDS };

/* Its argument. */
typedef struct nn_read_order {
    int32_t kind, images;
    uint64_t process; /* of the program */
    uint64_t session; /* there; no two have one number */
    int64_t feed;     /* its number in that process */
    int64_t batch;
} nn_read_order;

/* What a worker tells: a row of bytes. */
typedef struct nn_read_told {
    int64_t knows;  /* 1: the worker's program has the function */
    int64_t thread; /* of the program's process */
    int64_t gpu;    /* the worker's device is one */
    int64_t maps;   /* it reads the memory of the source: 1 asked for, 2 does */
    int64_t worker, status, damaged;
    uint64_t host;
    double waited;
    char text[NN_DAMAGE_TEXT]; /* what went wrong at NN_READ_OPEN; the damaged records at NN_READ_TAKE; why it
                                  does not map */
} nn_read_told;

/* --- station.c: the worker's side */
extern const char nn_read_function[];
uint64_t nn_read_process(void); /* a number of this process */
bool nn_read_registered(void);  /* this program's workers know the function */

#endif

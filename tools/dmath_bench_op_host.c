/* What moves data between the workers and this program or a file, functions of one's own, programs and checks,
 * for `dmath bench`. The arrays hold 0, 1, 2, ... modulo ROUND. */
#include "dmath_bench_op.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROUND = 1000, HEAD = 128 };
#define FUNCTION "dmath.bench.negate" /* ranks of dmath-worker lack it, and may */

static void number(const tool_op *o, void *host, int64_t i, double value)
{
    if (o->dtype == DM_F64) {
        ((double *)host)[i] = value;
    } else {
        ((float *)host)[i] = (float)value;
    }
}

static double number_of(const tool_op *o, const void *host, int64_t i)
{
    return o->dtype == DM_F64 ? ((const double *)host)[i] : (double)((const float *)host)[i];
}

/* Host memory with the numbers, or with zeros. */
static dm_status host(tool_op *o, bool filled)
{
    o->host = calloc((size_t)o->n, (size_t)dm_dtype_bytes(o->dtype));
    for (int64_t i = 0; o->host && filled && i < o->n; i++) {
        number(o, o->host, i, (double)(i % ROUND));
    }
    return o->host ? DM_OK : dmi_fail(DM_ERR_NOMEM, "no memory for %lld numbers", (long long)o->n);
}

/* Slot 0 with the numbers; it is what is compared. */
static dm_status numbered(tool_op *o)
{
    dm_status status = tool_op_result(o, 0, o->dtype, 1, &o->n);
    dm_map_arg args[] = {DM_INTEGER("n", ROUND)};
    return TOOL_TRY(status, dm_map(o->s, "remainder(index(0), n)", 1, args, o->a[0]));
}

static void plain_numbers(tool_op *o)
{
    for (int64_t i = 0; i < o->count[0]; i++) {
        o->want[i] = (double)(i % ROUND);
    }
}

/* --- memory --- */

static dm_status prepare_read(tool_op *o)
{
    dm_status status = numbered(o);
    return TOOL_TRY(status, host(o, false));
}

static dm_status call_read(tool_op *o)
{
    return dm_array_read(o->s, o->a[0], NULL, NULL, o->host, 0);
}

static bool check_read(const tool_op *o, const double *got)
{
    bool same = true;
    for (int64_t i = 0; i < o->n; i++) {
        same = same && number_of(o, o->host, i) == (double)(i % ROUND) && got[i] == (double)(i % ROUND);
    }
    return same;
}

static dm_status prepare_write(tool_op *o)
{
    dm_status status = tool_op_result(o, 0, o->dtype, 1, &o->n);
    return TOOL_TRY(status, host(o, true));
}

static dm_status call_write(tool_op *o)
{
    return dm_array_write(o->s, o->a[0], NULL, NULL, o->host, 0);
}

/* --- files --- */

static void name_file(tool_op *o)
{
    snprintf(o->file, sizeof o->file, "dmath-bench-%lld.npy", (long long)dmi_now_ns());
}

static dm_status prepare_save(tool_op *o)
{
    name_file(o);
    return numbered(o);
}

static dm_status call_save(tool_op *o)
{
    return dm_array_save(o->s, o->a[0], o->file);
}

/* The elements are the end of the file. */
static bool check_save(const tool_op *o, const double *got)
{
    const size_t each = (size_t)dm_dtype_bytes(o->dtype), count = (size_t)o->n;
    void *read = malloc(count * each);
    FILE *file = fopen(o->file, "rbe");
    bool same = read && file && fseek(file, -(long)(count * each), SEEK_END) == 0 &&
                fread(read, each, count, file) == count;
    for (int64_t i = 0; same && i < o->n; i++) {
        same = number_of(o, read, i) == got[i] && got[i] == (double)(i % ROUND);
    }
    if (file) {
        fclose(file);
    }
    free(read);
    return same;
}

/* A file as NumPy writes it. */
static dm_status prepare_load(tool_op *o)
{
    char head[HEAD + 1];
    int length = snprintf(head, sizeof head,
                          "\x93NUMPY\x01%c%c%c{'descr': '<f%d', 'fortran_order': False, 'shape': (%lld,), }", 0,
                          HEAD - 10, 0, (int)dm_dtype_bytes(o->dtype), (long long)o->n);
    memset(head + length, ' ', (size_t)(HEAD - length));
    head[HEAD - 1] = '\n';
    name_file(o);
    dm_status status = host(o, true);
    FILE *file = status == DM_OK ? fopen(o->file, "wbe") : NULL;
    bool whole = file && fwrite(head, 1, HEAD, file) == HEAD &&
                 fwrite(o->host, (size_t)dm_dtype_bytes(o->dtype), (size_t)o->n, file) == (size_t)o->n;
    whole = file && fclose(file) == 0 && whole;
    if (status == DM_OK && !whole) {
        status = dmi_fail(DM_ERR_IO, "cannot write %s", o->file);
    }
    return TOOL_TRY(status, tool_op_result(o, 0, o->dtype, 1, &o->n));
}

static dm_status call_load(tool_op *o)
{
    dm_status status = dm_array_destroy(o->s, o->a[0]);
    o->a[0] = DM_NO_ARRAY;
    return TOOL_TRY(status, dm_array_load(o->s, o->file, NULL, &o->a[0]));
}

/* --- functions of one's own --- */

static int negate(const dm_task *task)
{
    for (int64_t b = 0; b < task->blocks[0]; b++) {
        const dm_block *block = &task->block[0][b];
        for (int64_t i = 0; i < block->extent[0]; i++) {
            if (block->dtype == DM_F64) {
                ((double *)block->data)[i * block->stride[0]] *= -1;
            } else {
                ((float *)block->data)[i * block->stride[0]] *= -1;
            }
        }
    }
    return 0;
}

dm_status tool_ops_register(void)
{
    return dm_register(FUNCTION, negate);
}

static dm_status prepare_apply(tool_op *o)
{
    o->result = 0;
    return tool_op_vector(o, 0, o->dtype, -1, 1);
}

static dm_status call_apply(tool_op *o)
{
    const int mode = DM_READWRITE;
    return strcmp(o->row->name, "apply") == 0
               ? dm_apply(o->s, FUNCTION, 1, &o->a[0], &mode, NULL, 0)
               : dm_apply_with(o->s, FUNCTION, 1, &o->a[0], &mode, NULL, 0, NULL);
}

static void plain_apply(tool_op *o)
{
    for (int64_t i = 0; i < o->n; i++) {
        o->want[i] = -o->h[0][i];
    }
}

/* --- programs: slot 0 becomes the sum of slots 1 and 2, and slot 3 the sum of that; slots 1 and 2 stay --- */

static dm_status prepare_program(tool_op *o)
{
    dm_status status = tool_op_vector(o, 1, o->dtype, -1, 1);
    status = TOOL_TRY(status, tool_op_vector(o, 2, o->dtype, -1, 1));
    status = TOOL_TRY(status, tool_op_fill(o, 3, DM_F64, 0, NULL, 0, 1));
    status = TOOL_TRY(status, tool_op_result(o, 0, o->dtype, 1, &o->n));
    status = TOOL_TRY(status, dm_program_begin(o->s));
    if (status != DM_OK) {
        return status;
    }
    status = dm_scale(o->s, 1, o->a[1], o->a[0]);
    status = TOOL_TRY(status, dm_add(o->s, 1, o->a[0], 1, o->a[2], o->a[0])); /* joined with the one before */
    status = TOOL_TRY(status, dm_max(o->s, o->a[0], NULL, 0, o->a[3]));
    dm_status ended = dm_program_end(o->s, status == DM_OK ? &o->program : NULL);
    return status == DM_OK ? ended : status;
}

static dm_status call_program(tool_op *o)
{
    return dm_program_run(o->s, o->program, 1, 0, NULL);
}

/* Every sum is below 2: it ends after one run. */
static dm_status call_until(tool_op *o)
{
    return dm_program_run_until(o->s, o->program, 5, 1, o->a[3], 2.5, 0, NULL);
}

static void plain_program(tool_op *o)
{
    for (int64_t i = 0; i < o->n; i++) {
        o->want[i] = o->h[1][i] + o->h[2][i];
    }
}

/* --- checks --- */

static dm_status call_require(tool_op *o)
{
    return dm_require_range(o->s, o->a[0], 0, ROUND);
}

static dm_status call_require_by(tool_op *o)
{
    return dm_require_range_by(o->s, o->a[0], tool_op_element(o, 4, 0), tool_op_element(o, 5, ROUND));
}

const tool_op_row tool_ops_host[] = {
    {"read", "host", prepare_read, call_read, NULL, check_read, NULL},
    {"write", "host", prepare_write, call_write, plain_numbers, NULL, NULL},
    {"load", "host", prepare_load, call_load, plain_numbers, NULL, NULL},
    {"save", "host", prepare_save, call_save, NULL, check_save, NULL},
    {"apply", "host", prepare_apply, call_apply, plain_apply, NULL, NULL},
    {"apply_with", "host", prepare_apply, call_apply, plain_apply, NULL, NULL},
    {"program_run", "host", prepare_program, call_program, plain_program, NULL, NULL},
    {"program_run_until", "host", prepare_program, call_until, plain_program, NULL, NULL},
    {"require_range", "host", numbered, call_require, plain_numbers, NULL, NULL},
    {"require_range_by", "host", numbered, call_require_by, plain_numbers, NULL, NULL},
    {0},
};

/* A call of take or put, as commands: perhaps a look at the indices, for which it waits, and copies to
 * temporaries; then the rows. */
#include "ops/common_index.h"
#include "ops/messages.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The exchange needs a look at the indices, which waits, and more commands: it has to save so many bytes. On CPUs each index, which
 * is counted, sorted and sent, takes as long as some bytes that are copied. */
enum { LEAST_SAVED = 64 << 10, INDEX_BYTES = 64 };
/* Each worker looks at the whole list, some ns a row: rows of so many bytes for each worker are worth that. */
enum { LISTED_BYTES = 512 };

/* Two more messages for each pair of workers are worth that many bytes that do not move. */
enum { LEAST_LENT = 16 << 10 };

typedef struct request {
    dm_session *session;
    dmi_session *s;
    dmi_facts facts;
    dmi_call call;
    dmi_indexing t;
    dm_array array[3];     /* as given: indices and the two of the table */
    dm_array temporary[3]; /* in place of them, or none */
    int64_t *counts;       /* as the workers wrote them: a row for each worker of the indices' layout */
    int g;                 /* how many counts a worker wrote */
} request;

static dm_status resolve(request *q)
{
    const dmi_opdef *op = &dmi_ops[q->call.op];
    q->call.called = dmi_api_number();
    for (int i = 0; i < 3; i++) {
        dmi_handle *h = NULL;
        dm_status status = dmi_handle_find(q->s, q->array[i], op->operand[i].name, &h);
        if (status != DM_OK) {
            return status;
        }
        if (!(op->operand[i].dtypes >> h->desc.dtype & 1)) {
            return dmi_refuse_dtype(op->operand[i].name, h->desc.dtype, op->operand[i].dtypes);
        }
        q->call.operand[i] = (dmi_operand){
            .desc = h->desc, .id = q->array[i].id, .memory = h->storage->number, .mode = op->operand[i].mode};
    }
    dm_status status = op->check(&q->call);
    dmi_indexing_of(&q->call, &q->t);
    return status;
}

static int64_t bytes_of(const dmi_desc *x)
{
    int64_t bytes = dmi_dtype_bytes(x->dtype);
    for (int d = 0; d < x->ndim; d++) {
        bytes *= x->extent[d];
    }
    return bytes;
}

/* Does box begin and end where its array does along dim, and have all of its other dims? Then indices that are
 * split as its array is lie as it does. */
static bool box_serves(const dmi_indexing *t)
{
    const dmi_desc *box = t->box;
    if (box->ndim != t->lines->ndim || !dmi_rows_in_order(box, t->dim)) {
        return false;
    }
    bool whole = box->lo[t->dim] == 0 && box->extent[t->dim] == box->layout->shape[t->dim];
    for (int d = 0; d < box->ndim; d++) {
        whole = whole && box->extent[d] == t->extent[d];
    }
    return whole;
}

static bool indices_serve(const dmi_desc *indices, const dmi_desc *box, int dim)
{
    const dmi_layout *x = indices->layout, *y = box->layout;
    return dmi_rows_in_order(indices, 0) && indices->lo[0] == 0 && indices->extent[0] == x->shape[0] &&
           x->grid[0] == y->grid[dim] && x->block[0] == y->block[dim];
}

/* Bytes of the positions, but for one dim. */
static int64_t row_bytes(const dmi_indexing *t)
{
    int64_t bytes = dmi_dtype_bytes(t->lines->dtype);
    for (int d = 0; d < t->lines->ndim; d++) {
        bytes *= d == t->dim ? 1 : t->extent[d];
    }
    return bytes;
}

/* Bytes that the exchange moves, temporaries included. */
static int64_t exchange_bytes(const request *q)
{
    const dmi_indexing *t = &q->t;
    int workers = q->facts.workers, times = t->gathers ? 1 : 2; /* x comes and goes, if it is written */
    int64_t rows = row_bytes(t) * t->extent[t->dim];
    int64_t bytes = (rows + 16 * t->extent[t->dim]) / workers * (workers - 1);
    bytes += dmi_rows_held(t->lines, t->dim) ? 0 : times * bytes_of(t->lines);
    return bytes + (box_serves(t) ? 0 : rows);
}

static bool exchanges(const request *q)
{
    const dmi_facts *f = &q->facts;
    int64_t table = (int64_t)f->workers * f->workers * 8;
    bool can = !q->t.along && f->workers > 1 && table <= f->tail_room && !f->explaining && !f->recording &&
               !f->grouped; /* a group's arrays would not be held by workers 0, 1, ... */
    if (!can || f->config->index_algorithm == DMI_INDEX_FETCH) {
        return false;
    }
    int64_t work = f->profile->gpu ? 0 : q->t.extent[q->t.dim] * INDEX_BYTES;
    return f->config->index_algorithm == DMI_INDEX_EXCHANGE ||
           exchange_bytes(q) + work + LEAST_SAVED < dmi_indexed_bytes(&q->t, f->workers);
}

/* Do rows come by a list of them? */
static bool lists(const request *q)
{
    const dmi_facts *f = &q->facts;
    int64_t count = q->t.extent[q->t.dim], bytes = row_bytes(&q->t);
    bool can = dmi_rows_listed(&q->t) && f->workers > 1 && !f->profile->gpu && !f->explaining &&
               !f->recording && q->t.indices->dtype != DM_U64 && count > 0 && count * 8 <= f->tail_room;
    if (!can || f->config->index_algorithm == DMI_INDEX_LIST) {
        return can;
    }
    return f->config->index_algorithm == DMI_INDEX_AUTO && bytes >= (int64_t)LISTED_BYTES * f->workers &&
           count * bytes / f->workers * (f->workers - 1) + LEAST_SAVED < dmi_indexed_bytes(&q->t, f->workers);
}

/* Are rows read where they are? */
static bool lends(const request *q)
{
    const dmi_facts *f = &q->facts;
    bool can = f->workers > 1 && dmi_rows_lent(&q->t, f->profile);
    if (!can || f->config->index_algorithm == DMI_INDEX_LEND) {
        return can;
    }
    return f->config->index_algorithm == DMI_INDEX_AUTO && dmi_indexed_bytes(&q->t, f->workers) > LEAST_LENT;
}

/* An array of these extents split along dim over all workers (no group has begun), in place of operand i. */
static dm_status make_temporary(request *q, int i, dm_dtype dtype, int ndim, const int64_t *extent, int dim)
{
    dm_layout layout = dm_layout_split(q->session, dim);
    return dm_array_create(q->session, dtype, ndim, extent, &layout, &q->temporary[i]);
}

static dm_status fill_temporary(request *q, int i, dm_status status)
{
    return status == DM_OK ? dm_copy(q->session, q->array[i], q->temporary[i]) : status;
}

static const dmi_desc *desc_of(const request *q, int i)
{
    dm_array a = q->temporary[i].id ? q->temporary[i] : q->array[i];
    return dmi_array_desc(q->s, a);
}

/* Temporaries in place of operands that do not lie as the exchange needs them. */
static dm_status arrange(request *q)
{
    const dmi_indexing *t = &q->t;
    int box = t->box_operand, lines = t->lines_operand;
    dm_status status = DM_OK;
    if (!dmi_rows_held(t->lines, t->dim)) {
        status = make_temporary(q, lines, t->lines->dtype, t->lines->ndim, t->lines->extent, t->dim);
        status = fill_temporary(q, lines, status);
    }
    if (status == DM_OK && !box_serves(t)) {
        status = make_temporary(q, box, t->lines->dtype, t->lines->ndim, t->extent, t->dim);
        status = t->gathers ? status : fill_temporary(q, box, status);
    }
    if (status == DM_OK && !indices_serve(t->indices, desc_of(q, box), t->dim)) {
        const dmi_layout *y = desc_of(q, box)->layout;
        dm_layout layout = {.size = sizeof layout,
                            .grid = {y->grid[t->dim]},
                            .block = {y->block[t->dim]},
                            .order = {DM_CONTIGUOUS}};
        status =
            dm_array_create(q->session, t->indices->dtype, 1, t->indices->extent, &layout, &q->temporary[0]);
        status = fill_temporary(q, 0, status);
    }
    return status;
}

/* Reads the counts that the workers wrote, or explains that. */
static dm_status read_counts(request *q, dm_array counts)
{
    if (q->facts.explaining) {
        dmi_call read = {.op = DMI_OP_read, .noperand = 1};
        return dmi_call_submit(q->session, &read, &counts);
    }
    return dmi_poisoned_is("indices", dm_array_read(q->session, counts, NULL, NULL, q->counts, 0));
}

/* The layout of the indices that are looked at. Who has none of them has no count. */
static const dmi_layout *looked_at(const request *q)
{
    return desc_of(q, 0)->layout;
}

/* Writes and reads the counts of all workers that may have indices. */
static dm_status count(request *q, bool exchange)
{
    const dmi_layout *from = looked_at(q);
    dmi_index_owner owner = {
        .n = DMI_MAX(q->t.lines->extent[q->t.dim], 1), .block = INT64_MAX, .g = 1, .mode = q->t.mode};
    if (exchange) {
        owner = dmi_rows_owner(desc_of(q, q->t.lines_operand), q->t.dim, q->t.mode);
    }
    int64_t shape[2] = {from->nworkers, 1 + owner.g};
    dm_layout rows = {
        .size = sizeof rows, .grid = {from->nworkers}, .workers = from->workers, .nworkers = from->nworkers};
    dm_array counts = DM_NO_ARRAY;
    dmi_call call = {.op = DMI_OP_index_count,
                     .noperand = 2,
                     .tail = &owner,
                     .tail_bytes = sizeof owner,
                     .tail_key = sizeof owner};
    q->g = (int)owner.g;
    q->counts = malloc((size_t)(shape[0] * shape[1]) * sizeof *q->counts);
    if (!q->counts) {
        return dmi_fail(DM_ERR_NOMEM, "%s: no memory for counts", dmi_call_name(&q->call));
    }
    dm_status status = dm_array_create(q->session, DM_I64, 2, shape, &rows, &counts);
    if (status == DM_OK) {
        dm_array indices = q->temporary[0].id ? q->temporary[0] : q->array[0];
        status = dmi_call_submit(q->session, &call, (dm_array[]){indices, counts});
    }
    if (status == DM_OK) {
        status = read_counts(q, counts);
    }
    return dmi_array_release(q->session, counts, status);
}

/* DM_ERR_ARG: the index with this row-major number is outside. */
static dm_status refuse(const request *q, int64_t number)
{
    const dmi_desc *x = q->t.indices;
    int64_t at[DM_MAX_DIMS], one[DM_MAX_DIMS], value = 0;
    char where[192] = "";
    int used = 0;
    for (int d = x->ndim - 1; d >= 0; d--) {
        one[d] = 1;
        at[d] = number % x->extent[d];
        number /= x->extent[d];
    }
    for (int d = 0; d < x->ndim; d++) {
        used += snprintf(where + used, sizeof where - (size_t)used, "%s%" PRId64, d ? ", " : "", at[d]);
    }
    dm_status status =
        dmi_poisoned_is("indices", dm_array_read_as(q->session, q->array[0], at, one, DM_I64, &value, 0));
    if (status != DM_OK) {
        return status;
    }
    return x->dtype == DM_U64
               ? dmi_fail(
                     DM_ERR_ARG, "%s: indices[%s] is %" PRIu64 ", but dim %d of x has %" PRId64 " elements",
                     dmi_call_name(&q->call), where, (uint64_t)value, q->t.dim, q->t.lines->extent[q->t.dim])
               : dmi_fail(DM_ERR_ARG,
                          "%s: indices[%s] is %" PRId64 ", but dim %d of x has %" PRId64 " elements",
                          dmi_call_name(&q->call), where, value, q->t.dim, q->t.lines->extent[q->t.dim]);
}

static dm_status check_counts(const request *q)
{
    int64_t number = INT64_MAX;
    for (int i = 0; i < looked_at(q)->nworkers; i++) {
        number = DMI_MIN(number, q->counts[(int64_t)i * (1 + q->g)]);
    }
    return number == INT64_MAX ? DM_OK : refuse(q, number);
}

/* Reads the indices, which waits, and gives them to all workers as numbers of rows. */
static dm_status run_list(request *q)
{
    int64_t count = q->t.extent[q->t.dim], n = q->t.lines->extent[q->t.dim];
    q->counts = malloc((size_t)count * sizeof *q->counts);
    if (!q->counts) {
        return dmi_fail(DM_ERR_NOMEM, "%s: no memory for indices", dmi_call_name(&q->call));
    }
    dm_status status =
        dmi_poisoned_is("indices", dm_array_read_as(q->session, q->array[0], NULL, NULL, DM_I64, q->counts, 0));
    for (int64_t k = 0; k < count && status == DM_OK; k++) {
        q->counts[k] = dmi_index_read(DM_I64, &q->counts[k], q->t.mode, n);
        status = q->counts[k] < 0 ? refuse(q, k) : DM_OK;
    }
    q->call.args.i[DMI_INDEX_WAY] = DMI_WAY_LISTED;
    q->call.tail = q->counts;
    q->call.tail_bytes = q->call.tail_key = count * (int64_t)sizeof *q->counts;
    return status == DM_OK ? dmi_call_submit(q->session, &q->call, q->array) : status;
}

/* Makes the table of dmi_exchange of the counts, in place. */
static void make_table(request *q)
{
    int workers = q->facts.workers;
    int64_t *table = calloc((size_t)workers * (size_t)workers, sizeof *table);
    const dmi_layout *from = looked_at(q);
    for (int i = 0; i < from->nworkers && table; i++) {
        memcpy(table + (int64_t)from->workers[i] * workers, q->counts + (int64_t)i * (1 + q->g) + 1,
               (size_t)q->g * sizeof *table);
    }
    free(q->counts);
    q->counts = table;
}

static dm_status run_exchange(request *q)
{
    dm_array use[3];
    int written = 2;
    for (int i = 0; i < 3; i++) {
        use[i] = q->temporary[i].id ? q->temporary[i] : q->array[i];
    }
    make_table(q);
    if (!q->counts) {
        return dmi_fail(DM_ERR_NOMEM, "%s: no memory for counts", dmi_call_name(&q->call));
    }
    q->call.tail = q->counts;
    q->call.tail_bytes = q->call.tail_key = (int64_t)q->facts.workers * q->facts.workers * (int64_t)sizeof *q->counts;
    dm_status status = dmi_call_submit(q->session, &q->call, use);
    return status == DM_OK && q->temporary[written].id
               ? dm_copy(q->session, q->temporary[written], q->array[written])
               : status;
}

dm_status dmi_index_submit(dm_session *session, int op, const dm_array *arrays, int dim, int mode, bool along,
                           bool adds)
{
    request q = {.session = session, .call = {.op = op, .noperand = 3}};
    memcpy(q.array, arrays, sizeof q.array);
    q.call.args.i[DMI_INDEX_DIM] = dim;
    q.call.args.i[DMI_INDEX_MODE] = mode;
    q.call.args.i[DMI_INDEX_ALONG] = along;
    q.call.args.i[DMI_INDEX_ADDS] = adds;
    dm_status status = dmi_enter(session, &q.s);
    if (status != DM_OK || (status = resolve(&q)) != DM_OK) {
        return status;
    }
    if (q.t.lines->extent[q.t.dim] == 0) { /* the check has seen that no element is named */
        return DM_OK;
    }
    q.facts = dmi_session_facts(q.s);
    if (mode == DMI_INDEX_RAISE && q.facts.recording) {
        return dmi_fail(DM_ERR_STATE,
                        "%s: in a program mode must be DM_WRAP or DM_CLIP: DM_RAISE waits for the indices",
                        dmi_call_name(&q.call));
    }
    bool lent = lends(&q);
    if (!lent && lists(&q)) {
        status = run_list(&q);
        free(q.counts);
        return status;
    }
    bool exchange = !lent && exchanges(&q);
    q.call.args.i[DMI_INDEX_WAY] = lent ? DMI_WAY_LENT : DMI_WAY_OTHER;
    status = exchange ? arrange(&q) : DM_OK;
    if (status == DM_OK && (exchange || mode == DMI_INDEX_RAISE)) {
        status = count(&q, exchange);
        status = status == DM_OK && !q.facts.explaining ? check_counts(&q) : status;
    }
    if (status == DM_OK) {
        status = exchange ? run_exchange(&q) : dmi_call_submit(session, &q.call, arrays);
    }
    for (int i = 0; i < 3; i++) {
        status = dmi_array_release(session, q.temporary[i], status);
    }
    free(q.counts);
    return status;
}

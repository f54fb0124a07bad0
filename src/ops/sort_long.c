/* Few long rows, sorted by all workers.
 *
 * Each worker sorts its own part of a row. Then the master finds, for each boundary between the shards of the
 * result, the element that stands there: digit by digit of its key, by asking all workers how many of their
 * elements come before each key that it may be. So it knows to the element what each worker has for each other
 * one, and a merge moves just that. Equal elements go in the order of the workers, and so in the order of their
 * indices. */
#include "ops/common_order.h"
#include "ops/messages.h"

#include <stdlib.h>
#include <string.h>

enum { MANY_WORKERS = 32 };

typedef struct long_row {
    dm_session *session;
    const dmi_sorting *sort;
    dm_dtype dtype;
    int workers, ndim, digit; /* digit: bits that a question finds out */
    int64_t shape[DM_MAX_DIMS], n, block;
    int64_t keys;  /* of a question to the workers */
    uint64_t *key; /* [workers] of the element at each boundary: the digits known so far */
    int64_t *
        count; /* [workers * keys]: a worker's elements before each key; of the last question also not behind */
    int64_t *cut;  /* [(workers + 1) * workers]: where boundary j is in the part of worker w */
    int64_t *rows; /* [workers * workers] */
    void *probe;
    dm_array values, indices, probes, counts, whole;
} long_row;

static dm_status make_arrays(long_row *r)
{
    dm_layout split = dm_layout_split(r->session, r->sort->dim), rows = dm_layout_rows(r->session),
              everywhere = dm_layout_replicated(r->session);
    int64_t table[2] = {r->workers, r->keys};
    dm_status status = dm_array_create(r->session, r->dtype, r->ndim, r->shape, &split, &r->values);
    if (status == DM_OK && r->sort->indices) {
        status = dm_array_create(r->session, DM_I64, r->ndim, r->shape, &split, &r->indices);
    }
    status =
        status == DM_OK ? dm_array_create(r->session, r->dtype, 1, &r->keys, &everywhere, &r->probes) : status;
    return status == DM_OK ? dm_array_create(r->session, DM_I64, 2, table, &rows, &r->counts) : status;
}

/* How many elements of each worker come before the probes (right: not behind them). */
static dm_status ask(long_row *r, bool right, int64_t *count)
{
    dm_status status = dm_array_write(r->session, r->probes, NULL, NULL, r->probe, 0);
    status = status == DM_OK
                 ? dmi_search_parts(r->session, r->values, r->probes, right, r->sort->descending, r->counts)
                 : status;
    return status == DM_OK ? dmi_poisoned_is("x", dm_array_read(r->session, r->counts, NULL, NULL, count, 0))
                           : status;
}

static void set_probe(long_row *r, int64_t at, uint64_t key)
{
    int64_t bytes = dmi_dtype_bytes(r->dtype);
    uint64_t bits = dmi_sort_element(r->dtype, r->sort->descending, key);
    memcpy((char *)r->probe + at * bytes, &bits, (size_t)bytes); /* little endian */
}

static int64_t before(const long_row *r, int64_t probe)
{
    int64_t sum = 0;
    for (int w = 0; w < r->workers; w++) {
        sum += r->count[w * r->keys + probe];
    }
    return sum;
}

/* One digit more of each key: the largest with at most as many elements before it as stand before the boundary.
 */
static dm_status find_digit(long_row *r, int shift)
{
    int64_t most = (INT64_C(1) << r->digit) - 1;
    for (int j = 1; j < r->workers; j++) {
        for (int64_t k = 1; k <= most; k++) {
            set_probe(r, (j - 1) * most + k - 1, r->key[j] | (uint64_t)k << shift);
        }
    }
    dm_status status = ask(r, false, r->count);
    for (int j = 1; j < r->workers && status == DM_OK; j++) {
        int64_t k = 0, boundary = DMI_MIN(j * r->block, r->n);
        while (k < most && before(r, (j - 1) * most + k) <= boundary) {
            k++;
        }
        r->key[j] |= (uint64_t)k << shift;
    }
    return status;
}

/* Where the boundaries are in each worker's part. */
static dm_status find_cuts(long_row *r)
{
    int workers = r->workers, bits = 8 * (int)dmi_dtype_bytes(r->dtype);
    dm_status status = DM_OK;
    for (int shift = bits - r->digit; shift >= 0 && status == DM_OK; shift -= r->digit) {
        status = find_digit(r, shift);
    }
    for (int j = 1; j < workers; j++) {
        set_probe(r, j - 1, r->key[j]);
    }
    status = status == DM_OK ? ask(r, false, r->count) : status;
    status = status == DM_OK ? ask(r, true, r->count + workers * r->keys) : status;
    if (status != DM_OK) {
        return status;
    }
    for (int w = 0; w < workers; w++) {
        r->cut[workers * workers + w] = DMI_MAX(DMI_MIN((w + 1) * r->block, r->n) - w * r->block, 0);
    }
    for (int j = 1; j < workers; j++) {
        int64_t left =
            DMI_MIN(j * r->block, r->n) - before(r, j - 1); /* of those that equal the element there */
        for (int w = 0; w < workers; w++) {
            int64_t at = w * r->keys + j - 1, equal = r->count[workers * r->keys + at] - r->count[at];
            int64_t taken = DMI_MIN(left, equal);
            r->cut[j * workers + w] = r->count[at] + taken;
            left -= taken;
        }
    }
    for (int w = 0; w < workers; w++) {
        for (int j = 0; j < workers; j++) {
            r->rows[w * workers + j] = r->cut[(j + 1) * workers + w] - r->cut[j * workers + w];
        }
    }
    return DM_OK;
}

/* The merged row is `out` where that is split as it comes. */
static dm_status merge_row(long_row *r, dm_array out)
{
    dmi_session *s;
    dmi_handle *a = NULL, *b = NULL;
    dm_array to = out;
    dm_dtype dtype = r->sort->indices ? DM_I64 : r->dtype;
    dm_status status = dmi_enter(r->session, &s);
    status = status == DM_OK ? dmi_handle_find(s, r->values, "values", &a) : status;
    status = status == DM_OK ? dmi_handle_find(s, out, "out", &b) : status;
    if (status != DM_OK) {
        return status;
    }
    bool there = b->desc.dtype == dtype && dmi_same_places(&a->desc, &b->desc, r->sort->dim);
    if (!there) {
        status = dm_array_like(r->session, r->values, dtype, &r->whole);
        to = r->whole;
    }
    status = status == DM_OK ? dmi_merge(r->session, r->sort->descending, r->sort->dim, r->rows, r->workers,
                                         r->values, r->indices, to)
                             : status;
    return status == DM_OK && !there ? dm_copy(r->session, r->whole, out) : status;
}

static dm_status sort_row(long_row *r, dm_array x, dm_array out)
{
    int64_t workers = r->workers, bytes = dmi_dtype_bytes(r->dtype);
    r->digit = workers <= MANY_WORKERS ? 8 : 4;
    r->keys = (workers - 1) * ((1 << r->digit) - 1);
    int64_t words = workers + 2 * workers * r->keys + (workers + 1) * workers + workers * workers;
    int64_t *memory = calloc((size_t)words, sizeof *memory);
    r->probe = calloc((size_t)r->keys, (size_t)bytes);
    dm_status status = memory && r->probe ? DM_OK : dmi_fail(DM_ERR_NOMEM, "no memory for a sort");
    if (status == DM_OK) {
        r->key = (uint64_t *)memory;
        r->count = memory + workers;
        r->cut = r->count + 2 * workers * r->keys;
        r->rows = r->cut + (workers + 1) * workers;
        status = make_arrays(r);
    }
    status = status == DM_OK ? dmi_sort_parts(r->session, r->sort, false, x, r->values, r->indices) : status;
    status = status == DM_OK ? find_cuts(r) : status;
    status = status == DM_OK ? merge_row(r, out) : status;
    dm_array made[] = {r->values, r->indices, r->probes, r->counts, r->whole};
    for (int i = 0; i < DMI_COUNT(made); i++) {
        status = made[i].id ? dmi_array_release(r->session, made[i], status) : status;
    }
    free(memory);
    free(r->probe);
    return status;
}

/* Each row of x by itself. */
static dm_status sort_each(dm_session *session, const dmi_sorting *sort, const dmi_desc *desc, int workers,
                           dm_array x, dm_array out)
{
    int64_t index[DM_MAX_DIMS] = {0};
    dm_status status = DM_OK;
    for (bool more = true; more && status == DM_OK;) {
        dm_array from, to = DM_NO_ARRAY;
        long_row r = {
            .session = session, .sort = sort, .dtype = desc->dtype, .workers = workers, .ndim = desc->ndim};
        for (int d = 0; d < r.ndim; d++) {
            r.shape[d] = d == sort->dim ? desc->extent[d] : 1;
        }
        r.n = desc->extent[sort->dim];
        r.block = (r.n + workers - 1) / workers;
        status = dm_array_view(session, x, index, r.shape, &from);
        if (status != DM_OK) {
            return status;
        }
        status = dm_array_view(session, out, index, r.shape, &to);
        status = status == DM_OK ? sort_row(&r, from, to) : status;
        status = dmi_array_release(session, from, status);
        status = to.id ? dmi_array_release(session, to, status) : status;
        more = false;
        for (int d = r.ndim - 1; d >= 0 && !more; d--) { /* the next row */
            int64_t extent = d == sort->dim ? 1 : desc->extent[d];
            more = ++index[d] < extent;
            index[d] = more ? index[d] : 0;
        }
    }
    return status;
}

static bool split_along(const dmi_desc *x, int dim)
{
    return x->layout->kind != DMI_LAYOUT_GRID || x->layout->grid[dim] > 1;
}

dm_status dmi_sort_long(dm_session *session, const dmi_sorting *sort, dm_array x, dm_array out, bool *done)
{
    dmi_session *s;
    dmi_handle *hx = NULL, *ho = NULL;
    dm_status status = dmi_enter(session, &s);
    *done = false;
    status = status == DM_OK ? dmi_handle_find(s, x, "x", &hx) : status;
    status = status == DM_OK ? dmi_handle_find(s, out, "out", &ho) : status;
    if (status != DM_OK) {
        return status;
    }
    const dmi_desc desc = hx->desc, to = ho->desc;
    const dmi_facts f = dmi_session_facts(s);
    int64_t rows = 1, table = (int64_t)f.workers * f.workers * (int64_t)sizeof(int64_t);
    bool fits = sort->dim >= 0 && sort->dim < desc.ndim && desc.ndim == to.ndim &&
                !dmi_dtype_is_complex(desc.dtype) && (!sort->indices || dmi_dtype_is_integer(to.dtype));
    for (int d = 0; d < desc.ndim && fits; d++) {
        fits = desc.extent[d] == to.extent[d];
        rows *= d == sort->dim ? 1 : desc.extent[d];
    }
    bool overlaps = hx->storage == ho->storage && (x.id != out.id || sort->indices);
    if (!fits || overlaps || f.explaining || f.recording || f.workers < 2 || f.grouped || rows < 1 ||
        rows >= f.workers ||
        desc.extent[sort->dim] * dmi_dtype_bytes(desc.dtype) < DMI_MAX(f.config->sort_exchange, 1) ||
        table > f.tail_room || !(split_along(&desc, sort->dim) || split_along(&to, sort->dim))) {
        return DM_OK;
    }
    *done = true;
    return sort_each(session, sort, &desc, f.workers, x, out);
}

/* Which elements of an array occur in another one: a sort, and searches from both sides; or a table of all
 * integers from the least to the greatest of the other one. */
#include "api/parts.h"
#include "ops/messages.h"

#include <dmath/index.h>
#include <dmath/order.h>

/* --- by a table --- */

/* A table makes commands that wait, so there must be many elements. Those of all workers take no more than so
 * many bytes an element, as other temporaries do. */
enum { LEAST_TABLED = 1 << 15, TABLE_BYTES = 8 };

/* *workers: so many tables. */
static bool may_be_tabled(dm_session *session, const dmi_desc *x, const dmi_desc *test, int *workers)
{
    dmi_session *s;
    bool whole = dmi_dtype_is_integer(x->dtype) && dmi_dtype_is_integer(test->dtype) && x->dtype != DM_U64 &&
                 test->dtype != DM_U64;
    if (!whole || dmi_desc_count(x) < LEAST_TABLED || dmi_desc_count(test) == 0 || dmi_enter(session, &s) != DM_OK) {
        return false;
    }
    const dmi_facts f = dmi_session_facts(s);
    *workers = f.workers;
    return !f.profile->gpu && !f.recording && !f.explaining && !f.grouped;
}

/* A reduction of an array of integers. Waits. */
static dm_status read_one(dm_session *session, const char *text, dm_array x, int64_t *out)
{
    const dm_map_arg args[] = {DM_ARG("x", x)};
    dm_array one;
    dm_status status = dm_array_create(session, DM_I64, 0, NULL, NULL, &one);
    status = status == DM_OK ? dm_map(session, text, 1, args, one) : status;
    return status == DM_OK ? dm_array_read(session, one, NULL, NULL, out, 0) : status;
}

/* On every worker: which of lo .. hi occur in test. Behind them one more, which does not. */
static dm_status make_table(dm_session *session, dm_array test, int64_t lo, int64_t hi, int invert,
                            dm_array *table)
{
    const int64_t n = hi - lo + 2;
    const dm_map_arg args[] = {DM_ARG("t", test), DM_INTEGER("lo", lo)};
    dm_array places, one;
    dm_layout all = dm_layout_replicated(session);
    dm_status status = dm_array_create(session, DM_BOOL, 1, &n, &all, table);
    status = status == DM_OK ? dm_fill(session, *table, invert) : status;
    status = status == DM_OK ? dm_array_create(session, DM_BOOL, 0, NULL, NULL, &one) : status;
    status = status == DM_OK ? dm_fill(session, one, !invert) : status;
    status = status == DM_OK ? dm_array_like(session, test, DM_I64, &places) : status;
    status = status == DM_OK ? dm_map(session, "i64(t) - lo", DMI_COUNT(args), args, places) : status;
    return status == DM_OK ? dm_put(session, *table, places, one, 0, DM_CLIP) : status;
}

/* out[..] = the table's element of x[..]. All have one dim. */
static dm_status look_up(dm_session *session, dm_array table, dm_array x, const dmi_desc *desc, int64_t lo,
                         int64_t hi, dm_array out, dm_dtype out_type)
{
    const bool wide = desc->dtype == DM_I64 || desc->dtype == DM_U32 || lo < INT32_MIN || hi > INT32_MAX ||
                      hi - lo >= INT32_MAX;
    const dm_map_arg args[] = {DM_ARG("x", x), DM_INTEGER("lo", lo), DM_INTEGER("hi", hi),
                               DM_INTEGER("none", hi - lo + 1)};
    dm_array places, found = out;
    dm_status status = dm_array_like(session, x, wide ? DM_I64 : DM_I32, &places);
    status = status == DM_OK ? dm_map(session,
                                      wide ? "where((i64(x) >= lo) & (i64(x) <= hi), i64(x) - lo, none)"
                                           : "where((i32(x) >= lo) & (i32(x) <= hi), i32(x) - lo, none)",
                                      DMI_COUNT(args), args, places)
                             : status;
    if (status == DM_OK && out_type != DM_BOOL) {
        status = dm_array_like(session, x, DM_BOOL, &found);
    }
    status = status == DM_OK ? dm_take(session, table, places, 0, DM_CLIP, found) : status;
    return status == DM_OK && out_type != DM_BOOL ? dm_copy(session, found, out) : status;
}

/* *done: it has been. False: the integers of test are too far apart, or x or out has no view of one dim. */
static dm_status isin_by_table(dm_session *session, int workers, dm_array x, const dmi_operand *a,
                               dm_array test, int invert, dm_array out, dm_dtype out_type, bool *done)
{
    const int64_t n = dmi_desc_count(&a->desc);
    int64_t lo, hi, most;
    dm_array flat_x, flat_out, table;
    dmi_operand t;
    *done = false;
    dm_status status = dm_array_reshape(session, x, 1, &n, &flat_x);
    status = status == DM_OK ? dm_array_reshape(session, out, 1, &n, &flat_out) : status;
    if (status != DM_OK) {
        return status == DM_ERR_UNSUPPORTED ? DM_OK : status;
    }
    status = dmi_part_operand(session, test, "test", &t);
    status = status == DM_OK ? dmi_poisoned_is("test", read_one(session, "min(x)", test, &lo)) : status;
    status = status == DM_OK ? dmi_poisoned_is("test", read_one(session, "max(x)", test, &hi)) : status;
    if (status != DM_OK) {
        return status;
    }
    most = (n + dmi_desc_count(&t.desc)) / workers * TABLE_BYTES;
    if ((uint64_t)hi - (uint64_t)lo >= (uint64_t)most) {
        return DM_OK;
    }
    *done = true;
    status = dmi_poisoned_is("test", make_table(session, test, lo, hi, invert, &table));
    return status == DM_OK
               ? dmi_poisoned_is("x", look_up(session, table, flat_x, &a->desc, lo, hi, flat_out, out_type))
               : status;
}

/* --- by a sort --- */

/* Where the elements of x would go into sorted ones: before equal ones and behind them. They occur where these
 * differ. */
static dm_status search(dm_session *session, dm_array sorted, dm_array x, dm_array place[2])
{
    dm_status status = DM_OK;
    for (int right = 0; right < 2 && status == DM_OK; right++) {
        status = dm_array_like(session, x, DM_I64, &place[right]);
        status = status == DM_OK ? dm_searchsorted(session, sorted, x, right, place[right]) : status;
    }
    return status;
}

/* x[i] = f(from[i]), in the layout of from and the type of the text's value. */
static dm_status part_of(dm_session *session, const char *text, dm_array from, dm_array *x)
{
    const dm_map_arg args[] = {DM_ARG("x", from)};
    dmi_operand a;
    dm_status status = dmi_part_operand(session, from, "x", &a);
    if (status != DM_OK) {
        return status;
    }
    dm_dtype type = a.desc.dtype == DM_C64 ? DM_F32 : a.desc.dtype == DM_C128 ? DM_F64 : a.desc.dtype;
    status = dm_array_like(session, from, type, x);
    return status == DM_OK ? dm_map(session, text, 1, args, *x) : status;
}

typedef struct searched {
    dm_array elements, sorted; /* one dim */
    dm_array x[2];             /* places of the elements of x */
} searched;

static dm_status sort_and_search(dm_session *session, dm_array elements, dm_array x, searched *out)
{
    out->elements = elements;
    dm_status status = dm_array_like(session, elements, 0, &out->sorted);
    status = status == DM_OK ? dmi_poisoned_is("test", dm_sort(session, elements, 0, 0, out->sorted)) : status;
    return status == DM_OK ? search(session, out->sorted, x, out->x) : status;
}

/* Numbers of pairs of parts: the place of the real part among the real ones times n, and that of the imaginary
 * part. */
static dm_status number_pairs(dm_session *session, dm_array re, dm_array im, int64_t n, dm_array *out)
{
    const dm_map_arg args[] = {DM_ARG("re", re), DM_ARG("im", im), DM_INTEGER("n", n)};
    dm_status status = dm_array_like(session, re, DM_U64, out);
    return status == DM_OK ? dm_map(session, "u64(re) * u64(n) + u64(im)", DMI_COUNT(args), args, *out)
                           : status;
}

/* Complex numbers have no order; both parts must occur, and the numbers of the pairs. */
static dm_status isin_complex(dm_session *session, dm_array x, dm_array flat, int64_t n, const char *text,
                              dm_array out)
{
    static const char *const part[2] = {"real(x)", "imag(x)"};
    dm_array of_flat, of_x, place[2], pairs, wanted;
    searched s[2], pair;
    dm_status status = DM_OK;
    for (int i = 0; i < 2 && status == DM_OK; i++) {
        status = part_of(session, part[i], flat, &of_flat);
        status = status == DM_OK ? part_of(session, part[i], x, &of_x) : status;
        status = status == DM_OK ? sort_and_search(session, of_flat, of_x, &s[i]) : status;
        status = status == DM_OK ? dm_array_like(session, flat, DM_I64, &place[i]) : status;
        status = status == DM_OK ? dm_searchsorted(session, s[i].sorted, of_flat, 0, place[i]) : status;
    }
    status = status == DM_OK ? number_pairs(session, place[0], place[1], n, &pairs) : status;
    status = status == DM_OK ? number_pairs(session, s[0].x[0], s[1].x[0], n, &wanted) : status;
    status = status == DM_OK ? sort_and_search(session, pairs, wanted, &pair) : status;
    const dm_map_arg args[] = {DM_ARG("a", s[0].x[0]), DM_ARG("b", s[0].x[1]), DM_ARG("c", s[1].x[0]),
                               DM_ARG("d", s[1].x[1]), DM_ARG("e", pair.x[0]), DM_ARG("f", pair.x[1]),
                               DM_ARG("x", x)};
    return status == DM_OK ? dm_map(session, text, DMI_COUNT(args), args, out) : status;
}

static dm_status isin_real(dm_session *session, dm_array x, dm_array flat, const char *text, dm_array out)
{
    searched s;
    dm_status status = sort_and_search(session, flat, x, &s);
    const dm_map_arg args[] = {DM_ARG("a", s.x[0]), DM_ARG("b", s.x[1]), DM_ARG("x", x)};
    return status == DM_OK ? dm_map(session, text, DMI_COUNT(args), args, out) : status;
}

dm_status dm_isin(dm_session *session, dm_array x, dm_array test, int invert, dm_array out)
{
    dmi_operand a, t, o;
    dm_array flat;
    bool done = false;
    int workers;
    dm_status status = dmi_part_operand(session, x, "x", &a);
    status = status == DM_OK ? dmi_part_operand(session, test, "test", &t) : status;
    status = status == DM_OK ? dmi_part_operand(session, out, "out", &o) : status;
    status = status == DM_OK ? dmi_part_shape(&o, a.desc.ndim, a.desc.extent) : status;
    status = status == DM_OK ? dmi_part_apart(&a, "x", &o) : status;
    status = status == DM_OK ? dmi_part_apart(&t, "test", &o) : status;
    if (status != DM_OK || (status = dm_scope_begin(session)) != DM_OK) {
        return status;
    }
    status = dmi_part_flat(session, test, &flat);
    if (status == DM_OK && may_be_tabled(session, &a.desc, &t.desc, &workers)) {
        status = isin_by_table(session, workers, x, &a, flat, invert != 0, out, o.desc.dtype, &done);
    }
    if (status != DM_OK || done) {
        return dmi_part_end(session, status);
    }
    if ((dmi_dtype_is_complex(a.desc.dtype) || dmi_dtype_is_complex(t.desc.dtype))) {
        int64_t n = 1;
        for (int d = 0; d < t.desc.ndim; d++) {
            n *= t.desc.extent[d];
        }
        status = isin_complex(session, x, flat, n,
                              invert ? "(a == b) | (c == d) | (e == f) | (x != x)"
                                     : "(a != b) & (c != d) & (e != f) & (x == x)",
                              out);
    } else {
        status = isin_real(session, x, flat, invert ? "(a == b) | (x != x)" : "(a != b) & (x == x)", out);
    }
    return dmi_part_end(session, status);
}

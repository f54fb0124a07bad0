/* Which elements of an array occur in another one: a sort, and searches from both sides. */
#include "api/parts.h"

#include <dmath/order.h>

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
    status = status == DM_OK ? dm_sort(session, elements, 0, 0, out->sorted) : status;
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
    if (status == DM_OK && (dmi_dtype_is_complex(a.desc.dtype) || dmi_dtype_is_complex(t.desc.dtype))) {
        int64_t n = 1;
        for (int d = 0; d < t.desc.ndim; d++) {
            n *= t.desc.extent[d];
        }
        status = isin_complex(session, x, flat, n,
                              invert ? "(a == b) | (c == d) | (e == f) | (x != x)"
                                     : "(a != b) & (c != d) & (e != f) & (x == x)",
                              out);
    } else if (status == DM_OK) {
        status = isin_real(session, x, flat, invert ? "(a == b) | (x != x)" : "(a != b) & (x == x)", out);
    }
    return dmi_part_end(session, status);
}

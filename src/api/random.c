/* Random choices: compositions of uniform numbers, sorts and takes; and the session's generator. */
#include "api/parts.h"
#include "master/session.h"
#include "ops/messages.h"
#include "plan/program.h"

#include <dmath/index.h>
#include <dmath/order.h>
#include <dmath/random.h>
#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

enum { TEXT = 128 };

static dm_status check_type(dm_session *session, dm_array x, bool takes_all, dmi_operand *out)
{
    dm_status status = dmi_part_operand(session, x, "x", out);
    if (status == DM_OK &&
        (takes_all ? dmi_dtype_is_complex(out->desc.dtype) : !dmi_dtype_is_float(out->desc.dtype))) {
        status = dmi_refuse_dtype("x", out->desc.dtype, takes_all ? DMI_DT_REAL : DMI_DT_ANY_FLOAT);
    }
    return status;
}

/* --- distributions of one parameter --- */

typedef struct distribution {
    const char *name;   /* of the parameter */
    const char *format; /* the expression of the parameter p; # is the seed */
    bool wide;          /* p is taken in f64, else in the type of uniform() */
    bool takes_all;     /* x may be an integer or bool */
    double most;        /* the parameter is 0 to this */
    bool below;         /* and not this itself */
    const char *range;
} distribution;
static const distribution bernoulli = {"p", "f64(uniform(#)) < f64(p)", true, true, 1, false, "not 0 to 1"};
static const distribution exponential = {
    "scale", "-log1p(-uniform(#)) * p", false, false, DBL_MAX, false, "not 0 to the largest number"};
static const distribution dropout = {
    "p", "where(f64(uniform(#)) < f64(p), 0, 1 / (1 - f64(p)))", true, false, 1, true, "not from 0 to below 1"};

static dm_status check_parameter(dm_session *session, const distribution *d, const dm_factor *p,
                                 const dmi_operand *x)
{
    dm_status status = dmi_part_factor(session, d->name, p, DM_F64, "x", x);
    bool inside = p->value >= 0 && (d->below ? p->value < d->most : p->value <= d->most);
    return status != DM_OK || p->element || inside
               ? status
               : dmi_fail(DM_ERR_ARG, "%s: %s is %g, %s", dmi_api_called(), d->name, p->value, d->range);
}

static dm_status fill_by(dm_session *session, dm_array x, const distribution *d, dm_factor p, uint64_t seed)
{
    char text[TEXT], *at = text;
    dmi_operand o;
    dm_status status = check_type(session, x, d->takes_all, &o);
    status = status == DM_OK ? check_parameter(session, d, &p, &o) : status;
    if (status != DM_OK || (status = dm_scope_begin(session)) != DM_OK) {
        return status;
    }
    for (const char *from = d->format; *from; from++) {
        at += *from == '#' ? snprintf(at, TEXT / 2, "%" PRIu64, seed) : (*at = *from, 1);
    }
    *at = 0;
    status = dmi_factor_settle(session, d->wide || o.desc.dtype == DM_F64 ? DM_F64 : DM_F32, &p);
    const dm_map_arg element = DM_ARG("p", p.array), number = DM_NUMBER("p", p.value);
    status = status == DM_OK ? dm_map(session, text, 1, p.element ? &element : &number, x) : status;
    return dmi_part_end(session, status);
}

dm_status dm_fill_bernoulli(dm_session *session, dm_array x, double p, uint64_t seed)
{
    return fill_by(session, x, &bernoulli, dm_value(p), seed);
}

dm_status dm_fill_bernoulli_by(dm_session *session, dm_array x, dm_factor p, uint64_t seed)
{
    return fill_by(session, x, &bernoulli, p, seed);
}

dm_status dm_fill_exponential(dm_session *session, dm_array x, double scale, uint64_t seed)
{
    return fill_by(session, x, &exponential, dm_value(scale), seed);
}

dm_status dm_fill_exponential_by(dm_session *session, dm_array x, dm_factor scale, uint64_t seed)
{
    return fill_by(session, x, &exponential, scale, seed);
}

dm_status dm_fill_dropout(dm_session *session, dm_array x, double p, uint64_t seed)
{
    return fill_by(session, x, &dropout, dm_value(p), seed);
}

dm_status dm_fill_dropout_by(dm_session *session, dm_array x, dm_factor p, uint64_t seed)
{
    return fill_by(session, x, &dropout, p, seed);
}

/* --- permutations --- */

/* One dim of i32 or i64; the status of what does not fit. */
static dm_status check_indices(dm_session *session, dm_array x, const char *name, int64_t most,
                               dmi_operand *out)
{
    dm_status status = dmi_part_operand(session, x, name, out);
    if (status != DM_OK) {
        return status;
    }
    if (out->desc.ndim != 1) {
        return dmi_fail(DM_ERR_SHAPE, "%s: %s has %d dims, not 1", dmi_api_called(), name, out->desc.ndim);
    }
    if (out->desc.dtype != DM_I32 && out->desc.dtype != DM_I64) {
        return dmi_fail(DM_ERR_DTYPE, "%s: %s has dtype %s, not i32 or i64", dmi_api_called(), name,
                        dmi_dtype_name(out->desc.dtype));
    }
    if (out->desc.dtype == DM_I32 && most - 1 > INT32_MAX) {
        return dmi_fail(DM_ERR_LIMIT, "%s: %s is i32, but there are %" PRId64 " indices", dmi_api_called(),
                        name, most);
    }
    return DM_OK;
}

/* A new vector of f64 by a text; as `like` lies if it has n elements. */
static dm_status make_keys(dm_session *session, int64_t n, dm_array like, const char *text, dm_array weights,
                           dm_array *out)
{
    dmi_operand o;
    dm_status status = dmi_part_operand(session, like, "out", &o);
    if (status == DM_OK && o.desc.ndim == 1 && o.desc.extent[0] == n) {
        status = dm_array_like(session, like, DM_F64, out);
    } else if (status == DM_OK) {
        dm_layout rows = dm_layout_rows(session);
        status = dm_array_create(session, DM_F64, 1, &n, &rows, out);
    }
    const dm_map_arg args[] = {DM_ARG("w", weights)};
    return status == DM_OK ? dm_map(session, text, weights.id != 0, args, *out) : status;
}

static dm_status permute(dm_session *session, dm_array x, int64_t n, uint64_t seed)
{
    char text[TEXT];
    dm_array keys;
    snprintf(text, sizeof text, "uniform(%" PRIu64 ")", seed);
    dm_status status = make_keys(session, n, x, text, DM_NO_ARRAY, &keys);
    return status == DM_OK ? dm_argsort(session, keys, 0, 0, x) : status;
}

dm_status dm_fill_permutation(dm_session *session, dm_array x, uint64_t seed)
{
    dmi_operand o;
    dm_status status = dmi_part_operand(session, x, "x", &o);
    status =
        status == DM_OK ? check_indices(session, x, "x", o.desc.ndim > 0 ? o.desc.extent[0] : 0, &o) : status;
    if (status != DM_OK || (status = dm_scope_begin(session)) != DM_OK) {
        return status;
    }
    return dmi_part_end(session, permute(session, x, o.desc.extent[0], seed));
}

dm_status dm_shuffle(dm_session *session, dm_array x, int dim, uint64_t seed, dm_array out)
{
    dmi_operand a, o;
    dm_array order;
    dm_status status = dmi_part_operand(session, x, "x", &a);
    status = status == DM_OK ? dmi_part_operand(session, out, "out", &o) : status;
    status = status == DM_OK ? dmi_part_dim(&dim, a.desc.ndim) : status;
    status = status == DM_OK ? dmi_part_shape(&o, a.desc.ndim, a.desc.extent) : status;
    status = status == DM_OK ? dmi_part_apart(&a, "x", &o) : status;
    if (status == DM_OK && a.desc.dtype != o.desc.dtype) {
        status = dmi_fail(DM_ERR_DTYPE, "shuffle: x has dtype %s, but out %s", dmi_dtype_name(a.desc.dtype),
                          dmi_dtype_name(o.desc.dtype));
    }
    if (status != DM_OK || (status = dm_scope_begin(session)) != DM_OK) {
        return status;
    }
    int64_t n = a.desc.extent[dim];
    status = dm_vector(session, DM_I64, n, &order);
    status = status == DM_OK ? permute(session, order, n, seed) : status;
    status = status == DM_OK ? dm_take(session, x, order, dim, DM_CLIP, out) : status; /* all are in range */
    return dmi_part_end(session, status);
}

/* --- choices --- */

/* out = floor(u * n), by weights the place of u * sum in their running sums */
static dm_status with_replacement(dm_session *session, int64_t n, dm_array weights, uint64_t seed, int64_t m,
                                  dm_array out)
{
    char text[TEXT];
    dm_array sums, sum, u;
    int64_t last = n - 1, one = 1;
    if (weights.id == 0) {
        return dm_fill_uniform(session, out, 0, (double)n, seed);
    }
    dm_layout one_worker = dm_layout_single(0); /* so the sums are rounded alike, however weights lie */
    dm_status status = dm_array_create(session, DM_F64, 1, &n, &one_worker, &sums);
    status = status == DM_OK ? dm_copy(session, weights, sums) : status;
    status = status == DM_OK ? dm_cumulative_sum(session, sums, 0, sums) : status;
    status = status == DM_OK ? dm_array_view(session, sums, &last, &one, &sum) : status;
    snprintf(text, sizeof text, "uniform(%" PRIu64 ") * w", seed);
    status = status == DM_OK ? make_keys(session, m, out, text, sum, &u) : status;
    return status == DM_OK ? dm_searchsorted(session, sums, u, 1, out) : status;
}

/* The m indices whose keys come first. */
static dm_status without_replacement(dm_session *session, int64_t n, dm_array weights, uint64_t seed, int64_t m,
                                     dm_array out)
{
    char text[TEXT];
    dm_array keys, order, first;
    int64_t lo = 0;
    snprintf(text, sizeof text, weights.id ? "-log1p(-uniform(%" PRIu64 ")) / f64(w)" : "uniform(%" PRIu64 ")",
             seed);
    dm_status status = make_keys(session, n, weights.id ? weights : out, text, weights, &keys);
    status = status == DM_OK ? dm_array_like(session, keys, DM_I64, &order) : status;
    status = status == DM_OK ? dm_argsort(session, keys, 0, 0, order) : status;
    status = status == DM_OK ? dm_array_view(session, order, &lo, &m, &first) : status;
    return status == DM_OK ? dm_copy(session, first, out) : status;
}

static dm_status check_weights(dm_session *session, dm_array weights, int64_t n)
{
    dmi_operand w;
    dm_status status = dmi_part_operand(session, weights, "weights", &w);
    if (status == DM_OK && (w.desc.ndim != 1 || w.desc.extent[0] != n)) {
        char text[192];
        status =
            dmi_fail(DM_ERR_SHAPE, "choice: weights are %s, not %" PRId64, dmi_shape_text(&w.desc, text), n);
    }
    if (status == DM_OK && !dmi_dtype_is_float(w.desc.dtype)) {
        status = dmi_fail(DM_ERR_DTYPE, "choice: weights have dtype %s, which is no float",
                          dmi_dtype_name(w.desc.dtype));
    }
    return status;
}

dm_status dm_choice(dm_session *session, int64_t n, dm_array weights, int replace, uint64_t seed, dm_array out)
{
    dmi_operand o;
    dm_status status = check_indices(session, out, "out", n, &o);
    if (status != DM_OK) {
        return status;
    }
    int64_t m = o.desc.extent[0];
    if (n < 0 || (m > 0 && n < 1) || (!replace && n < m)) {
        return dmi_fail(DM_ERR_ARG, "choice: n is %" PRId64 ", but out has %" PRId64 " elements", n, m);
    }
    if (weights.id != 0 && (status = check_weights(session, weights, n)) != DM_OK) {
        return status;
    }
    if (m == 0 || (status = dm_scope_begin(session)) != DM_OK) {
        return status;
    }
    status = (replace ? with_replacement : without_replacement)(session, n, weights, seed, m, out);
    return dmi_part_end(session, status);
}

/* --- the generator --- */

dm_status dm_random_next(dm_session *session, uint64_t *seed)
{
    dmi_session *s;
    dm_status status = dmi_enter(session, &s);
    if (status == DM_OK && !seed) {
        status = dmi_fail(DM_ERR_ARG, "random_next: seed is NULL");
    }
    if (status == DM_OK) {
        *seed = dmi_program_seed(s->random_seed, (int64_t)++s->random_next);
    }
    return status;
}

dm_status dm_random_get(dm_session *session, uint64_t *seed, uint64_t *next)
{
    dmi_session *s;
    dm_status status = dmi_enter(session, &s);
    if (status == DM_OK && (!seed || !next)) {
        status = dmi_fail(DM_ERR_ARG, "random_get: %s is NULL", seed ? "next" : "seed");
    }
    if (status == DM_OK) {
        *seed = s->random_seed;
        *next = s->random_next;
    }
    return status;
}

dm_status dm_random_set(dm_session *session, uint64_t seed, uint64_t next)
{
    dmi_session *s;
    dm_status status = dmi_enter(session, &s);
    if (status == DM_OK) {
        s->random_seed = seed;
        s->random_next = next;
    }
    return status;
}

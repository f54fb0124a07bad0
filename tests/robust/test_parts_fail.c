/* Calls that are made of others, of which one finds no memory: each allocation of the calling thread fails
 * once. The call says so, arrays that it has made on its way are gone, and the next call is right. What
 * test_faults has of real numbers is here of complex ones, and in the forms that go other ways. */
#include "robust.h"

#include "base/fault.h"
#include "master/session.h"
#include "support/try.h"

#include <dmath/factors.h>
#include <dmath/index.h>
#include <dmath/linalg.h>
#include <dmath/order.h>
#include <dmath/random.h>
#include <dmath/reduce.h>

enum { SIDE = 12, LARGE = 140, WORKERS = 3, MOST_CALLS = 3000, MOST_BYTES = LARGE * LARGE * 16 };

typedef struct parts {
    dm_session *s;
    dm_array a, b, c, v, u;           /* complex: matrices, vectors; c and u are written */
    dm_array real, narrow, flat;      /* f64: a matrix, its type rounded, and 2 * SIDE numbers */
    dm_array whole, mask, rows, some; /* integers: small numbers; 0 and 1; numbers of rows; a few numbers */
    dm_array large, square;           /* complex, so large that they are cut in halves; square is written */
    dm_array out;                     /* what the call has written */
} parts;

#define PART(name, written, call)                                                                              \
    static dm_status part_##name(parts *p)                                                                     \
    {                                                                                                          \
        p->out = (written);                                                                                    \
        return (call);                                                                                         \
    }
/* Into a new array. */
#define MADE(name, dtype, ndim, n0, n1, call)                                                                  \
    static dm_status part_##name(parts *p)                                                                     \
    {                                                                                                          \
        TRY(dm_array_create(p->s, dtype, ndim, (const int64_t[]){n0, n1}, NULL, &p->out));                     \
        return (call);                                                                                         \
    }
PART(gemv, p->u, dm_gemv(p->s, DM_C, 2, p->a, p->v, -1, p->u))
PART(ger, p->c, dm_ger(p->s, 2, p->v, p->v, p->c))
PART(gerc, p->c, dm_gerc(p->s, 2, p->v, p->v, p->c))
PART(symv, p->u, dm_symv(p->s, DM_LOWER, 2, p->a, p->v, 1, p->u))
PART(hemv, p->u, dm_hemv(p->s, DM_UPPER, 2, p->a, p->v, 1, p->u))
PART(syr, p->c, dm_syr(p->s, DM_LOWER, 2, p->v, p->c))
PART(her, p->c, dm_her(p->s, DM_UPPER, 2, p->v, p->c))
PART(her2, p->c, dm_her2(p->s, DM_LOWER, 2, p->v, p->u, p->c))
PART(trmv, p->u, dm_trmv(p->s, DM_LOWER, DM_C, DM_UNIT, p->a, p->u))
PART(trsv, p->u, dm_trsv(p->s, DM_UPPER, DM_T, DM_UNIT, p->a, p->u))
PART(herk, p->c, dm_herk(p->s, DM_LOWER, DM_C, 2, p->a, 1, p->c))
PART(her2k, p->c, dm_her2k(p->s, DM_UPPER, DM_N, 2, p->a, p->b, 1, p->c))
PART(syr2k, p->c, dm_syr2k(p->s, DM_UPPER, DM_T, 2, p->a, p->b, 1, p->c))
PART(hemm, p->c, dm_hemm(p->s, DM_RIGHT, DM_UPPER, 2, p->a, p->b, 1, p->c))
PART(symm_large, p->square, dm_symm(p->s, DM_LEFT, DM_LOWER, 1, p->large, p->large, 1, p->square))
PART(syrk_large, p->square, dm_syrk(p->s, DM_LOWER, DM_N, 1, p->large, 1, p->square))
PART(trmm_large, p->square, dm_trmm(p->s, DM_LEFT, DM_LOWER, DM_N, DM_UNIT, 1, p->large, p->square))
PART(trmm_right, p->square, dm_trmm(p->s, DM_RIGHT, DM_UPPER, DM_T, DM_UNIT, 1, p->large, p->square))
PART(trsm_large, p->square, dm_trsm(p->s, DM_LEFT, DM_UPPER, DM_C, DM_UNIT, 1, p->large, p->square))
MADE(dotc, DM_C128, 0, 0, 0, dm_dotc(p->s, p->v, p->v, p->out))
MADE(nrm2, DM_F64, 0, 0, 0, dm_nrm2(p->s, p->v, p->out))
MADE(asum, DM_F64, 0, 0, 0, dm_asum(p->s, p->v, p->out))
MADE(iamax, DM_I64, 0, 0, 0, dm_iamax(p->s, p->v, p->out))
MADE(isin, DM_BOOL, 2, SIDE, SIDE, dm_isin(p->s, p->a, p->b, 0, p->out))
MADE(isin_whole, DM_BOOL, 2, SIDE, SIDE, dm_isin(p->s, p->whole, p->some, 1, p->out))
MADE(isin_as_f32, DM_F32, 2, SIDE, SIDE, dm_isin(p->s, p->whole, p->some, 0, p->out))
MADE(one_hot, DM_C128, 2, SIDE, SIDE, dm_one_hot(p->s, p->rows, p->out))
MADE(pad, DM_F32, 2, SIDE + 3, SIDE + 3,
     dm_pad(p->s, p->narrow, (int64_t[]){1, 2}, (int64_t[]){2, 1}, DM_PAD_WRAP, 0, p->out))
MADE(pad_constant, DM_C128, 2, SIDE + 3, SIDE + 3,
     dm_pad(p->s, p->a, (int64_t[]){1, 2}, (int64_t[]){2, 1}, DM_PAD_CONSTANT, 4, p->out))
MADE(concatenate, DM_C128, 2, SIDE, 2 * SIDE, dm_concatenate(p->s, 2, (dm_array[]){p->real, p->a}, 1, p->out))
MADE(tile, DM_F64, 2, 3 * SIDE, 5 * SIDE, dm_tile(p->s, p->narrow, (int64_t[]){3, 5}, p->out))
MADE(repeat, DM_F64, 2, SIDE, 3 * SIDE, dm_repeat(p->s, p->narrow, 3, 1, p->out))
MADE(roll, DM_C128, 2, SIDE, SIDE, dm_roll(p->s, p->a, -5, 1, p->out))
MADE(diagonal, DM_C128, 1, SIDE - 2, 0, dm_diagonal(p->s, p->a, 2, p->out))
PART(set_diagonal, p->c, dm_set_diagonal(p->s, p->c, 0, p->v))
MADE(covariance, DM_C128, 2, SIDE, SIDE, dm_covariance(p->s, p->a, DM_BY_COLUMNS, 1, p->out))
MADE(distances, DM_F64, 2, SIDE, SIDE, dm_distances(p->s, p->narrow, p->real, p->out))
MADE(cosine, DM_F32, 2, SIDE, SIDE, dm_cosine_distances(p->s, p->narrow, p->real, p->out))
MADE(layer_norm, DM_F64, 2, SIDE, SIDE,
     dm_layer_norm(p->s, p->narrow, (int[]){1}, 1, DM_NO_ARRAY, DM_NO_ARRAY, 1e-5, p->out))
MADE(median, DM_F32, 2, SIDE, 1, dm_median(p->s, p->narrow, 1, p->out))
MADE(shuffle, DM_C128, 2, SIDE, SIDE, dm_shuffle(p->s, p->a, 1, 5, p->out))
MADE(choice, DM_I32, 1, 2, 0, dm_choice(p->s, 2 * SIDE, p->flat, 0, 5, p->out))
MADE(choice_again, DM_I64, 1, 40, 0, dm_choice(p->s, 2 * SIDE, p->flat, 1, 5, p->out))
MADE(permutation, DM_I32, 1, 30, 0, dm_fill_permutation(p->s, p->out, 5))
PART(symmetrise, p->c, dm_symmetrise(p->s, DM_LOWER, 1, p->a, p->c))

static dm_status part_rot(parts *p)
{
    dm_array y;
    TRY(dm_array_like(p->s, p->c, DM_C128, &y));
    TRY(dm_fill(p->s, y, 2));
    p->out = y;
    return dm_rot(p->s, p->c, y, 0.6, 0.8);
}

static dm_status part_swap(parts *p)
{
    dm_array y;
    TRY(dm_array_like(p->s, p->c, DM_C128, &y));
    TRY(dm_fill(p->s, y, 2));
    p->out = y;
    return dm_swap(p->s, p->c, y);
}

static dm_status part_pad_nothing(parts *p)
{
    dm_array number;
    TRY(dm_array_create(p->s, DM_F64, 0, NULL, NULL, &number));
    TRY(dm_array_create(p->s, DM_F64, 0, NULL, NULL, &p->out));
    TRY(dm_fill(p->s, number, 3));
    return dm_pad(p->s, number, NULL, NULL, DM_PAD_CONSTANT, 4, p->out);
}

static dm_status part_stack(parts *p)
{
    TRY(dm_array_create(p->s, DM_F64, 3, (const int64_t[]){2, SIDE, SIDE}, NULL, &p->out));
    return dm_stack(p->s, 2, (dm_array[]){p->real, p->narrow}, 0, p->out);
}

static dm_status part_compress(parts *p)
{
    return dm_compress(p->s, p->a, p->mask, 1, NULL, &p->out);
}

static dm_status part_nonzero(parts *p)
{
    dm_array places[2];
    TRY(dm_nonzero(p->s, p->a, 2, places));
    p->out = places[1];
    return DM_OK;
}

static dm_status part_unique(parts *p)
{
    dm_array values, counts;
    TRY(dm_unique(p->s, p->whole, &values, &counts, &p->out));
    return DM_OK;
}

static dm_status part_split(parts *p)
{
    dm_array views[3];
    TRY(dm_split(p->s, p->a, 1, 3, (const int64_t[]){2, 4, SIDE - 6}, views));
    p->out = views[1];
    return DM_OK;
}

static dm_status part_meshgrid(parts *p)
{
    const int64_t shape[] = {SIDE, 2 * SIDE};
    dm_array outs[2];
    TRY(dm_array_create(p->s, DM_C128, 2, shape, NULL, &outs[0]));
    TRY(dm_array_create(p->s, DM_F64, 2, shape, NULL, &outs[1]));
    p->out = outs[1];
    return dm_meshgrid(p->s, 2, (dm_array[]){p->v, p->flat}, outs);
}

#define P(name)                                                                                                \
    {                                                                                                          \
#name, part_##name                                                                                     \
    }
static const struct {
    const char *name;
    dm_status (*call)(parts *p);
} calls[] = {P(gemv),        P(ger),          P(gerc),        P(symv),       P(hemv),         P(syr),
             P(her),         P(her2),         P(trmv),        P(trsv),       P(herk),         P(her2k),
             P(syr2k),       P(hemm),         P(symm_large),  P(syrk_large), P(trmm_large),   P(trmm_right),
             P(trsm_large),  P(dotc),         P(nrm2),        P(asum),       P(iamax),        P(isin),
             P(isin_whole),  P(isin_as_f32),  P(one_hot),     P(pad),        P(pad_constant), P(pad_nothing),
             P(concatenate), P(tile),         P(repeat),      P(roll),       P(diagonal),     P(set_diagonal),
             P(covariance),  P(distances),    P(cosine),      P(layer_norm), P(median),       P(shuffle),
             P(choice),      P(choice_again), P(permutation), P(symmetrise), P(compress),     P(nonzero),
             P(unique),      P(split),        P(meshgrid),    P(rot),        P(swap),         P(stack)};
enum { CALLS = sizeof calls / sizeof *calls };

static dm_array complex_of(dm_session *s, int n, int ndim, int seed, bool by_cols)
{
    double(*values)[2] = calloc((size_t)n * (size_t)n, sizeof *values);
    dm_array a;
    dm_layout layout = by_cols ? dm_layout_cols(s) : dm_layout_rows(s);
    assert_non_null(values);
    OK(dm_array_create(s, DM_C128, ndim, (const int64_t[]){n, n}, &layout, &a));
    for (int i = 0; i < (ndim == 2 ? n * n : n); i++) {
        values[i][0] = element(seed, i, 1);
        values[i][1] = element(seed, 3, i);
    }
    OK(dm_array_write(s, a, NULL, NULL, values, 0));
    free(values);
    return a;
}

/* What calls write is the same before each. */
static void restore(parts *p)
{
    OK(dm_fill_arange(p->s, p->c, 0, 1));
    OK(dm_fill_arange(p->s, p->u, 1, 1));
    OK(dm_fill_identity(p->s, p->square, 3));
}

static void set_up(parts *p)
{
    const int64_t shape[] = {SIDE, SIDE}, two = 2 * SIDE;
    p->s = open_session(WORKERS, "device=cpu,log=error,fault='',replicas=0");
    p->a = complex_of(p->s, SIDE, 2, 1, false);
    p->b = complex_of(p->s, SIDE, 2, 2, true);
    p->c = complex_of(p->s, SIDE, 2, 3, false);
    p->v = complex_of(p->s, SIDE, 1, 4, false);
    p->u = complex_of(p->s, SIDE, 1, 5, false);
    p->large = complex_of(p->s, LARGE, 2, 6, false);
    p->square = complex_of(p->s, LARGE, 2, 7, true);
    p->real = make_matrix(p->s, SIDE, NULL, 8);
    OK(dm_array_create(p->s, DM_F32, 2, shape, NULL, &p->narrow));
    OK(dm_copy(p->s, p->real, p->narrow));
    OK(dm_array_create(p->s, DM_I32, 2, shape, NULL, &p->whole));
    OK(dm_copy(p->s, p->real, p->whole));
    OK(dm_array_create(p->s, DM_I64, 1, shape, NULL, &p->rows));
    OK(dm_fill_arange(p->s, p->rows, 0, 1));
    OK(dm_array_create(p->s, DM_U8, 1, shape, NULL, &p->mask));
    OK(dm_map(p->s, "u8(i % 3 == 1)", 1, (dm_map_arg[]){DM_ARG("i", p->rows)}, p->mask));
    OK(dm_map(p->s, "i * 5 % 12", 1, (dm_map_arg[]){DM_ARG("i", p->rows)}, p->rows));
    OK(dm_array_create(p->s, DM_I32, 1, (const int64_t[]){3}, NULL, &p->some));
    OK(dm_fill_arange(p->s, p->some, -2, 2));
    OK(dm_array_create(p->s, DM_F64, 1, &two, NULL, &p->flat));
    OK(dm_fill_arange(p->s, p->flat, 1, 1));
    restore(p);
    OK(dm_sync(p->s));
}

static size_t read_out(parts *p, char *to)
{
    dm_array_info info = {.size = sizeof info};
    OK(dm_array_query(p->s, p->out, &info));
    size_t bytes = (size_t)dm_dtype_bytes(info.dtype);
    for (int d = 0; d < info.ndim; d++) {
        bytes *= (size_t)info.shape[d];
    }
    assert_true(bytes <= MOST_BYTES);
    OK(dm_array_read(p->s, p->out, NULL, NULL, to, 0));
    return bytes;
}

/* Right, into `to`. */
static size_t right(parts *p, int number, char *to)
{
    restore(p);
    OK(dm_scope_begin(p->s));
    dm_status status = calls[number].call(p);
    if (status != DM_OK) {
        fail_msg("%s: %s", calls[number].name, dm_error_message());
    }
    size_t bytes = read_out(p, to);
    OK(dm_scope_end(p->s, NULL, 0));
    return bytes;
}

/* Whether the fault was met; said: and the call has said so. */
static bool one(parts *p, int number, int at, int *said)
{
    static char want[MOST_BYTES], got[MOST_BYTES];
    char fault[48];
    dmi_session *of = NULL;
    size_t bytes = right(p, number, want);
    restore(p);
    OK(dm_sync(p->s));
    OK(dmi_enter(p->s, &of));
    const int64_t alive = of->alive;
    OK(dm_scope_begin(p->s));
    snprintf(fault, sizeof fault, "malloc:%d:worker=-1", at);
    dmi_fault_plant(fault);
    dm_status status = calls[number].call(p);
    bool met = dmi_fault_calls() >= at;
    dmi_fault_plant("");
    if (status != DM_OK &&
        (!met || status != DM_ERR_NOMEM || !strstr(dm_error_message(), " bytes were asked for"))) {
        fail_msg("%s, %s: %s: %s", calls[number].name, fault, dm_status_name(status), dm_error_message());
    }
    *said += status != DM_OK;
    if (status == DM_OK) {
        assert_int_equal(read_out(p, got), bytes);
        assert_memory_equal(want, got, bytes);
    }
    OK(dm_sync(p->s)); /* nothing has failed at the workers */
    OK(dm_scope_end(p->s, NULL, 0));
    if (of->alive != alive) {
        fail_msg("%s, %s: %lld arrays are left over", calls[number].name, fault,
                 (long long)(of->alive - alive));
    }
    assert_int_equal(right(p, number, got), bytes);
    assert_memory_equal(want, got, bytes);
    return met;
}

static void test_parts(void **state)
{
    (void)state;
    parts p;
    set_up(&p);
    for (int i = 0; i < CALLS; i++) {
        int at = 1, said = 0;
        while (at < MOST_CALLS && one(&p, i, at, &said)) {
            at++;
        }
        print_message("%s: %d allocations, %d said so\n", calls[i].name, at - 1, said);
        assert_in_range(at, 1, MOST_CALLS - 1);
    }
    OK(dm_finalize(p.s, &(int64_t){0}));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test_setup(test_parts, deadline)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

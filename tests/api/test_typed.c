/* Reads and writes that convert, those that refuse another type, and the macros over both. */
#include "support/part.h"
#include "support/refusal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static dmt_host *random_host(dmt_case *c, int kind)
{
    int64_t shape[DM_MAX_DIMS];
    int ndim = (int)dmt_int(&c->random, 0, dmt_chance(&c->random, 15) ? 5 : 3);
    dmt_shape_random(c, ndim, 3000, shape);
    dmt_host *h = dmt_host_make(&c->scratch, dmt_dtype_random(c), ndim, shape);
    dmt_host_random(h, &c->random, kind);
    return h;
}

static void convert_all(const dmt_host *from, dmt_host *to)
{
    for (int64_t i = 0; i < from->count; i++) {
        to->v[i] = dmt_convert(from->dtype, to->dtype, from->v[i]);
    }
}

static void read_case(dmt_case *c)
{
    char text[400];
    dmt_host *h = random_host(c, DMT_ODD);
    dmt_host *other = dmt_host_make(&c->scratch, dmt_dtype_random(c), h->ndim, h->shape);
    dmt_operand *a = dmt_operand_make(c, "a", h, 0);
    convert_all(h, other);
    for (int i = 0; i < 3; i++) {
        dmt_part p = dmt_part_random(c, other);
        dmt_part_say(c, "read", &p);
        char *memory = dmt_part_spread(c, &p);
        DMT_OK(c, dm_array_read_as(c->session, a->array, p.lo, p.extent, other->dtype, memory, p.ld));
        if (!dmt_part_gather(&p, memory, p.value)) {
            dmt_fail(c, "something was written between the rows");
        }
        dmt_host *want = dmt_host_copy(&c->scratch, p.value);
        dmt_host_take(other, p.lo, want);
        if (!dmt_host_same(p.value, want, text, sizeof text)) {
            dmt_fail(c, "%s", text);
        }
    }
}

static void write_case(dmt_case *c)
{
    dmt_host *h = random_host(c, DMT_WILD);
    dmt_host *other = dmt_host_make(&c->scratch, dmt_dtype_random(c), h->ndim, h->shape);
    dmt_operand *a = dmt_operand_make(c, "a", h, 0);
    for (int i = 0; i < 3; i++) {
        dmt_part p = dmt_part_random(c, other);
        dmt_part_say(c, "write", &p);
        dmt_host_random(p.value, &c->random, DMT_ODD);
        char *memory = dmt_part_spread(c, &p);
        DMT_OK(c, dm_array_write_as(c->session, a->array, p.lo, p.extent, other->dtype, memory, p.ld));
        memset(memory, 0x77, (size_t)p.bytes);
        dmt_host *converted = dmt_host_make(&c->scratch, h->dtype, h->ndim, p.extent);
        convert_all(p.value, converted);
        dmt_host_put(a->value, p.lo, converted);
    }
    dmt_operand_unchanged(c, a);
}

/* Rows that fill several pieces, and rows that one piece does not hold. */
static void large_case(dmt_case *c)
{
    enum { PIECE = 1 << 19 };
    static const int64_t shapes[3][3] = {{3, 2, PIECE + 7}, {5, 300, 701}, {2 * PIECE + 1, 1, 1}};
    const int64_t *shape = shapes[c->number % 3], ld = shape[2] + 2;
    int64_t rows = shape[0] * shape[1];
    dm_array a;
    float *host = dmt_alloc(&c->scratch, rows * ld * (int64_t)sizeof *host);
    double *back = dmt_alloc(&c->scratch, rows * shape[2] * (int64_t)sizeof *back);
    for (int64_t i = 0; i < rows * ld; i++) {
        host[i] = (float)(i % 100003);
    }
    DMT_OK(c, dm_array_create(c->session, DM_F64, 3, shape, NULL, &a));
    DMT_OK(c, dm_array_write_as(c->session, a, NULL, NULL, DM_F32, host, ld));
    DMT_OK(c, dm_read(c->session, a, back));
    memset(host, 0, (size_t)(rows * ld) * sizeof *host);
    DMT_OK(c, dm_array_read_as(c->session, a, NULL, NULL, DM_F32, host, ld));
    for (int64_t i = 0; i < rows; i++) {
        for (int64_t j = 0; j < shape[2]; j++) {
            double want = (double)((i * ld + j) % 100003);
            if (back[i * shape[2] + j] != want || (double)host[i * ld + j] != want) {
                dmt_fail(c, "row %d, element %d: %g and %g, not %g", (int)i, (int)j, back[i * shape[2] + j],
                         (double)host[i * ld + j], want);
            }
        }
    }
    DMT_OK(c, dm_array_destroy(c->session, a));
}

#define MACROS(c, ctype, code)                                                                                 \
    do {                                                                                                       \
        const int64_t six = 6;                                                                                 \
        const ctype in[6] = {1, 0, 1, (ctype)(code != DM_BOOL ? 4 : 1), 1, 0};                                 \
        ctype out[6] = {0};                                                                                    \
        dm_array made;                                                                                         \
        DMT_OK(c, dm_array_create((c)->session, code, 1, &six, NULL, &made));                                  \
        DMT_OK(c, dm_write((c)->session, made, in));                                                           \
        DMT_OK(c, dm_read((c)->session, made, out));                                                           \
        assert_memory_equal(in, out, sizeof in);                                                               \
        DMT_OK(c, dm_array_destroy((c)->session, made));                                                       \
    } while (0)

static void macros_case(dmt_case *c)
{
    dm_array a;
    float f[6], *heap = dmt_alloc(&c->scratch, sizeof f);
    double d[6] = {1.5, -2, 3, 1e300, NAN, 0};
    int32_t whole[6];
    uint16_t half[6];
    MACROS(c, double, DM_F64);
    MACROS(c, float, DM_F32);
    MACROS(c, uint16_t, DM_F16);
    MACROS(c, uint16_t, DM_BF16);
    MACROS(c, int64_t, DM_I64);
    MACROS(c, long long, DM_I64);
    MACROS(c, int32_t, DM_I32);
    MACROS(c, uint8_t, DM_U8);
    MACROS(c, uint8_t, DM_BOOL);
    MACROS(c, bool, DM_BOOL);
    MACROS(c, int8_t, DM_I8);
    MACROS(c, int16_t, DM_I16);
    MACROS(c, uint16_t, DM_U16);
    MACROS(c, uint32_t, DM_U32);
    MACROS(c, uint64_t, DM_U64);
    DMT_OK(c, dm_vector(c->session, DM_F64, 6, &a));
    DMT_OK(c, dm_write(c->session, a, d));
    REFUSED(DMT_ONE(DTYPE), "f64", dm_read(c->session, a, f));
    REFUSED(DMT_ONE(DTYPE), "f32", dm_write(c->session, a, heap));
    REFUSED(DMT_ONE(DTYPE), NULL, dm_read(c->session, a, half));
    REFUSED(DMT_ONE(DTYPE), "i32", dm_read(c->session, a, whole));
    dm_array bytes;
    bool truth[6];
    DMT_OK(c, dm_vector(c->session, DM_U8, 6, &bytes));
    REFUSED(DMT_ONE(DTYPE), "bool", dm_read(c->session, bytes, truth));
    DMT_OK(c, dm_array_destroy(c->session, bytes));
    DMT_OK(c, dm_read_as(c->session, a, f));
    DMT_OK(c, dm_read_as(c->session, a, heap));
    DMT_OK(c, dm_read_as(c->session, a, whole));
    assert_true(f[0] == 1.5F && f[3] == INFINITY && isnan(f[4]) && heap[1] == -2);
    assert_true(whole[0] == 1 && whole[1] == -2 && whole[3] == INT32_MAX && whole[4] == 0);
    DMT_OK(c, dm_write_as(c->session, a, whole));
    DMT_OK(c, dm_read(c->session, a, d));
    assert_true(d[0] == 1 && d[3] == INT32_MAX);
    DMT_OK(c, dm_array_destroy(c->session, a));
}

static void errors_case(dmt_case *c)
{
    dm_session *s = c->session;
    dmt_things t = dmt_things_make(c);
    double memory[64];
    char *text = NULL;
    const int64_t lo[] = {1, 1}, all[] = {6, 5}, less[] = {2, 2};
    REFUSED(DMT_ONE(DTYPE), "dtype", dm_array_read_as(s, t.f, NULL, NULL, (dm_dtype)99, memory, 0));
    REFUSED(DMT_ONE(HANDLE), "a", dm_array_read_as(s, DM_NO_ARRAY, NULL, NULL, DM_F64, memory, 0));
    REFUSED(DMT_ONE(ARG), "extent", dm_array_read_as(s, t.f, lo, NULL, DM_F64, memory, 0));
    REFUSED(DMT_ONE(ARG), "extent", dm_array_read_as(s, t.f, lo, all, DM_F64, memory, 0));
    REFUSED(DMT_ONE(ARG), "host", dm_array_read_as(s, t.f, lo, less, DM_F64, NULL, 0));
    REFUSED(DMT_ONE(ARG), "ld", dm_array_write_as(s, t.f, lo, less, DM_F64, memory, 1));
    REFUSED(DMT_ONE(ARG), "ld", dm_array_read_as(s, t.f, NULL, NULL, DM_F64, memory, INT64_MAX / 16));
    REFUSED(DMT_ONE(ARG), "host", dm_read_checked(s, t.f, DM_F32, NULL));
    REFUSED(DMT_ONE(DTYPE), NULL, dm_read_checked(s, t.f, (dm_dtype)0, memory));
    DMT_OK(c, dm_explain_begin(s));
    REFUSED(DMT_ONE(STATE), NULL, dm_array_read_as(s, t.f, NULL, NULL, DM_F64, memory, 0));
    DMT_OK(c, dm_explain_end(s, &text));
    free(text);
    dmt_things_end(c, &t);
}

static void test_read_as(void **state)
{
    (void)state;
    dmt_run(&(dmt_suite){.name = "read_as", .cases = 1000, .fn = read_case});
}

static void test_write_as(void **state)
{
    (void)state;
    dmt_run(&(dmt_suite){.name = "write_as", .cases = 800, .fn = write_case});
}

static void test_large(void **state)
{
    (void)state;
    dmt_run(&(dmt_suite){.name = "as_large", .cases = 3, .fn = large_case, .workers = 3, .each = true});
}

DMT_ONE_CASE(macros_case)
DMT_ONE_CASE(errors_case)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_read_as),     cmocka_unit_test(test_write_as),    cmocka_unit_test(test_large),
        cmocka_unit_test(test_macros_case), cmocka_unit_test(test_errors_case),
    };
    return cmocka_run_group_tests(tests, dmt_start, dmt_finish);
}

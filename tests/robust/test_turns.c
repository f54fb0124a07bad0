/* Sessions whose threads run one at a time, in an order that a seed gives: results are right in all of these
 * orders, and a seed gives the same order again. DMATH_TEST_SEED: the first seed; DMATH_TEST_SEEDS: how many.
 */
#include "base/turns.h"
#include "robust.h"

#include <inttypes.h>

enum { SIDE = 12, ARRAYS = 3 };

typedef struct oracle {
    double at[ARRAYS][SIDE][SIDE];
} oracle;

static void multiply(oracle *o, int a, int b, int c)
{
    double out[SIDE][SIDE];
    for (int i = 0; i < SIDE; i++) {
        for (int j = 0; j < SIDE; j++) {
            out[i][j] = 0;
            for (int k = 0; k < SIDE; k++) {
                out[i][j] += o->at[a][i][k] * o->at[b][k][j];
            }
        }
    }
    memcpy(o->at[c], out, sizeof out);
}

static void wrap(oracle *o, int a) /* values stay small, so that they are exact */
{
    for (int i = 0; i < SIDE; i++) {
        for (int j = 0; j < SIDE; j++) {
            o->at[a][i][j] = (i * 5 + j * 3 + a) % 7;
        }
    }
}

static void check(dm_session *s, dm_array a, const double *expected)
{
    double got[SIDE][SIDE];
    OK(dm_array_read(s, a, NULL, NULL, got, 0));
    assert_memory_equal(got, expected, sizeof got);
}

/* One call of a sequence that the seed gives, on three arrays of different layouts, and the same on the oracle.
 */
static void one_call(dm_session *s, const dm_array *a, oracle *o, unsigned *seed)
{
    int x = (int)(rand_r(seed) % ARRAYS), y = (x + 1) % ARRAYS, z = (x + 2) % ARRAYS;
    switch (rand_r(seed) % 5) {
    case 0:
        OK(dm_array_write(s, a[x], NULL, NULL, (wrap(o, x), o->at[x]), 0));
        break;
    case 1:
        OK(dm_copy(s, a[x], a[y]));
        memcpy(o->at[y], o->at[x], sizeof o->at[x]);
        break;
    case 2:
        OK(dm_transpose(s, a[x], a[z]));
        for (int i = 0; i < SIDE; i++) {
            for (int j = 0; j < SIDE; j++) {
                o->at[z][j][i] = o->at[x][i][j];
            }
        }
        break;
    case 3:
        OK(dm_array_write(s, a[x], NULL, NULL, (wrap(o, x), o->at[x]), 0));
        OK(dm_array_write(s, a[y], NULL, NULL, (wrap(o, y), o->at[y]), 0));
        OK(dm_gemm(s, DM_N, DM_N, 1, a[x], a[y], 0, a[z]));
        multiply(o, x, y, z);
        break;
    default:
        check(s, a[z], o->at[z][0]);
    }
}

static dmi_turns_record run(unsigned number)
{
    char options[64];
    oracle o;
    snprintf(options, sizeof options, "fault=turns:%u,watchdog_s=30", number);
    dm_config config = {.size = sizeof config, .workers = 3, .options = options};
    dm_session *s = NULL;
    OK(dm_init(&config, &s));
    const dm_layout layout[ARRAYS] = {dm_layout_rows(s), dm_layout_cols(s), dm_layout_cyclic(s, 0, 2)};
    dm_array a[ARRAYS];
    unsigned seed = number;
    for (int i = 0; i < ARRAYS; i++) {
        OK(dm_array_create(s, DM_F64, 2, (int64_t[]){SIDE, SIDE}, &layout[i], &a[i]));
        wrap(&o, i);
        OK(dm_array_write(s, a[i], NULL, NULL, o.at[i], 0));
    }
    for (int i = 0; i < 24; i++) {
        one_call(s, a, &o, &seed);
    }
    for (int i = 0; i < ARRAYS; i++) {
        check(s, a[i], o.at[i][0]);
        OK(dm_array_destroy(s, a[i]));
    }
    OK(dm_finalize(s, NULL));
    return dmi_turns_recorded();
}

static unsigned number_of(const char *name, unsigned otherwise)
{
    const char *text = getenv(name);
    return text ? (unsigned)strtoul(text, NULL, 10) : otherwise;
}

static void test_orders(void **state)
{
    (void)state;
    unsigned first = number_of("DMATH_TEST_SEED", 1), count = number_of("DMATH_TEST_SEEDS", 40);
    for (unsigned i = first; i < first + count; i++) {
        fprintf(stderr, "seed %u", i);
        dmi_turns_record record = run(i);
        fprintf(stderr, ": %" PRIu64 " turns, order %016" PRIx64 "\n", record.turns, record.hash);
        assert_true(record.turns > 100);
    }
}

static void test_again(void **state)
{
    (void)state;
    dmi_turns_record before = {0};
    for (unsigned seed = 101; seed < 105; seed++) {
        dmi_turns_record one = run(seed), two = run(seed);
        assert_int_equal(one.turns, two.turns);
        assert_true(one.hash == two.hash);
        assert_true(one.hash != before.hash);
        before = one;
    }
}

/* Without the option everything runs at once again; a second session with it is refused while there is one. */
static void test_one_at_a_time(void **state)
{
    (void)state;
    dm_config turns = {.size = sizeof turns, .workers = 2, .options = "fault=turns:5"},
              plain = {.size = sizeof plain, .workers = 2};
    dm_session *s = NULL, *other = NULL;
    OK(dm_init(&turns, &s));
    assert_int_equal(dm_init(&turns, &other), DM_ERR_CONFIG);
    assert_non_null(strstr(dm_error_message(), "one session at a time"));
    OK(dm_finalize(s, NULL));
    OK(dm_init(&plain, &s));
    OK(dm_sync(s));
    OK(dm_finalize(s, NULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_orders), cmocka_unit_test(test_again),
                                       cmocka_unit_test(test_one_at_a_time)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

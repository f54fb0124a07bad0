/* The loops of elementwise rows and reductions give the same bits wherever an element lies and however wide the
 * vectors are: whole rows as this CPU runs them, beside the baseline's compilation (f32), and beside elements
 * one by one (f32 and f64). And rows say rightly whether results of a narrow integer type stay within its
 * range. */
#include "kernel_oracle.h"

#define DMI_CPU_PLAIN
#define dmi_ewise_f32 plain_ewise_f32
#define dmi_reducers_f32 plain_reducers_f32
#include "kernels/ewise/ewise_f32_cpu.c"
#undef dmi_ewise_f32
#undef dmi_reducers_f32
extern dmi_ewise_fn *const dmi_ewise_f32[DMI_EW_ROWS];
extern dmi_ewise_fn *const dmi_ewise_i32[DMI_EW_ROWS];
extern const dmi_reducer dmi_reducers_f32[DMI_REDUCTIONS];

enum { N = 1037, OPERANDS = 3 };

/* Numbers of all sizes, and those that functions treat by themselves. */
static void draw(rng *r, double *x)
{
    static const double special[] = {0.0,  -0.0,  1,      -1,    INFINITY, -INFINITY, NAN,
                                     88.7, -87.5, -103.9, 709.7, -745.1,   1e-310,    1e-40};
    for (int i = 0; i < N; i++) {
        double small = (double)rng_in(r, -1000000, 1000000) / 50000;
        x[i] = i % 7 == 3   ? special[rng_in(r, 0, DMI_COUNT(special) - 1)]
               : i % 3 == 1 ? ldexp(small, (int)rng_in(r, -120, 120))
                            : small;
    }
}

static int64_t result_bytes(int row, int64_t bytes)
{
    int form = dmi_ew_rows[row].form;
    return form == DMI_FORM_TEST || form == DMI_FORM_COMPARE ? 1 : bytes;
}

/* Of several NaNs a result may be any. */
static void same(const char *name, const void *a, const void *b, int64_t bytes)
{
    for (int64_t i = 0; i < N; i++) {
        const char *p = (const char *)a + i * bytes, *q = (const char *)b + i * bytes;
        double u = 0, v = 0;
        float f, g;
        if (bytes == 8) {
            memcpy(&u, p, 8);
            memcpy(&v, q, 8);
        } else if (bytes == 4) {
            memcpy(&f, p, 4);
            memcpy(&g, q, 4);
            u = (double)f;
            v = (double)g;
        }
        if (memcmp(p, q, (size_t)bytes) != 0 && !(isnan(u) && isnan(v))) {
            fail_msg("%s: element %d is %a and %a", name, (int)i, u, v);
        }
    }
}

static void test_rows(void **state)
{
    (void)state;
    rng r = {71};
    static double wide[OPERANDS][N], one[N], all[N], plain[N];
    static float narrow[OPERANDS][N];
    uint8_t choice[N];
    dmi_number s = dmi_number_of(1.37), t = dmi_number_of(-0.73);
    for (int k = 0; k < OPERANDS; k++) {
        draw(&r, wide[k]);
        for (int i = 0; i < N; i++) {
            narrow[k][i] = (float)wide[k][i];
            choice[i] = (uint8_t)rng_in(&r, 0, 1);
        }
    }
    for (int row = 0; row < DMI_EW_ROWS; row++) {
        for (int type = 0; type < 2; type++) {
            dmi_ewise_fn *fn = type ? dmi_ewise_f32[row] : dmi_ewise_f64[row];
            const char *from[OPERANDS];
            int64_t bytes = type ? 4 : 8, out = result_bytes(row, bytes), step[OPERANDS];
            if (!fn) {
                continue;
            }
            for (int k = 0; k < OPERANDS; k++) {
                bool chooses = k == 0 && dmi_ew_rows[row].form == DMI_FORM_CHOOSE;
                from[k] = chooses ? (const char *)choice
                          : type  ? (const char *)narrow[k]
                                  : (const char *)wide[k];
                step[k] = chooses ? 1 : bytes;
            }
            fn(all, from[0], from[1], from[2], &s, &t, N);
            for (int i = 0; i < N; i++) {
                fn((char *)one + i * out, from[0] + i * step[0], from[1] + i * step[1], from[2] + i * step[2],
                   &s, &t, 1);
            }
            same(dmi_ew_rows[row].name, all, one, out);
            if (type) {
                plain_ewise_f32[row](plain, from[0], from[1], from[2], &s, &t, N);
                same(dmi_ew_rows[row].name, all, plain, out);
            }
        }
    }
}

/* Does the row have a result outside the type, of all pairs of its numbers? Computed in i32, which holds them.
 */
static bool leaves(int row, int32_t least, int32_t most)
{
    enum { PAIRS = 65536 };
    static int32_t a[PAIRS], b[PAIRS], c[PAIRS], out[PAIRS];
    static uint8_t choice[PAIRS];
    const dmi_number none = dmi_number_of(0);
    for (int i = 0; i < PAIRS; i++) {
        a[i] = least + i % 256;
        b[i] = least + i / 256;
        c[i] = least + i % 251;
        choice[i] = i % 2;
    }
    bool chooses = dmi_ew_rows[row].form == DMI_FORM_CHOOSE;
    dmi_ewise_i32[row](out, chooses ? (const void *)choice : a, b, c, &none, &none, PAIRS);
    for (int i = 0; i < PAIRS; i++) {
        if (out[i] < least || out[i] > most) {
            return true;
        }
    }
    return false;
}

/* Where a row says that results stay within, no step wraps them around. */
static bool wraps(int row, dm_dtype type)
{
    dmi_map_program program;
    const dm_dtype in[OPERANDS] = {dmi_ew_rows[row].form == DMI_FORM_CHOOSE ? DM_BOOL : type, type, type};
    assert_int_equal(dmi_map_row(row, in, NULL, DM_I64, &program), DM_OK);
    return program.steps > 1;
}

static void test_within(void **state)
{
    (void)state;
    for (int row = 0; row < DMI_EW_ROWS; row++) {
        int form = dmi_ew_rows[row].form;
        if (!dmi_ewise_i32[row] || dmi_ew_rows[row].inner || form == DMI_FORM_TEST ||
            form == DMI_FORM_COMPARE) {
            continue;
        }
        bool may = leaves(row, -128, 127) || leaves(row, 0, 255);
        if (wraps(row, DM_I8) != may || wraps(row, DM_U8) != may) {
            fail_msg("%s: results of i8 and u8 %s, which its row in ewise.def does not say",
                     dmi_ew_rows[row].name, may ? "may leave the type" : "stay within the type");
        }
    }
}

/* States are compared by what they give. */
static void test_reductions(void **state)
{
    (void)state;
    rng r = {72};
    static double wide[N];
    static float x[N];
    unsigned char a[DMI_REDUCE_LANES * 32], b[DMI_REDUCE_LANES * 32];
    double given[2][N];
    draw(&r, wide);
    for (int i = 0; i < N; i++) {
        x[i] = isfinite((float)wide[i]) ? (float)wide[i] : 7;
    }
    for (int row = 0; row < DMI_REDUCTIONS; row++) {
        const dmi_reducer *ours = &dmi_reducers_f32[row], *theirs = &plain_reducers_f32[row];
        if (!ours->along) {
            continue;
        }
        for (int n = N - 40; n <= N; n++) {
            ours->clear(a, DMI_REDUCE_LANES);
            theirs->clear(b, DMI_REDUCE_LANES);
            ours->along(a, x, n, 0, 1);
            theirs->along(b, x, n, 0, 1);
            memset(given, 0, sizeof given);
            ours->finish(a, DMI_REDUCE_LANES, 0.5, given[0]);
            theirs->finish(b, DMI_REDUCE_LANES, 0.5, given[1]);
            assert_memory_equal(given[0], given[1], sizeof given[0]);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_rows), cmocka_unit_test(test_within),
                                       cmocka_unit_test(test_reductions)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Which form a product takes where the machine's rates are known: those measured on 4 H200, and others. */
#include "sim_programs.h"

static const dmi_rates h200 = {
    .link = 380e9, .memory = 4.2e12, .f64 = 55e12, .f32 = 52e12, .tf32 = 370e12, .half = 750e12};

enum { ROWS, COLS };

static const char *chosen(const dmi_rates *rates, dm_dtype dtype, int64_t n, bool trans_a, int b, int c,
                          bool fused)
{
    static char name[32];
    sim_program p;
    dmi_plan *plan = NULL;
    sim_begin(&p, 4);
    p.profile.gpu = true;
    p.profile.gemm_fused = fused;
    p.profile.rates = *rates;
    int ia = sim_matrix(&p, dtype, n, n, 4, 1, 0);
    int ib = sim_matrix(&p, dtype, n, n, b == ROWS ? 4 : 1, b == ROWS ? 1 : 4, 0);
    int ic = sim_matrix(&p, dtype, n, n, c == ROWS ? 4 : 1, c == ROWS ? 1 : 4, 0);
    assert_true(sim_gemm(&p, trans_a, 0, 0, ia, ib, ic));
    assert_int_equal(dmi_plan_make(&p.call[0], &p.profile, 0, &plan), DM_OK);
    snprintf(name, sizeof name, "%s", plan->algorithm);
    dmi_plan_release(plan);
    sim_end(&p);
    return name;
}

/* As measured: the kernel that waits rather than slices of k, which need a temporary; panels where k is so long
 * that the kernel falls behind; no slices where the blocks have all of k. */
static void test_measured(void **state)
{
    (void)state;
    assert_string_equal(chosen(&h200, DM_BF16, 4096, false, ROWS, ROWS, true), "fused");
    assert_string_equal(chosen(&h200, DM_BF16, 8192, false, ROWS, ROWS, true), "fused");
    assert_string_equal(chosen(&h200, DM_BF16, 16384, false, ROWS, ROWS, true), "fused");
    assert_string_equal(chosen(&h200, DM_BF16, 16384, false, ROWS, ROWS, false), "panels");
    assert_string_equal(chosen(&h200, DM_BF16, 8192, false, COLS, COLS, true), "cyclic");
    assert_string_equal(chosen(&h200, DM_F32, 16384, false, ROWS, ROWS, true), "cyclic");
    assert_string_equal(chosen(&h200, DM_BF16, 16384, true, ROWS, ROWS, true), "fused");
    assert_string_equal(chosen(&h200, DM_BF16, 32768, false, ROWS, ROWS, true), "panels");
    assert_string_equal(chosen(&h200, DM_F32, 16384, true, ROWS, ROWS, true), "stationary");
}

/* A contraction in TF32: what has to come whole comes in panels, behind the other operand's own part; neither
 * is kept. In 16 bits that gains nothing. */
static void test_brought(void **state)
{
    (void)state;
    enum { N = 16384, PARTS = 8 };
    const int64_t mib = 1 << 20, part = (int64_t)N * N; /* bytes of a worker's part of f32 */
    assert_string_equal(chosen(&h200, DM_BF16, 32768, true, ROWS, ROWS, true), "stationary");
    for (int i = 0; i < 6; i++) {
        bool by_rows = i % 2 == 0, tight = i >= 2, forced = i >= 4;
        int products = 0;
        sim_program p;
        dmi_plan *plan = NULL;
        sim_begin(&p, 4);
        p.profile.gpu = true;
        p.profile.rates = h200;
        p.profile.gemm_workspace = tight ? part : 0;
        p.profile.gemm_algorithm = forced ? DMI_GEMM_PANELS : DMI_GEMM_AUTO;
        int ia = sim_matrix(&p, DM_F32, N, N, 4, 1, 0), ib = sim_matrix(&p, DM_F32, N, N, 4, 1, 0);
        int ic = sim_matrix(&p, DM_F32, N, N, by_rows ? 4 : 1, by_rows ? 1 : 4, 0);
        assert_true(sim_gemm(&p, true, 0, 0, ia, ib, ic));
        p.call[0].compute = DMI_COMPUTE_TF32;
        assert_int_equal(dmi_plan_make(&p.call[0], &p.profile, 0, &plan), DM_OK);
        assert_string_equal(plan->algorithm, tight && !forced ? "stationary" : "panels");
        assert_int_equal(plan->moving, -1);
        for (int k = 0; k < plan->nstep && (forced || !tight); k++) {
            const dmi_gemm *product = plan->step[k].desc;
            if (plan->step[k].kind == DMI_STEP(gemm)) {
                assert_true(product->k == N && (by_rows ? product->m : product->n) == N / 4);
                products++;
            }
        }
        assert_in_range(products, tight && !forced ? 0 : PARTS, forced ? 4 * PARTS : PARTS);
        assert_true(tight || plan->workspace <= 2 * part + 3 * 4 * part / PARTS + mib);
        dmi_plan_release(plan);
        sim_end(&p);
    }
}

/* Longer k, or more columns, than the kernel counts: another form. */
static void test_fused_limits(void **state)
{
    (void)state;
    static const int64_t shape[][3] = {{1024, 4096, 8388608}, {4096, 33554432, 512}, {8192, 8192, 8192}};
    for (int i = 0; i < 3; i++) {
        const int64_t m = shape[i][0], n = shape[i][1], k = shape[i][2];
        sim_program p;
        dmi_plan *plan = NULL;
        sim_begin(&p, 4);
        p.profile.gpu = p.profile.gemm_fused = true;
        p.profile.rates = h200;
        int ia = sim_matrix(&p, DM_BF16, m, k, 4, 1, 0), ib = sim_matrix(&p, DM_BF16, k, n, 4, 1, 0);
        int ic = sim_matrix(&p, DM_BF16, m, n, 4, 1, 0);
        assert_true(sim_gemm(&p, 0, 0, 0, ia, ib, ic));
        assert_int_equal(dmi_plan_make(&p.call[0], &p.profile, 0, &plan), DM_OK);
        assert_int_equal(strcmp(plan->algorithm, "fused") == 0, i == 2);
        dmi_plan_release(plan);
        sim_end(&p);
    }
}

/* Where links are slow, what moves least; where they are fast, what multiplies fastest. */
static void test_links(void **state)
{
    (void)state;
    dmi_rates slow = h200, fast = h200;
    slow.link = 5e9;
    fast.link = 1e14;
    /* contraction: 3/4 of c in f32 from each, or 15/16 of both operands in 16 bits */
    assert_string_not_equal(chosen(&slow, DM_BF16, 8192, true, ROWS, ROWS, true), "contract");
    /* f32: the partial products are smaller than the operands */
    assert_string_equal(chosen(&slow, DM_F32, 8192, true, ROWS, ROWS, true), "contract");
    assert_string_not_equal(chosen(&fast, DM_BF16, 8192, false, ROWS, ROWS, true), "cyclic");
}

/* A complex element has twice the bytes and takes four times the operations: as a real one does on a machine of
 * so much lower rates. */
static void test_complex(void **state)
{
    (void)state;
    for (int link = 1; link <= 1000; link *= 10) {
        dmi_rates rates = h200, slower;
        rates.link /= link;
        slower = rates;
        slower.link /= 2;
        slower.memory /= 2;
        slower.f32 /= 4;
        for (int64_t n = 256; n <= 32768; n *= 2) {
            for (int form = 0; form < 8; form++) {
                char real[32];
                snprintf(real, sizeof real, "%s",
                         chosen(&slower, DM_F32, n, form & 1, form & 2 ? COLS : ROWS, form & 4 ? COLS : ROWS,
                                false));
                const char *got =
                    chosen(&rates, DM_C64, n, form & 1, form & 2 ? COLS : ROWS, form & 4 ? COLS : ROWS, false);
                if (strcmp(got, real) != 0) {
                    fail_msg("n %d form %d link 1/%d: %s, of real numbers %s", (int)n, form, link, got, real);
                }
            }
        }
    }
}

/* Without rates, by bytes. */
static void test_unknown(void **state)
{
    (void)state;
    dmi_rates none = {0};
    assert_string_equal(chosen(&none, DM_F32, 512, false, ROWS, ROWS, false), "cyclic");
    assert_string_equal(chosen(&none, DM_F32, 512, true, ROWS, ROWS, false), "contract");
}

/* The fused kernel waits for nothing in the stretch of k whose rows of b are its own: nothing of a may come
 * there. */
static void check_own_part(int a_rows, int a_cols)
{
    enum { N = 8192, WORKERS = 4 };
    sim_program p;
    bool seen = false;
    sim_begin(&p, WORKERS);
    p.profile.gpu = p.profile.gemm_fused = true;
    p.profile.rates = h200;
    p.profile.gemm_algorithm = DMI_GEMM_FUSED;
    int ia = sim_matrix(&p, DM_BF16, N, N, a_rows, a_cols, 0), ib = sim_matrix(&p, DM_BF16, N, N, 4, 1, 0);
    int ic = sim_matrix(&p, DM_BF16, N, N, 4, 1, 0);
    assert_true(sim_gemm(&p, false, 0, 0, ia, ib, ic));
    for (int w = 0; w < WORKERS; w++) {
        dmi_plan *plan = NULL;
        assert_int_equal(dmi_plan_make(&p.call[0], &p.profile, w, &plan), DM_OK);
        for (int i = 0; i < plan->nstep; i++) {
            const dmi_fused_gemm *f = plan->step[i].desc;
            for (int q = 0; plan->step[i].kind == DMI_STEP(fused) && q < f->chunks; q++) {
                seen = true;
                assert_true(f->chunk[q].k1 <= f->own_k0 || f->chunk[q].k0 >= f->own_k1);
            }
        }
        dmi_plan_release(plan);
    }
    assert_true(seen);
    sim_end(&p);
}

static void test_own_part(void **state)
{
    (void)state;
    check_own_part(1, 1);
    check_own_part(1, 2);
    check_own_part(1, 4);
    check_own_part(4, 1);
}

/* gemm_workspace binds the choice, and one that leaves enough does not change it. c is of the computing
 * type: a temporary would come on top. */
static void check_workspace(bool gpu, dm_dtype dtype, bool trans_a, int b, bool c_copies)
{
    enum { N = 2048, WORKERS = 4 };
    char unlimited[32] = "";
    for (int shift = 45; shift >= 16; shift--) {
        sim_program p;
        sim_begin(&p, WORKERS);
        p.profile.gpu = p.profile.gemm_fused = gpu;
        p.profile.rates = gpu ? h200 : p.profile.rates;
        p.profile.gemm_workspace = shift < 45 ? INT64_C(1) << shift : 0;
        int ia = sim_matrix(&p, dtype, N, N, 4, 1, 0),
            ib = sim_matrix(&p, dtype, N, N, b == ROWS ? 4 : 1, b == ROWS ? 1 : 4, 0);
        dmi_layout_spec c = {.ndim = 2,
                             .shape = {N, N},
                             .grid = {c_copies ? 1 : WORKERS, 1},
                             .replicas = c_copies ? WORKERS : 1};
        int ic = sim_array(&p, gpu ? DM_F32 : DM_F64, &c);
        assert_true(sim_gemm(&p, trans_a, 0, 0, ia, ib, ic));
        for (int w = 0; w < WORKERS; w++) {
            dmi_plan *plan = NULL;
            int64_t work = 0;
            assert_int_equal(dmi_plan_make(&p.call[0], &p.profile, w, &plan), DM_OK);
            for (int i = 0; i < plan->nwork; i++) {
                work += plan->work_bytes[i];
            }
            if (shift == 45) {
                snprintf(unlimited, sizeof unlimited, "%s", plan->algorithm);
            } else if (shift > 35) {
                assert_string_equal(plan->algorithm, unlimited);
            } else if (work > p.profile.gemm_workspace) {
                fail_msg("%s takes %lld bytes of %lld", plan->algorithm, (long long)work, 1LL << shift);
            }
            dmi_plan_release(plan);
        }
        sim_end(&p);
    }
}

static void test_workspace(void **state)
{
    (void)state;
    for (int i = 0; i < 16; i++) {
        bool gpu = i & 8;
        check_workspace(gpu, gpu ? DM_BF16 : DM_F64, i & 1, i & 2 ? COLS : ROWS, i & 4);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_measured), cmocka_unit_test(test_fused_limits), cmocka_unit_test(test_links),
        cmocka_unit_test(test_unknown),  cmocka_unit_test(test_own_part),     cmocka_unit_test(test_workspace),
        cmocka_unit_test(test_brought),  cmocka_unit_test(test_complex),
    };
    return cmocka_run_group_tests_name("choose", tests, NULL, NULL);
}

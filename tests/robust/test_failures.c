/* Kernels that fail, the N-th of every worker for every N, in every op: nobody hangs, the failure is reported
 * once with who and where, what depends on it is poisoned until wholly rewritten, everything else is what it
 * was. */
#include "robust.h"

enum { N = 24, WORKERS = 3, A = 0, B, C, D, E, SCRATCH, ARRAYS };

typedef struct fixture {
    dm_session *session;
    dm_array array[ARRAYS]; /* a, b: read; c: written; d: not touched; e: takes what c has */
    dm_array out;           /* what the op writes: c or another */
    char folder[64];
} fixture;

typedef struct op_form {
    const char *name, *options;
    char layout[3]; /* of a, b, c: r rows, c columns, y cyclic rows, g grid, s single, * replicated */
    dm_status (*run)(fixture *f);
    bool waits;   /* the call itself reports */
    bool outside; /* the result leaves the arrays: nothing is poisoned */
} op_form;

static dm_layout layout_of(const dm_session *session, char kind)
{
    switch (kind) {
    case 'c':
        return dm_layout_cols(session);
    case 'y':
        return dm_layout_cyclic(session, 0, 2);
    case 'g':
        return dm_layout_grid(1, WORKERS, 5, 7);
    case 's':
        return dm_layout_single(1);
    case '*':
        return dm_layout_replicated(session);
    default:
        return dm_layout_rows(session);
    }
}

static dm_status gemm(fixture *f)
{
    return dm_gemm(f->session, DM_N, DM_N, 1, f->array[A], f->array[B], 1, f->array[C]);
}

static dm_status gemm_tn(fixture *f)
{
    return dm_gemm(f->session, DM_T, DM_N, 1, f->array[A], f->array[B], 0, f->array[C]);
}

static dm_status gemm_nt(fixture *f)
{
    return dm_gemm(f->session, DM_N, DM_T, 1, f->array[A], f->array[B], 0, f->array[C]);
}

static dm_status gemm_tt(fixture *f)
{
    return dm_gemm(f->session, DM_T, DM_T, 1, f->array[A], f->array[B], 0, f->array[C]);
}

static dm_status copy(fixture *f)
{
    return dm_copy(f->session, f->array[A], f->array[C]);
}

static dm_status transpose(fixture *f)
{
    return dm_transpose(f->session, f->array[A], f->array[C]);
}

static dm_status add(fixture *f)
{
    return dm_add(f->session, 2, f->array[A], 3, f->array[B], f->array[C]);
}

static dm_status axpby(fixture *f)
{
    return dm_axpby(f->session, 2, f->array[A], 3, f->array[C]);
}

static dm_status multiply(fixture *f)
{
    return dm_multiply(f->session, 2, f->array[A], f->array[B], f->array[C]);
}

static dm_status tanh_of(fixture *f)
{
    return dm_tanh(f->session, f->array[A], f->array[C]);
}

static dm_status fill(fixture *f)
{
    return dm_fill(f->session, f->array[C], 4);
}

static dm_status sum_into(fixture *f, int ndims)
{
    const int dims[1] = {0};
    const int64_t shape[2] = {1, ndims ? N : 1};
    OK(dm_array_create(f->session, DM_F64, 2, shape, NULL, &f->out));
    return dm_sum(f->session, f->array[A], ndims ? dims : NULL, ndims, 1, 0, f->out);
}

static dm_status sum_rows(fixture *f)
{
    return sum_into(f, 1);
}

static dm_status sum_all(fixture *f)
{
    return sum_into(f, 0);
}

static dm_status save(fixture *f)
{
    char path[96];
    snprintf(path, sizeof path, "%s/saved.npy", f->folder);
    (void)unlink(path);
    dm_status status = dm_array_save(f->session, f->array[A], path);
    if (status != DM_OK) {
        assert_int_equal(access(path, F_OK), -1);
    }
    return status;
}

static dm_status load(fixture *f)
{
    char path[96];
    dm_array loaded = {77};
    snprintf(path, sizeof path, "%s/there.npy", f->folder);
    dm_status status = dm_array_load(f->session, path, NULL, &loaded);
    if (status == DM_OK) {
        matrix_is(f->session, loaded, N, 3);
        OK(dm_array_destroy(f->session, loaded));
    } else {
        assert_true(loaded.id == 77);
    }
    return status;
}

static const op_form forms[] = {
    {"gemm", "", "rcr", gemm, false, false},
    {"gemm", "", "rrr", gemm, false, false},
    {"gemm", "", "ccc", gemm, false, false},
    {"gemm", "", "grs", gemm, false, false},
    {"gemm", "", "ycg", gemm, false, false},
    {"gemm", "", "**r", gemm, false, false},
    {"gemm", "gemm_algorithm=stationary,", "rcg", gemm, false, false},
    {"gemm", "gemm_algorithm=stationary,", "yy*", gemm, false, false},
    {"gemm", "gemm_algorithm=cyclic,", "rrc", gemm_nt, false, false},
    {"gemm", "gemm_algorithm=contract,", "rrr", gemm_tn, false, false},
    {"gemm", "gemm_algorithm=contract,", "crr", gemm, false, false},
    {"gemm", "", "rcr", gemm_tt, false, false},
    {"gemm", "", "rrr", gemm_tn, false, false},
    {"gemm", "gemm_workspace=2K,", "rrr", gemm, false, false},
    {"copy", "", "r.r", copy, false, false},
    {"copy", "", "r.c", copy, false, false},
    {"copy", "", "y.*", copy, false, false},
    {"copy", "", "r.c", transpose, false, false},
    {"add", "", "rrr", add, false, false},
    {"add", "", "rcy", add, false, false},
    {"axpby", "", "r.c", axpby, false, false},
    {"multiply", "", "gcr", multiply, false, false},
    {"unary", "", "r.s", tanh_of, false, false},
    {"fill", "", "..r", fill, false, false},
    {"fill", "", "..*", fill, false, false},
    {"sum", "", "r..", sum_rows, false, false},
    {"sum", "", "c..", sum_rows, false, false},
    {"sum", "", "y..", sum_all, false, false},
    {"save", "", "r..", save, true, true},
    {"save", "", "g..", save, true, true},
    {"load", "", "r..", load, true, true},
};

static void write_file(fixture *f)
{
    char path[96];
    dm_session *plain = open_session(2, "");
    dm_array a = make_matrix(plain, N, NULL, 3);
    snprintf(path, sizeof path, "%s/there.npy", f->folder);
    OK(dm_array_save(plain, a, path));
    OK(dm_array_destroy(plain, a));
    close_session(plain);
}

static void set_up(fixture *f, const op_form *form, int at)
{
    char options[128];
    snprintf(options, sizeof options, "%sfault='compute:%d',log=error", form->options, at);
    f->session = open_session(WORKERS, options);
    for (int i = 0; i < ARRAYS; i++) {
        dm_layout layout = layout_of(f->session, i < 3 ? form->layout[i] : 'r');
        f->array[i] = make_matrix(f->session, N, &layout, i);
    }
    f->out = f->array[C];
}

/* Workers with fewer kernels have their failure still before them: it is spent here. */
static void spend_faults(fixture *f, int at)
{
    for (int i = 0; i < at; i++) {
        OK(dm_fill(f->session, f->array[SCRATCH], i));
    }
    (void)!dm_sync(f->session);
    OK(dm_sync(f->session));
}

static void check_text(const op_form *form)
{
    const char *text = dm_error_message();
    char op[32];
    snprintf(op, sizeof op, "(%s)", form->name);
    if (!strstr(text, "command ") || !strstr(text, op) || !strstr(text, "worker ") ||
        !strstr(text, "planted fault")) {
        fail_msg("%s: the message does not say what failed where: %s", form->name, text);
    }
    char host[64] = "";
    gethostname(host, sizeof host - 1);
    assert_non_null(strstr(text, host));
}

static int64_t count_of(fixture *f, dm_array a)
{
    dm_array_info info = {.size = sizeof info};
    OK(dm_array_query(f->session, a, &info));
    return info.shape[0] * info.shape[1];
}

static dm_status read_any(fixture *f, dm_array a)
{
    double values[N * N];
    assert_true(count_of(f, a) <= N * N);
    return dm_array_read(f->session, a, NULL, NULL, values, 0);
}

static void poisoned_until_rewritten(fixture *f, int way)
{
    dm_session *s = f->session;
    const int64_t zero[2] = {0, 0}, one[2] = {1, 1};
    dm_array corner;
    double values[N * N] = {0};
    assert_int_equal(read_any(f, f->out), DM_ERR_POISONED);
    if (f->out.id == f->array[C].id) {
        OK(dm_copy(s, f->out, f->array[E]));
        OK(dm_sync(s));
        assert_int_equal(read_any(f, f->array[E]), DM_ERR_POISONED);
        matrix_is(s, f->array[D], N, D);
        OK(dm_copy(s, f->array[D], f->array[E]));
        matrix_is(s, f->array[E], N, D);
    }
    if (count_of(f, f->out) > 1) {
        OK(dm_array_view(s, f->out, zero, one, &corner));
        OK(dm_fill(s, corner, 1));
        OK(dm_array_write(s, f->out, zero, one, values, 0));
        OK(dm_array_destroy(s, corner));
        assert_int_equal(read_any(f, f->out), DM_ERR_POISONED);
    }
    OK(dm_scale(s, 2, f->out, f->out));
    assert_int_equal(read_any(f, f->out), DM_ERR_POISONED);
    if (way == 0 || f->out.id != f->array[C].id) {
        OK(dm_fill(s, f->out, 2));
        OK(read_any(f, f->out));
    } else if (way == 1) {
        OK(dm_copy(s, f->array[D], f->out));
        matrix_is(s, f->out, N, D);
    } else if (way == 2) {
        element_matrix(N, 8, values);
        OK(dm_array_write(s, f->out, NULL, NULL, values, 0));
        matrix_is(s, f->out, N, 8);
    } else {
        double want[N * N], d[N * N];
        element_matrix(N, D, d);
        product(N, d, d, want);
        OK(dm_gemm(s, DM_N, DM_N, 1, f->array[D], f->array[D], 0, f->out));
        OK(read_matrix(s, f->out, N, want));
    }
}

static void tear_down(fixture *f)
{
    if (f->out.id != f->array[C].id) {
        OK(dm_array_destroy(f->session, f->out));
    }
    for (int i = 0; i < ARRAYS; i++) {
        OK(dm_array_destroy(f->session, f->array[i]));
    }
    close_session(f->session);
}

/* Returns true if the fault was met. */
static bool one_fault(fixture *f, const op_form *form, int at)
{
    set_up(f, form, at);
    dm_status status = form->run(f);
    if (!form->waits) {
        if (status == DM_ERR_UNSUPPORTED) {
            tear_down(f);
            return false;
        }
        OK(status);
        status = dm_sync(f->session);
    }
    bool met = status != DM_OK;
    if (met) {
        assert_int_equal(status, DM_ERR_INTERNAL);
        check_text(form);
    }
    OK(dm_sync(f->session)); /* reported once */
    spend_faults(f, at);
    if (met && !form->outside) {
        poisoned_until_rewritten(f, form->options[0] ? at % 3 : at % 4);
    }
    for (int i = A; i <= D; i++) {
        if (i != C) {
            matrix_is(f->session, f->array[i], N, i);
        }
    }
    tear_down(f);
    return met;
}

static void test_every_kernel_of_every_op(void **state)
{
    (void)state;
    fixture f = {.folder = "/tmp/dmath-failures-XXXXXX"};
    char path[96];
    assert_non_null(mkdtemp(f.folder));
    write_file(&f);
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        int at = 1;
        while (at <= 40 && one_fault(&f, &forms[i], at)) {
            at++;
        }
        if (at == 1) {
            print_message("%s %s%.3s: no kernel failed\n", forms[i].name, forms[i].options, forms[i].layout);
        }
    }
    const char *const files[] = {"saved.npy", "there.npy"};
    for (int i = 0; i < 2; i++) {
        snprintf(path, sizeof path, "%s/%s", f.folder, files[i]);
        (void)unlink(path);
    }
    assert_int_equal(rmdir(f.folder), 0);
}

/* c is rewritten again and again and copied away each time; the failure hits in the middle of the queue. Only
 * the copies of the failed products may be poisoned, not the ones before, although those are still under way
 * when the poison comes, nor the ones after. */
static void chain(const char *options, char of_a, char of_b, char of_c, int at)
{
    enum { TURNS = 12 };
    char text[128];
    double a[N * N], b[N * N], want[N * N];
    dm_array out[TURNS], in[TURNS];
    snprintf(text, sizeof text, "%s,fault='compute:%d',log=error", options, at);
    dm_session *s = open_session(WORKERS, text);
    dm_layout la = layout_of(s, of_a), lb = layout_of(s, of_b), lc = layout_of(s, of_c);
    dm_array right = make_matrix(s, N, &lb, 1), c = make_matrix(s, N, &lc, 2);
    for (int i = 0; i < TURNS; i++) {
        in[i] = make_matrix(s, N, &la, 10 + i);
        out[i] = make_matrix(s, N, &la, 50 + i);
    }
    for (int i = 0; i < TURNS; i++) {
        OK(dm_gemm(s, DM_N, DM_N, 1, in[i], right, 0, c));
        OK(dm_copy(s, c, out[i]));
    }
    assert_int_equal(dm_sync(s), DM_ERR_INTERNAL);
    int poisoned = 0;
    element_matrix(N, 1, b);
    for (int i = 0; i < TURNS; i++) {
        element_matrix(N, 10 + i, a);
        product(N, a, b, want);
        dm_status status = read_matrix(s, out[i], N, want);
        assert_true(status == DM_OK || status == DM_ERR_POISONED);
        poisoned += status != DM_OK;
        matrix_is(s, in[i], N, 10 + i);
        OK(dm_array_destroy(s, in[i]));
        OK(dm_array_destroy(s, out[i]));
    }
    assert_in_range(poisoned, 1, WORKERS);
    OK(dm_array_destroy(s, c));
    OK(dm_array_destroy(s, right));
    close_session(s);
}

static void test_poison_stays_in_its_place(void **state)
{
    (void)state;
    for (int at = 1; at <= 24; at += 3) {
        chain("link_latency_us=200", 'r', 'r', 'r', at);
        chain("link_latency_us=0", 'r', 'c', 'c', at);
        chain("gemm_algorithm=stationary", 'y', 'r', 'c', at);
    }
}

/* A worker is busy when poison for a later command arrives: the commands before it still get what was there,
 * and what they write does not hide the poison. */
static void test_poison_comes_early(void **state)
{
    (void)state;
    const int64_t large[2] = {400, 400};
    double values[N * N], want[N * N];
    dm_session *s = open_session(2, "fault='compute:1',log=error");
    dm_layout here = dm_layout_single(1), there = dm_layout_single(0);
    dm_array poisoned = make_matrix(s, N, &there, 1), x = make_matrix(s, N, &here, 2),
             y = make_matrix(s, N, &here, 3);
    dm_array z = make_matrix(s, N, &here, 4), slow, other;
    OK(dm_array_create(s, DM_F64, 2, large, &here, &slow));
    OK(dm_array_create(s, DM_F64, 2, large, &here, &other));
    OK(dm_fill(s, poisoned, 1));
    OK(dm_fill(s, slow, 1));
    assert_int_equal(dm_sync(s), DM_ERR_INTERNAL);
    OK(dm_fill(s, slow, 1));
    element_matrix(N, 3, values);
    product(N, values, values, want);
    for (int turn = 0; turn < 10; turn++) {
        OK(dm_array_write(s, y, NULL, NULL, values, 0));
        OK(dm_gemm(s, DM_N, DM_N, 1, slow, slow, 0, other));
        OK(dm_gemm(s, DM_N, DM_N, 1, y, y, 0, z));
        OK(dm_fill(s, y, 5));
        OK(dm_add(s, 1, poisoned, 1, x, y));
        OK(read_matrix(s, z, N, want));
        assert_int_equal(read_any(&(fixture){.session = s}, y), DM_ERR_POISONED);
        matrix_is(s, x, N, 2);
    }
    dm_array all[] = {poisoned, x, y, z, slow, other};
    for (int i = 0; i < 6; i++) {
        OK(dm_array_destroy(s, all[i]));
    }
    close_session(s);
}

static void test_saving_poison(void **state)
{
    (void)state;
    dm_session *s = open_session(2, "fault='compute:1',log=error");
    char path[64];
    snprintf(path, sizeof path, "/tmp/dmath-poison-%ld.npy", (long)getpid());
    dm_array a = make_matrix(s, 8, NULL, 1);
    OK(dm_fill(s, a, 3));
    assert_int_equal(dm_sync(s), DM_ERR_INTERNAL);
    assert_int_equal(dm_array_save(s, a, path), DM_ERR_POISONED);
    assert_int_equal(access(path, F_OK), -1);
    OK(dm_fill(s, a, 3));
    OK(dm_array_save(s, a, path));
    assert_int_equal(unlink(path), 0);
    OK(dm_array_destroy(s, a));
    close_session(s);
}

/* With option sync the call itself says that it failed. */
static void test_sync_mode(void **state)
{
    (void)state;
    dm_session *s = open_session(2, "fault='compute:3',log=error,sync=1");
    dm_array a = make_matrix(s, 8, NULL, 1);
    OK(dm_fill(s, a, 1));
    OK(dm_fill(s, a, 2));
    assert_int_equal(dm_fill(s, a, 3), DM_ERR_INTERNAL);
    OK(dm_fill(s, a, 4));
    OK(dm_array_destroy(s, a));
    close_session(s);
}

/* A failure that nobody asked for is told by dm_finalize. */
static void test_finalize_tells(void **state)
{
    (void)state;
    dm_session *s = open_session(2, "fault='compute:1',log=error");
    int64_t alive = -1;
    dm_array a = make_matrix(s, 8, NULL, 1);
    OK(dm_fill(s, a, 1));
    assert_int_equal(dm_finalize(s, &alive), DM_ERR_INTERNAL);
    assert_int_equal(alive, 1);
    assert_int_equal(dm_sync(s), DM_ERR_STATE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_every_kernel_of_every_op, deadline),
        cmocka_unit_test_setup(test_poison_stays_in_its_place, deadline),
        cmocka_unit_test_setup(test_poison_comes_early, deadline),
        cmocka_unit_test_setup(test_saving_poison, deadline),
        cmocka_unit_test_setup(test_sync_mode, deadline),
        cmocka_unit_test_setup(test_finalize_tells, deadline),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Kernels that fail, the N-th of every worker for every N, in every op: nobody hangs, the failure is reported
 * once with who and where, what depends on it is poisoned until wholly rewritten, everything else is what it
 * was. */
#include "op_forms.h"

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_every_kernel_of_every_op, deadline),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

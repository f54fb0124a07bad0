/* HDF5Data, HDF5Output and snapshots in HDF5, against files that the test makes and reads with the library
 * itself. */
#include "net_case.h"

#ifdef NN_HAVE_HDF5
#include <hdf5.h>

enum { FILES = 3, CHANNELS = 2, HEIGHT = 3, WIDTH = 4, IMAGE = CHANNELS * HEIGHT * WIDTH, BATCH = 4 };
static const int rows_of[FILES] = {5, 1, 6};
enum { ROWS = 12 };

static double element(int row, int k)
{
    return row * 100 + k * 0.5;
}

static void put(hid_t file, const char *name, hid_t type, int ndim, const hsize_t *dims, const void *data)
{
    hid_t space = H5Screate_simple(ndim, dims, NULL);
    hid_t set = H5Dcreate2(file, name, type, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    assert_true(set >= 0 && H5Dwrite(set, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, data) >= 0);
    H5Dclose(set);
    H5Sclose(space);
}

static int make_files(void **state)
{
    int row = 0;
    FILE *list = fopen("list", "w");
    assert_non_null(list);
    for (int k = 0; k < FILES; k++) {
        char name[32];
        double x[ROWS * IMAGE];
        int y[ROWS];
        snprintf(name, sizeof name, "rows%d.h5", k);
        fprintf(list, "%s%s\n", name, k == 1 ? " \t" : ""); /* blanks at the end do not count */
        for (int i = 0; i < rows_of[k]; i++, row++) {
            y[i] = row;
            for (int e = 0; e < IMAGE; e++) {
                x[i * IMAGE + e] = element(row, e);
            }
        }
        const hsize_t n = (hsize_t)rows_of[k], images[] = {n, CHANNELS, HEIGHT, WIDTH}, pairs[] = {n, IMAGE};
        hid_t file = H5Fcreate(name, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
        put(file, "x", H5T_NATIVE_DOUBLE, 4, images, x);
        put(file, "flat", H5T_NATIVE_DOUBLE, 2, pairs, x);
        put(file, "y", H5T_NATIVE_INT, 1, &n, y);
        assert_true(H5Fclose(file) >= 0);
    }
    assert_int_equal(fclose(list), 0);
    return begin(state);
}

static const char net_text[] =
    "layer { name: 'd' type: 'HDF5Data' top: 'x' top: 'flat' top: 'y' hdf5_data_param { source: 'list' "
    "batch_size: 4 %s } }\n"
    "layer { name: 'o' type: 'HDF5Output' bottom: 'x' bottom: 'y' hdf5_output_param { file_name: 'out.h5' } "
    "}\n";

/* Three batches are a round. *seen: the rows in their order. */
static void run_rounds(const char *more, int batches, int *seen)
{
    char text[1024];
    snprintf(text, sizeof text, net_text, more);
    dm_net *net = open_text(text, DM_PHASE_TRAIN);
    for (int b = 0; b < batches; b++) {
        float x[BATCH][IMAGE], flat[BATCH][IMAGE], y[BATCH];
        CHECK(dm_net_forward(net, NULL));
        CHECK(dm_net_read(net, "x", &x[0][0]));
        CHECK(dm_net_read(net, "flat", &flat[0][0]));
        CHECK(dm_net_read(net, "y", y));
        for (int i = 0; i < BATCH; i++) {
            int row = (int)y[i];
            seen[b * BATCH + i] = row;
            for (int e = 0; e < IMAGE; e++) {
                assert_true(x[i][e] == (float)element(row, e) && flat[i][e] == x[i][e]);
            }
        }
    }
    CHECK(dm_net_close(net));
}

static void test_data_and_output(void **state)
{
    (void)state;
    int seen[7 * BATCH];
    float x[7 * BATCH][IMAGE], y[7 * BATCH];
    run_rounds("", 7, seen);
    for (int i = 0; i < COUNT(seen); i++) {
        assert_int_equal(seen[i], i % ROWS);
    }
    hid_t file = H5Fopen("out.h5", H5F_ACC_RDONLY, H5P_DEFAULT), set = H5Dopen2(file, "data", H5P_DEFAULT),
          space = H5Dget_space(set);
    hsize_t dims[4];
    assert_int_equal(H5Sget_simple_extent_dims(space, dims, NULL), 4);
    assert_true(dims[0] == COUNT(seen) && dims[1] == CHANNELS && dims[2] == HEIGHT && dims[3] == WIDTH);
    assert_true(H5Dread(set, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, x) >= 0);
    H5Sclose(space);
    H5Dclose(set);
    set = H5Dopen2(file, "label", H5P_DEFAULT);
    assert_true(H5Dread(set, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, y) >= 0);
    H5Dclose(set);
    H5Fclose(file);
    for (int i = 0; i < COUNT(seen); i++) {
        assert_true(y[i] == (float)seen[i] && x[i][7] == (float)element(seen[i], 7));
    }
}

static void test_shuffle(void **state)
{
    (void)state;
    int seen[2 * ROWS], again[2 * ROWS], moved = 0, differ = 0;
    run_rounds("shuffle: true", 6, seen);
    run_rounds("shuffle: true", 6, again);
    assert_memory_equal(seen, again, sizeof seen);
    for (int round = 0; round < 2; round++) {
        bool there[ROWS] = {false};
        for (int i = 0; i < ROWS; i++) {
            int row = seen[round * ROWS + i];
            assert_false(there[row]);
            there[row] = true;
            moved += row != i;
            differ += row != seen[i];
        }
    }
    assert_true(moved > 0 && differ > 0);
}

static void test_refusals(void **state)
{
    static const struct {
        const char *own, *message;
    } cases[] = {
        {"hdf5_data_param { source: 'missing' batch_size: 4 }",
         "net.prototxt:1: layer 'd' cannot read its data: missing: cannot"},
        {"hdf5_data_param { source: 'wrong' batch_size: 4 }", "cannot read its data: wrong: is no HDF5 file"},
        {"hdf5_data_param { source: 'names' batch_size: 4 }", "rows0.h5: 'z' is not there"},
        {"hdf5_data_param { source: 'list' }", "needs a source and a batch_size"},
        {"transform_param { scale: 2 } hdf5_data_param { source: 'list' batch_size: 4 }",
         "has transform_param"}};
    (void)state;
    write_file("wrong", "wrong\n");
    write_file("names", "rows0.h5\n");
    for (int i = 0; i < COUNT(cases); i++) {
        char text[512];
        dm_net *net = NULL;
        snprintf(text, sizeof text, "layer { name: 'd' type: 'HDF5Data' top: 'z' %s }\n", cases[i].own);
        write_file("net.prototxt", text);
        assert_int_not_equal(dm_net_open(session, "net.prototxt", NULL, &net), DM_OK);
        if (!strstr(dm_error_message(), cases[i].message)) {
            fail_msg("%s\nand not %s", dm_error_message(), cases[i].message);
        }
    }
}

#define SOLVER                                                                                                 \
    "net_param { name: 'n' layer { name: 'd' type: 'HDF5Data' top: 'x' top: 'y' hdf5_data_param { source: "    \
    "'list' batch_size: 4 } }\n"                                                                               \
    "layer { name: 'a/conv' type: 'Convolution' bottom: 'x' top: 'c' convolution_param { num_output: 3 "       \
    "kernel_size: 2\n"                                                                                         \
    "  weight_filler { type: 'xavier' } } }\n"                                                                 \
    "layer { name: 'ip' type: 'InnerProduct' bottom: 'c' top: 'ip' inner_product_param { num_output: 12 "      \
    "weight_filler { type: 'xavier' } } }\n"                                                                   \
    "layer { name: 'loss' type: 'SoftmaxWithLoss' bottom: 'ip' bottom: 'y' top: 'loss' } }\n"                  \
    "base_lr: 1e-7 momentum: 0.9 lr_policy: 'fixed' max_iter: 8 snapshot: 4 snapshot_format: %s "              \
    "snapshot_prefix: '%s'\n"

static void read_conv(dm_solver *s, float *w)
{
    int ndim = 0;
    int64_t shape[DM_MAX_DIMS];
    CHECK(dm_net_param_read(dm_solver_net(s), "a/conv", 0, &ndim, shape, w));
    assert_true(ndim == 4 && shape[0] == 3 && shape[1] == CHANNELS && shape[2] == 2 && shape[3] == 2);
}

/* Both forms hold the same; a run that goes on from either ends with the same bits as one that was not stopped.
 */
static void test_snapshots(void **state)
{
    static const char *const forms[] = {"HDF5", "BINARYPROTO"}, *const states[] = {"h_iter_4.solverstate.h5",
                                                                                   "p_iter_4.solverstate"};
    float end[2][24], resumed[24], in_file[24];
    int64_t iter = 0;
    char text[2048];
    (void)state;
    for (int k = 0; k < 2; k++) {
        dm_solver *s = NULL;
        snprintf(text, sizeof text, SOLVER, forms[k], k ? "p" : "h");
        write_file("solver.prototxt", text);
        CHECK(dm_solver_open(session, "solver.prototxt", NULL, &s));
        CHECK(dm_solver_run(s, NULL, NULL));
        read_conv(s, end[k]);
        CHECK(dm_solver_close(s));
        CHECK(dm_solver_open(session, "solver.prototxt", NULL, &s));
        CHECK(dm_solver_restore(s, states[k]));
        assert_int_equal(dm_solver_iteration(s), 4);
        CHECK(dm_solver_run(s, NULL, NULL));
        read_conv(s, resumed);
        assert_memory_equal(resumed, end[k], sizeof resumed);
        CHECK(dm_solver_close(s));
    }
    assert_memory_equal(end[0], end[1], sizeof end[0]);
    hid_t file = H5Fopen("h_iter_8.caffemodel.h5", H5F_ACC_RDONLY, H5P_DEFAULT),
          set = H5Dopen2(file, "data/a/conv/0", H5P_DEFAULT);
    assert_true(H5Dread(set, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, in_file) >= 0);
    assert_memory_equal(in_file, end[0], sizeof in_file);
    H5Dclose(set);
    H5Fclose(file);
    file = H5Fopen("h_iter_4.solverstate.h5", H5F_ACC_RDONLY, H5P_DEFAULT);
    set = H5Dopen2(file, "iter", H5P_DEFAULT);
    assert_true(H5Dread(set, H5T_NATIVE_INT64, H5S_ALL, H5S_ALL, H5P_DEFAULT, &iter) >= 0);
    assert_int_equal(iter, 4);
    H5Dclose(set);
    assert_true(H5Lexists(file, "history/3", H5P_DEFAULT) > 0 &&
                H5Lexists(file, "history/4", H5P_DEFAULT) == 0);
    H5Fclose(file);
}

/* A whole session saved in the middle of a training, with what the solver names in it, and loaded into another
 * session, of other workers, goes on with the same bits; so does the same solver, taken back. */
static void test_kept(void **state)
{
    float end[24], resumed[24];
    char text[2048];
    dm_checkpoint_options options = DM_CHECKPOINT_OPTIONS_INIT;
    dm_solver *s = NULL, *other = NULL;
    (void)state;
    options.named = 1;
    snprintf(text, sizeof text, SOLVER, "HDF5", "k");
    write_file("solver.prototxt", text);
    CHECK(dm_solver_open(session, "solver.prototxt", NULL, &s));
    CHECK(dm_solver_keep(s, "lenet"));
    assert_int_equal(dm_solver_keep(s, "again"), DM_ERR_STATE);
    CHECK(dm_solver_step(s, 3));
    CHECK(dm_session_save(session, "kept", &options, NULL));
    CHECK(dm_solver_run(s, NULL, NULL));
    read_conv(s, end);
    CHECK(dm_session_load(session, "kept"));
    assert_int_equal(dm_solver_iteration(s), 3);
    CHECK(dm_solver_run(s, NULL, NULL));
    read_conv(s, resumed);
    assert_memory_equal(resumed, end, sizeof end);
    CHECK(dm_solver_open(session, "solver.prototxt", NULL, &other));
    assert_int_equal(dm_solver_keep(other, "lenet"), DM_ERR_ARG);
    CHECK(dm_solver_keep(other, "other"));
    CHECK(dm_solver_close(other));
    CHECK(dm_solver_close(s));
    dm_array gone;
    CHECK(dm_kept_array(session, "lenet/a/conv/0", &gone));
    assert_true(gone.id == 0);
    for (int workers = 1; workers <= 5; workers += 2) {
        dm_config config = DM_CONFIG_INIT;
        dm_session *fresh = NULL;
        int64_t alive = -1;
        config.workers = workers;
        CHECK(dm_init(&config, &fresh));
        CHECK(dm_solver_open(fresh, "solver.prototxt", NULL, &s));
        CHECK(dm_solver_keep(s, "lenet"));
        CHECK(dm_session_load(fresh, "kept"));
        assert_int_equal(dm_solver_iteration(s), 3);
        CHECK(dm_solver_run(s, NULL, NULL));
        read_conv(s, resumed);
        assert_memory_equal(resumed, end, sizeof end);
        CHECK(dm_solver_close(s));
        CHECK(dm_finalize(fresh, &alive));
        assert_int_equal(alive, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_data_and_output), cmocka_unit_test(test_shuffle), cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_snapshots),       cmocka_unit_test(test_kept),
    };
    return cmocka_run_group_tests(tests, make_files, end);
}

#else

int main(void)
{
    puts("a build without HDF5");
    return 0;
}
#endif

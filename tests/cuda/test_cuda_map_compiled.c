/* Elementwise programs compiled by NVRTC against the interpreter on the same GPU, to the bit, and against the
 * CPU. */
#include "base/config.h"
#include "cuda/cuda_case.h"
#include "kernels/ewise/map_compiled.h"
#include "kernels/ewise/nvrtc.h"
#include "kernels/direct.h"
#include "kernels/ewise/map_source.h"
#include "map_cases.h"

#include <dirent.h>
#include <unistd.h>

static bool has_nvrtc(void)
{
    int major, minor;
    bool has = dmi_nvrtc_version(&major, &minor);
    if (!has) {
        printf("libnvrtc is not found, skipped\n");
    }
    return has;
}

static fixture *begin_compiled(void **state)
{
    fixture *f = begin_test(state);
    if (!has_nvrtc()) {
        skip();
    }
    return f;
}

/* The program on copies of the inputs; what the memory of the results then holds. */
static void run_on(fixture *f, map_case *c, void *const *host, int compile, char **got)
{
    int out = c->d.program.inputs, sides = dmi_map_sides(&c->d.program);
    void *gpu[DMI_MAP_SIDES];
    for (int s = 0; s < sides; s++) {
        gpu[s] = c->span[s] < 0 ? NULL : upload(host[s], c->span[s] * width_of(c->d.dtype[s]));
    }
    gpu[0] = gpu[0] ? gpu[0] : gpu[out];
    f->q->compile = compile;
    dmi_run_map(dmi_backend_cuda(), f->q, &c->d, c->m.number, c->m.numbers, gpu);
    finish(f);
    for (int s = out; s < sides; s++) {
        got[s] = download(gpu[s], c->span[s] * width_of(c->d.dtype[s]));
    }
    for (int s = out > 0 && c->span[0] < 0; s < sides; s++) {
        CUDA(cudaFree(gpu[s]));
    }
}

static void run_case(fixture *f, rng *r, map_case *c, bool exact, const char *what)
{
    int out = c->d.program.inputs, sides = dmi_map_sides(&c->d.program);
    void *at[DMI_MAP_SIDES];
    char *interpreted[DMI_MAP_SIDES], *compiled[DMI_MAP_SIDES];
    for (int s = 0; s < sides; s++) {
        at[s] = c->span[s] < 0 ? NULL : random_array(r, c->d.dtype[s], c->span[s]);
    }
    at[0] = at[0] ? at[0] : at[out];
    run_on(f, c, at, DMI_COMPILE_NEVER, interpreted);
    run_on(f, c, at, DMI_COMPILE_ALWAYS, compiled);
    if (exact) { /* functions of the C library have other bits there */
        dmi_run_map(dmi_backend_cpu(), NULL, &c->d, c->m.number, c->m.numbers, at);
    }
    for (int s = out; s < sides; s++) {
        check_parts(what, c->d.dtype[s], compiled[s], interpreted[s], c->span[s]);
        if (exact) {
            check_parts(what, c->d.dtype[s], compiled[s], at[s], c->span[s]);
        }
        free(interpreted[s]);
        free(compiled[s]);
    }
    for (int s = out > 0 && c->span[0] < 0; s < sides; s++) {
        free(at[s]);
    }
}

static void dense_box(map_case *c, int64_t n, int64_t rows, int first)
{
    int out = c->d.program.inputs;
    memset(c->d.stride, 0, sizeof c->d.stride);
    memset(c->d.offset, 0, sizeof c->d.offset);
    c->d.ndim = 2;
    c->d.extent[0] = rows;
    c->d.extent[1] = n;
    for (int s = 0; s < dmi_map_sides(&c->d.program);
         s++) { /* the inputs in turn, from `first` on: a matrix, a row to every row, one of each row */
        int form = s >= out ? 0 : (s + first) % 3;
        c->d.stride[s][0] = form == 1 ? 0 : form == 2 ? 1 : n;
        c->d.stride[s][1] = form == 2 ? 0 : 1;
        c->span[s] = n * rows;
    }
}

/* One program on many boxes and numbers: it is compiled once. */
static void run_program(fixture *f, rng *r, map_case *c, bool exact)
{
    dmi_map_kernels kernels;
    f->q->compile = DMI_COMPILE_ALWAYS;
    assert_true(dmi_cuda_map_kernels(f->q, &c->d, false, 0, &kernels));
    for (int box = 0; box < 8; box++) {
        int ndim = (int)rng_in(r, 0, 4);
        map_box(r, c, ndim, ndim <= 1 ? 3000 : ndim == 2 ? 70 : 9, box % 3 == 0);
        run_case(f, r, c, exact, "box");
        c->m.number[box % 3] = dmi_number_of((double)rng_in(r, -3, 9));
    }
    for (int box = 0; box < 4; box++) {
        dense_box(c, 16 * rng_in(r, 1, 200) + (box == 3 ? 5 : 0), rng_in(r, 1, 20), box);
        run_case(f, r, c, exact, "dense rows");
    }
    map_box(r, c, 8, 3, false);
    run_case(f, r, c, exact, "eight dims");
    for (int box = 0; box < 4; box++) {
        map_turned_box(r, c, box % 2);
        run_case(f, r, c, exact, "turned inputs");
    }
}

static void random_program(rng *r, map_case *c, bool any)
{
    do {
        map_case_random(r, c, (int)rng_in(r, 1, 3), any);
        if (rng_in(r, 0, 1) == 0) {
            map_keep(r, c);
        }
    } while (!dmi_map_has_source(&c->d));
}

static void test_exact(void **state)
{
    fixture *f = begin_compiled(state);
    rng r = {21};
    for (int64_t round = 0; round < rounds(f, 40); round++) {
        map_case c;
        random_program(&r, &c, false);
        run_program(f, &r, &c, true);
    }
}

static void test_any_row(void **state)
{
    fixture *f = begin_compiled(state);
    rng r = {22};
    for (int64_t round = 0; round < rounds(f, 60); round++) {
        map_case c;
        random_program(&r, &c, true);
        run_program(f, &r, &c, false);
    }
}

/* A program of its own whatever was compiled before: x + a + ... + a. */
static void chain(map_case *c, int adds)
{
    memset(c, 0, sizeof *c);
    c->m.numbers = 1;
    c->m.number[0] = dmi_number_of(0.25);
    dmi_map_value v[2] = {dmi_map_input(&c->m, DM_F32)};
    for (int i = 0; i < adds; i++) {
        v[1] = dmi_map_constant(&c->m, 0, DM_F32);
        assert_int_equal(dmi_map_apply(&c->m, DMI_EW_add, v, NULL, &v[0]), DM_OK);
    }
    c->d.dtype[0] = c->d.dtype[1] = DM_F32;
    dmi_map_result(&c->m, v[0], DM_F32);
    c->d.program = c->m.program;
    dense_box(c, 1000, 3, 0);
}

/* A program that is new is compiled and loaded while its stream is captured. */
static void test_capture(void **state)
{
    fixture *f = begin_compiled(state);
    map_case c;
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    rng r = {23};
    chain(&c, 3);
    int64_t bytes = c.span[0] * 4;
    void *at[2] = {random_array(&r, DM_F32, c.span[0]), random_array(&r, DM_F32, c.span[0])};
    void *gpu[2] = {upload(at[0], bytes), upload(at[1], bytes)};
    f->q->compile = DMI_COMPILE_ALWAYS;
    CUDA(cudaStreamBeginCapture(f->q->stream, cudaStreamCaptureModeThreadLocal));
    dmi_run_map(dmi_backend_cuda(), f->q, &c.d, c.m.number, c.m.numbers, gpu);
    CUDA(cudaStreamEndCapture(f->q->stream, &graph));
    CUDA(cudaGraphInstantiate(&exec, graph, 0));
    CUDA(cudaGraphLaunch(exec, f->q->stream));
    finish(f);
    dmi_map_kernels kernels;
    assert_true(dmi_cuda_map_kernels(f->q, &c.d, false, 0, &kernels));
    dmi_run_map(dmi_backend_cpu(), NULL, &c.d, c.m.number, c.m.numbers, at);
    char *got = download(gpu[1], bytes);
    check_same("captured", DM_F32, got, at[1], c.span[1]);
    free(got);
    CUDA(cudaGraphExecDestroy(exec));
    CUDA(cudaGraphDestroy(graph));
    for (int s = 0; s < 2; s++) {
        CUDA(cudaFree(gpu[s]));
        free(at[s]);
    }
}

static int remove_files(const char *path)
{
    DIR *at = opendir(path);
    int n = 0;
    for (struct dirent *e = at ? readdir(at) : NULL; e; e = readdir(at)) {
        char name[512];
        snprintf(name, sizeof name, "%s/%s", path, e->d_name);
        n += e->d_name[0] != '.' && unlink(name) == 0;
    }
    if (at) {
        closedir(at);
    }
    return n;
}

/* When a program is compiled: by size, by use, never; each leaves one file. */
static void test_when(void **state)
{
    fixture *f = begin_compiled(state);
    dmi_map_kernels kernels;
    map_case c;
    char folder[] = "/tmp/dmath-code-XXXXXX";
    assert_non_null(mkdtemp(folder));
    f->q->cache_dir = folder;
    f->q->compile = DMI_COMPILE_NEVER;
    chain(&c, 4);
    assert_false(dmi_cuda_map_kernels(f->q, &c.d, false, 1 << 30, &kernels));
    f->q->compile = DMI_COMPILE_AUTO;
    assert_false(dmi_cuda_map_kernels(f->q, &c.d, false, 1000, &kernels));
    assert_true(dmi_cuda_map_kernels(f->q, &c.d, false, 1 << 30, &kernels));
    assert_int_equal(remove_files(folder), 1);
    chain(&c, 5);
    int uses = 1;
    while (!dmi_cuda_map_kernels(f->q, &c.d, false, 1000, &kernels) && uses < 1000) {
        uses++;
    }
    assert_int_equal(uses, 32);
    assert_int_equal(remove_files(folder), 1);
    f->q->cache_dir = NULL;
    rmdir(folder);
}

/* One row, whose kernels are compiled in advance, of a large array and a transposed one. */
static void test_large_turned(void **state)
{
    fixture *f = begin_compiled(state);
    const int64_t rows = 2050, n = 2081; /* 16 MiB and more; neither has whole tiles */
    rng r = {25};
    for (int aligned = 0; aligned < 2; aligned++) {
        const int64_t pitch = aligned ? 2096 : n, column = aligned ? 2064 : rows;
        map_case c = {.d = {.ndim = 2, .extent = {rows, n}, .dtype = {DM_F32, DM_F32, DM_F32}},
                      .m = {.numbers = 2}};
        c.m.number[0] = dmi_number_of(0.5);
        c.m.number[1] = dmi_number_of(-3);
        assert_int_equal(
            dmi_map_row(DMI_EW_linear, (dm_dtype[]){DM_F32, DM_F32}, (int[]){0, 1}, DM_F32, &c.d.program),
            DM_OK);
        for (int s = 0; s < 3; s++) {
            c.d.stride[s][0] = s == 1 ? 1 : pitch;
            c.d.stride[s][1] = s == 1 ? column : 1;
            c.span[s] = s == 1 ? n * column : rows * pitch;
        }
        run_case(f, &r, &c, true, "a large array and a transposed one");
    }
}

/* Needs NVRTC, but no GPU. */
static void test_compiles(void **state)
{
    fixture *f = *state;
    rng r = {24};
    if (!has_nvrtc()) {
        skip();
    }
    for (int64_t round = 0; round < rounds(f, 20); round++) {
        map_case c;
        size_t bytes;
        random_program(&r, &c, true);
        for (int tiles = 0; tiles < 1 + (c.d.program.kept == 0); tiles++) {
            char *source = tiles ? dmi_map_tile_source(&c.d) : dmi_map_source(&c.d);
            assert_non_null(source);
            void *code = dmi_nvrtc_compile(source, 90, &bytes);
            assert_non_null(code);
            free(code);
            free(source);
        }
    }
    size_t bytes;
    assert_null(dmi_nvrtc_compile("this is no program", 90, &bytes));
    assert_null(dmi_nvrtc_compile("", 1, &bytes)); /* no such GPU */
}

int main(void)
{
    char folder[] = "/tmp/dmath-code-XXXXXX";
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_compiles), cmocka_unit_test(test_exact), cmocka_unit_test(test_any_row),
        cmocka_unit_test(test_capture),  cmocka_unit_test(test_when),  cmocka_unit_test(test_large_turned),
    };
    /* Not the user's folder; every program is compiled anew. */
    if (!mkdtemp(folder) || setenv("XDG_CACHE_HOME", folder, 1) != 0) {
        return 1;
    }
    int failed = cmocka_run_group_tests(tests, set_up, tear_down);
    char inner[sizeof folder + 8];
    snprintf(inner, sizeof inner, "%s/dmath", folder);
    remove_files(inner);
    rmdir(inner);
    rmdir(folder);
    return failed;
}

/* Reductions of elementwise programs on the GPU, compiled by NVRTC and in pieces, against elements that the CPU
 * writes and then reduces. */
#include "base/config.h"
#include "cuda/cuda_case.h"
#include "kernels/ewise/map_source.h"
#include "kernels/ewise/nvrtc.h"
#include "kernels/reduce/reduce_compiled.h"
#include "kernels/reduce/reduce_source.h"
#include "map_cases.h"

#include <unistd.h>

static bool has_nvrtc(void)
{
    int major, minor;
    return dmi_nvrtc_version(&major, &minor);
}

/* A reduction of a program's elements. */
typedef struct job {
    map_case c;
    dmi_reduce d;
    dmi_dimset index[DM_MAX_DIMS];
    int64_t results, reduced, most; /* most: a bound on the elements that are finite */
    void *host[DMI_MAP_INPUTS], *gpu[DMI_MAP_INPUTS];
} job;

static bool is_inexact(const dmi_reduce *d)
{
    int state = dmi_reductions[d->row].state;
    bool whole = !floating(part_of(d->dtype));
    return state == DMI_STATE_MOMENTS || state == DMI_STATE_LOGSUM || state == DMI_STATE_REAL ||
           ((state == DMI_STATE_WIDE || state == DMI_STATE_SUM) && !whole);
}

/* Products of floats may leave the range in another order, and are left out. */
static bool suits(const dmi_reduce *d)
{
    bool product = d->row == DMI_REDUCTION_prod && floating(part_of(d->dtype));
    return dmi_acc_for(d->row, d->dtype) >= 0 && !product;
}

static void make_program(rng *r, job *j, int depth)
{
    dmi_map_value value;
    map_case *c = &j->c;
    do {
        memset(c, 0, sizeof *c);
        c->m.numbers = 3;
        for (int i = 0; i < 3; i++) {
            c->m.number[i] = dmi_number_of((double)rng_in(r, -3, 7));
        }
    } while (!map_tree(r, c, depth, false, &value) || c->m.full || c->m.program.inputs == 0);
    j->d.dtype = dmi_dtype_carrier(value.dtype);
    c->d.dtype[c->m.program.inputs] = j->d.dtype;
    dmi_map_result(&c->m, value, j->d.dtype);
    c->d.program = c->m.program;
    do {
        j->d.row = (int)rng_in(r, 0, DMI_REDUCTIONS - 1);
    } while (!suits(&j->d));
}

static void make_indices(rng *r, job *j)
{
    dmi_reduce *d = &j->d;
    d->ndim = j->c.d.ndim;
    d->map = &j->c.d;
    d->index = j->index;
    d->reduced = (unsigned)rng_in(r, 0, (1 << d->ndim) - 1);
    j->results = j->reduced = 1;
    for (int k = 0; k < d->ndim; k++) {
        int64_t block = rng_in(r, 1, 5), g = rng_in(r, 1, 3), c = rng_in(r, 0, g - 1), n = j->c.d.extent[k];
        d->extent[k] = n;
        d->whole[k] = g == 1 ? n : (n + block - 1) / block * block * g;
        j->index[k] = (dmi_dimset){
            .lo = 0, .hi = d->whole[k], .block = block, .g = (int32_t)g, .c = (int32_t)c, .count = n};
        *(d->reduced >> k & 1 ? &j->reduced : &j->results) *= n;
    }
}

static void make_inputs(rng *r, job *j)
{
    for (int s = 0; s < j->c.d.program.inputs; s++) {
        dm_dtype type = part_of(j->c.d.dtype[s]);
        int64_t n = j->c.span[s] * parts_in(j->c.d.dtype[s]);
        char *p = malloc((size_t)(n * width_of(type)) + 1);
        assert_non_null(p);
        for (int64_t i = 0; i < n; i++) {
            small_element(r, type, p + i * width_of(type));
            if (floating(type) && rng_in(r, 0, 20000) == 0) {
                encode_float(type, rng_in(r, 0, 1) ? (real)NAN : -(real)INFINITY, p + i * width_of(type));
            }
        }
        j->host[s] = p;
        j->gpu[s] = upload(p, n * width_of(type));
    }
}

static void store(const dmi_backend *on, dmi_queue *q, const job *j, dm_dtype type, const void *acc, void *out)
{
    dmi_acc_store d = {.acc = dmi_acc_for(j->d.row, j->d.dtype),
                       .ndim = 1,
                       .out_dtype = type,
                       .extent = {j->results},
                       .out_stride = {1}};
    dmi_run_acc_store(on, q, &d, 1, acc, 0, out);
}

/* By the CPU in two steps: the elements, then their reduction. */
static char *expected(job *j, dm_dtype type)
{
    dmi_map map = j->c.d;
    dmi_reduce plain = j->d;
    int out = map.program.inputs;
    int64_t stride = 1, n = j->results * j->reduced;
    void *at[DMI_MAP_INPUTS + 1];
    plain.map = NULL;
    plain.offset = map.offset[out] = 0;
    for (int k = map.ndim - 1; k >= 0; k--) {
        map.stride[out][k] = plain.stride[k] = stride;
        stride *= map.extent[k];
    }
    memcpy(at, j->host, sizeof j->host);
    at[out] = calloc(1, (size_t)(n * width_of(part_of(j->d.dtype)) * parts_in(j->d.dtype)) + 16);
    char *acc = calloc(1, (size_t)(j->results * dmi_acc_bytes(dmi_acc_for(j->d.row, j->d.dtype))) + 16);
    char *got = calloc(1, (size_t)(j->results * 16) + 16);
    assert_true(at[out] && acc && got);
    dmi_run_map(dmi_backend_cpu(), NULL, &map, j->c.m.number, j->c.m.numbers, at);
    dmi_run_reduce(dmi_backend_cpu(), NULL, &plain, at[out], acc);
    store(dmi_backend_cpu(), NULL, j, type, acc, got);
    j->most = 1;
    for (int64_t i = 0; i < n * parts_in(j->d.dtype) && floating(part_of(j->d.dtype)); i++) {
        double v = fabs(j->d.dtype == DM_F64 || j->d.dtype == DM_C128 ? ((double *)at[out])[i]
                                                                      : (double)((float *)at[out])[i]);
        j->most = v < 1e15 && v > (double)j->most ? (int64_t)v + 1 : j->most;
    }
    free(at[out]);
    free(acc);
    return got;
}

static char *on_gpu(fixture *f, job *j, dm_dtype type, int compile)
{
    dmi_device_facts facts = {.gpu = true};
    int64_t room = dmi_kernel_workspace(DMI_KERNEL_reduce, &j->d, &facts), bytes = j->results * 16 + 16;
    int out = j->c.d.program.inputs;
    void *workspace = NULL, *acc = NULL, *result = NULL;
    dmi_kernel_call call = {.queue = f->q, .desc = &j->d, .number = j->c.m.number, .numbers = j->c.m.numbers};
    CUDA(cudaMalloc(&workspace, (size_t)room + 1));
    CUDA(cudaMalloc(&acc, (size_t)(j->results * dmi_acc_bytes(dmi_acc_for(j->d.row, j->d.dtype))) + 1));
    CUDA(cudaMalloc(&result, (size_t)bytes));
    CUDA(cudaMemset(acc, 0x5a, (size_t)(j->results * dmi_acc_bytes(dmi_acc_for(j->d.row, j->d.dtype)))));
    CUDA(cudaMemset(result, 0, (size_t)bytes));
    CUDA(cudaDeviceSynchronize());
    memcpy(call.at, j->gpu, sizeof j->gpu);
    call.at[out] = acc;
    call.workspace = workspace;
    f->q->compile = compile;
    assert_int_equal(dmi_backend_cuda()->run(DMI_KERNEL_reduce, &call), DM_OK);
    store(dmi_backend_cuda(), f->q, j, type, acc, result);
    finish(f);
    char *got = download(result, bytes);
    CUDA(cudaFree(workspace));
    CUDA(cudaFree(acc));
    CUDA(cudaFree(result));
    return got;
}

static void compare(const job *j, dm_dtype type, const char *got, const char *want, const char *how)
{
    int parts = parts_in(type);
    for (int64_t i = 0; i < j->results * parts; i++) {
        const char *a = got + 8 * i, *b = want + 8 * i;
        double x, y;
        memcpy(&x, a, 8);
        memcpy(&y, b, 8);
        double n = (double)j->reduced + 8, scale = (double)j->most;
        bool squares = dmi_reductions[j->d.row].state == DMI_STATE_MOMENTS || j->d.row == DMI_REDUCTION_norm_2;
        double bound = 1e-14 * n * n * (squares ? scale * scale : scale);
        if (!same_element(part_of(type), a, b) && !(is_inexact(&j->d) && fabs(x - y) <= bound)) {
            fail_msg("%s: %s of %s, %d inputs: result %lld of %lld (%lld elements each) is %.17g, not %.17g",
                     how, dmi_reductions[j->d.row].name, dmi_dtype_name(j->d.dtype), j->c.d.program.inputs,
                     (long long)i, (long long)j->results, (long long)j->reduced, x, y);
        }
    }
}

static void check(fixture *f, rng *r, job *j)
{
    dm_dtype result = dmi_acc_result(dmi_acc_for(j->d.row, j->d.dtype));
    dm_dtype type = is_complex(result) ? DM_C128 : floating(result) ? DM_F64 : DM_I64;
    make_inputs(r, j);
    char *want = expected(j, type);
    for (int compiled = 0; compiled < 1 + has_nvrtc(); compiled++) {
        char *got = on_gpu(f, j, type, compiled ? DMI_COMPILE_ALWAYS : DMI_COMPILE_NEVER);
        compare(j, type, got, want, compiled ? "compiled" : "in pieces");
        free(got);
    }
    for (int s = 0; s < j->c.d.program.inputs; s++) {
        CUDA(cudaFree(j->gpu[s]));
        free(j->host[s]);
    }
    free(want);
}

/* A box of two dims; the inputs in turn a matrix, a row for all, one of each row. */
static void dense_box(map_case *c, int64_t rows, int64_t n)
{
    memset(c->d.stride, 0, sizeof c->d.stride);
    memset(c->d.offset, 0, sizeof c->d.offset);
    c->d.ndim = 2;
    c->d.extent[0] = rows;
    c->d.extent[1] = n;
    for (int s = 0; s < c->d.program.inputs; s++) {
        int form = s % 3;
        c->d.stride[s][0] = form == 1 ? 0 : form == 2 ? 1 : n;
        c->d.stride[s][1] = form == 2 ? 0 : 1;
        c->span[s] = form == 0 ? n * rows : form == 1 ? n : rows;
    }
}

static void test_random(void **state)
{
    static const int64_t shapes[][2] = {{1, 300001}, {300001, 1}, {2, 100000}, {100000, 2}, {3000, 100},
                                        {100, 3000}, {17, 20003}, {20003, 17}, {1024, 256}, {64, 4096}};
    fixture *f = begin_test(state);
    rng r = {41};
    for (int64_t round = 0; round < rounds(f, 40); round++) {
        job j = {0};
        make_program(&r, &j, (int)rng_in(&r, 1, 3));
        for (int box = 0; box < 12; box++) { /* each program is compiled once */
            int ndim = (int)rng_in(&r, 0, 4);
            if (box < 8) {
                map_box(&r, &j.c, ndim, ndim <= 1 ? 5000 : ndim == 2 ? 90 : ndim == 3 ? 20 : 7, false);
            } else {
                const int64_t *shape = shapes[(round * 4 + box) % DMI_COUNT(shapes)];
                dense_box(&j.c, shape[0], shape[1]);
            }
            make_indices(&r, &j);
            check(f, &r, &j);
            j.c.m.number[box % 3] = dmi_number_of((double)rng_in(&r, -3, 7));
        }
    }
}

/* More elements than a piece has. */
static void test_large(void **state)
{
    fixture *f = begin_test(state);
    rng r = {42};
    for (int64_t round = 0; round < rounds(f, 6); round++) {
        job j = {0};
        do {
            make_program(&r, &j, 1);
        } while (j.c.d.program.inputs > 2);
        dense_box(&j.c, round % 2 ? 3 : 2345, round % 2 ? 1500001 : 2003);
        make_indices(&r, &j);
        check(f, &r, &j);
    }
}

/* Every row of every type that it takes. Needs NVRTC, but no GPU. */
static void test_compiles(void **state)
{
    static const dm_dtype types[] = {DM_F32, DM_F64, DM_I32, DM_I64, DM_U64, DM_BOOL, DM_C64, DM_C128};
    fixture *f = *state;
    rng r = {43};
    if (!has_nvrtc()) {
        skip();
    }
    for (int64_t round = 0; round < rounds(f, 12); round++) {
        job j = {0};
        size_t bytes;
        do {
            make_program(&r, &j, 2);
        } while (j.d.dtype != types[round % DMI_COUNT(types)]);
        char *source = dmi_reduce_source(j.d.row, &j.c.d);
        assert_non_null(source);
        void *code = dmi_nvrtc_compile(source, 90, &bytes);
        if (!code) {
            fail_msg("%s of %s does not compile", dmi_reductions[j.d.row].name, dmi_dtype_name(j.d.dtype));
        }
        free(code);
        free(source);
    }
}

int main(void)
{
    char folder[] = "/tmp/dmath-code-XXXXXX", command[100];
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_compiles), cmocka_unit_test(test_random),
                                       cmocka_unit_test(test_large)};
    /* Not the user's folder; every reduction is compiled anew. */
    if (!mkdtemp(folder) || setenv("XDG_CACHE_HOME", folder, 1) != 0) {
        return 1;
    }
    int failed = cmocka_run_group_tests(tests, set_up, tear_down);
    snprintf(command, sizeof command, "rm -r %s", folder);
    return failed + (system(command) != 0);
}

/* Convolutions where the N-th call of oneDNN fails, for every N: the result is that of the library's own
 * kernels then, and the next call is right. The linker sends those calls through here. */
#include "robust.h"

#include <dmath/layers.h>

#include <math.h>
#include <stdatomic.h>

#ifdef DMATH_WITH_ONEDNN
#include <dnnl.h>

static atomic_long countdown; /* 0: nothing fails */
static atomic_long calls;

static bool fails(void)
{
    atomic_fetch_add(&calls, 1);
    return atomic_load(&countdown) > 0 && atomic_fetch_sub(&countdown, 1) == 1;
}

#define WRAPPED(name, parameters, arguments)                                                                   \
    dnnl_status_t __real_dnnl_##name parameters;                                                               \
    dnnl_status_t __wrap_dnnl_##name parameters;                                                               \
    dnnl_status_t __wrap_dnnl_##name parameters                                                                \
    {                                                                                                          \
        return fails() ? dnnl_runtime_error : __real_dnnl_##name arguments;                                    \
    }
WRAPPED(engine_create, (dnnl_engine_t * engine, dnnl_engine_kind_t kind, size_t index), (engine, kind, index))
WRAPPED(stream_create, (dnnl_stream_t * stream, dnnl_engine_t engine, unsigned flags), (stream, engine, flags))
WRAPPED(primitive_create, (dnnl_primitive_t * primitive, const_dnnl_primitive_desc_t from), (primitive, from))
WRAPPED(primitive_execute,
        (const_dnnl_primitive_t primitive, dnnl_stream_t stream, int count, const dnnl_exec_arg_t *args),
        (primitive, stream, count, args))
WRAPPED(stream_wait, (dnnl_stream_t stream), (stream))
WRAPPED(memory_set_data_handle, (dnnl_memory_t memory, void *handle), (memory, handle))
#if DNNL_VERSION_MAJOR >= 3
WRAPPED(memory_create,
        (dnnl_memory_t * memory, const_dnnl_memory_desc_t desc, dnnl_engine_t engine, void *handle),
        (memory, desc, engine, handle))
#else
WRAPPED(memory_create,
        (dnnl_memory_t * memory, const dnnl_memory_desc_t *desc, dnnl_engine_t engine, void *handle),
        (memory, desc, engine, handle))
WRAPPED(memory_desc_init_by_strides,
        (dnnl_memory_desc_t * desc, int ndim, const dnnl_dims_t dims, dnnl_data_type_t type,
         const dnnl_dims_t strides),
        (desc, ndim, dims, type, strides))
WRAPPED(memory_desc_init_by_tag,
        (dnnl_memory_desc_t * desc, int ndim, const dnnl_dims_t dims, dnnl_data_type_t type,
         dnnl_format_tag_t tag),
        (desc, ndim, dims, type, tag))
WRAPPED(primitive_desc_create,
        (dnnl_primitive_desc_t * out, const_dnnl_op_desc_t desc, const_dnnl_primitive_attr_t attr,
         dnnl_engine_t engine, const_dnnl_primitive_desc_t hint),
        (out, desc, attr, engine, hint))
#endif

enum { IMAGES = 2, SIDE = 9, CHANNELS = 32, FILTERS = 32, KERNEL = 3, OUT = SIDE - KERNEL + 1 };
enum { X = IMAGES * SIDE * SIDE * CHANNELS, W = FILTERS * KERNEL * KERNEL * CHANNELS, ALL = X + W };

/* dx and dw, one behind the other; y is an input of both. */
static dm_status convolve(dm_session *s, float *out)
{
    dm_conv conv = DM_CONV_INIT;
    const int64_t x_shape[] = {IMAGES, SIDE, SIDE, CHANNELS}, w_shape[] = {FILTERS, KERNEL, KERNEL, CHANNELS},
                  y_shape[] = {IMAGES, OUT, OUT, FILTERS};
    dm_array x, w, y, dx, dw;
    OK(dm_array_create(s, DM_F32, 4, x_shape, NULL, &x));
    OK(dm_array_create(s, DM_F32, 4, w_shape, NULL, &w));
    OK(dm_array_create(s, DM_F32, 4, y_shape, NULL, &y));
    OK(dm_array_create(s, DM_F32, 4, x_shape, NULL, &dx));
    OK(dm_array_create(s, DM_F32, 4, w_shape, NULL, &dw));
    OK(dm_fill_uniform(s, x, -1, 1, 1));
    OK(dm_fill_uniform(s, w, -1, 1, 2));
    dm_status status = dm_conv_forward(s, &conv, x, w, DM_NO_ARRAY, y);
    status = status == DM_OK ? dm_conv_backward_data(s, &conv, y, w, dx) : status;
    status = status == DM_OK ? dm_conv_backward_weights(s, &conv, x, y, 0, dw, DM_NO_ARRAY) : status;
    status = status == DM_OK ? dm_read(s, dx, out) : status;
    status = status == DM_OK ? dm_read(s, dw, out + X) : status;
    const dm_array all[] = {x, w, y, dx, dw};
    for (int i = 0; i < 5; i++) {
        OK(dm_array_destroy(s, all[i]));
    }
    return status;
}

/* A new session has new threads, which have made nothing yet. */
static void one_session(long at, float *out)
{
    dm_session *s = open_session(1, "log=error");
    atomic_store(&calls, 0);
    atomic_store(&countdown, at);
    OK(convolve(s, out));
    atomic_store(&countdown, 0);
    OK(convolve(s, out + ALL)); /* what was refused stays so; the rest is oneDNN's */
    close_session(s);
}

static void test_every_call(void **state)
{
    (void)state;
    float *want = malloc(2 * ALL * sizeof *want), *got = malloc(2 * ALL * sizeof *got);
    assert_non_null(want);
    assert_non_null(got);
    one_session(0, want);
    one_session(0, want);
    const long made = atomic_load(&calls);
    assert_true(made > 20);
    for (long at = 1; at <= made; at++) {
        one_session(at, got);
        for (int i = 0; i < 2 * ALL; i++) {
            if (!(fabsf(got[i] - want[i]) <= 2e-3F * (1 + fabsf(want[i])))) {
                fail_msg("call %ld of oneDNN failed: element %d is %g, not %g", at, i, (double)got[i],
                         (double)want[i]);
            }
        }
    }
    print_message("%ld calls of oneDNN\n", made);
    free(want);
    free(got);
}
#endif

int main(void)
{
#ifdef DMATH_WITH_ONEDNN
    const struct CMUnitTest tests[] = {cmocka_unit_test_setup(test_every_call, deadline)};
    return cmocka_run_group_tests(tests, NULL, NULL);
#else
    puts("a build without oneDNN: skipped");
    return 0;
#endif
}

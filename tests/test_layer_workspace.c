/* How much memory layers ask for beside their operands on a GPU: nothing on CPUs and emulated GPUs; copies of
 * operands that begin at odd places, images whose blocks of pixels become channels, groups one by one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "kernels/dnn/dnn_parts.h"

#include <stdlib.h>

static const dmi_device_facts cpu = {0}, emulated = {.gpu = true, .emulated = true}, gpu = {.gpu = true};

/* 2 images of 8 x 8 with 4 channels, 6 filters of 3 x 3 with strides of 2. */
static dmi_convolution strided(dm_dtype dtype)
{
    dmi_convolution d = {.dnn = {.dtype = dtype, .samples = 2},
                         .in = {8, 8, 4},
                         .out = {4, 4, 6},
                         .kernel = {3, 3},
                         .stride = {2, 2},
                         .pad = {1, 1},
                         .dilation = {1, 1},
                         .group = 1};
    const int64_t count[] = {2 * 8 * 8 * 4, 6 * 3 * 3 * 4, 2 * 4 * 4 * 6};
    for (int r = 0; r < 3; r++) {
        d.dnn.type[r] = dtype;
        d.dnn.count[r] = count[r];
    }
    return d;
}

static void test_moved(void **state)
{
    (void)state;
    dmi_convolution d = strided(DM_F32);
    assert_int_equal(dmi_dnn_moved_bytes(&d.dnn, 3), 0);
    d.dnn.offset[0] = 4; /* 16 bytes: a place where operands may begin */
    assert_int_equal(dmi_conv_workspace(&d, &gpu), 0);
    d.dnn.offset[0] = 1;
    d.dnn.offset[2] = 7;
    assert_int_equal(dmi_conv_workspace(&d, &gpu),
                     2048 + 768); /* 512 and 192 floats, rounded up to 256 bytes */
    assert_int_equal(dmi_conv_data_workspace(&d, &cpu), 0);
    assert_int_equal(dmi_conv_weights_workspace(&d, &emulated), 0);
}

static void test_convolutions(void **state)
{
    (void)state;
    dmi_convolution d = strided(DM_BF16), folded;
    assert_true(dmi_cudnn_takes(&d));
    assert_true(dmi_cudnn_folds(&d));
    dmi_cudnn_fold(&d, &folded);
    assert_int_equal(folded.kernel[0], 2); /* of blocks of 2 x 2 */
    assert_int_equal(folded.in[0], 4 + 2 - 1);
    assert_int_equal(folded.in[2], 16);
    assert_int_equal(folded.columns[1], 2 * 2 * 16);
    const int64_t least = 16 << 20;
    assert_int_equal(dmi_cudnn_room(&d), least);
    /* x as blocks: 2 x 5 x 5 x 16 elements of 2 bytes, in lines of 64; w: 6 x 2 x 2 x 64; the bias of 6 */
    assert_int_equal(dmi_cudnn_workspace(&d), least + 6400 + 3072 + 256);
    d.in[2] = 8; /* as many channels as are aligned: nothing is folded; w in lines: 6 x 3 x 3 x 64 */
    assert_false(dmi_cudnn_folds(&d));
    assert_int_equal(dmi_cudnn_workspace(&d), least + 6912);
    d.in[2] = 4;
    d.dilation[1] = 2;
    assert_false(dmi_cudnn_folds(&d));
    d.dilation[1] = d.stride[0] = d.stride[1] = 1;
    assert_false(dmi_cudnn_folds(&d));
    d.dnn.count[0] = INT64_C(1) << 40;
    assert_int_equal(dmi_cudnn_room(&d), 256 << 20);
}

static void test_groups(void **state)
{
    (void)state;
    dmi_convolution d = strided(DM_F16);
    d.group = 2;
    d.in[2] = 16;
    d.out[2] = 32;
    assert_true(dmi_cudnn_packs(&d));
    /* x: 2 x 8 x 8 x 16 elements of 2 bytes, and y: 2 x 4 x 4 x 32; or w in lines: 32 x 3 x 3 x 64 */
    assert_int_equal(dmi_cudnn_workspace(&d), (16 << 20) + 36864);
    d.out[2] = 24; /* 12 a group: not aligned */
    assert_false(dmi_cudnn_packs(&d));
    d.in[2] = 8;
    assert_false(dmi_cudnn_packs(&d));
    d.group = 16;
    assert_false(dmi_cudnn_packs(&d));
}

/* f32 that may be rounded, and nothing else but 16 bits, is cuDNN's. */
static void test_types(void **state)
{
    (void)state;
    dmi_convolution d = strided(DM_F32);
    assert_false(dmi_cudnn_takes(&d));
    assert_false(dmi_cudnn_folds(&d));
    d.tf32 = true;
    assert_true(dmi_cudnn_takes(&d));
    d.dnn.dtype = DM_F64;
    assert_false(dmi_cudnn_takes(&d));
    d = strided(DM_BF16);
    int64_t room = dmi_cudnn_is_built() ? dmi_cudnn_workspace(&d) : 0;
    assert_int_equal(dmi_conv_workspace(&d, &gpu), room);
    assert_int_equal(dmi_conv_workspace(&d, &cpu), 0);
}

static void test_others(void **state)
{
    (void)state;
    dmi_inner inner = {.dnn = {.dtype = DM_BF16, .count = {64, 64, 100}}};
    assert_int_equal(dmi_inner_workspace(&inner, &gpu), 0);
    inner.dnn.count[3] = 10; /* a bias: the product in f32 first */
    assert_int_equal(dmi_inner_workspace(&inner, &gpu), 400);
    assert_int_equal(dmi_inner_workspace(&inner, &emulated), 0);
    inner.dnn.dtype = DM_F32;
    assert_int_equal(dmi_inner_workspace(&inner, &gpu), 0);
    inner.dnn.type[0] = DM_F32;
    inner.dnn.offset[0] = 1;
    assert_int_equal(dmi_inner_data_workspace(&inner, &gpu), 256);
    assert_int_equal(dmi_inner_weights_workspace(&inner, &gpu), 256);
    assert_int_equal(dmi_inner_data_workspace(&inner, &cpu), 0);
    assert_int_equal(dmi_inner_weights_workspace(&inner, &emulated), 0);

    dmi_pooling pooling = {.dnn = {.count = {100, 25}}, .kernel = {2, 2}};
    assert_int_equal(dmi_pooling_back_workspace(&pooling, &gpu), 25);
    assert_int_equal(dmi_pooling_back_workspace(&pooling, &cpu), 0);
    pooling.kernel[0] = 200; /* 400 elements have no number of 8 bits */
    assert_int_equal(dmi_pooling_back_workspace(&pooling, &gpu), 100);
    pooling.taps = true;
    assert_int_equal(dmi_pooling_back_workspace(&pooling, &gpu), 0);
    pooling.taps = false;
    pooling.dnn.count[0] = 0;
    assert_int_equal(dmi_pooling_back_workspace(&pooling, &gpu), 0);

    dmi_lrn lrn = {.dnn = {.dtype = DM_F32, .count = {10}}, .unit = DMI_LRN_SHARED};
    assert_int_equal(dmi_lrn_back_workspace(&lrn, &gpu), 0);
    lrn.unit++;
    assert_int_equal(dmi_lrn_back_workspace(&lrn, &gpu), 40);
    assert_int_equal(dmi_lrn_back_workspace(&lrn, &emulated), 0);
    lrn.unit = 8;
    lrn.within = true;
    assert_int_equal(dmi_lrn_back_workspace(&lrn, &gpu), 40);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_moved), cmocka_unit_test(test_convolutions),
                                       cmocka_unit_test(test_groups), cmocka_unit_test(test_types),
                                       cmocka_unit_test(test_others)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

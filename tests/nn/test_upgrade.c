/* Nets of before 2014 (`layers { layer`) become those of today: each type with all its fields, padding, and
 * what is refused. */
#include "net/net.h"
#include "proto/text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define COUNT(a) ((int)(sizeof(a) / sizeof((a)[0])))

static nn_document *parsed(const char *text)
{
    nn_document *d = NULL;
    if (nn_text_parse(text, strlen(text), "net.prototxt", "NetParameter", &d) != DM_OK) {
        fail_msg("%s", dm_error_message());
    }
    return d;
}

static void check_same(const char *old, const char *now)
{
    nn_document *a = parsed(old), *b = parsed(now);
    char *texts[2];
    if (nn_net_upgrade(a->root) != DM_OK) {
        fail_msg("%s", dm_error_message());
    }
    assert_int_equal(nn_text_print(a->root, &texts[0]), DM_OK);
    assert_int_equal(nn_text_print(b->root, &texts[1]), DM_OK);
    assert_string_equal(texts[0], texts[1]);
    free(texts[0]);
    free(texts[1]);
    nn_document_free(a);
    nn_document_free(b);
}

/* Types that have no fields: then, now. */
static const char *const plain[][2] = {{"accuracy", "Accuracy"},
                                       {"bnll", "BNLL"},
                                       {"euclidean_loss", "EuclideanLoss"},
                                       {"flatten", "Flatten"},
                                       {"multinomial_logistic_loss", "MultinomialLogisticLoss"},
                                       {"relu", "ReLU"},
                                       {"sigmoid", "Sigmoid"},
                                       {"softmax", "Softmax"},
                                       {"softmax_loss", "SoftmaxWithLoss"},
                                       {"split", "Split"},
                                       {"tanh", "TanH"}};

#define TRANSFORM "transform_param { scale: 0.5 mean_file: 'm' crop_size: 7 mirror: true }"
/* Types with fields: what stands inside of `layer`, and today's layer without its name and blobs. */
static const char *const full[][2] = {
    {"type: 'concat' concat_dim: 0", "type: 'Concat' concat_param { concat_dim: 0 }"},
    {"type: 'conv' num_output: 4 biasterm: false weight_filler { type: 'xavier' } bias_filler { value: 2 } "
     "pad: 1 "
     "kernelsize: 3 group: 2 stride: 4 blobs_lr: 1 blobs_lr: 2 weight_decay: 3 weight_decay: 0 "
     "blobs { num: 1 channels: 1 height: 1 width: 1 data: 5 }",
     "type: 'Convolution' convolution_param { num_output: 4 bias_term: false weight_filler { type: 'xavier' } "
     "bias_filler { value: 2 } pad: 1 kernel_size: 3 group: 2 stride: 4 } "
     "blobs { num: 1 channels: 1 height: 1 width: 1 data: 5 } param { lr_mult: 1 decay_mult: 3 } "
     "param { lr_mult: 2 decay_mult: 0 }"},
    {"type: 'im2col' kernelsize: 3 pad: 1 stride: 2",
     "type: 'Im2col' convolution_param { kernel_size: 3 pad: 1 stride: 2 }"},
    {"type: 'data' source: 's' scale: 0.5 meanfile: 'm' batchsize: 8 cropsize: 7 mirror: true rand_skip: 3",
     "type: 'Data' data_param { source: 's' batch_size: 8 rand_skip: 3 } " TRANSFORM},
    {"type: 'dropout' dropout_ratio: 0.3", "type: 'Dropout' dropout_param { dropout_ratio: 0.3 }"},
    {"type: 'hdf5_data' source: 's' batchsize: 8",
     "type: 'HDF5Data' hdf5_data_param { source: 's' batch_size: 8 }"},
    {"type: 'hdf5_output' hdf5_output_param { file_name: 'f' }",
     "type: 'HDF5Output' hdf5_output_param { file_name: 'f' }"},
    {"type: 'images' source: 's' scale: 0.5 meanfile: 'm' cropsize: 7 mirror: true batchsize: 8 rand_skip: 2 "
     "shuffle_images: true new_height: 9 new_width: 10",
     "type: 'ImageData' image_data_param { source: 's' batch_size: 8 rand_skip: 2 shuffle: true new_height: 9 "
     "new_width: 10 "
     "} " TRANSFORM},
    {"type: 'infogain_loss' source: 's'", "type: 'InfogainLoss' infogain_loss_param { source: 's' }"},
    {"type: 'innerproduct' num_output: 4 biasterm: false weight_filler { type: 'gaussian' std: 2 } bias_filler "
     "{ value: 2 } "
     "blobs_lr: 1",
     "type: 'InnerProduct' inner_product_param { num_output: 4 bias_term: false weight_filler { type: "
     "'gaussian' std: 2 } "
     "bias_filler { value: 2 } } param { lr_mult: 1 }"},
    {"type: 'lrn' local_size: 3 alpha: 0.1 beta: 0.2 k: 3",
     "type: 'LRN' lrn_param { local_size: 3 alpha: 0.1 beta: 0.2 k: 3 }"},
    {"type: 'pool' pool: STOCHASTIC kernelsize: 3 stride: 2 pad: 1",
     "type: 'Pooling' pooling_param { pool: STOCHASTIC kernel_size: 3 stride: 2 pad: 1 }"},
    {"type: 'window_data' source: 's' batchsize: 8 scale: 0.5 meanfile: 'm' cropsize: 7 mirror: true "
     "det_fg_threshold: 0.6 "
     "det_bg_threshold: 0.4 det_fg_fraction: 0.3 det_context_pad: 5 det_crop_mode: 'square'",
     "type: 'WindowData' window_data_param { source: 's' batch_size: 8 fg_threshold: 0.6 bg_threshold: 0.4 "
     "fg_fraction: 0.3 "
     "context_pad: 5 crop_mode: 'square' } " TRANSFORM}};

static void test_types(void **state)
{
    char old[2048], now[2048];
    (void)state;
    for (int i = 0; i < COUNT(plain); i++) {
        snprintf(old, sizeof old,
                 "name: 'n' layers { layer { name: 'x' type: '%s' } bottom: ['a', 'b'] top: 'c' }",
                 plain[i][0]);
        snprintf(now, sizeof now, "name: 'n' layer { name: 'x' type: '%s' bottom: ['a', 'b'] top: 'c' }",
                 plain[i][1]);
        check_same(old, now);
    }
    for (int i = 0; i < COUNT(full); i++) {
        snprintf(old, sizeof old, "layers { bottom: 'a' top: ['b', 'c'] layer { name: 'x' %s } }", full[i][0]);
        const char *rest = strchr(strchr(full[i][1], '\'') + 1, '\'') + 1;
        snprintf(now, sizeof now, "layer { name: 'x' %.*s bottom: 'a' top: ['b', 'c'] %s }",
                 (int)(rest - full[i][1]), full[i][1], rest);
        check_same(old, now);
    }
}

/* Padding layers vanish; a blob's last maker counts. */
static void test_padding(void **state)
{
    (void)state;
    check_same(
        "input: 'x' input_dim: [1, 3, 9, 9]\n"
        "layers { layer { name: 'p' type: 'padding' pad: 2 } bottom: 'x' top: 'y' }\n"
        "layers { layer { name: 'c' type: 'conv' num_output: 4 kernelsize: 3 } bottom: 'y' top: 'z' }\n"
        "layers { layer { name: 'm' type: 'pool' kernelsize: 3 } bottom: 'y' top: 'w' }\n"
        "layers { layer { name: 'r' type: 'relu' } bottom: 'z' top: 'y' }\n"
        "layers { layer { name: 'd' type: 'conv' num_output: 5 kernelsize: 1 } bottom: 'y' top: 'v' }\n",
        "input: 'x' input_dim: [1, 3, 9, 9]\n"
        "layer { name: 'c' type: 'Convolution' bottom: 'x' top: 'z' convolution_param { pad: 2 num_output: 4 "
        "kernel_size: 3 } }\n"
        "layer { name: 'm' type: 'Pooling' bottom: 'x' top: 'w' pooling_param { pad: 2 kernel_size: 3 } }\n"
        "layer { name: 'r' type: 'ReLU' bottom: 'z' top: 'y' }\n"
        "layer { name: 'd' type: 'Convolution' bottom: 'y' top: 'v' convolution_param { num_output: 5 "
        "kernel_size: 1 } }\n");
}

/* BatchNorm of before 2017, with multipliers for what it has seen. */
static void test_batch_norm(void **state)
{
    (void)state;
    check_same(
        "layer { name: 'x' type: 'BatchNorm' bottom: 'a' top: 'b' param { name: 'q' lr_mult: 1 } param { } "
        "param { decay_mult: 3 } }",
        "layer { name: 'x' type: 'BatchNorm' bottom: 'a' top: 'b' param { name: 'q' lr_mult: 0 decay_mult: 0 } "
        "param { lr_mult: 0 decay_mult: 0 } param { decay_mult: 0 lr_mult: 0 } }");
}

static const char *const bad[][2] = {
    {"layers {\n layer { name: 'x'\n type: 'padded' } }",
     "net.prototxt:3: layer 'x' has the type 'padded', which no layer of"},
    {"layers {\n layer { name: 'x' } }", "net.prototxt:2: layer 'x' has the type ''"},
    {"layers { layer { name: 'x' type: 'relu'\n num_output: 4 } }",
     "net.prototxt:2: layer 'x': the type 'relu' has no use for num_output"},
    {"layers { layer { name: 'x' type: 'pool'\n new_num: 4 } }",
     "net.prototxt:2: layer 'x': the type 'pool' has no use for new_num"},
    {"layers { layer { name: 'x' type: 'lrn'\n hdf5_output_param { file_name: 'f' } } }",
     "net.prototxt:2: layer 'x': the type 'lrn'"},
    {"layers { layer { name: 'x' type: 'images'\n new_height: -4 } }",
     "net.prototxt:2: new_height is negative"},
    {"layers { layer { name: 'x' type: 'relu' }\n loss_weight: 2 }",
     "net.prototxt:2: loss_weight has no meaning beside 'layer {'"},
    {"layers { layer { name: 'x' type: 'relu' } }\nlayers { name: 'y' type: RELU }",
     "net.prototxt:2: a net has layers of before 2014"},
    {"layers { layer { name: 'p' type: 'padding' pad: 1 } bottom: 'x' top: 'y' }\nlayers { layer { name: 'r' "
     "type: 'relu' } "
     "bottom: 'y' top: 'z' }",
     "net.prototxt:2: layer 'r' reads the padding layer 'p'"},
    {"layers { layer { name: 'p' type: 'padding' pad: 1 } bottom: 'x' top: 'y' }\nlayers { layer { name: 'c' "
     "type: 'conv' pad: 1 "
     "kernelsize: 3 num_output: 1 } bottom: 'y' top: 'z' }",
     "net.prototxt:2: layer 'c' reads the padding layer 'p'"}};

static void test_refusals(void **state)
{
    (void)state;
    for (int i = 0; i < COUNT(bad); i++) {
        nn_document *d = parsed(bad[i][0]);
        assert_int_equal(nn_net_upgrade(d->root), DM_ERR_FORMAT);
        if (strncmp(dm_error_message(), bad[i][1], strlen(bad[i][1])) != 0) {
            fail_msg("'%s', not '%s'", dm_error_message(), bad[i][1]);
        }
        nn_document_free(d);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_types), cmocka_unit_test(test_padding),
                                       cmocka_unit_test(test_batch_norm), cmocka_unit_test(test_refusals)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

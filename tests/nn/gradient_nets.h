/* Nets whose gradients are checked: between them they have every type of layer that has one. */
#ifndef GRADIENT_NETS_H
#define GRADIENT_NETS_H

#include "net_case.h"

#define ONE(name, type, bottom, rest) SIMPLE(name, type, bottom, name, rest)
#define PAIR(name, type, bottoms, rest)                                                                        \
    "layer { name: '" name "' type: '" type "' bottom: [" bottoms "] top: '" name "' " rest " }\n"

/* Its weights and its bias have names of their own. */
#define NAMED(name, type, bottoms, weights, bias, rest)                                                        \
    "layer { name: '" name "' type: '" type "' bottom: [" bottoms "] top: '" name "' param { name: '" weights  \
    "' } param { name: '" bias "' } " rest " }\n"
#define FILLED                                                                                                 \
    "num_output: 4 weight_filler { type: 'gaussian' std: 0.4 } bias_filler { type: 'uniform' min: -0.5 max: "  \
    "0.5 }"

static const struct {
    const char *what, *text;
    const char *params[4]; /* layers whose parameters are checked against central differences */
    int numbers;           /* of parameters of each */
} gradients[] = {
    {"inner product", INPUTS IP("ip", "data", "5") LOSS("ip"), {"ip"}, 2},
    {"convolution, pooling",
     INPUTS CONV("conv", "data", "num_output: 6 group: 3 kernel_h: 3 kernel_w: 2 pad: 1 stride: [2, 1]")
         SIMPLE("pool", "Pooling", "conv", "pool",
                "pooling_param { pool: AVE kernel_size: 3 stride: 2 pad: 1 }") IP("ip", "pool", "4") LOSS("ip"),
     {"conv", "ip"},
     2},
    {"convolution and deconvolution of several bottoms",
     INPUTS CONV("a", "data", "num_output: 4 kernel_size: 3 pad: 1")
         CONV("b", "data",
              "num_output: 4 kernel_size: 1") "layer { name: 'c' type: 'Convolution' bottom: ['a', 'b', 'a'] "
                                              "top: ['p', 'q', 'r'] convolution_param { "
                                              "num_output: 4 group: 2 kernel_size: 3 weight_filler { type: "
                                              "'msra' } bias_filler { type: 'gaussian' std: 0.1 } } }\n"
                                              "layer { name: 's' type: 'ReLU' bottom: 'q' top: 'q' }\n"
                                              "layer { name: 'd' type: 'Deconvolution' bottom: ['p', 'q'] top: "
                                              "['u', 'v'] convolution_param { "
                                              "num_output: 3 kernel_size: 2 stride: 2 weight_filler { type: "
                                              "'msra' } bias_filler { type: 'gaussian' std: 0.1 } } }\n"
                                              "layer { name: 'e' type: 'Eltwise' bottom: ['u', 'v'] top: 'e' "
                                              "eltwise_param { operation: PROD } }\n"
                                              "layer { name: 'f' type: 'Eltwise' bottom: ['r', 'q'] top: 'f' "
                                              "eltwise_param { coeff: [0.5, -2] } }\n" IP("i", "e", "4") IP(
                                                  "j", "f", "4") PAIR("k", "Eltwise", "'i', 'j'", "") LOSS("k"),
     {"a", "b", "c", "d"},
     2},
    {"in place, sigmoid, flatten",
     INPUTS CONV("conv", "data", "num_output: 4 kernel_size: 3") SIMPLE("s", "Sigmoid", "conv", "conv", "")
         SIMPLE("f", "Flatten", "conv", "flat", "") IP("a", "flat", "7") SIMPLE("t", "TanH", "a", "a", "")
             IP("b", "a", "3") LOSS("b"),
     {"conv", "a", "b"},
     2},
    {"split, concat, eltwise",
     INPUTS CONV("c1", "data", "num_output: 4 kernel_size: 3 pad: 1") CONV(
         "c2", "data", "num_output: 4 kernel_size: 1") "layer { name: 'e' type: 'Eltwise' bottom: ['c1', 'c2'] "
                                                       "top: 'e' eltwise_param { coeff: [0.5, -2] } }\n"
                                                       "layer { name: 'p' type: 'Eltwise' bottom: ['c1', 'e'] "
                                                       "top: 'p' eltwise_param { operation: PROD } }\n"
                                                       "layer { name: 'c' type: 'Concat' bottom: ['p', 'c2', "
                                                       "'c1'] top: 'c' }\n" IP("ip", "c", "4") LOSS("ip"),
     {"c1", "c2", "ip"},
     2},
    {"LRN across",
     INPUTS SIMPLE("n", "LRN", "data", "n", "lrn_param { local_size: 3 alpha: 2 beta: 0.7 k: 1.5 }")
         CONV("c", "n", "num_output: 5 kernel_size: 3")
             SIMPLE("m", "LRN", "c", "m", "lrn_param { local_size: 5 alpha: 1 beta: 0.75 }") IP("ip", "m", "4")
                 LOSS("ip"),
     {"c", "ip"},
     2},
    {"LRN within",
     INPUTS CONV("c", "data", "num_output: 5 kernel_size: 3")
         SIMPLE("m", "LRN", "c", "m", "lrn_param { local_size: 3 alpha: 2 norm_region: WITHIN_CHANNEL }")
             IP("ip", "m", "4") LOSS("ip"),
     {"c", "ip"},
     2},
    {"functions",
     INPUTS IP("i1", "data", "6") SIMPLE("f1", "AbsVal", "i1", "f1", "") SIMPLE(
         "f2", "Power", "f1", "f2",
         "power_param { power: 1.5 scale: 2 shift: 0.3 }") SIMPLE("f3", "Log", "f2", "f3",
                                                                  "log_param { base: 3 scale: 2 shift: 1.5 }")
         IP("i2", "f3", "6") SIMPLE("f4", "BNLL", "i2", "f4", "") SIMPLE(
             "f5", "ELU", "i2",
             "f5", "elu_param { alpha: 0.7 }") SIMPLE("f6", "Swish", "i2", "f6", "swish_param { beta: 1.5 }")
             SIMPLE("f7", "Exp", "i2", "f7", "exp_param { base: 2 scale: 0.5 shift: -1 }") SIMPLE(
                 "f8", "Clip", "i2",
                 "f8",
                 "clip_param { min: -0.2 max: 10 }") "layer { name: 's' type: 'Split' bottom: 'f8' top: ['s1', "
                                                     "'s2'] }\n"
                                                     "layer { name: 'e' type: 'Eltwise' bottom: ['f4', 'f5', "
                                                     "'f6', 'f7', 's1', 's2'] top: 'e' }\n"
                                                     "layer { name: 'm' type: 'Eltwise' bottom: ['f4', 'f5', "
                                                     "'e'] top: 'm' eltwise_param { operation: MAX } }\n"
                                                     "layer { name: 'quiet' type: 'Silence' bottom: 'f1' "
                                                     "}\n" LOSS("m"),
     {"i1", "i2"},
     2},
    {"losses of targets",
     INPUTS IP("a", "data", "6") IP("b", "data", "6") IP("t", "data", "6")
         SIMPLE("p", "Sigmoid", "t", "p",
                "propagate_down: true") "layer { name: 'e' type: 'EuclideanLoss' bottom: ['a', 'b'] top: 'e' "
                                        "loss_weight: 0.5 }\n"
                                        "layer { name: 'h' type: 'HingeLoss' bottom: ['b', 'label'] top: 'h' "
                                        "hinge_loss_param { norm: L2 } }\n"
                                        "layer { name: 'i' type: 'HingeLoss' bottom: ['a', 'label'] top: 'i' "
                                        "loss_weight: 2 }\n"
                                        "layer { name: 'q' type: 'SigmoidCrossEntropyLoss' bottom: ['a', 'p'] "
                                        "top: 'q' propagate_down: [true, false] }\n"
                                        "layer { name: 'v' type: 'SigmoidCrossEntropyLoss' bottom: ['b', 'p'] "
                                        "top: 'v' propagate_down: [true, false]\n"
                                        " loss_param { normalization: FULL } }\n",
     {"a", "b"},
     2},
    {"softmax",
     INPUTS IP("ip", "data", "5") SIMPLE("s", "Softmax", "ip", "s", "") IP("b", "s", "4") LOSS("b"),
     {"ip", "b"},
     2},
    {"batch norm, scale",
     INPUTS CONV("c", "data", "num_output: 4 kernel_size: 3") ONE("n", "BatchNorm", "c",
                                                                  "batch_norm_param { eps: 0.1 }")
         ONE("s", "Scale", "n",
             "scale_param { bias_term: true filler { type: 'gaussian' std: 1 } bias_filler { value: 0.3 } }")
             IP("ip", "s", "4") LOSS("ip"),
     {"c", "s", "ip"},
     1},
    {"batch norm of rows, bias, prelu",
     INPUTS IP("a", "data", "6") ONE("n", "BatchNorm", "a", "batch_norm_param { eps: 0.1 }")
         ONE("s", "Bias", "n", "bias_param { filler { type: 'gaussian' std: 1 } }") ONE("p", "PReLU", "s", "")
             IP("ip", "p", "4") LOSS("ip"),
     {"a", "s", "p", "ip"},
     1},
    {"batch norm of what was seen",
     INPUTS CONV("c", "data", "num_output: 4 kernel_size: 3") ONE("n", "BatchNorm", "c", "")
         ONE("g", "BatchNorm", "c", "batch_norm_param { use_global_stats: true eps: 0.2 }") PAIR(
             "e", "Eltwise", "'n', 'g'", "eltwise_param { coeff: [1, 0.1] }") IP("ip", "e", "4") LOSS("ip"),
     {"c", "ip"},
     2},
    {"scale by rows, by a bottom, by one number; bias of samples",
     INPUTS CONV("c", "data", "num_output: 4 kernel_size: 3 pad: 1") IP("w", "data", "4")
         ONE("h", "Scale", "c", "scale_param { axis: 2 filler { type: 'gaussian' std: 1 } bias_term: true }")
             ONE("o", "Scale", "h", "scale_param { num_axes: 0 filler { value: 1.5 } bias_term: true }")
                 PAIR("s", "Scale", "'o', 'w'", "scale_param { axis: 0 }")
                     PAIR("b", "Bias", "'s', 'w'", "bias_param { axis: 0 }")
                         ONE("p", "PReLU", "b", "prelu_param { channel_shared: true filler { value: 0.3 } }")
                             IP("ip", "p", "4") LOSS("ip"),
     {"c", "w", "h", "o"},
     2},
    {"other dims than channels",
     INPUTS CONV("c", "data", "num_output: 4 kernel_size: 3 pad: 1") ONE(
         "h", "Scale", "c",
         "scale_param { num_axes: -1 filler { type: 'gaussian' std: 1 } bias_term: true bias_filler { type: "
         "'gaussian' std: 1 } }") ONE("t", "Reshape", "h", "reshape_param { shape { dim: [0, 0, -1] } }")
         ONE("n", "BatchNorm", "t", "batch_norm_param { eps: 0.1 }")
             ONE("b", "Bias", "n", "bias_param { axis: 2 filler { type: 'gaussian' std: 1 } }")
                 ONE("m", "Reduction", "b", "reduction_param { operation: MEAN axis: 2 }")
                     PAIR("g", "Scale", "'c', 'm'", "scale_param { axis: 0 }")
                         ONE("q", "Softmax", "g", "softmax_param { axis: 3 }") IP("ip", "q", "12")
                             ONE("r", "Reshape", "ip", "reshape_param { shape { dim: [0, 1, 4, 3] } }")
                                 ONE("k", "Reshape", "label", "reshape_param { shape { dim: [0, 1, 1] } }")
                                     ONE("u", "Tile", "k", "tile_param { axis: 1 tiles: 4 }")
                                         PAIR("loss", "SoftmaxWithLoss", "'r', 'u'",
                                              "softmax_param { axis: 3 } loss_weight: 3 propagate_down: "
                                              "[true, false] loss_param { normalization: BATCH_SIZE }"),
     {"c", "h", "b", "ip"},
     1},
    {"mvn",
     INPUTS CONV("c", "data", "num_output: 4 kernel_size: 3") ONE("a", "MVN", "c", "mvn_param { eps: 1e-5 }")
         ONE("b", "MVN", "c", "mvn_param { across_channels: true eps: 1e-5 }")
             ONE("d", "MVN", "c", "mvn_param { normalize_variance: false }") IP("i", "c", "6")
                 ONE("f", "MVN", "i", "mvn_param { across_channels: true }")
                     PAIR("e", "Eltwise", "'a', 'b', 'd'", "") IP("j", "e", "6")
                         PAIR("k", "Eltwise", "'j', 'f'", "") IP("ip", "k", "4") LOSS("ip"),
     {"c", "i", "ip"},
     2},
    {"slice, crop, tile",
     INPUTS CONV(
         "c", "data",
         "num_output: 6 kernel_size: 3 pad: 1") "layer { name: 's' type: 'Slice' bottom: 'c' top: ['s1', 's2', "
                                                "'s3'] slice_param { slice_point: [1, 4] } }\n"
                                                "layer { name: 'r' type: 'Slice' bottom: 's2' top: ['r1', "
                                                "'r2'] slice_param { axis: 2 slice_point: 4 } }\n"
                                                "layer { name: 'n' type: 'Slice' bottom: 's3' top: ['n1', "
                                                "'n2'] slice_param { axis: 0 } }\n" CONV(
                                                    "d", "n1", "num_output: 3 kernel_size: 3")
                                                    CONV("e", "n2", "num_output: 3 kernel_size: 3") PAIR(
                                                        "j", "Concat", "'d', 'e'", "concat_param { axis: 0 }")
                                                        PAIR("k", "Crop", "'s2', 'j'",
                                                             "crop_param { axis: 2 offset: [1, 2] }")
                                                            ONE("t", "Tile", "r1",
                                                                "tile_param { axis: 3 tiles: 3 }")
                                                                IP("i1", "k", "4") IP("i2", "t",
                                                                                      "4") IP("i3", "s1", "4")
                                                                    PAIR("x", "Eltwise", "'i1', 'i2', 'i3'", "")
                                                                        LOSS("x"),
     {"c", "i1", "i2"},
     2},
    {"reshape, reduction",
     INPUTS CONV("c", "data", "num_output: 4 kernel_size: 3")
         ONE("r", "Reshape", "c", "reshape_param { shape { dim: [0, 2, -1] } }")
             ONE("q", "Reshape", "r", "reshape_param { shape { dim: [0, 0, 4, -1] } }")
                 ONE("m", "Reduction", "q", "reduction_param { operation: SUMSQ axis: 2 coeff: 0.5 }")
                     ONE("n", "Reduction", "c", "reduction_param { operation: MEAN axis: 3 }")
                         ONE("o", "Reduction", "r", "reduction_param { operation: ASUM axis: 1 }")
                             IP("a", "m", "4") IP("b", "n", "4") PAIR("x", "Eltwise", "'a', 'b'", "")
                                 ONE("z", "Reduction", "q",
                                     "reduction_param { operation: SUMSQ coeff: 0.01 } loss_weight: 2")
                                     ONE("y", "Reduction", "o",
                                         "reduction_param { operation: MEAN } loss_weight: 0.1") LOSS("x"),
     {"c", "a", "b"},
     2},
    {"deconvolution, im2col",
     INPUTS CONV(
         "c", "data",
         "num_output: 4 kernel_size: 3") "layer { name: 'd' type: 'Deconvolution' bottom: 'c' top: 'd' "
                                         "convolution_param { num_output: 6 group: 2 kernel_size: 3 stride: 2 "
                                         "pad: 1\n"
                                         " weight_filler { type: 'gaussian' std: 0.3 } bias_filler { value: "
                                         "0.1 } } }\n" ONE(
                                             "i", "Im2col", "d",
                                             "convolution_param { kernel_h: 2 kernel_w: 3 pad: 1 stride: 2 }")
                                             IP("ip", "i", "4") LOSS("ip"),
     {"c", "d", "ip"},
     2},
    {"rows of inner products",
     INPUTS CONV("c", "data", "num_output: 4 kernel_size: 3") ONE(
         "i", "InnerProduct", "c",
         "param { name: 'w' } param { name: 'b' } inner_product_param { num_output: 5 axis: 3 weight_filler { "
         "type: "
         "'xavier' } bias_filler { type: 'uniform' } }")
         ONE("j", "InnerProduct", "i",
             "param { name: 'w' } inner_product_param { num_output: 4 axis: 3 transpose: true bias_term: false "
             "}")
             ONE("k", "InnerProduct", "j",
                 "inner_product_param { num_output: 6 axis: 2 transpose: true weight_filler { type: 'xavier' } "
                 "bias_filler { type: 'uniform' } }") IP("ip", "k", "3") LOSS("ip"),
     {"c", "i", "k", "ip"},
     2},
    {"images of indices, places",
     INPUTS "layer { name: 'f' type: 'Input' top: 'f' input_param { shape { dim: [6, 2, 3] } } }\n"
            "layer { name: 'g' type: 'Power' bottom: 'f' top: 'g' power_param { scale: 2 shift: 2.4 } }\n"
            "layer { name: 'e' type: 'Embed' bottom: 'g' top: 'e' embed_param { input_dim: 5 num_output: 4 "
            "weight_filler { type: 'gaussian' std: 1 } } }\n" CONV(
                "c", "e",
                "num_output: 4 kernel_size: 2") "layer { name: 'p' type: 'Pooling' bottom: 'c' top: ['p', 'q'] "
                                                "pooling_param { kernel_size: 2 } }\n" IP("a", "p", "4")
                                                    PAIR("h", "HingeLoss", "'c', 'label'", "loss_weight: 0.3")
                                                        LOSS("a"),
     {"e", "c", "a"},
     1},
    {"images as steps of sequences",
     INPUTS "layer { name: 'go' type: 'Input' top: 'cont' input_param { shape { dim: [3, 2] } } }\n" CONV(
         "c", "data", "num_output: 4 kernel_size: 3") ONE("s", "Reshape", "c",
                                                          "reshape_param { shape { dim: [3, 2, -1] } }")
         PAIR("r", "LSTM", "'s', 'cont'",
              "recurrent_param { num_output: 4 weight_filler { type: 'gaussian' std: 0.5 } }")
             ONE("f", "Flatten", "r", "flatten_param { end_axis: 1 axis: 0 }") IP("ip", "f", "4") LOSS("ip"),
     {"c", "r", "ip"},
     2},
    {"weights shared without their biases, and biases without their weights",
     INPUTS "layer { name: 'go' type: 'Input' top: 'cont' input_param { shape { dim: [3, 2] } } }\n" NAMED(
         "c1", "Convolution", "'data'", "w", "p",
         "convolution_param { kernel_size: 3 " FILLED
         " }") NAMED("c2", "Convolution", "'data'", "w", "q", "convolution_param { kernel_size: 3 " FILLED " }")
         NAMED("c3", "Convolution", "'data'", "z", "q", "convolution_param { kernel_size: 3 " FILLED " }")
             PAIR("e", "Eltwise", "'c1', 'c2', 'c3'", "eltwise_param { operation: PROD }") NAMED(
                 "i1", "InnerProduct", "'e'", "v", "s", "inner_product_param { " FILLED " }")
                 NAMED("i2", "InnerProduct", "'c3'", "v", "t", "inner_product_param { " FILLED " }") PAIR(
                     "i", "Eltwise", "'i1', 'i2'", "") ONE("x", "Reshape", "i",
                                                           "reshape_param { shape { dim: [3, 2, 4] } }")
                     NAMED("r1", "LSTM", "'x', 'cont'", "lw", "lp", "recurrent_param { " FILLED " }")
                         NAMED("r2", "LSTM", "'x', 'cont'", "lw", "lq", "recurrent_param { " FILLED " }")
                             NAMED("n1", "RNN", "'r1', 'cont'", "nw", "np", "recurrent_param { " FILLED " }")
                                 NAMED("n2", "RNN", "'r2', 'cont'", "nv", "np",
                                       "recurrent_param { " FILLED " }") PAIR("n", "Eltwise", "'n1', 'n2'", "")
                                     ONE("f", "Flatten", "n", "flatten_param { axis: 0 end_axis: 1 }")
                                         IP("ip", "f", "3") LOSS("ip"),
     {"c2", "i1", "r1", "n1"},
     2},
    {"numbers of the whole batch",
     INPUTS IP("a", "data", "4") ONE("r", "Reduction", "a", "reduction_param { operation: SUMSQ }")
         ONE("q", "Reduction", "a", "reduction_param { operation: ASUM }")
             ONE("p", "Power", "r", "power_param { power: 2 scale: 0.1 shift: 1 }") ONE("t", "TanH", "q", "")
                 PAIR("e", "Eltwise", "'p', 't'", "eltwise_param { operation: PROD } loss_weight: 0.02"),
     {"a"},
     2},
    {"embed into images of one channel",
     INPUTS ONE("k", "Reshape", "label", "reshape_param { shape { dim: [0, 1, 1] } }")
         ONE("t", "Tile", "k", "tile_param { axis: 2 tiles: 2 }")
             ONE("e", "Embed", "t", "embed_param { input_dim: 5 " FILLED " }") IP("ip", "e", "4") LOSS("ip"),
     {"e", "ip"},
     2},
    {"embed, batch reindex",
     INPUTS "layer { name: 'e' type: 'Embed' bottom: 'label' top: 'e' embed_param { input_dim: 5 num_output: 4 "
            "weight_filler { type: 'gaussian' std: 1 } } }\n" IP("a", "data", "4")
                PAIR("b", "BatchReindex", "'a', 'label'", "")
                    PAIR("x", "Eltwise", "'e', 'b'", "eltwise_param { operation: PROD }") LOSS("x"),
     {"e", "a"},
     2},
    {"pyramid, infogain",
     INPUTS "layer { name: 'm' type: 'Input' top: 'm' input_param { shape { dim: [4, 4] } } }\n" CONV(
         "c", "data", "num_output: 4 kernel_size: 3")
         ONE("p", "SPP", "c", "spp_param { pyramid_height: 2 pool: AVE }")
             ONE("q", "SPP", "c", "spp_param { pyramid_height: 1 pool: AVE }") IP("i", "p", "4")
                 IP("j", "q", "4") PAIR("e", "Eltwise", "'i', 'j'", "") PAIR(
                     "l", "InfogainLoss", "'e', 'label', 'm'", "loss_param { ignore_label: 1 } loss_weight: 2"),
     {"c", "i", "j"},
     2},
    {"along the batch",
     "layer { name: 'in' type: 'Input' top: ['data', 'label'] input_param { shape { dim: [6, 3, 7, 6] } shape "
     "{ "
     "dim: 4 } } }\n" IP("a", "data", "4") ONE("s", "Softmax", "a", "softmax_param { axis: 0 }") SIMPLE(
         "h", "Scale", "s", "h",
         "param { name: 'each' } scale_param { axis: 0 filler { type: 'gaussian' std: 1 } bias_term: true }")
         SIMPLE("g", "Scale", "a", "g", "param { name: 'each' } scale_param { axis: 0 }") SIMPLE(
             "d", "Bias", "g", "d", "bias_param { axis: 0 num_axes: 2 }") PAIR("e", "Eltwise", "'h', 'd'", "")
             PAIR("loss", "SoftmaxWithLoss", "'e', 'label'", "softmax_param { axis: 0 } loss_weight: 3"),
     {"a", "h"},
     2},
    {"weights shared in another order",
     INPUTS SIMPLE("c", "Convolution", "data", "c",
                   "param { name: 'w' } convolution_param { num_output: 4 kernel_size: 3 weight_filler { type: "
                   "'msra' } }")
         ONE("p", "Pooling", "data", "pooling_param { pool: AVE kernel_size: 3 stride: 2 }")
             SIMPLE("v", "InnerProduct", "p", "v",
                    "param { name: 'w' share_mode: PERMISSIVE } inner_product_param { num_output: 4 }")
                 IP("ip", "c", "4") PAIR("e", "Eltwise", "'v', 'ip'", "") LOSS("e"),
     {"c", "ip"},
     2},
    {"parameters",
     INPUTS IP("a", "data",
               "4") "layer { name: 'p' type: 'Parameter' top: 'p' parameter_param { shape { dim: [6, 4] } } }\n"
                    "layer { name: 'q' type: 'Parameter' top: 'q' param { name: 'w' } parameter_param { shape "
                    "{ dim: [6, 3, 7, 6] } } }\n"
                    "layer { name: 'r' type: 'Parameter' top: 'r' param { name: 'w' } parameter_param { shape "
                    "{ dim: [6, 3, 7, 6] } } }\n" PAIR("x", "Eltwise", "'data', 'q', 'r'",
                                                       "eltwise_param { coeff: [1, 2, 3] }") IP("b", "x", "4")
                        PAIR("y", "Eltwise", "'a', 'p', 'b'", "") LOSS("y"),
     {"p", "q", "a", "b"},
     1},
    {"pairs",
     INPUTS IP("a", "data", "6") IP("b", "data", "6")
         PAIR("l", "ContrastiveLoss", "'a', 'b', 'label'", "contrastive_loss_param { margin: 3 }")
             PAIR("m", "ContrastiveLoss", "'b', 'a', 'label'",
                  "contrastive_loss_param { margin: 4 legacy_version: true } loss_weight: 0.3")
                 ONE("s", "Softmax", "a", "")
                     PAIR("p", "MultinomialLogisticLoss", "'s', 'label'", "loss_weight: 2"),
     {"a", "b"},
     2},
};

#endif

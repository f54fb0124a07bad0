/* Nets, solvers and calls that are wrong in one thing each: the error names the layer or the call, and what is
 * wrong. */
#include "net_case.h"

#define X(shape) "input: 'x' input_shape { dim: [" shape "] }\n"
#define XY(a, b) "input: ['x', 'y'] input_shape { dim: [" a "] } input_shape { dim: [" b "] }\n"
#define XYZ(a, b, c)                                                                                           \
    "input: ['x', 'y', 'z'] input_shape { dim: [" a "] } input_shape { dim: [" b "] } input_shape { dim: [" c  \
    "] }\n"
#define LAYER(type, bottoms, more)                                                                             \
    "layer { name: 'l' type: '" type "' bottom: [" bottoms "] top: 't' " more " }\n"
#define SOURCE(type, more) "layer { name: 'l' type: '" type "' top: 't' " more " }\n"
#define IMAGES X("4, 3, 8, 8")

static const struct {
    const char *text, *message;
} nets[] = {
    {X("4, 3") LAYER("Bias", "'x'", "bias_param { axis: 1 num_axes: 7 }"), "takes 7 dims from 1 on"},
    {X("4, 3") LAYER("Bias", "'x'", "bias_param { axis: 0 num_axes: 3 }"), "takes 3 dims from 0 on"},
    {X("4") LAYER("PReLU", "'x'", ""), "has no channels"},
    {X("4, 3") LAYER("BatchNorm", "'x'", "param { lr_mult: 1 }"), "learns nothing here"},
    {IMAGES LAYER("Convolution", "'x'", "convolution_param { num_output: 2 kernel_size: 3 kernel_h: 3 }"),
     "has kernel_size and kernel_h"},
    {IMAGES LAYER("Convolution", "'x'", "convolution_param { num_output: 2 kernel_size: [3, 3, 3] }"),
     "has 3 values of kernel_size; its bottom has 2 spatial dims"},
    {IMAGES LAYER("Convolution", "'x'", "convolution_param { num_output: 2 kernel_size: 3 axis: 0 }"),
     "has axis 0, but dim 0 is the batch"},
    {IMAGES LAYER("Log", "'x'", "log_param { base: 1 }"), "has base 1, to which there are no logarithms"},
    {IMAGES LAYER("Pooling", "'x'", ""), "has no kernel_size"},
    {IMAGES LAYER("Pooling", "'x'", "pooling_param { kernel_size: 2 global_pooling: true }"),
     "has a kernel and global_pooling"},
    {IMAGES LAYER("Pooling", "'x'", "pooling_param { kernel_h: 2 global_pooling: true }"),
     "has a kernel and global_pooling"},
    {IMAGES LAYER("Pooling", "'x'", "pooling_param { pad: 1 global_pooling: true }"),
     "has padding and global_pooling"},
    {IMAGES LAYER("Pooling", "'x'", "pooling_param { stride_w: 2 global_pooling: true }"),
     "has a stride and global_pooling"},
    {XY("4, 3", "4, 2") IP("ip", "x", "3") IP("l", "y", "1") LAYER("SoftmaxWithLoss", "'ip', 'l'", ""),
     "reads 'l', which depends on parameters that are learned: SoftmaxWithLoss layers have no gradient by it"},
    {XY("4, 3", "4") IP("ip", "x", "3") LAYER("HingeLoss", "'ip', 'y'", "propagate_down: [true, true]"),
     "reads 'y', which has propagate_down: true: HingeLoss layers have no gradient by it"},
    {XY("4, 3", "4") IP("i", "x", "1") "layer { name: 'e' type: 'Embed' bottom: 'i' top: 'e' embed_param { "
                                       "input_dim: 3 num_output: 2 } }\n" LAYER("SoftmaxWithLoss", "'e', 'y'",
                                                                                "softmax_param { axis: 2 }"),
     "reads 'i', which depends on parameters that are learned: Embed layers have no gradient by it"},
    {"input: 'x' input_dim: 1 input_dim: 2 input_dim: 3 input_dim: 4\ninput_shape { dim: 1 }\n",
     "only one of input_shape and input_dim may be there"},
    {XY("4, 3", "5") LAYER("Filter", "'x', 'y'", ""), "needs a selector with one number"},
    {XYZ("4, 3", "4", "4") "layer { name: 'f' type: 'Filter' bottom: ['x', 'y', 'z'] top: ['u', 'v'] }\n" LAYER(
         "SoftmaxWithLoss", "'u', 'v'", "loss_param { normalization: FULL }"),
     "divides by all samples"},
    {XYZ("4, 3", "4", "4") "layer { name: 'f' type: 'Filter' bottom: ['x', 'y', 'z'] top: ['u', 'v'] }\n" LAYER(
         "Reshape", "'u'", "reshape_param { shape { dim: [2, 6] } }"),
     "reads what the Filter layer 'f' passes"},
    {XYZ("4, 3", "4", "4") "layer { name: 'f' type: 'Filter' bottom: ['x', 'y', 'z'] top: ['u', 'v'] }\n" LAYER(
         "Softmax", "'u'", "softmax_param { axis: 0 }"),
     "reads what the Filter layer 'f' passes"},
    {XYZ("4, 3", "4", "4") "layer { name: 'f' type: 'Filter' bottom: ['x', 'y', 'z'] top: ['u', 'v'] }\n" LAYER(
         "Scale", "'u'", "scale_param { axis: 0 }"),
     "reads what the Filter layer 'f' passes"},
    {XY("4, 3, 2", "4") LAYER("InfogainLoss", "'x', 'y'", ""), "has 8 vectors of scores along dim 1"},
    {XY("4, 3", "5") LAYER("InfogainLoss", "'x', 'y'", ""), "has 4 vectors of scores along dim 1"},
    {XY("4, 3", "4") LAYER("InfogainLoss", "'x', 'y'", ""), "needs a matrix of 3 x 3"},
    {XY("4, 3", "4") LAYER("InfogainLoss", "'x', 'y'", "infogain_loss_param { source: '/no/such' }"),
     "cannot read its matrix"},
    {IMAGES LAYER("InnerProduct", "'x'", "inner_product_param { num_output: 2 axis: 0 }"),
     "has axis 0, which would join all samples"},
    {X("4") LAYER("Embed", "'x'", "embed_param { num_output: 2 }"), "both must be at least 1"},
    {X("1, 1, 1, 1, 1, 1, 1, 2") LAYER("Embed", "'x'", "embed_param { input_dim: 3 num_output: 2 }"),
     "would have more than 8"},
    {XY("4, 3", "2, 2") LAYER("BatchReindex", "'x', 'y'", ""), "they must have 1"},
    {X("4, 3") LAYER("ArgMax", "'x'", "argmax_param { top_k: 9 }"), "has top_k 9 of 3"},
    {XY("4, 3, 2", "4") LAYER("SoftmaxWithLoss", "'x', 'y'", ""), "has 8 vectors of scores along dim 1"},
    {XY("4, 3", "4") LAYER("Accuracy", "'x', 'y'", "accuracy_param { top_k: 7 }"),
     "has top_k 7, but there are 3 scores"},
    {X("4, 3") LAYER("LRN", "'x'", ""), "no image of 4 dims"},
    {IMAGES LAYER("LRN", "'x'", "lrn_param { local_size: 4 }"), "it must be odd"},
    {XY("4, 3", "4, 3") LAYER("LSTM", "'x', 'y'", "recurrent_param { num_output: 2 }"),
     "needs inputs of 3 dims"},
    {XY("4, 2, 3", "4, 2") LAYER("LSTM", "'x', 'y'", ""), "has num_output 0"},
    {XY("4, 2, 3", "4, 2") LAYER("LSTM", "'x', 'y'", "recurrent_param { num_output: 2 expose_hidden: true }"),
     "it takes 4 or 5 bottoms"},
    {XY("4, 3", "4, 3") LAYER("RNN", "'x', 'y'", "recurrent_param { num_output: 2 }"),
     "needs inputs of 3 dims"},
    {XY("4, 2, 3", "4, 2") LAYER("RNN", "'x', 'y'", ""), "has num_output 0"},
    {XY("4, 2, 3", "4, 2") LAYER("RNN", "'x', 'y'", "recurrent_param { num_output: 2 expose_hidden: true }"),
     "it takes 3 or 4 bottoms"},
    {XY("4, 3", "4, 3") LAYER("Eltwise", "'x', 'y'", "eltwise_param { coeff: 1 }"), "has 1 coeff"},
    {XY("4, 3", "4, 5") LAYER("Eltwise", "'x', 'y'", ""), "whose shapes differ"},
    {X("4") LAYER("MVN", "'x'", ""), "has no channels"},
    {XYZ("4, 3", "4, 2", "4") LAYER("ContrastiveLoss", "'x', 'y', 'z'", ""), "needs two blobs of one shape"},
    {XY("4, 3", "5") LAYER("MultinomialLogisticLoss", "'x', 'y'", ""), "needs probabilities"},
    {SOURCE("Parameter", "parameter_param { }"), "needs a shape of 1 to 8 dims"},
    {X("4, 3") LAYER("Slice", "'x'", "slice_param { slice_dim: 9 }"), "has slice_dim 9"},
    {X("4, 3") "layer { name: 'l' type: 'Slice' bottom: 'x' top: ['t', 'u'] }", "makes 2 tops out of 3"},
    {X("4, 3") "layer { name: 'l' type: 'Slice' bottom: 'x' top: ['t', 'u'] slice_param { slice_point: 9 } }",
     "has slice_point 9"},
    {XY("4, 3, 8, 8", "4, 3, 4, 4") LAYER("Crop", "'x', 'y'", "crop_param { axis: 2 offset: [1, 2, 3] }"),
     "has 3 values of offset"},
    {XY("4, 3, 8, 8", "4, 3, 4, 4") LAYER("Crop", "'x', 'y'", "crop_param { axis: 2 offset: 7 }"),
     "takes 4 indices from 7 on"},
    {X("4, 3") LAYER("Tile", "'x'", "tile_param { tiles: 0 }"), "has tiles 0"},
    {SOURCE("Data", "data_param { source: 'x' batch_size: 1 scale: 2 }"), "its place is transform_param"},
    {SOURCE("Data", "data_param { source: 'x' }"), "needs a source and a batch_size"},
    {SOURCE("ImageData", "image_data_param { batch_size: 1 }"), "needs a source and a batch_size"},
    {SOURCE("ImageData", "image_data_param { source: 'x' batch_size: 1 new_height: 3 }"),
     "has only one of new_height"},
    {"layer { name: 'l' type: 'WindowData' top: ['t', 'u'] window_data_param { source: '/no/such' batch_size: "
     "1 "
     "crop_mode: 'bend' } }",
     "it may be warp or square"},
    {X("4, 3") LAYER("Reshape", "'x'", "reshape_param { axis: 9 shape { dim: 2 } }"), "replaces dims 9"},
    {X("4, 3") LAYER("Reshape", "'x'", "reshape_param { shape { dim: [4, -2] } }"), "has dim -2"},
    {X("4, 3") LAYER("Reshape", "'x'", "reshape_param { shape { dim: [4, 100] } }"), "makes another number"},
    {X("4, 3") LAYER("Reshape", "'x'", "reshape_param { shape { dim: [4, 2] } }"),
     "makes 8 elements out of the 12"},
    {XY("4, 3", "4, 3") LAYER("Concat", "'x', 'y'", "concat_param { axis: 1 concat_dim: 1 }"),
     "has axis and concat_dim"},
    {XY("4, 3", "4, 3") LAYER("Concat", "'x', 'y'", "concat_param { concat_dim: 9 }"), "has concat_dim 9"},
    {XY("4, 3", "5, 3") LAYER("Concat", "'x', 'y'", ""), "whose shapes differ in other dims than 1"},
    {X("4, 3") "layer { name: 'r' type: 'Reduction' bottom: 'x' top: 'r' }\n" LAYER("ArgMax", "'r'", ""),
     "reads 'r', a number of the whole batch: ArgMax layers need samples"},
    {X("4, 3") "layer { name: 'r' type: 'Reduction' bottom: 'x' top: 'r' }\n" LAYER("BatchReindex", "'r', 'x'",
                                                                                    ""),
     "reads 'r', a number of the whole batch: BatchReindex layers need samples"},
    {XY("4, 3", "1, 4") LAYER("HingeLoss", "'x', 'y'", ""), "and a label for each sample"},
    {XY("4, 3", "4") IP("i", "x", "3") LAYER("Accuracy", "'i', 'y'", "loss_weight: 2"),
     "has a loss_weight, but Accuracy layers have no gradient"},
    {XY("4, 3", "4") IP("i", "x", "3") LAYER("Threshold", "'i'", "")
         IP("j", "t", "3") "layer { name: 'loss' type: 'SoftmaxWithLoss' bottom: ['j', 'y'] top: 'loss' }\n",
     "is on the way from parameters to the loss, but Threshold layers have no gradient"},
    {X("4, 3, 2") LAYER("Flatten", "'x'", "flatten_param { axis: 2 end_axis: 1 }"),
     "flattens dims 2 to 1: the last lies before the first"},
    {SOURCE("DummyData", "dummy_data_param { shape { dim: 2 } data_filler { } data_filler { } }"),
     "has 2 fillers for 1 tops"},
    {SOURCE("DummyData", "dummy_data_param { shape { dim: 2 } shape { dim: 2 } }"), "has 2 shapes for 1 tops"},
    {SOURCE("DummyData", "dummy_data_param { num: [1, 2] channels: 1 height: 1 width: 1 }"),
     "has 2 values of num"},
    {SOURCE("DummyData", "dummy_data_param { shape { } }"), "has a shape of 0 dims"},
    {SOURCE("Input", "input_param { shape { dim: 2 } shape { dim: 2 } }"), "has 2 shapes for 1 tops"},
    {SOURCE("Input", "input_param { shape { } }"), "has a shape of 0 dims"},
    {"layer { name: 'l' type: 'MemoryData' top: ['t', 'u'] memory_data_param { batch_size: 2 channels: 1 "
     "height: 1 } }",
     "has width 0"},
    {X("4, 3") LAYER("SPP", "'x'", "spp_param { pyramid_height: 2 }"), "needs images and a pyramid_height"},
    {X("4, 3, 7, 8") LAYER("SPP", "'x'", "spp_param { pyramid_height: 2 pool: STOCHASTIC }"),
     "has stochastic pooling"},
    {IMAGES LAYER("SPP", "'x'", "spp_param { pyramid_height: 9 }"), "makes windows that do not fit"},
    {XY("4, 3", "4, 2") LAYER("EuclideanLoss", "'x', 'y'", ""),
     "reads 4 samples with 12 scores 'x', but 4 samples with 8 targets 'y'"},
    {XY("4, 3", "5") LAYER("HingeLoss", "'x', 'y'", ""), "needs scores of at least 2 dims"},
    {X("4, 3") LAYER("Exp", "'x'", "exp_param { base: 0 }"), "has base 0"},
    {XY("4, 3", "4") IP("ip", "x", "3") "layer { name: 'loss' type: 'SoftmaxWithLoss' bottom: ['ip', 'y'] top: "
                                        "'loss' }\n" LAYER("TanH", "'loss'", "loss_weight: 1"),
     "makes a loss that other layers read"},
    {X("4, 3") SIMPLE("left", "ReLU", "x", "u", "include { phase: TEST }")
         LAYER("ReLU", "'x'", "include { phase: TRAIN } exclude { phase: TEST }"),
     "layer 'l' has include and exclude rules"},
    {X("4, 3") "\n" SIMPLE("left", "ReLU", "x", "u", "include { phase: TEST }") LAYER("ReLU", "'u'", ""),
     "reads the blob 'u', which no layer before it makes in the phase TRAIN: layer 'left' in line 3 does, but "
     "its rules leave it out"},
    {X("4, 3") LAYER("ReLU", "'x'", "python_param { layer: 'Mine' }"), "python_param"},
    {X("4, 3") LAYER("Dropout", "'x'", "phase: TEST"), "has another phase than its net"},
    {X("4, 3") LAYER("BatchNorm", "'x'", "phase: TEST"), "has another phase than its net"},
    {X("4, 3, 2, 2") LAYER("Pooling", "'x'", "phase: TEST pooling_param { kernel_size: 2 pool: STOCHASTIC }"),
     "has another phase than its net"},
    {X("4, 3") LAYER("Eltwise", "'x'", ""), "Eltwise layers have at least 2"},
    {X("4, 3") LAYER("ReLU", "'x'", "propagate_down: [true, true]"), "2 values of propagate_down"},
    {X("4, 3") LAYER("ReLU", "'x'", "loss_weight: [1, 2]"), "2 values of loss_weight"},
    {X("4, 3") LAYER("InnerProduct", "'x'",
                     "inner_product_param { num_output: 2 weight_filler { type: 'xavier' sparse: 3 } }"),
     "only gaussian fillers may be sparse"},
    {X("4, 3") "layer { name: 'k' type: 'InnerProduct' bottom: 'x' top: 'k' param { name: 'w' lr_mult: 1 } "
               "inner_product_param { num_output: 2 } }\n" LAYER(
                   "InnerProduct", "'x'",
                   "param { name: 'w' lr_mult: 2 } inner_product_param { num_output: 2 }"),
     "another lr_mult than the layers before it"},
    {X("4, 3") "layer { name: 'k' type: 'InnerProduct' bottom: 'x' top: 'k' param { name: 'w' } "
               "inner_product_param { num_output: 2 } }\n" LAYER(
                   "InnerProduct", "'x'", "param { name: 'w' } inner_product_param { num_output: 5 }"),
     "but needs another shape"},
    {X("4, 3") "\n" IP("f", "x", "2") "layer { name: 'f' type: 'PReLU' bottom: 'f' top: 'f' }\n",
     "net.prototxt:4: layer 'f' has the name of another layer in line 3; both have parameters, which files "
     "could "
     "not tell apart"},
#ifdef NN_HAVE_HDF5
    {SOURCE("HDF5Data", "hdf5_data_param { source: '/no/such' batch_size: 1 }"), "/no/such"},
    {XY("4, 3", "4") "layer { name: 'l' type: 'HDF5Output' bottom: ['x', 'y'] }", "needs a file_name"},
    {XY("4, 3", "4") "layer { name: 'l' type: 'HDF5Output' bottom: ['x', 'y'] hdf5_output_param { file_name: "
                     "'/no/such/x' } }",
     "cannot write its file"},
    {SOURCE("HDF5Data", "hdf5_data_param { source: 'empty' batch_size: 1 }"), "lists no files"},
#endif
    {SOURCE("ImageData", "image_data_param { source: 'empty' batch_size: 1 }"), "lists no images"},
    {XY("4, 3", "4") LAYER("InfogainLoss", "'x', 'y'", "infogain_loss_param { source: 'empty' }"),
     "needs a matrix of 3 x 3, which empty does not have"},
};

static int wrong;

static void says(const char *text, dm_status status, const char *message)
{
    if (status == DM_OK || !strstr(dm_error_message(), message)) {
        fprintf(stderr, "%s\n  says    %s\n  and not %s\n", text,
                status == DM_OK ? "nothing" : dm_error_message(), message);
        wrong++;
    }
}

static void test_nets(void **state)
{
    (void)state;
    write_file("empty", "");
    for (int i = 0; i < COUNT(nets); i++) {
        dm_net *net = NULL;
        dm_net_options options = DM_NET_OPTIONS_INIT;
        options.phase = DM_PHASE_TRAIN;
        write_file("net.prototxt", nets[i].text);
        dm_status status = dm_net_open(session, "net.prototxt", &options, &net);
        says(nets[i].text, status, "net.prototxt:");
        says(nets[i].text, status, nets[i].message);
    }
    assert_int_equal(wrong, 0);
}

#define SETTINGS(more) "base_lr: 0.1 max_iter: 1 " more
static const struct {
    const char *text, *message;
} solvers[] = {
    {SETTINGS("net: 'net.prototxt' lr_policy: 'fixed' test_iter: 0 test_interval: 1"),
     "test_iter must be at least 1"},
    {SETTINGS("train_net: 'net.prototxt' lr_policy: 'fixed' test_iter: 1 test_interval: 1"),
     "1 values of test_iter for 0 test nets"},
    {SETTINGS(
         "net: 'net.prototxt' lr_policy: 'fixed' test_iter: 1 test_interval: 1 test_state { } test_state { }"),
     "there are 2 test_state for 1 test nets"},
    {SETTINGS("net: 'net.prototxt' lr_policy: 'fixed' test_iter: 1"), "but no test_interval"},
    {SETTINGS("net: 'net.prototxt' lr_policy: 'warm'"), "lr_policy 'warm' is none of"},
    {SETTINGS("net: 'net.prototxt' lr_policy: 'step' gamma: 0.1"), "needs a stepsize above 0"},
    {SETTINGS("net: 'net.prototxt' lr_policy: 'exp' gamma: -1"), "gamma may not be negative"},
    {SETTINGS("net: 'net.prototxt' lr_policy: 'fixed' snapshot: 1 snapshot_prefix: '/no/such/x'"),
     "no file can be written at '/no/such/x'"},
    {SETTINGS("net: 'net.prototxt' lr_policy: 'fixed' iter_size: 0"), "iter_size is 0; it must be at least 1"},
    {SETTINGS("net: 'net.prototxt' lr_policy: 'fixed' regularization_type: 'L3'"), "must be L1 or L2"},
    {SETTINGS("net: 'net.prototxt' lr_policy: 'fixed' type: 'SGD' solver_type: SGD"),
     "only one of type and solver_type"},
    {SETTINGS("net: 'net.prototxt' lr_policy: 'fixed' type: 'Newton'"), "there is no solver 'Newton'"},
    {SETTINGS("net: 'none.prototxt' lr_policy: 'fixed'"), "the net has no parameters to train"},
    {SETTINGS("net: 'free.prototxt' lr_policy: 'fixed'"), "free.prototxt: the net has no loss to train by"},
    {SETTINGS("net: 'still.prototxt' lr_policy: 'fixed'"), "still.prototxt: the net has no loss to train by"},
    {SETTINGS("net: 'biased.prototxt' lr_policy: 'fixed' test_iter: 1 test_interval: 1"),
     "biased.prototxt:3: layer 'c' has 2 parameters, but the training net's layer of this name has 1"},
    {SETTINGS("net: 'turned.prototxt' lr_policy: 'fixed' test_iter: 1 test_interval: 1"),
     "turned.prototxt:3: layer 'c' has parameters of another shape than the training net's layer: 3 x 2 x 3 x "
     "1, and "
     "not 3 x 2 x 1 x 3"},
};

static const char *const good = XY("4, 3", "4")
    IP("ip", "x", "3") "layer { name: 'loss' type: 'SoftmaxWithLoss' bottom: ['ip', 'y'] top: 'loss' }\n";

/* The layer c of training and that of tests. */
#define OF_PHASE(phase, fields)                                                                                \
    "layer { name: 'c' type: 'Convolution' bottom: 'x' top: 'c' include { phase: " phase                       \
    " } convolution_param { num_output: 3 " fields " } }\n"
#define TWO_PHASES(train, test)                                                                                \
    XY("4, 2, 3, 3", "4")                                                                                      \
    OF_PHASE("TRAIN", train)                                                                                   \
    OF_PHASE("TEST", test)                                                                                     \
    "layer { name: 'p' type: 'Pooling' bottom: 'c' top: 'p' pooling_param { global_pooling: true } }\n" IP(    \
        "ip", "p", "3") "layer { name: 'loss' type: 'SoftmaxWithLoss' bottom: ['ip', 'y'] top: 'loss' }\n"

static void test_solvers(void **state)
{
    (void)state;
    write_file("biased.prototxt", TWO_PHASES("kernel_size: 2 bias_term: false", "kernel_size: 2"));
    write_file("turned.prototxt", TWO_PHASES("kernel_h: 1 kernel_w: 3", "kernel_h: 3 kernel_w: 1"));
    write_file("net.prototxt", good);
    write_file("none.prototxt", XY("4, 3", "4") LAYER("SoftmaxWithLoss", "'x', 'y'", ""));
    write_file("free.prototxt", XY("4, 3", "4") IP("ip", "x", "3"));
    write_file("still.prototxt",
               XY("4, 3", "4") IP("ip", "x", "3") LAYER("SoftmaxWithLoss", "'ip', 'y'", "loss_weight: 0"));
    for (int i = 0; i < COUNT(solvers); i++) {
        dm_solver *solver = NULL;
        write_file("solver.prototxt", solvers[i].text);
        dm_status status = dm_solver_open(session, "solver.prototxt", NULL, &solver);
        says(solvers[i].text, status, solvers[i].message);
    }
    assert_int_equal(wrong, 0);
}

#define REFUSED(want, words, call)                                                                             \
    do {                                                                                                       \
        dm_status got = (call);                                                                                \
        assert_int_equal(got, DM_ERR_##want);                                                                  \
        says(#call, got, words);                                                                               \
    } while (0)

static void test_calls(void **state)
{
    (void)state;
    double number, means[DM_MAX_CHANNEL_MEANS];
    float element;
    char *text = NULL;
    dm_array a;
    int ndim;
    int64_t shape[DM_MAX_DIMS];
    dm_net *net = open_text(good, DM_PHASE_TEST);
    dm_solver *solver = NULL;
    REFUSED(STATE, "dm_net_backward: the net has the phase TEST", dm_net_backward(net));
    REFUSED(ARG, "dm_net_blob: the net has no blob 'u'", dm_net_blob(net, "u", &a, NULL));
    REFUSED(ARG, "dm_net_param: the net has no parameter 7 of a layer 'ip'",
            dm_net_param(net, "ip", 7, &a, NULL));
    REFUSED(ARG, "dm_net_output: i is 9", dm_net_output(net, 9, NULL, NULL, NULL));
    REFUSED(ARG, "the net has no blob 'u'", dm_net_shape(net, "u", &ndim, shape));
    REFUSED(ARG, "the net has no blob 'u'", dm_net_read(net, "u", &element));
    REFUSED(ARG, "dm_net_write: 'ip' is no input", dm_net_write(net, "ip", &element));
    REFUSED(ARG, "dm_net_param_read: the net has no parameter -1",
            dm_net_param_read(net, "ip", -1, &ndim, shape, NULL));
    REFUSED(ARG, "dm_net_shape: an argument is NULL", dm_net_shape(net, "x", NULL, shape));
    REFUSED(ARG, "dm_net_shape: an argument is NULL", dm_net_shape(net, "x", &ndim, NULL));
    REFUSED(ARG, "dm_net_read: an argument is NULL", dm_net_read(net, "x", NULL));
    REFUSED(ARG, "dm_net_write: an argument is NULL", dm_net_write(net, "x", NULL));
    REFUSED(ARG, "dm_net_param_read: an argument is NULL", dm_net_param_read(net, "ip", 0, NULL, shape, NULL));
    REFUSED(ARG, "dm_net_explain: an argument is NULL", dm_net_explain(net, NULL));
    REFUSED(ARG, "dm_net_show: an argument is NULL", dm_net_show(NULL, &text));
    REFUSED(ARG, "dm_net_convert: an argument is NULL", dm_net_convert("net.prototxt", NULL));
    REFUSED(ARG, "passes at least 1", dm_net_measure(net, 0, &number, &number));
    REFUSED(ARG, "passes at least 1", dm_net_time(net, 0, &text));
    REFUSED(ARG, "dm_data_convert_idx: an argument is NULL", dm_data_convert_idx(NULL, NULL, NULL, NULL));
    REFUSED(ARG, "dm_data_mean: an argument is NULL", dm_data_mean(NULL, NULL, means, NULL));
    REFUSED(ARG, "dm_data_mean_read: an argument is NULL", dm_data_mean_read(NULL, means, NULL));
    REFUSED(ARG, "dm_data_show: database and text must be there", dm_data_show(NULL, 0, 0, &text));
    REFUSED(ARG, "dm_prototxt_print: an argument is NULL", dm_prototxt_print("net.prototxt", NULL, &text));
    CHECK(dm_net_close(net));
    net = open_text(good, DM_PHASE_TRAIN);
    REFUSED(STATE, "dm_net_backward: no forward pass came before", dm_net_backward(net));
    CHECK(dm_net_forward(net, NULL));
    CHECK(dm_net_backward(net));
    CHECK(dm_net_close(net));
    dm_net_options options = DM_NET_OPTIONS_INIT;
    options.store_bytes = -1;
    REFUSED(ARG, "store_bytes not negative", dm_net_open(session, "net.prototxt", &options, &net));
    net = open_text(X("4, 3") LAYER("ReLU", "'x'", ""), DM_PHASE_TEST);
    REFUSED(ARG, "dm_net_output: 't' has 12 elements", dm_net_output(net, 0, NULL, NULL, &number));
    CHECK(dm_net_close(net));
    write_file("net.prototxt", good);
    write_file("solver.prototxt", SETTINGS("net: 'net.prototxt' lr_policy: 'fixed'"));
    CHECK(dm_solver_open(session, "solver.prototxt", NULL, &solver));
    REFUSED(ARG, "dm_solver_step: solver must be there, iterations not negative", dm_solver_step(solver, -1));
    REFUSED(ARG, "dm_solver_keep: solver must be there, name be 1 to", dm_solver_keep(solver, ""));
    REFUSED(ARG, "dm_solver_links: an argument is NULL", dm_solver_links(solver, NULL));
    REFUSED(ARG, "dm_solver_links: an argument is NULL", dm_solver_links(NULL, &(int64_t){0}));
    CHECK(dm_solver_close(solver));
    /* the snapshot after the last iteration is what a run is for: its place is looked at before the first one
     */
    write_file("solver.prototxt",
               SETTINGS("net: 'net.prototxt' lr_policy: 'fixed' snapshot_prefix: '/no/such/x'"));
    CHECK(dm_solver_open(session, "solver.prototxt", NULL, &solver));
    REFUSED(IO, "no file can be written at '/no/such/x'", dm_solver_run(solver, NULL, NULL));
    assert_int_equal(dm_solver_iteration(solver), 0);
    CHECK(dm_solver_step(solver, 1));
    CHECK(dm_solver_close(solver));
    dm_solver_options settings = DM_SOLVER_OPTIONS_INIT;
    settings.store_bytes = -1;
    REFUSED(ARG, "store_bytes not negative", dm_solver_open(session, "solver.prototxt", &settings, &solver));
    const char *none[] = {NULL};
    dm_data_options data = DM_DATA_OPTIONS_INIT;
    data.from = "lmdb";
    data.inputs = none;
    data.input_count = 1;
    data.database = "made";
    REFUSED(ARG, "dm_data_convert: input 0 is NULL", dm_data_convert(&data, &(int64_t){0}));
    none[0] = "list";
    data.from = "images";
    data.height = 3;
    REFUSED(ARG, "height is 3 and width 0: both or neither", dm_data_convert(&data, &(int64_t){0}));
    assert_int_equal(wrong, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nets),
        cmocka_unit_test(test_solvers),
        cmocka_unit_test(test_calls),
    };
    return cmocka_run_group_tests(tests, begin, end);
}

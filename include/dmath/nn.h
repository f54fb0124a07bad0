/* Networks: training and running Caffe's nets on any number of workers.
 *
 * BSD-3-Clause, see LICENSE. Link with -ldmath_nn -ldmath. The rules of dmath.h hold here too: every call returns a
 * status, and dm_error_message() has the details, with file and line where a file is at fault.
 *
 * Files are Caffe's: nets and solvers as text (prototxt), weights (.caffemodel) and states of solvers (.solverstate) in
 * the binary form or as HDF5 (names that end with .h5). What dmath does not understand or support is an error that
 * names the field, the file and the line; it is never passed over. Nets of before 2015 (field `layers`) and of before
 * 2014 (`layers { layer`) are read as today's.
 *
 * Arrays of images are N x H x W x C. In files, and in all shapes that are printed, they are Caffe's N x C x H x W.
 *
 * The batch is that of all workers together. (Caffe multiplies batch_size by the number of GPUs.)
 *
 * Losses and weights have the same bits on any number of workers: the batch is cut into slices, see <dmath/layers.h>.
 * Random numbers depend on the seed, the layer, the iteration and the element's index.
 *
 * Of every call, unless its text says otherwise: it does not block if it only queues commands of the net or looks at
 * what the net is; what gives or takes elements, and what reads or writes files, blocks, in the calling thread. Arrays,
 * names and nets that it gives belong to the net or solver, and end with it; a `text` is the caller's, for free().
 * Errors that the texts do not repeat: DM_ERR_ARG (an argument is NULL or out of its range), DM_ERR_NOMEM, and those of
 * the calls of dmath.h and layers.h that a net is made of. Costs are those of these calls: dm_net_explain and
 * dm_net_time print them, a layer a row. */
#ifndef DMATH_NN_H
#define DMATH_NN_H

#include <dmath/dmath.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Takes a line, without its end, of what a net or a solver reports: "Iteration 100, loss = 0.5". The line is the
 * library's. */
typedef void (*dm_log_function)(void *context, const char *line);

/* ---- layers of the program's own -------------------------------------------------------------------------- */

/* What Caffe calls Python layers, in C: functions that make the calls of dmath that a layer consists of. A layer of the
 * net has the name of its type in the field `type`, or `type: "Python"` with the name in python_param.layer. A solver
 * records the calls of a step once and then runs them as a program (<dmath/program.h>): so a function makes the same
 * calls each time, and its seeds come from dm_layer_seed; functions that wait, read elements or decide by them say so
 * (`waits`).
 *
 *     static dm_status shapes(dm_layer *l, void *context) { ... dm_layer_bottom, dm_layer_set_top }
 *     static dm_status value(dm_layer *l, void *context) { ... dm_map(dm_layer_session(l), "x * x", 1, args, top.data) }
 *     dm_layer_type square = DM_LAYER_TYPE_INIT;
 *     square.name = "Square"; square.setup = shapes; square.forward = value; ...
 *     options.layer_types = &square; options.layer_type_count = 1; */
typedef struct dm_layer dm_layer;
typedef struct dm_layer_type {
    size_t size; /* sizeof(dm_layer_type): set by DM_LAYER_TYPE_INIT */
    const char *name;
    int bottoms[2], tops[2]; /* fewest and most; layers without bottoms bring data, before each step */
    unsigned gradients;      /* bit i: bottom i gets a gradient */
    int waits;               /* its functions do what cannot be recorded */
    void *context;           /* for the functions */
    dm_status (*setup)(dm_layer *layer, void *context);    /* sets the shapes of all tops, adds parameters; no arrays yet */
    dm_status (*prepare)(dm_layer *layer, void *context);  /* NULL, or makes arrays of its own, when those of blobs are there */
    dm_status (*forward)(dm_layer *layer, void *context);  /* writes all tops */
    dm_status (*backward)(dm_layer *layer, void *context); /* NULL, or writes gradients of bottoms and parameters */
    void (*drop)(dm_layer *layer, void *context);          /* NULL, or ends what setup and prepare made */
} dm_layer_type;
#define DM_LAYER_TYPE_INIT {sizeof(dm_layer_type), NULL, {1, 1}, {1, 1}, 1, 0, NULL, NULL, NULL, NULL, NULL, NULL}

typedef struct dm_layer_blob {
    size_t size; /* set by the caller: sizeof(dm_layer_blob) */
    const char *name;
    int ndim;                   /* 0: one number of the whole batch */
    int64_t shape[DM_MAX_DIMS]; /* N x C x H x W; the arrays of 4 dims are N x H x W x C */
    dm_array data, diff;        /* diff: the gradient by a top, zero where there is none. In setup there are no arrays. */
    double loss_weight;
} dm_layer_blob;

/* For those functions alone; of other layers NULL, -1 or DM_ERR_ARG. What one function alone may call is
 * DM_ERR_STATE in the others. */
DM_API dm_session *dm_layer_session(const dm_layer *layer);
DM_API const char *dm_layer_name(const dm_layer *layer);
DM_API const char *dm_layer_text(const dm_layer *layer); /* python_param.param_str; "" if there is none */
DM_API int dm_layer_phase(const dm_layer *layer);
DM_API int dm_layer_slices(const dm_layer *layer); /* for the calls of <dmath/layers.h> and dm_layout_batch */
/* As of dm_net_options, for gradients by weights (dm_conv, dm_inner); 0 of other layers too. */
DM_API dm_dtype dm_layer_wire(const dm_layer *layer);
DM_API int dm_layer_bottoms(const dm_layer *layer);
DM_API int dm_layer_tops(const dm_layer *layer);
/* Another in each pass; backward has that of its forward pass. All 64 bits count: in an expression it is part of the
 * text. */
DM_API uint64_t dm_layer_seed(const dm_layer *layer);
DM_API void **dm_layer_state(dm_layer *layer);        /* a pointer of the program's own, at first NULL */
DM_API DM_CHECKED dm_status dm_layer_bottom(dm_layer *layer, int i, dm_layer_blob *out);
DM_API DM_CHECKED dm_status dm_layer_top(dm_layer *layer, int i, dm_layer_blob *out);
/* In setup: the shape of a top, in Caffe's order. ndim 0: one number of the whole batch, such as a loss, whose
 * loss_weight the net's file says. Errors: DM_ERR_SHAPE. */
DM_API DM_CHECKED dm_status dm_layer_set_top(dm_layer *layer, int i, int ndim, const int64_t *shape);
/* In setup: a further parameter, of at most 6, which lies on all workers; its elements begin as `first`. */
DM_API DM_CHECKED dm_status dm_layer_add_param(dm_layer *layer, int ndim, const int64_t *shape, double first);
/* The arrays of a parameter. beta, if not NULL, in backward, once a pass: 0 where the gradient is to be
 * written, 1 where it is to be added to what is there. The arrays are the net's. Where the layer shares a
 * parameter that lies otherwise, data is a copy, which the next pass writes anew. */
DM_API DM_CHECKED dm_status dm_layer_param(dm_layer *layer, int i, dm_array *data, dm_array *diff, double *beta);
/* In backward: where the gradient by a bottom is to be written, all of it; zero: nobody wants it. The array is the
 * net's. */
DM_API DM_CHECKED dm_status dm_layer_gradient(dm_layer *layer, int bottom, dm_array *out);
/* Notes a text with the file, the line and the name of the layer; returns the status. */
DM_API DM_CHECKED dm_status dm_layer_fail(dm_layer *layer, dm_status status, const char *text);

/* ---- nets and settings made by calls -----------------------------------------------------------------------
 */

/* What a prototxt file says, made by a program: the layers and fields of Caffe's schema, by their names. It
 * belongs to the caller, needs no session, and may be used, changed and used again: nets and solvers keep
 * nothing of it.
 *
 *     dm_prototxt_create("NetParameter", &p);
 *     dm_prototxt_layer(p, "Convolution", "conv1", "data", "conv1");
 *     dm_prototxt_number(p, "conv1", "convolution_param.num_output", 20);
 *     dm_prototxt_text(p, "conv1", "convolution_param.weight_filler.type", "xavier");
 *     dm_prototxt_number(p, "conv1", "param[1].lr_mult", 2);
 *     dm_net_create(session, p, NULL, &net);
 *
 * `layer` is the name of a layer, the last one of its name; NULL: the field is one of the net or solver itself.
 * `field` is a path: names with dots between them. [2] behind a name means number 2 of several values, from 0;
 * the next new one may be set too. Without it, all values of the field, or the first message. Messages on the
 * way are made. Errors of these calls: DM_ERR_ARG with the call, the layer and the field, and nothing is
 * changed. What a net or solver cannot take is an error of dm_net_create and dm_solver_create, which name a
 * line of what dm_prototxt_show prints. Each call takes a time proportional to the layers. */
typedef struct dm_prototxt dm_prototxt;
/* An empty one: type "NetParameter" or "SolverParameter". The caller ends it with dm_prototxt_destroy. */
DM_API DM_CHECKED dm_status dm_prototxt_create(const char *type, dm_prototxt **prototxt);
DM_API DM_CHECKED dm_status dm_prototxt_destroy(dm_prototxt *prototxt); /* accepts NULL */
/* Adds a layer behind those that are there. bottoms, tops: names of blobs, "data,label"; NULL: none. */
DM_API DM_CHECKED dm_status dm_prototxt_layer(dm_prototxt *prototxt, const char *type, const char *name,
                                              const char *bottoms, const char *tops);
/* The field is `value`: integers, floats, and enums and bools (0 or 1) as numbers. */
DM_API DM_CHECKED dm_status dm_prototxt_number(dm_prototxt *prototxt, const char *layer, const char *field,
                                               double value);
/* The field is `value`: strings, names of enums ("TRAIN", "MAX"), bools ("true", "false"). */
DM_API DM_CHECKED dm_status dm_prototxt_text(dm_prototxt *prototxt, const char *layer, const char *field,
                                             const char *value);
/* A field that may be repeated has these values: "input_param.shape.dim", "stepvalue". count 0: none. */
DM_API DM_CHECKED dm_status dm_prototxt_list(dm_prototxt *prototxt, const char *layer, const char *field,
                                             int64_t count, const double *values);
/* As the text of a file, for dm_net_open_text or a file of its own. */
DM_API DM_CHECKED dm_status dm_prototxt_show(const dm_prototxt *prototxt, char **text);

/* ---- nets ------------------------------------------------------------------------------------------------ */

typedef struct dm_net dm_net;

enum { DM_PHASE_TRAIN = 0, DM_PHASE_TEST = 1 };

/* Who reads the records of layers with data: each worker those of its own samples, out of files that all hosts have; or the
 * program's process for all, which sends them. By default workers that are processes read their own, unless a host lacks the
 * files, or the source allows one process only (LevelDB): the log says which it is, and why. */
enum { DM_READ_DEFAULT = 0, DM_READ_BY_PROGRAM = 1, DM_READ_BY_WORKERS = 2 };

/* Make one with DM_NET_OPTIONS_INIT, then set fields. */
typedef struct dm_net_options {
    size_t size;        /* sizeof(dm_net_options): set by DM_NET_OPTIONS_INIT */
    int phase, level;   /* DM_PHASE_*; for the rules (include, exclude) of layers */
    const char *stages; /* separated by commas; NULL: none */
    int slices;         /* of a batch; 0: as many as workers, and results differ by rounding */
    uint64_t seed;      /* of fillers and dropout */
    dm_log_function log;
    void *log_context;
    dm_dtype type; /* DM_F32, DM_F16 or DM_BF16, of what lies between the layers of a loss, and of the weights of convolutions
                    * and inner products where these are used. Weights themselves, their gradients, labels and losses are f32. */
    int shuffle;      /* in training, records in another order in each round, by the seed */
    int skip_damaged; /* records: the next one instead, which the log tells; else they are errors */
    /* "LAYER=features,LAYER=both,LAYER=batch": how workers share inner products, convolutions and
     * deconvolutions. By features, each has the weights of some outputs: samples travel, gradients of weights
     * do not. By both, workers are a grid: each has some samples, and the weights of some outputs. Of layers
     * that are not named, those with more than 4 000 000 weights are split in training as the shortest
     * estimated time says, the others by batch. Large layers, and named ones, are computed in ranges of
     * outputs, as many as slices (about as many, of groups of filters): their results have the same bits in all
     * forms. NULL: none is named. The word "measured" beside or instead of such: these estimates take rates
     * that are measured when the net is opened, in about a second, in arrays of 112 to 192 MiB on each worker,
     * and which the log tells; else 5 GB/s sent, 10 GB/s of memory and 50 Gflop/s a worker. A layer of another
     * type, one that uses another's weights, another word: DM_ERR_ARG. */
    const char *split;
    /* Types of the program's own, one behind the other as far apart as layer_types[0].size says; they are copied, their
     * names are not. */
    const dm_layer_type *layer_types;
    int layer_type_count;
    const char *own_loss; /* "A,B": blobs whose gradients the program gives (dm_net_own_gradient). NULL: none */
    /* Decoded images of Data and ImageData layers are kept for later rounds, up to so many bytes in each layer; 0: none. In memory, or
     * in a file in this folder, which has no name and ends with the net. */
    int64_t store_bytes;
    const char *store_folder;
    int read; /* DM_READ_*. BY_WORKERS: where they cannot, that is an error */
    int unused; /* not read */
    /* What gradients of weights are between workers: 0, f32; or DM_BF16, half the bytes. Each slice's gradient
     * by the weights of a convolution, deconvolution, inner product, LSTM or RNN is rounded once to bf16 before
     * the slices are added, on any number of workers, one too; sums, weights, and gradients of biases, scales
     * and slopes are f32 as ever. Not of nets of f16 (DM_ERR_ARG), nor in training with Embed or Parameter
     * layers that learn, whose gradients are no sums over slices (DM_ERR_UNSUPPORTED). Layers of the program's
     * own ask dm_layer_wire. Files do not say it: a run that goes on is told again. */
    dm_dtype wire;
} dm_net_options;
#define DM_NET_OPTIONS_INIT                                                                                    \
    {                                                                                                          \
        sizeof(dm_net_options), DM_PHASE_TEST, 0, NULL, DM_SLICES, 1, NULL, NULL, DM_F32, 0, 0, NULL, NULL, 0, \
            NULL, 0, NULL, DM_READ_DEFAULT, 0, (dm_dtype)0                                                     \
    }

/* A net out of a prototxt file, or a binary one (names that end with .caffemodel or .binaryproto), with the
 * first values of its parameters: those of its `blobs`, where layers have such, else of fillers. options NULL:
 * all defaults. Blocks. The caller ends it with dm_net_close. Errors: DM_ERR_FORMAT, DM_ERR_UNSUPPORTED,
 * DM_ERR_SHAPE, DM_ERR_IO with file and line. */
DM_API DM_CHECKED dm_status dm_net_open(dm_session *session, const char *path, const dm_net_options *options, dm_net **net);
/* The same out of a text instead of a file: nets that a program makes. `name` stands for the file in messages; NULL:
 * "net". */
DM_API DM_CHECKED dm_status dm_net_open_text(dm_session *session, const char *text, const char *name,
                                             const dm_net_options *options, dm_net **net);
/* The same out of a NetParameter made by calls. The net's name stands for the file in messages, or "net". */
DM_API DM_CHECKED dm_status dm_net_create(dm_session *session, const dm_prototxt *prototxt,
                                          const dm_net_options *options, dm_net **net);
/* Ends a net and its arrays; accepts NULL. Before dm_finalize. Does not block, but where workers read records and skip damaged
 * ones: the log has their last report. */
DM_API DM_CHECKED dm_status dm_net_close(dm_net *net);
/* Weights of a .caffemodel (as text: .prototxt, .txt; HDF5: .h5) into the layers of the same names. Layers of
 * the file that the net lacks are reported to the log. Blocks. Errors: DM_ERR_IO, DM_ERR_FORMAT (also: the file
 * has no layers), DM_ERR_SHAPE (a layer's parameters have other shapes, or are more or fewer). */
DM_API DM_CHECKED dm_status dm_net_load(dm_net *net, const char *path);
/* Net and weights as a .caffemodel, or in the form that the name says as for dm_net_load, which appears under
 * its name only when it is whole. Blocks. Errors: DM_ERR_IO. */
DM_API DM_CHECKED dm_status dm_net_save(dm_net *net, const char *path);
/* All layers in order. *loss = the sum of the losses, by their weights. Blocks unless loss is NULL. */
DM_API DM_CHECKED dm_status dm_net_forward(dm_net *net, double *loss);
/* The gradients of the loss by all parameters and by what lies between; with `force_backward: true` in the
 * net's file also by its data. Errors: DM_ERR_STATE (a net of the phase TEST, or before its first forward
 * pass). */
DM_API DM_CHECKED dm_status dm_net_backward(dm_net *net);
/* *gradient = that of a loss of the program's own by a blob that the option own_loss names: an array of the blob's
 * shape, at first 0, that the program writes after a forward pass. dm_net_backward adds it to what the net's losses
 * give. The net's: do not destroy. Errors: DM_ERR_ARG (own_loss does not name it). */
DM_API DM_CHECKED dm_status dm_net_own_gradient(dm_net *net, const char *blob, dm_array *gradient);
/* The array of a blob, the last of its name, and that of its gradient (zero where the net makes none; NULL: not
 * wanted). The net's: do not destroy. Errors: DM_ERR_ARG (there is no such blob), DM_ERR_STATE (a blob of a lean
 * solver). */
DM_API DM_CHECKED dm_status dm_net_blob(dm_net *net, const char *name, dm_array *data, dm_array *diff);
/* The array of parameter `number` of a layer, and that of its gradient. In a net of the phase TRAIN they may be
 * views of parts of larger arrays, and what a command that failed has written to one of them poisons the
 * others. The net's: do not destroy. Errors: DM_ERR_ARG, DM_ERR_UNSUPPORTED (the layer shares the parameter of
 * another, whose elements lie otherwise: ask for that one's). Cost: once the program has `data`, each step of a
 * solver of 16 bits rounds all weights anew, for the program may have written them. */
DM_API DM_CHECKED dm_status dm_net_param(dm_net *net, const char *layer, int number, dm_array *data, dm_array *diff);
/* The blobs that no layer reads, in the order of their names: how many there are, and of number i its name, its weight
 * in the loss, and *value, the element of one that is a number, such as a loss; NULL: not wanted. Blocks where value is
 * not NULL. Errors: DM_ERR_ARG (i; value of a blob with several elements). */
DM_API int dm_net_outputs(const dm_net *net);
DM_API DM_CHECKED dm_status dm_net_output(dm_net *net, int i, const char **name, double *weight, double *value);
/* Extents of a blob, the last of its name, in Caffe's order (N x C x H x W); and its elements in that order, which
 * blocks. Errors: DM_ERR_ARG (there is no such blob), DM_ERR_STATE (elements of a blob of a lean solver). */
DM_API DM_CHECKED dm_status dm_net_shape(const dm_net *net, const char *blob, int *ndim, int64_t shape[DM_MAX_DIMS]);
DM_API DM_CHECKED dm_status dm_net_read(dm_net *net, const char *blob, float *elements);
/* Writes a blob that an Input layer makes, from elements in Caffe's order; they are 0 before. Blocks until they
 * have left. Errors: DM_ERR_ARG. */
DM_API DM_CHECKED dm_status dm_net_write(dm_net *net, const char *blob, const float *elements);
/* The elements of parameter `number` of a layer as files have them: K x C x R x S. shape as of dm_net_shape; elements
 * may be NULL. Blocks where they are not. Errors: DM_ERR_ARG. */
DM_API DM_CHECKED dm_status dm_net_param_read(dm_net *net, const char *layer, int number, int *ndim,
                                              int64_t shape[DM_MAX_DIMS], float *elements);

/* Layer i, 0 <= i < dm_net_layers: strings are the net's. A Convolution or Deconvolution of several bottoms is
 * as many layers, side by side, of one name and with the same parameters. */
typedef struct dm_layer_info {
    size_t size; /* set by the caller: sizeof(dm_layer_info) */
    const char *name, *type;
    int bottoms, tops, params;
    double waited; /* seconds that steps waited for its data; of workers with GPUs, which read beside steps,
                      seconds in which the slowest read without a pause; 0 of layers that read none */
    int axis; /* Softmax, SoftmaxWithLoss, InfogainLoss, Accuracy: the bottom's dim of the classes; -1 of others
               */
    int ignored; /* Accuracy: the label that counts nowhere (ignore_label); -1, which is no class: none */
} dm_layer_info;
DM_API int dm_net_layers(const dm_net *net);
DM_API DM_CHECKED dm_status dm_net_layer(const dm_net *net, int i, dm_layer_info *out);
/* The name of bottom or top k of layer i; NULL if there is none. */
DM_API const char *dm_net_bottom(const dm_net *net, int i, int k);
DM_API const char *dm_net_top(const dm_net *net, int i, int k);
/* Milliseconds of each layer, as dm_net_time: arrays of dm_net_layers numbers. Blocks. */
DM_API DM_CHECKED dm_status dm_net_measure(dm_net *net, int passes, double *forward_ms, double *backward_ms);
/* A table of what a pass forward and backward will do, from the plans of its calls, a row a layer:
 * floating-point operations in products, calls, bytes sent by the worker that sends most, memory of blobs,
 * parameters (with gradients and a solver's histories) and workspace.
 * `?`: calls whose plans depend on arrays that they make. Below it, how each inner product, convolution and
 * deconvolution is split, with estimates for all three forms. Of the training net of a solver whose steps are
 * programs: what a step holds on the worker with most, arrays and the workspace of the program. Nothing of the
 * net runs. Blocks for such a net. */
DM_API DM_CHECKED dm_status dm_net_explain(dm_net *net, char **text);
/* The same with an estimate of each layer's time forward and backward, in ms: the larger of its operations in
 * products / `flops` and of the bytes that it reads or writes at least once / `bytes`, rates a second of all
 * workers together; what is sent is not in it. 0 and 0: the rates of a product and of a sum on the workers,
 * measured as dm_net_time does, in arrays of 96 MiB on each worker, on fast GPUs 192; blocks then. Errors:
 * DM_ERR_ARG (rates that are not positive). */
DM_API DM_CHECKED dm_status dm_net_explain_at(dm_net *net, double flops, double bytes, char **text);
/* A table of the layers with blobs, shapes and parameters. */
DM_API DM_CHECKED dm_status dm_net_show(const dm_net *net, char **text);
/* Milliseconds of each layer, forward and backward, the mean of the shorter half of `passes` passes, as a
 * table. The passes run as those of a solver do, without its update; nobody waits for a layer. Its time is that
 * of the workers (dm_clock), less what noting it takes: from the end of the layer before, at the worker that
 * ends it last, to its own. So a layer's wait for data is in its time, that of one worker for another is not,
 * and what goes on beside later layers is theirs. Beside it the layer's floating-point operations in products,
 * the bytes that it must read or write, and what part of its time these would take at the rates of the workers,
 * which are measured; at the end the time of a pass that notes nothing, from the program's side, with the
 * rounding of weights in a net of 16 bits. A loss of the program's own counts with the first backward function.
 * Blocks. */
DM_API DM_CHECKED dm_status dm_net_time(dm_net *net, int passes, char **text);
/* A message of a prototxt file as dmath reads it, printed back: "NetParameter", "SolverParameter". No session is
 * needed. Errors: DM_ERR_IO, DM_ERR_FORMAT, DM_ERR_UNSUPPORTED. */
DM_API DM_CHECKED dm_status dm_prototxt_print(const char *path, const char *type, char **text);

/* A net or its weights from one file to another, with nets of before 2015 and of before 2014 in today's form.
 * The form of a file follows from its name: text (.prototxt, .txt), HDF5 (.h5; weights alone), else binary, as
 * .caffemodel. Of an HDF5 file layers have names and weights, and no more. A solver's settings go from text to
 * text, with `solver_type: ADAM` as `type: "Adam"`, and so on; a text is that of a solver if its first field
 * that only one of NetParameter and SolverParameter has is the solver's. No session is needed. Errors:
 * DM_ERR_IO, DM_ERR_FORMAT, DM_ERR_UNSUPPORTED (also of an HDF5 file in which a layer lacks a parameter that it
 * shares, and has one behind it). */
DM_API DM_CHECKED dm_status dm_net_convert(const char *from, const char *to);
/* The layers and blobs of a net's file as a graph for Graphviz (dot). Errors: as dm_net_convert. */
DM_API DM_CHECKED dm_status dm_net_draw(const char *path, char **text);

/* ---- solvers --------------------------------------------------------------------------------------------- */

typedef struct dm_solver dm_solver;

/* What a solver tells beside its lines. Elements have Caffe's order. */
enum {
    DM_TRAIN_DISPLAY,  /* loss: smoothed; rate; outputs follow */
    DM_TRAIN_OUTPUT,   /* an element of an output of the training net: name, element, value, weight */
    DM_TRAIN_TEST,     /* test net number `test` begins; loss of no meaning */
    DM_TRAIN_TESTED,   /* an element of its outputs: the mean over its batches */
    DM_TRAIN_SNAPSHOT, /* name: the file of the state */
    DM_TRAIN_STEP,     /* an update is queued; no numbers */
    DM_TRAIN_END
};
typedef struct dm_train_event {
    int kind; /* DM_TRAIN_* */
    int64_t iteration, end;
    double seconds; /* since the solver was opened */
    double loss, rate;
    int test;
    const char *name;
    int64_t element;
    double value, weight;
} dm_train_event;

/* Who updates weights that all workers use. Whole: each worker updates all of them. Dealt out: each worker gets
 * the gradient of some rows, updates these, and sends them to all others; only it has their gradient and
 * history. The bits are the same. By default weights of convolutions and inner products with more than 2^20
 * elements are dealt out. DM_UPDATE_DEALT: all of these layers. */
enum { DM_UPDATE_DEFAULT = 0, DM_UPDATE_WHOLE = 1, DM_UPDATE_DEALT = 2 };

/* Make one with DM_SOLVER_OPTIONS_INIT, then set fields. */
typedef struct dm_solver_options {
    size_t size;      /* sizeof(dm_solver_options): set by DM_SOLVER_OPTIONS_INIT */
    int slices;       /* as of dm_net_options */
    int64_t max_iter; /* instead of the file's; -1: the file's */
    dm_log_function log;
    void *log_context;
    dm_dtype type; /* as of dm_net_options, of the training net; test nets are f32 */
    int shuffle, skip_damaged; /* as of dm_net_options */
    void (*event)(void *context, const dm_train_event *event);
    void *event_context;
    const char *split; /* as of dm_net_options, of the training net; test nets follow it */
    const dm_layer_type *layer_types; /* as of dm_net_options */
    int layer_type_count;
    /* Blobs of the training net, their gradients and what layers work with have no memory of their own, but
     * what a step leaves free: less memory. They cannot be read then, but for the outputs of the net. */
    int lean;
    int64_t store_bytes; /* as of dm_net_options */
    const char *store_folder;
    int read; /* as of dm_net_options */
    /* So many workers, the last of the session, run the tests, and only these; the others train, and go on
     * meanwhile. Losses, scores and weights are those of a solver without it (with slices above 0). 0: all
     * workers train, and test in between. No group may have begun (<dmath/group.h>). The solver's calls begin a
     * group: in the functions that a program gives them dm_workers counts its workers. */
    int test_workers;
    int update; /* DM_UPDATE_* */
    int unused; /* not read */
    dm_dtype wire; /* as of dm_net_options, of the training net */
    /* Of the training net's state (Caffe's train_state): further stages, separated by commas, NULL: none; and
     * the level instead of the file's, -1: the file's. */
    const char *stages;
    int level;
    /* A loss of the program's own. own_loss: "A,B", blobs of the training net whose gradients the function
     * gives, as of dm_net_options. It is called behind each forward pass of the training net, and makes the
     * calls of dmath that write the gradients (dm_net_own_gradient), zero before the first pass, and its loss:
     * an f32 array of no dims on worker 0, which is added to the losses of the net in what is displayed; zero
     * if the function never writes it. The net needs no other loss then. A step is recorded once and run as a
     * program: so the function makes the same calls each time, from whatever call of the solver it is called;
     * one that waits or reads elements says so in own_waits, and steps go call by call. A status that is not
     * DM_OK ends the step. It may not call the solver or passes of its net (DM_ERR_STATE). Of a lean solver it
     * may read the blobs that own_loss names. Both or neither of own_loss and own: else DM_ERR_ARG. */
    const char *own_loss;
    dm_status (*own)(void *context, dm_net *net, dm_array loss);
    void *own_context;
    int own_waits;
} dm_solver_options;
#define DM_SOLVER_OPTIONS_INIT                                                                                 \
    {                                                                                                          \
        sizeof(dm_solver_options), DM_SLICES, -1, NULL, NULL, DM_F32, 0, 0, NULL, NULL, NULL, NULL, 0, 0, 0,   \
            NULL, DM_READ_DEFAULT, 0, DM_UPDATE_DEFAULT, 0, (dm_dtype)0, NULL, -1, NULL, NULL, NULL, 0         \
    }

/* A solver with its nets out of a prototxt file. Paths in it are as the program's working folder has them. The seed is
 * the field random_seed, or 1. The field solver_mode is accepted and has no effect. The caller ends it with
 * dm_solver_close. Errors: as dm_net_open. */
DM_API DM_CHECKED dm_status dm_solver_open(dm_session *session, const char *path, const dm_solver_options *options,
                                           dm_solver **solver);
/* The same out of a SolverParameter made by calls. net: a NetParameter made by calls, which stands for the
 * field net_param; NULL: the settings name a net. "solver" stands for the path: for messages, and for snapshots
 * without snapshot_prefix. */
DM_API DM_CHECKED dm_status dm_solver_create(dm_session *session, const dm_prototxt *settings,
                                             const dm_prototxt *net, const dm_solver_options *options,
                                             dm_solver **solver);
DM_API DM_CHECKED dm_status dm_solver_close(dm_solver *solver); /* accepts NULL */
/* Continues from a .solverstate and the .caffemodel that it names. Data layers go on behind the records that had been
 * read. Errors: DM_ERR_IO, DM_ERR_FORMAT, DM_ERR_SHAPE (of another net or solver). */
DM_API DM_CHECKED dm_status dm_solver_restore(dm_solver *solver, const char *path);
/* Names (dm_keep) what the training continues from: parameters as NAME/layer/number, histories as
 * NAME/history/number, and the values NAME/iteration and NAME/step. So dm_session_save and dm_checkpoint_save
 * with items NULL save the solver, and after dm_session_load or dm_checkpoint_load the next dm_solver_step goes
 * on from there, data layers behind the records that had been read. Once for a solver; dm_solver_close removes
 * the names. name: 1 to 63 characters, copied. Does not block. Errors: DM_ERR_ARG (name), DM_ERR_STATE (it has
 * names already). */
DM_API DM_CHECKED dm_status dm_solver_keep(dm_solver *solver, const char *name);
/* sent[i * P + j] = the bytes that worker i of all P = dm_workers() sends to worker j in a step, from the plans
 * of the recorded step: gradients, weights, blobs; without the reading of data, tests and snapshots. What
 * workers have sent so far: dm_links_get. sent: P * P numbers of the caller's. Does not block. Errors:
 * DM_ERR_ARG (an argument is NULL), DM_ERR_STATE (the step's calls go one by one: it has Embed, iter_size above
 * 1 or the like). Cost: a plan of the step for each worker; before the first step it is recorded for it. */
DM_API DM_CHECKED dm_status dm_solver_links(dm_solver *solver, int64_t *sent);
/* Trains for so many iterations, with the tests, displays and snapshots that the file asks for. Blocks at
 * those; with test_workers at the end only, for a test that has begun, and where a test is not over when the
 * next one is due. Errors: those of the net's calls, and of files. Cost: where it can be recorded, an iteration
 * is one command
 * (<dmath/program.h>). */
DM_API DM_CHECKED dm_status dm_solver_step(dm_solver *solver, int64_t iterations);
/* Trains to the end, with the last snapshot and the last test. ask, if not NULL, is called after each
 * iteration, and before each batch of a test, but not of one beside training: DM_SOLVER_STOP ends the training,
 * and the test, with a snapshot if the file has them after training, DM_SOLVER_SNAPSHOT makes one. Blocks.
 * Errors and cost: as dm_solver_step. */
enum { DM_SOLVER_GO_ON = 0, DM_SOLVER_STOP = 1, DM_SOLVER_SNAPSHOT = 2 };
DM_API DM_CHECKED dm_status dm_solver_run(dm_solver *solver, int (*ask)(void *context), void *context);
/* The weights and the state as files now, named by the file's snapshot_prefix. Blocks. Errors: DM_ERR_IO. */
DM_API DM_CHECKED dm_status dm_solver_snapshot(dm_solver *solver);
/* Updates so far; -1 of NULL. */
DM_API int64_t dm_solver_iteration(const dm_solver *solver);
/* The training net: the solver's, do not close it. */
DM_API dm_net *dm_solver_net(dm_solver *solver);
/* Test net i, which is the solver's too; NULL if there is none. With test_workers its parameters are copies,
 * and without it those that are dealt out: a test, dm_net_forward and dm_net_save first take them from the
 * training net. Layers that it alone has begin with their fillers, or with what dm_net_load of it reads. */
DM_API dm_net *dm_solver_test_net(dm_solver *solver, int i);

/* ---- data ------------------------------------------------------------------------------------------------ */

/* Make one with DM_DATA_OPTIONS_INIT, then set fields. */
typedef struct dm_data_options {
    size_t size;
    const char
        *from; /* idx (images, labels), cifar10, cifar100 (files in their binary form), images (a list of paths
                  and labels, or a folder with a folder for each class), lmdb, leveldb, hdf5 (files) */
    const char *const *inputs;
    int input_count;
    const char
        *database; /* the folder to make, which may not be there; a name that ends with .h5: an HDF5 file */
    const char *root;     /* put before each path of a list; NULL: nothing */
    int64_t height, width; /* that images are brought to; 0: as they are */
    int gray,
        leveldb; /* gray images; a LevelDB instead of an LMDB. root, height, width, gray: of images alone */
    /* Images, and records of databases, that are damaged or cannot be read are left out, and log has a line for
     * each, with its place; else the first one is an error. Another line says that records have several shapes.
     */
    int skip_damaged;
    dm_log_function log;
    void *log_context;
    /* Of images: records are the files as they are, which data layers decode; not with height, width, gray or
     * an HDF5 file. */
    int encoded;
    int unused; /* not read */
} dm_data_options;
#define DM_DATA_OPTIONS_INIT                                                                                   \
    {                                                                                                          \
        sizeof(dm_data_options), NULL, NULL, 0, NULL, NULL, 0, 0, 0, 0, 0, NULL, NULL, 0, 0                    \
    }
/* *count = how many records of images and labels went to a new database. Of a folder the list of images goes to
 * DATABASE.list. HDF5 files have the arrays `data` (N x C x H x W, or fewer dims) and `label` (N), as HDF5Data
 * reads them: f32 in those that are made; of those that are read, records are bytes if all elements are whole
 * numbers from 0 to 255, else numbers. No session is needed. Errors: DM_ERR_ARG, DM_ERR_FORMAT, DM_ERR_IO,
 * DM_ERR_UNSUPPORTED (a build without the library). */
DM_API DM_CHECKED dm_status dm_data_convert(const dm_data_options *options, int64_t *count);
/* The mean image of a database (LMDB, LevelDB, or an HDF5 file as above) as a file for mean_file, and the mean
 * of each channel. No session is needed. Errors: as dm_data_convert; DM_ERR_SHAPE (records of several shapes).
 */
enum { DM_MAX_CHANNEL_MEANS = 64 };
DM_API DM_CHECKED dm_status dm_data_mean(const char *database, const char *path, double means[DM_MAX_CHANNEL_MEANS],
                                         int64_t *channels);
/* The mean of each channel of such a file. No session is needed. Errors: DM_ERR_IO, DM_ERR_FORMAT, DM_ERR_LIMIT (more
 * than 64 channels). */
DM_API DM_CHECKED dm_status dm_data_mean_read(const char *path, double means[DM_MAX_CHANNEL_MEANS], int64_t *channels);
/* A table of some records of such a database, of those that are damaged, and how many have each label. All are
 * read. No session is needed. Errors: DM_ERR_IO, DM_ERR_FORMAT, DM_ERR_UNSUPPORTED. */
DM_API DM_CHECKED dm_status dm_data_show(const char *database, int64_t first, int64_t records, char **text);
/* A JPEG or PNG image, brought to a height and width (0: as it is): rows of a channel one after another, blue, green,
 * red, or gray alone. shape: channels, height, width. The bytes are the caller's, for free(). Errors: DM_ERR_ARG,
 * DM_ERR_FORMAT, DM_ERR_IO, DM_ERR_UNSUPPORTED. */
DM_API DM_CHECKED dm_status dm_image_read(const char *path, int color, int64_t height, int64_t width, unsigned char **bytes,
                                          int64_t shape[3]);
/* An LMDB of images and labels in idx files (MNIST's form, plain or compressed by gzip), as Caffe's convert_mnist_data
 * makes it: dm_data_convert from "idx". The folder `database` must not be there. Errors: DM_ERR_FORMAT, DM_ERR_IO,
 * DM_ERR_UNSUPPORTED (a build without LMDB). */
DM_API DM_CHECKED dm_status dm_data_convert_idx(const char *images, const char *labels, const char *database, int64_t *count);

#ifdef __cplusplus
}
#endif
#endif

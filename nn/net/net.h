/* Nets in memory: blobs, layers, parameters.
 *
 * A blob is what a layer makes for others. Arrays hold images as N x H x W x C, shapes here are Caffe's, N x C
 * x H x W. A layer that works in place makes a new blob of the same name; nothing is overwritten. A blob that
 * several layers read gets the sum of their gradients: Caffe's split layers. */
#ifndef NN_NET_H
#define NN_NET_H

#include "base/base.h"
#include "proto/message.h"

#include <dmath/dmath.h>
#include <dmath/nn.h>
#include <dmath/program.h>

/* NN_MOST_FLAT: elements of parameters that are put together (flat.c); larger ones may be dealt out. */
enum { NN_MOST_FLAT = 1 << 20, NN_MAX_PARAMS = 6, NN_SCRATCH = 15, NN_SPARES = 3, NN_TRAIN = 0, NN_TEST = 1 };

typedef struct dm_net nn_net;
typedef struct dm_layer nn_layer;

typedef struct nn_blob {
    char *name;
    nn_layer *producer;
    int ndim;
    int64_t shape[DM_MAX_DIMS], count;
    bool image;             /* its array has the channels last */
    bool shares;            /* data is that of the blob before it */
    bool shares_diff;       /* diff is that of the blob behind it */
    nn_layer *joined;       /* diff is a view of that of this Concat's top; NULL: it is not */
    nn_layer *laid;         /* data is a view of that of this Concat's top; NULL: it is not */
    const nn_layer *filter; /* the Filter layer whose choice of samples it has; NULL: it has all */
    bool whole; /* of the whole batch, a number or a vector, on worker 0; else dim 0 is dealt out by slices */
    bool numbers;           /* its elements are places: f32 in any net, and no gradient goes through it */
    bool reads;             /* some layer reads it: it is no output of the net */
    bool need_backward, under_loss, has_diff;
    bool own_loss; /* the program gives a gradient */
    bool lent;     /* its arrays are there only while a step is recorded, or where calls go one by one */
    bool between;  /* it has no arrays: LRN makes it and pooling reads it, at once (nn_layer.pooled) */
    double loss_weight;
    dm_array data, diff;
    dm_array spare[NN_SPARES];  /* the gradients after the first, until they are added in one pass */
    int writers;                /* layers that give a gradient */
    dm_array given;             /* the gradient that the program gives, or zero */
    bool picks;                 /* each element is one of the producer's bottom: `which`, u8, says where the gradient goes */
    dm_array which;             /* none where there is no gradient */
    int gradients;              /* how many have come in this pass */
} nn_blob;

/* How the elements of a parameter in a file, which has Caffe's order, lie in its array. */
typedef enum nn_order {
    NN_PLAIN,
    NN_CHANNELS_LAST /* file: K x C x R x S, array: K x R x S x C */
} nn_order;

/* Parameters that move alike, one behind the other in one array. */
typedef struct nn_flat {
    double lr_mult, decay_mult;
    bool rounds; /* as of nn_param, in a net whose type is not f32 */
    int64_t count;
    dm_array data, diff, rounded;
} nn_flat;

typedef struct nn_param {
    struct nn_param *of; /* turned.c: the parameter whose elements it has otherwise; NULL: its own */
    char *name; /* shared by layers that give it the same; NULL: of one layer alone */
    nn_layer *owner;
    bool shared; /* other layers have it too */
    int number; /* among the owner's */
    int ndim;
    int64_t shape[DM_MAX_DIMS], count; /* as in files */
    nn_order order;
    int64_t folded[4]; /* K, C, R, S of NN_CHANNELS_LAST */
    const nn_message *filler, *spec;
    double first; /* its first value where the file has no filler */
    double lr_mult, decay_mult;
    bool has_lr, has_decay, borrowed; /* borrowed: its arrays are another net's */
    struct nn_param *lender;          /* whose arrays they are; NULL: its own */
    const struct nn_param *follows;   /* of the net whose elements it takes, by copies; NULL: it has its own */
    bool rounds;                      /* layers use it in the net's type */
    int64_t
        range; /* workers hold ranges of so many indices of dim range_dim of its arrays; 0: each holds all */
    int range_dim; /* as of its arrays */
    int parts[2];  /* of such a parameter: copies of all ranges, and workers that have a copy between them */
    bool dealt;    /* data, diff and histories are dealt out by rows; `rounded` is as without it */
    dm_array data, diff, rounded; /* rounded: data in the net's type, where that is another or `dealt` */
    dm_array elements, theirs, mine, sum; /* with `of`: turned.c */
    const nn_flat *flat;          /* they are views of its arrays, from element `at` on; NULL: they are not */
    int64_t at;
    int gradients;
} nn_param;

/* Convolutions whose gradients are made together: fused.c. */
typedef struct nn_fused {
    nn_layer **layer; /* in the net's order */
    int count;
    int64_t outputs; /* of all layers */
    dm_array diff;   /* the gradient by these; that by a layer's is a view of it */
    dm_array w, dw;  /* the weights of all, as products take them, and their gradient: views */
} nn_fused;

typedef struct nn_layer_type {
    const char *name;
    const char *field;       /* of LayerParameter: its own message; NULL: it has none */
    int bottoms[2], tops[2]; /* fewest and most; -1: any number */
    unsigned traits;         /* NN_LOSS ... */
    unsigned
        differentiable; /* bit i: bottom i gets a gradient; the highest bit is for all bottoms behind it too */
    dm_status (*setup)(nn_layer *layer);   /* reads its message, sets shapes and parameters */
    dm_status (*prepare)(nn_layer *layer); /* NULL, or makes arrays of its own, when those of blobs are there */
    dm_status (*forward)(nn_layer *layer);
    dm_status (*backward)(nn_layer *layer); /* NULL: none */
    void (*drop)(nn_layer *layer);          /* NULL, or frees what setup made; arrays end with the net */
} nn_layer_type;

/* NN_WAITS: its calls cannot be recorded. NN_FEED: its state is an nn_feed. NN_CUTS: its outputs can be
 * computed in ranges (split.c), for which alone it prepares something. NN_KEEPS: what it prepares has a meaning
 * from one pass to the next. NN_EACH: with several bottoms it has as many tops, and each pair is an nn_layer;
 * the first one's parameters are those of all. NN_NUMBERS: bottoms may be numbers of the whole batch, which
 * have no dims. NN_LOOKS: bottoms that get no gradient may depend on parameters, as in Caffe; of other layers
 * that is an error. */
enum {
    NN_LOSS = 1,
    NN_SOURCE = 2,
    NN_INPUT = 4,
    NN_WAITS = 8,
    NN_FEED = 16,
    NN_CUTS = 32,
    NN_KEEPS = 64,
    NN_EACH = 128,
    NN_NUMBERS = 256,
    NN_LOOKS = 512
};

/* How workers share a layer: the samples; ranges of its outputs; or both, as a grid. */
typedef enum nn_form { NN_BATCH, NN_FEATURES, NN_BOTH } nn_form;
typedef struct nn_split {
    nn_form form;
    int parts[2]; /* of the samples, of the outputs: worker p * parts[1] + q has parts p and q */
} nn_split;

struct dm_layer {
    const nn_layer_type *type;
    nn_net *net;
    nn_message *message; /* LayerParameter */
    nn_message *own;     /* its own; NULL where the file has none */
    const char *name;
    int index, bottoms, tops, params;
    int pair,
        pairs; /* NN_EACH: it is number `pair` of so many, which lie side by side in the net; else 0 of 1 */
    nn_blob **bottom, **top;
    bool *down; /* bottom i gets a gradient */
    nn_param *param[NN_MAX_PARAMS];
    bool need_backward;
    int ranges;       /* NN_CUTS: of outputs, which are computed one by one (layers/ranges.c); 0: all at once */
    nn_split split;   /* how workers share it */
    bool split_asked; /* the user said so */
    void *cut;        /* layers/ranges.c: what it has for the ranges */
    bool merged;      /* the layer before it does its forward pass */
    bool merged_back; /* the layer behind it does its backward pass */
    bool bias_behind; /* Convolution: the ReLU behind it makes the gradient of its bias */
    nn_layer *pooled; /* LRN: the pooling behind it, which does its passes too; Pooling: that LRN; NULL: none */
    nn_fused *fused;  /* Convolution: whose gradients are made with its own; NULL: none */
    bool lent;        /* what it prepares is there only with the arrays of lent blobs */
    bool prepared;
    union {           /* what setup reads */
        dm_conv conv;
        dm_pool pool;
        dm_loss loss;
        dm_lrn lrn;
        double number[4];
        int dim;
        void *state;
    } u;
    double extra[4];
    dm_array scratch[NN_SCRATCH];
};

/* A loss of the program's own, as of dm_solver_options. */
typedef struct nn_own {
    const char *blobs; /* while the net is built */
    dm_status (*function)(void *context, dm_net *net,
                          dm_array loss); /* NULL: there is none, or the program writes gradients */
    void *context;
    bool waits, called; /* called: just now */
} nn_own;

/* Of one worker, a second: bytes that it sends, that it reads and writes; operations in products. wait: seconds
 * that a transfer takes beside its bytes, where workers wait for it. */
typedef struct nn_speed {
    double link, memory, flops, wait;
} nn_speed;

struct dm_net {
    dm_session *session;
    dm_group group;  /* on whose workers it is; zero: on those of the group that has begun, or all */
    int cores_taken; /* workers of the session */
    nn_document *document;
    const char *name;
    dm_log_function log;
    void *log_context;
    int phase, slices;
    dm_dtype type; /* of blobs with gradients and of images; all others are f32 */
    dm_dtype wire; /* as of dm_net_options */
    uint64_t seed;
    int64_t pass;               /* number of the forward pass: random numbers depend on it */
    bool recording;             /* a program: seeds are those of its run 0 */
    bool save_diffs;            /* files of weights have gradients too: snapshot_diff */
    bool lean;                  /* as of dm_solver_options */
    bool force;                 /* force_backward: all bottoms get gradients */
    bool debug;                 /* passes tell means of what they make: debug.c */
    bool shuffle, skip_damaged; /* records: in training; instead of an error */
    int read;                   /* DM_READ_* */
    int update;                 /* DM_UPDATE_* */
    int64_t store_bytes;        /* of decoded images, of each data layer */
    const char *store_folder;   /* while it is built */
    nn_speed speed;             /* what the choice of a split takes the workers for */
    int histories;              /* that the solver keeps of each parameter; 0: no solver */
    bool copies;                /* recorded updates write rounded copies too: nn_param_copied, nn_flat_copied */
    bool current;               /* such copies are there, and nobody has written the weights since */
    bool shown;                 /* the program has arrays of parameters, and may write them at any time */
    nn_own own;                 /* with a function that gives a loss: its value is `value` */
    dm_array value;
    dm_array times; /* time.c: of each worker a row of times, for somebody who asks; none: nobody does */
    struct dm_solver *solver;   /* whose training net it is; NULL: none */
    /* Records a step of that, for the caller; none where steps go call by call. */
    dm_status (*step)(struct dm_solver *solver, dm_program *out);
    nn_layer *layers;
    int layer_count;
    nn_message **left; /* LayerParameter: layers of the file that the net's state leaves out */
    int left_count;
    nn_blob **blobs;
    int blob_count;
    nn_param **params; /* in Caffe's order, shared ones once */
    int param_count;
    nn_param **turned; /* those that have the elements of another: no parameters of their own */
    int turned_count;
    nn_flat *flats;
    int flat_count;
    nn_fused **fused;
    int fused_count;
    struct nn_user_type *types; /* of the program's layers */
    int type_count;
    int *output; /* blobs that no layer reads, by name */
    int output_count;
};

/* --- build.c. The net takes the document, also where it fails. share: a net whose parameters it takes, by the
 * names of layers, or NULL; apart: it has copies of them, for it is on other workers. */
typedef struct nn_net_setup {
    dm_session *session;
    dm_group group; /* as of dm_net */
    int workers;    /* of the session; 0: dm_workers */
    bool apart;
    int slices;
    dm_dtype type, wire;
    uint64_t seed;
    nn_net *share;
    dm_log_function log; /* may be NULL */
    void *log_context;
    bool shuffle, skip_damaged, debug, lean;
    const char *split;    /* as of dm_net_options */
    nn_own own;
    const dm_layer_type *types;
    int type_count;
    int64_t store_bytes;
    const char *store_folder;
    int read;
    int update; /* DM_UPDATE_*, of a net that a solver trains; DM_UPDATE_WHOLE of others */
} nn_net_setup;
dm_status nn_net_build(const nn_net_setup *setup, nn_document *document, nn_net **out);
void nn_net_free(nn_net *net); /* its arrays too; accepts NULL */
/* What makes arrays, or asks for workers, stands between these two: then they are those of the net's group. The
 * second returns `status`, or what went wrong with it. */
dm_status nn_net_enter(const nn_net *net);
dm_status nn_net_leave(const nn_net *net, dm_status status);
void nn_log(const nn_net *net, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* --- merge.c: layers that a layer beside them can do. */
void nn_merge(nn_net *net);
void nn_merge_lent(nn_net *net); /* of blobs that are lent: LRN and pooling */
/* --- fused.c: finds such layers of a net that is trained; when the parameters are there, views of them; arrays
 * for the gradients by outputs; the backward pass of such a layer. */
dm_status nn_fused_find(nn_net *net);
dm_status nn_fused_place(nn_net *net);
dm_status nn_fused_make(nn_fused *fused, dm_dtype type);
dm_status nn_fused_backward(nn_layer *layer);
static inline bool nn_fused_follows(const nn_layer *layer) /* another layer does its backward pass */
{
    return layer->fused && layer->fused->layer[0] != layer;
}
/* --- split.c: how workers share layers whose outputs can be cut. asked: as of dm_net_options; share and apart:
 * as of nn_net_setup. */
dm_status nn_split_choose(nn_net *net, const char *asked, const nn_net *share, bool apart);
/* Bytes sent by the worker that sends most, and an estimate of the time, of a step with the layer split so. */
typedef struct nn_split_cost {
    double bytes, seconds;
} nn_split_cost;
nn_split_cost nn_split_estimate(const nn_layer *layer, const nn_split *split);
/* The split of this form that takes the shortest time. Where there are too few workers for a grid with two
 * parts and more each way, NN_BOTH has one part one way. */
nn_split nn_split_best(const nn_layer *layer, nn_form form);
/* What the update of a layer's weights costs, dealt out or whole: bytes of its gradient and of weights sent, in
 * a net whose samples are dealt out; the time of the update itself. */
nn_split_cost nn_update_estimate(const nn_layer *layer, bool dealt);
/* Is the update of a parameter dealt out? */
bool nn_update_deals(const nn_net *net, const nn_param *param);
/* Outputs in a range of a layer that is split so. Where there are groups of outputs a range is a part of one,
 * or whole groups; the last may be shorter. */
int64_t nn_split_range(const nn_layer *layer, const nn_split *split);
bool nn_split_is_large(const nn_layer *layer); /* its form is chosen by estimated times, where nobody asks */
int nn_split_groups(const nn_layer *layer); /* 1: each output depends on the whole bottom */
/* The weights of outputs [first, first + count), as their array has them. */
typedef struct nn_part {
    int dim; /* of the array */
    int64_t first, count;
} nn_part;
nn_part nn_split_weights(const nn_layer *layer, int64_t first, int64_t count);
/* Ranges of `size` rows or samples, dealt to workers as dm_layout_batch deals them. */
typedef struct nn_deal {
    int64_t count, size; /* rows, and in a range */
    int ranges, each;    /* each: ranges of the workers that have any, but perhaps the last */
    int holders;         /* workers that have any */
} nn_deal;
nn_deal nn_deal_out(int64_t count, int64_t size, int workers);
/* --- prototxt.c: what a program has made by calls, as a file of its text would be read. Lines in messages are
 * those that dm_prototxt_show prints; the file is the net's name, "net" or "solver". The document is the
 * caller's. */
bool nn_prototxt_is(const dm_prototxt *prototxt, const char *type); /* false of NULL */
dm_status nn_prototxt_document(const dm_prototxt *prototxt, nn_document **out);
/* --- filter.c: the layers that the state in the document asks for; others are taken out of it, and are the
 * caller's then, with the list, also where it fails. */
dm_status nn_net_filter(nn_message *net, nn_message ***left, int *left_count);
/* The net's state: the phase, what the net itself says, and then what `state` does (NULL: nothing). */
dm_status nn_net_state(nn_message *net, int phase, const nn_message *state);
/* --- api.c: adds stages, "A,B", to a state; NULL: none. */
dm_status nn_net_stages(nn_message *state, const char *stages);
/* --- upgrade.c: solver_type of a solver's settings becomes type. */
dm_status nn_solver_upgrade(nn_message *solver);
/* Layers of before 2015 (field `layers`) become layers of today. */
dm_status nn_net_upgrade(nn_message *net);
dm_status nn_net_upgrade_inputs(nn_message *net); /* build.c: fields `input` become a layer */
/* blobs_lr and weight_decay of an old layer. */
dm_status nn_upgrade_multipliers(const nn_message *old, nn_message *layer);
/* --- upgrade_v0.c: the same for layers of before 2014 (`layers { layer`), which stay in their field. */
dm_status nn_net_upgrade_v0(nn_message *net);
/* --- connect.c */
enum { NN_IN_LINE = 32 };
const char *nn_in_line(const nn_message *layer, char out[NN_IN_LINE]);
dm_status nn_connect(nn_net *net, nn_layer *layer);
dm_status nn_find_outputs(nn_net *net);
dm_status nn_mark_backward(nn_net *net);
/* Marks the blobs that a list separated by commas names: the program gives their gradients. */
dm_status nn_mark_own_losses(nn_net *net, const char *names);
/* --- params.c */
dm_status nn_params_place(nn_net *net, nn_net *share, bool apart);
dm_status nn_params_fill(nn_net *net);
/* Copies the elements that parameters take from another net. */
dm_status nn_params_follow(const nn_net *net);
dm_status nn_param_place(const nn_net *net, nn_param *param); /* makes arrays of its own */
/* An array for a parameter, on all workers: its gradient, its history. */
dm_status nn_param_array(const nn_net *net, const nn_param *param, dm_array *out);
/* The shape of its arrays; returns the dims. */
int nn_param_shape(const nn_param *param, int64_t shape[DM_MAX_DIMS]);
/* Elements of its arrays that the worker with most holds; part: of those that may be dealt out, its gradient
 * and history. */
int64_t nn_param_held(const nn_net *net, const nn_param *param, bool part);
/* The array that the layer's products take. */
dm_array nn_param_used(const nn_layer *layer, int param);
bool nn_type_fits(dm_dtype type); /* of a net */
dm_status nn_wire_check(const char *call, dm_dtype wire, dm_dtype type); /* of a net of this type */
/* --- turned.c: layers that share a parameter, but need its elements under another shape or in another order,
 * have a copy. Arrays of the copies; their elements, before a pass; after the backward pass of a layer, adds
 * what they have got to the gradients of the parameters. */
dm_status nn_turned_place(nn_net *net);
dm_status nn_turned_read(const nn_net *net);
dm_status nn_turned_add(nn_layer *layer);
/* The parameter itself. */
static inline nn_param *nn_param_itself(nn_param *param)
{
    return param->of ? param->of : param;
}
/* --- flat.c: puts parameters of the net together. */
dm_status nn_flats_make(nn_net *net);
bool nn_flat_takes(const nn_param *param);
int64_t nn_flat_step(const nn_param *param); /* it may begin at multiples of so many elements */
/* An array for all parameters of flat, of zeros; and the view of one of them in such an array. */
dm_status nn_flat_array(const nn_net *net, const nn_flat *flat, dm_dtype type, dm_array *out);
dm_status nn_flat_part(const nn_net *net, const nn_param *param, dm_array flat, dm_array *out);
/* Writes the rounded copies of all parameters that have one, but not those that a recorded update writes while
 * it is recorded; forward passes begin with it. */
dm_status nn_params_round(const nn_net *net);
/* Before a recorded step runs: writes the copies that updates write, unless they are current. */
dm_status nn_params_renew(nn_net *net);
/* Somebody writes the parameter; shown: from now on the program may. */
void nn_param_written(nn_param *param, bool shown);
/* Does the update write the rounded copy? Not if it is gathered, or nothing moves the parameter. */
static inline bool nn_flat_copied(const nn_net *net, const nn_flat *flat)
{
    return net->copies && flat->rounds;
}
static inline bool nn_param_copied(const nn_net *net, const nn_param *param)
{
    return net->copies && !param->flat && !param->dealt && param->lr_mult != 0 && param->rounded.id != 0;
}
/* --- fill.c: fills an array of this shape in Caffe's order; channels_last: dim 1 is the array's last. */
dm_status nn_fill(const nn_layer *l, const nn_message *filler, int ndim, const int64_t *shape,
                  bool channels_last, uint64_t seed, dm_array x);
uint64_t nn_hash(uint64_t a, uint64_t b); /* a seed out of two numbers */
/* How many gradients of a blob wait to be added. With debug_info none does: each layer tells what has come so far. */
static inline int nn_spares(const nn_net *net)
{
    return net->debug ? 1 : NN_SPARES;
}
/* --- blobs.c: which blobs and layers are lent; arrays for those that are, or are not, where they lack them;
 * and their end. */
void nn_blobs_lend(nn_net *net, bool lean);
dm_status nn_blobs_make(nn_net *net, bool lent);
dm_status nn_layers_prepare(nn_net *net, bool lent); /* when the arrays of blobs and parameters are there */
/* Arrays for the gradients of blobs with several readers, but the first. A backward pass makes them where they
 * are not there; a recorded step ends them. */
dm_status nn_spares_make(nn_net *net);
dm_status nn_spares_end(nn_net *net);
/* The part of `whole`, which joins blobs along dim `dim`, that begins at `at` and has the shape of `like`. */
dm_status nn_blob_part(const nn_net *net, dm_array whole, const nn_blob *like, int dim, int64_t at,
                       dm_array *out);
/* The blob whose data, which b has, is a view of the top of this Concat; NULL: they are not. */
nn_blob *nn_laid_of(nn_blob *b, const nn_layer *concat);
dm_status nn_blobs_end(nn_net *net, bool lent);
/* --- run.c */
dm_status nn_forward(nn_net *net);
/* Its two parts: layers that bring data, and all others. */
dm_status nn_forward_part(nn_net *net, bool sources);
/* accumulate: gradients of parameters are added to those that are there. */
dm_status nn_backward(nn_net *net, bool accumulate);
bool nn_recordable(const nn_net *net); /* can a program have all its passes' calls? */
/* The calls that `calls` makes, as a program; seeds advance. Arrays of lent blobs and spares are there inside
 * alone. */
dm_status nn_program_record(nn_net *net, dm_status (*calls)(void *context), void *context, dm_program *out);
dm_status nn_loss(nn_net *net, double *loss); /* of the last forward pass; waits */
/* --- debug.c: lines as Caffe's debug_info has them: means of magnitudes. They wait. */
dm_status nn_debug_forward(const nn_layer *layer);
dm_status nn_debug_backward(const nn_layer *layer);
dm_status nn_debug_params(const nn_net *net); /* after a backward pass: lengths of all parameters */
dm_status nn_debug_update(const nn_net *net); /* before an update */
/* --- weights.c. Of a copy (turned.c) they take arrays of the parameter itself. */
dm_status nn_param_read(const nn_net *net, const nn_param *param, dm_array from,
                        float *out); /* in the file's order */
dm_status nn_param_write(const nn_net *net, const nn_param *param, dm_array to, const float *in);
/* field: data or diff. */
dm_status nn_param_to_message(const nn_net *net, const nn_param *param, dm_array from, const char *field,
                              nn_message *blob);
dm_status nn_param_from_message(const nn_net *net, const nn_param *param, dm_array to, nn_message *blob);
/* The elements of a BlobProto: `data`, in which those of `double_data` come, rounded. NULL: there are none. */
dm_status nn_blob_singles(nn_message *blob, const nn_entry **out);
dm_status nn_net_save(nn_net *net, const char *path);
dm_status nn_net_load(nn_net *net, const char *path);
/* Weights in the net's own file (`blobs` of layers) instead of its fillers, as in Caffe. What another layer or
 * net shares begins as that one has it. */
dm_status nn_params_given(nn_net *net);
/* "7 x 8"; of no dims "1". */
enum { NN_SHAPE_TEXT = 200 };
const char *nn_shape_text(int ndim, const int64_t *shape, char out[NN_SHAPE_TEXT]);
const nn_layer *nn_find_layer(const nn_net *net, const char *name); /* NULL: there is none */
/* --- weights_hdf5.c: the same in HDF5 files, whose names end with .h5 */
struct nn_hdf5;
bool nn_is_hdf5(const char *path);
bool nn_is_text(const char *path); /* files.c: .prototxt, .txt */
/* A net: binary if the name ends with .caffemodel or .binaryproto, else text. */
dm_status nn_net_read(const char *path, nn_document **out);
dm_status nn_param_to_hdf5(const nn_net *net, const nn_param *param, dm_array from, struct nn_hdf5 *file,
                           const char *name);
dm_status nn_param_from_hdf5(const nn_net *net, const nn_param *param, dm_array to, struct nn_hdf5 *file,
                             const char *name);
dm_status nn_net_save_hdf5(nn_net *net, const char *path);
dm_status nn_net_load_hdf5(nn_net *net, const char *path);
/* --- files_hdf5.c: the weights of a NetParameter, and of an HDF5 file as one: layers that have weights, by
 * name. */
dm_status nn_weights_to_hdf5(const nn_message *net, const char *path);
dm_status nn_weights_from_hdf5(const char *path, nn_document **out);
/* --- explain.c: multiplications and additions of a layer's forward pass that products need */
double nn_layer_flops(const nn_layer *layer);
/* The plans of a run of a program, as dm_explain_end gives them. The text is the caller's. */
dm_status nn_explain_program(const nn_net *net, dm_program program, char **text);
/* --- time.c: while somebody asks for times, a pass notes when each of its parts begins and each layer ends, on
 * the workers. */
dm_status nn_time_begin(const nn_net *net, bool sources);
dm_status nn_time_end(const nn_layer *layer, bool back);
/* --- rates.c: those of all workers together, a second, of a product and of a sum. Runs both. */
typedef struct nn_rates {
    double flops, bytes;
} nn_rates;
dm_status nn_rates_measure(const nn_net *net, nn_rates *out);
/* The same of one worker, and what it sends while all send to the next one. At least two workers. */
dm_status nn_speed_measure(const nn_net *net, nn_speed *out);
/* --- time_table.c: bytes that a pass of a layer reads or writes at least once, on all workers; 0 where layers
 * beside it do its work. */
double nn_layer_bytes(const nn_layer *layer, bool back);
/* show.c: of the columns of names and types in tables of layers. */
typedef struct nn_widths {
    int name, type;
} nn_widths;
nn_widths nn_widths_of(const nn_net *net);
/* What dm_net_time gives. forward, backward: ms of each layer; pass: of a whole pass that notes nothing. */
dm_status nn_times_print(const nn_net *net, int passes, const nn_rates *rates, const double *forward,
                         const double *backward, double pass, char **text);
/* --- inspect.c: the elements of a blob in Caffe's order; blocks */
dm_status nn_blob_read(const nn_net *net, const nn_blob *blob, float *elements);
/* Where the element lies in the blob's array, of that number in Caffe's order. */
int64_t nn_blob_place(const nn_blob *blob, int64_t element);

/* --- layers/ranges.c: arrays that it has for a layer that is cut, those of step `at` from 0 on; returns how
 * many, at most two, 0: there are no more. */
int nn_ranges_arrays(const nn_layer *layer, int at, dm_array *out);
void nn_ranges_drop(nn_layer *layer); /* ends them; nothing without ranges */
/* --- layers/user.c: types of layers that the program gives */
dm_status nn_user_types(nn_net *net, const dm_layer_type *types, int count);
/* Of a name, or of the layer that a message of the type "Python" names; NULL: there is none. */
const nn_layer_type *nn_user_type_of(const nn_net *net, const nn_message *layer);
/* --- layers/inner_rows.c: an InnerProduct with transposed weights or another axis than 1. It is never split by
 * features. */
bool nn_inner_by_rows(const nn_layer *layer);
/* --- layers/conv_nd.c: a Convolution or Deconvolution that does not read images by axis 1: also split by batch
 * alone. */
bool nn_conv_is_nd(const nn_layer *layer);
/* --- layers/scores.c: the dim of the classes; -1: the layer is of another type */
int nn_scores_axis(const nn_layer *layer);
int nn_ignored_label(const nn_layer *layer); /* of Accuracy: the label that counts nowhere; -1: none */
/* --- layers/common.c: what the rows of the table use */
const nn_layer_type *nn_layer_type_of(const char *name); /* NULL: there is none */
const nn_layer_type *nn_layer_types(int *count);
dm_status nn_layer_fail(const nn_layer *layer, const char *field, dm_status status, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
dm_status nn_top_shape(nn_layer *layer, int top, int ndim, const int64_t *shape);
dm_status nn_top_number(nn_layer *layer, int top); /* one number of the whole batch */
dm_status nn_new_param(nn_layer *layer, int ndim, const int64_t *shape, const nn_message *filler,
                       nn_param **out);
/* With an array of K x R x S x C; folded: K, C, R, S; NULL: as nn_new_param. */
dm_status nn_new_folded(nn_layer *layer, int ndim, const int64_t *shape, const int64_t *folded,
                        const nn_message *filler, nn_param **out);
/* An axis of the message, where it is given: negative ones count from the end. */
dm_status nn_axis(const nn_layer *layer, const char *field, int ndim, int *out);
/* A parameter that no gradient moves: Caffe keeps what a layer has seen among the parameters. */
dm_status nn_new_state(nn_layer *layer, int ndim, const int64_t *shape, nn_param **out);
/* Scratch array i of a layer, dealt out as blobs are: of Caffe's shape, and images with the channels last; or
 * on all workers. */
dm_status nn_scratch(nn_layer *layer, int i, bool image, int ndim, const int64_t *shape);
dm_status nn_scratch_everywhere(nn_layer *layer, int i, int64_t count);
/* dm_map of text(operand, dims of the array from Caffe's `axis` on, but not the batch): sums, means, with 1 in
 * their place. A blob without such dims is mapped by the operand alone. */
dm_status nn_map_rows(nn_layer *layer, const char *call, const char *operand, const nn_blob *blob, int axis,
                      int count, const dm_map_arg *args, dm_array out);
/* out[0] = scale * the sum of an array with one number a sample, in the order of slices. */
dm_status nn_sum_samples(nn_layer *layer, double scale, dm_array x, int64_t samples, dm_array out);
/* What the seeds of a layer are made of, for layers with several. */
uint64_t nn_layer_number(const nn_layer *layer);
/* A seed for the random numbers of a layer in a pass; in a recorded program that of its first run. */
uint64_t nn_layer_seed(const nn_layer *layer, int64_t pass);
/* That of a pass, for a seed of pass 0; while a program is recorded, which advances seeds itself, the seed. */
uint64_t nn_pass_seed(const nn_net *net, uint64_t seed, int64_t pass);
/* --- layers/filter.c: may the layer stand behind the Filter layers before it? Marks its tops. */
dm_status nn_filter_follow(nn_layer *layer);
int nn_array_dim(const nn_blob *blob, int axis); /* which dim of its array an axis is */
dm_status nn_blob_array(const nn_net *net, const nn_blob *blob, dm_dtype dtype, dm_array *out);
/* Where the gradient of a bottom goes, and then adding it to those of other layers; status: of writing it. */
dm_array nn_down(nn_layer *layer, int bottom);
dm_status nn_down_done(nn_layer *layer, int bottom, dm_status status);
/* 0 for the first gradient of a parameter in a pass, 1 for all that follow; for beta. */
double nn_param_beta(nn_layer *layer, int param);

#endif

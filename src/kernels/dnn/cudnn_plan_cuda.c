/* Graphs of a convolution, forward with what follows it at once, and the choice of an engine for them. */
#include "kernels/dnn/cudnn_plan.h"

#include <assert.h>
#include <string.h>

enum { CANDIDATES = 64, X = 1, Y, W, BIAS, SUM, SHIFTED }; /* X and on: the tensors' numbers */

static bool ok(cudnnStatus_t s)
{
    return s == CUDNN_STATUS_SUCCESS;
}

static bool set(cudnnBackendDescriptor_t d, cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                int64_t count, const void *value)
{
    return ok(cudnnBackendSetAttribute(d, name, type, count, value));
}

static bool make(dmi_cudnn_plan *p, cudnnBackendDescriptorType_t type, cudnnBackendDescriptor_t *out)
{
    assert(p->made < DMI_CUDNN_DESCRIPTORS);
    if (!ok(cudnnBackendCreateDescriptor(type, out))) {
        return false;
    }
    p->descriptor[p->made++] = *out;
    return true;
}

void dmi_cudnn_plan_free(dmi_cudnn_plan *p)
{
    while (p->made > 0) {
        cudnnBackendDestroyDescriptor(p->descriptor[--p->made]);
    }
    p->plan = NULL;
}

/* dims: of N, C, H, W, which lie as N, H, W, C, a pixel `pitch` elements behind the one before it. SUM and
 * SHIFTED are in no memory; they and BIAS are f32. */
static bool tensor(dmi_cudnn_plan *p, int64_t number, dm_dtype dtype, const int64_t dims[4], int64_t pitch,
                   cudnnBackendDescriptor_t *out)
{
    int64_t strides[4] = {pitch * dims[2] * dims[3], 1, pitch * dims[3], pitch},
            aligned = number == BIAS ? (int64_t)sizeof(float) : DMI_DNN_ALIGNED;
    bool wide = number >= BIAS, nowhere = number >= SUM;
    cudnnDataType_t type = dtype == DM_BF16 && !wide  ? CUDNN_DATA_BFLOAT16
                           : dtype == DM_F16 && !wide ? CUDNN_DATA_HALF
                                                      : CUDNN_DATA_FLOAT;
    return make(p, CUDNN_BACKEND_TENSOR_DESCRIPTOR, out) &&
           set(*out, CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &type) &&
           set(*out, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, 4, dims) &&
           set(*out, CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, 4, strides) &&
           set(*out, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, 1, &number) &&
           set(*out, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, 1, &aligned) &&
           set(*out, CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, 1, &nowhere) &&
           ok(cudnnBackendFinalize(*out));
}

static bool moves(dmi_cudnn_plan *p, const dmi_convolution *d, cudnnBackendDescriptor_t *out)
{
    cudnnDataType_t type = CUDNN_DATA_FLOAT;
    cudnnConvolutionMode_t mode = CUDNN_CROSS_CORRELATION;
    int64_t dims = 2;
    return make(p, CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR, out) &&
           set(*out, CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &type) &&
           set(*out, CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, 1, &mode) &&
           set(*out, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, CUDNN_TYPE_INT64, 1, &dims) &&
           set(*out, CUDNN_ATTR_CONVOLUTION_DILATIONS, CUDNN_TYPE_INT64, 2, d->dilation) &&
           set(*out, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, CUDNN_TYPE_INT64, 2, d->stride) &&
           set(*out, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, CUDNN_TYPE_INT64, 2, d->pad) &&
           set(*out, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, CUDNN_TYPE_INT64, 2, d->pad) &&
           ok(cudnnBackendFinalize(*out));
}

/* The names of an operation's attributes. */
static const struct names {
    cudnnBackendDescriptorType_t type;
    cudnnBackendAttributeName_t alpha, beta, conv, x, y, w;
} names[] = {
    [DMI_CUDNN_FORWARD] = {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
                           CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
                           CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA,
                           CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
                           CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
                           CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y,
                           CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W},
    [DMI_CUDNN_DATA] = {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
                        CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
                        CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA,
                        CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
                        CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
                        CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY,
                        CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W},
    [DMI_CUDNN_WEIGHTS] = {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
                           CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
                           CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA,
                           CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
                           CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
                           CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,
                           CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW},
};

/* to = the operation `mode` on from, and on b if there is one. */
static bool pointwise(dmi_cudnn_plan *p, cudnnPointwiseMode_t mode, cudnnBackendDescriptor_t from,
                      cudnnBackendDescriptor_t b, cudnnBackendDescriptor_t to, cudnnBackendDescriptor_t *op)
{
    cudnnBackendDescriptor_t how;
    cudnnDataType_t type = CUDNN_DATA_FLOAT;
    return make(p, CUDNN_BACKEND_POINTWISE_DESCRIPTOR, &how) &&
           set(how, CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, 1, &mode) &&
           set(how, CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, 1, &type) &&
           ok(cudnnBackendFinalize(how)) && make(p, CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR, op) &&
           set(*op, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &how) &&
           set(*op, CUDNN_ATTR_OPERATION_POINTWISE_XDESC, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &from) &&
           (!b || set(*op, CUDNN_ATTR_OPERATION_POINTWISE_BDESC, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &b)) &&
           set(*op, CUDNN_ATTR_OPERATION_POINTWISE_YDESC, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &to) &&
           ok(cudnnBackendFinalize(*op));
}

/* y = sum + bias, and where that is asked for not below 0. */
static bool epilogue(dmi_cudnn_plan *p, const dmi_convolution *d, const int64_t y_dims[4],
                     cudnnBackendDescriptor_t sum, cudnnBackendDescriptor_t y, cudnnBackendDescriptor_t op[2])
{
    const int64_t dims[4] = {1, d->out[2], 1, 1};
    cudnnBackendDescriptor_t bias, shifted = y;
    return tensor(p, BIAS, d->dnn.dtype, dims, dims[1], &bias) &&
           (!d->relu || tensor(p, SHIFTED, d->dnn.dtype, y_dims, d->dnn.pitch[DMI_CUDNN_Y], &shifted)) &&
           pointwise(p, CUDNN_POINTWISE_ADD, sum, bias, shifted, &op[0]) &&
           (!d->relu || pointwise(p, CUDNN_POINTWISE_RELU_FWD, shifted, NULL, y, &op[1]));
}

static bool graph(dmi_cudnn_plan *p, cudnnHandle_t handle, int which, const dmi_convolution *d,
                  cudnnBackendDescriptor_t *out)
{
    const struct names *n = &names[which >= DMI_CUDNN_BIASED ? DMI_CUDNN_FORWARD : which];
    cudnnBackendDescriptor_t x, y, w, conv, op[3], sum;
    bool biased = which == DMI_CUDNN_BIASED, fused = which == DMI_CUDNN_FUSED;
    const int64_t x_dims[4] = {d->dnn.samples, d->in[2], d->in[0], d->in[1]},
                  y_dims[4] = {d->dnn.samples, d->out[2], d->out[0], d->out[1]},
                  w_dims[4] = {d->out[2], d->in[2] / d->group, d->kernel[0], d->kernel[1]};
    float one = 1, zero = 0;
    if (!tensor(p, X, d->dnn.dtype, x_dims, d->dnn.pitch[DMI_CUDNN_X], &x) ||
        !tensor(p, Y, d->dnn.dtype, y_dims, d->dnn.pitch[DMI_CUDNN_Y], &y) ||
        !tensor(p, W, d->dnn.dtype, w_dims, w_dims[1], &w)) {
        return false;
    }
    sum = y;
    return (!(biased || fused) || tensor(p, SUM, d->dnn.dtype, y_dims, d->dnn.pitch[DMI_CUDNN_Y], &sum)) &&
           moves(p, d, &conv) && make(p, n->type, &op[0]) && set(op[0], n->alpha, CUDNN_TYPE_FLOAT, 1, &one) &&
           set(op[0], n->beta, CUDNN_TYPE_FLOAT, 1, &zero) &&
           set(op[0], n->conv, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &conv) &&
           set(op[0], n->x, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &x) &&
           set(op[0], n->y, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &sum) &&
           set(op[0], n->w, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &w) && ok(cudnnBackendFinalize(op[0])) &&
           (!biased || epilogue(p, d, y_dims, sum, y, op + 1)) &&
           (!fused || pointwise(p, CUDNN_POINTWISE_IDENTITY, sum, NULL, y, &op[1])) &&
           make(p, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR, out) &&
           set(*out, CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR,
               !biased && !fused ? 1
               : d->relu         ? 3
                                 : 2,
               op) &&
           set(*out, CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, 1, &handle) &&
           ok(cudnnBackendFinalize(*out));
}

/* --- the choice --- */

/* Makes the engines that the library proposes, with their settings, best first. */
static int64_t propose(cudnnBackendDescriptor_t graph, cudnnBackendHeurMode_t mode, int64_t most,
                       cudnnBackendDescriptor_t *out)
{
    cudnnBackendDescriptor_t heuristic = NULL;
    int64_t made = 0, count = 0;
    if (!ok(cudnnBackendCreateDescriptor(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR, &heuristic))) {
        return 0;
    }
    while (made < most && ok(cudnnBackendCreateDescriptor(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, &out[made]))) {
        made++;
    }
    bool found =
        set(heuristic, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &graph) &&
        set(heuristic, CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, &mode) &&
        ok(cudnnBackendFinalize(heuristic)) &&
        ok(cudnnBackendGetAttribute(heuristic, CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR,
                                    made, &count, out));
    cudnnBackendDestroyDescriptor(heuristic);
    count = found ? DMI_MIN(count, made) : 0;
    while (made > count) {
        cudnnBackendDestroyDescriptor(out[--made]);
    }
    return count;
}

/* May this engine be used? compiles: so may those that are compiled when they are first used. */
static bool is_allowed(cudnnBackendDescriptor_t config, bool tensor_cores, bool compiles)
{
    cudnnBackendDescriptor_t engine = NULL;
    cudnnBackendNumericalNote_t note[CUDNN_NUMERICAL_NOTE_TYPE_COUNT];
    cudnnBackendBehaviorNote_t behavior[CUDNN_BEHAVIOR_NOTE_TYPE_COUNT];
    int64_t one = 0, notes = 0, behaviors = 0;
    if (!ok(cudnnBackendCreateDescriptor(CUDNN_BACKEND_ENGINE_DESCRIPTOR, &engine))) {
        return false;
    }
    bool allowed =
        ok(cudnnBackendGetAttribute(config, CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &one,
                                    &engine)) &&
        ok(cudnnBackendGetAttribute(engine, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE,
                                    CUDNN_NUMERICAL_NOTE_TYPE_COUNT, &notes, note)) &&
        ok(cudnnBackendGetAttribute(engine, CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE, CUDNN_TYPE_BEHAVIOR_NOTE,
                                    CUDNN_BEHAVIOR_NOTE_TYPE_COUNT, &behaviors, behavior));
    for (int64_t i = 0; i < notes && allowed; i++) {
        allowed = note[i] == CUDNN_NUMERICAL_NOTE_STRICT_NAN_PROP ||
                  (tensor_cores && note[i] == CUDNN_NUMERICAL_NOTE_TENSOR_CORE);
    }
    for (int64_t i = 0; i < behaviors && allowed; i++) {
        allowed = compiles || behavior[i] != CUDNN_BEHAVIOR_NOTE_RUNTIME_COMPILATION;
    }
    cudnnBackendDestroyDescriptor(engine);
    return allowed;
}

/* A plan of this engine, if it fits. */
static bool take(dmi_cudnn_plan *p, cudnnHandle_t handle, cudnnBackendDescriptor_t config, int64_t room)
{
    cudnnBackendDescriptor_t plan = NULL;
    int64_t count = 0, bytes = 0;
    if (!ok(cudnnBackendCreateDescriptor(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR, &plan))) {
        return false;
    }
    if (set(plan, CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, 1, &handle) &&
        set(plan, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &config) &&
        ok(cudnnBackendFinalize(plan)) &&
        ok(cudnnBackendGetAttribute(plan, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64, 1, &count,
                                    &bytes)) &&
        bytes <= room) {
        p->plan = p->descriptor[p->made++] = plan;
        p->bytes = bytes;
        return true;
    }
    cudnnBackendDestroyDescriptor(plan);
    return false;
}

void dmi_cudnn_plan_make(dmi_cudnn_plan *p, cudnnHandle_t handle, int which, const dmi_convolution *d,
                         int64_t room)
{
    cudnnBackendDescriptor_t described, config[CANDIDATES];
    bool tensor_cores = d->tf32 || dmi_dtype_bytes(d->dnn.dtype) == 2;
    memset(p, 0, sizeof *p);
    p->operands = which == DMI_CUDNN_BIASED ? 4 : 3;
    if (!graph(p, handle, which, d, &described)) {
        return;
    }
    int64_t count = propose(described, CUDNN_HEUR_MODE_A, CANDIDATES / 2, config);
    count += propose(described, CUDNN_HEUR_MODE_FALLBACK, CANDIDATES - count, config + count);
    for (int compiles = 0; compiles < 2 && !p->plan; compiles++) {
        for (int64_t i = 0; i < count && !p->plan; i++) {
            if (is_allowed(config[i], tensor_cores, compiles) && take(p, handle, config[i], room)) {
                p->candidate = (int)i;
            }
        }
    }
    for (int64_t i = 0; i < count; i++) {
        if (p->plan && i == p->candidate) {
            p->descriptor[p->made++] = config[i];
        } else {
            cudnnBackendDestroyDescriptor(config[i]);
        }
    }
}

cudnnStatus_t dmi_cudnn_plan_run(const dmi_cudnn_plan *p, cudnnHandle_t handle,
                                 void *const operand[DMI_CUDNN_OPERANDS], void *workspace)
{
    static const int64_t number[DMI_CUDNN_OPERANDS] = {X, Y, W, BIAS};
    cudnnBackendDescriptor_t pack = NULL;
    cudnnStatus_t s = cudnnBackendCreateDescriptor(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, &pack);
    if (!ok(s)) {
        return s;
    }
    s = cudnnBackendSetAttribute(pack, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, p->operands,
                                 operand);
    s = ok(s) ? cudnnBackendSetAttribute(pack, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64,
                                         p->operands, number)
              : s;
    s = ok(s) ? cudnnBackendSetAttribute(pack, CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1,
                                         &workspace)
              : s;
    s = ok(s) ? cudnnBackendFinalize(pack) : s;
    s = ok(s) ? cudnnBackendExecute(handle, p->plan, pack) : s;
    cudnnBackendDestroyDescriptor(pack);
    return s;
}

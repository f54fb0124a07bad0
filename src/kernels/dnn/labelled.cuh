/* What losses and their gradients share on GPUs. */
#ifndef DMI_DNN_LABELLED_CUH
#define DMI_DNN_LABELLED_CUH

extern "C" {
#include "kernels/dnn/dnn_cuda.h"
}
#include "kernels/box/convert.cuh"

#include <float.h>
#include <math.h>

struct dmi_cuda_labelled {
    dmi_labelled d;
    int64_t rows;                      /* of the slice */
    double scale, divisor;             /* divisor: where labels are not counted; scale is divided by it then */
    const unsigned long long *ignored; /* counted labels that are ignored; NULL: labels are not counted */
};

static __device__ __forceinline__ double divisor_of(const dmi_cuda_labelled &p)
{
    if (p.ignored == NULL) {
        return p.divisor;
    }
    int64_t valid = p.d.batch * p.d.places - (int64_t)*p.ignored;
    return (double)max(valid, (int64_t)1);
}

template <typename L> static __device__ __forceinline__ bool is_ignored(const dmi_labelled &d, L label)
{
    return d.ignores && label == (L)d.ignore_label;
}

/* Label i of a slice, or of the batch where labels are counted: f32 is converted as dm_copy does it. */
static __device__ __forceinline__ int32_t label_at(const dmi_labelled &d, const void *labels, int64_t i)
{
    return d.dnn.type[1] == DM_F32 ? to_i32(((const float *)labels)[i]) : ((const int32_t *)labels)[i];
}

/* max(0, 1 - x) at the label, max(0, 1 + x) elsewhere. */
static __device__ __forceinline__ double margin(double x, bool is_label)
{
    double m = 1 + (is_label ? -x : x);
    return m > 0 || m != m ? m : 0;
}

/* labelled_back.cu; labels: of the slice */
void dmi_cuda_launch_gradients(dmi_queue *q, int what, const dmi_cuda_labelled *p, const void *x,
                               const void *labels, void *dx);

#endif

/* Products of runs (dmi_copy's geometry), cut into strided boxes or left as runs that a kernel looks up. */
#ifndef DMI_CUDA_PRODUCT_H
#define DMI_CUDA_PRODUCT_H

#include "kernels/box/convert.h"
#include "kernels/cuda/launch.h"

/* One dim: `count` runs of at most `len` elements each, or, device NULL, `len` elements. */
typedef struct dmi_cuda_factor {
    int64_t len, count;
    const dmi_run *host, *device; /* the same runs */
    int64_t src_stride, dst_stride;
} dmi_cuda_factor;
/* Dims outermost first, by decreasing dst stride; at most DMI_CUDA_ITEMS items. */
typedef struct dmi_cuda_product {
    int ndim;
    dmi_cuda_factor dim[DMI_CUDA_DIMS];
    int64_t src_at, dst_at; /* elements */
} dmi_cuda_product;

/* Callbacks for each part of a copy: box() if it needs no run tables, else runs(). */
typedef struct dmi_cuda_parts {
    void *context;
    void (*box)(void *context, dmi_box *box, const int64_t *at); /* at: src, dst; the box may be changed */
    void (*runs)(void *context, const dmi_cuda_product *product);
} dmi_cuda_parts;
void dmi_cuda_cut(const dmi_queue *q, const dmi_copy *d, const dmi_cuda_parts *parts);

/* The elements that may be moved together as one unit, a power of two of at most `most` bytes in all: 1 unless
 * the innermost dim is dense on both sides. */
int64_t dmi_cuda_product_unit(const dmi_cuda_product *p, int64_t bytes, const void *src, const void *dst,
                              int64_t most);
/* As a kernel takes it, in units of that many elements; the addresses are those of the product's own position.
 */
void dmi_cuda_product_make(const dmi_cuda_product *p, int64_t unit, dmi_cuda_runs *out);

#endif

/* Strided boxes: put into the simplest form once, then walked without index arithmetic in the inner loops. */
#include "kernels/box/convert.h"
#include <assert.h>

void dmi_box_swap(dmi_box *box, int a, int b)
{
    int64_t t = box->extent[a];
    box->extent[a] = box->extent[b];
    box->extent[b] = t;
    for (int s = 0; s < box->sides; s++) {
        t = box->stride[s][a];
        box->stride[s][a] = box->stride[s][b];
        box->stride[s][b] = t;
    }
}

static void move_dim(dmi_box *box, int from, int to)
{
    box->extent[to] = box->extent[from];
    for (int s = 0; s < box->sides; s++) {
        box->stride[s][to] = box->stride[s][from];
    }
}

static bool joins(const dmi_box *box, int outer, int inner)
{
    for (int s = 0; s < box->sides; s++) {
        if (box->stride[s][outer] != box->stride[s][inner] * box->extent[inner]) {
            return false;
        }
    }
    return true;
}

void dmi_box_simplify(dmi_box *box, int by)
{
    int n = 0;
    for (int d = 0; d < box->ndim; d++) {
        assert(box->extent[d] > 0);
        if (box->extent[d] != 1) {
            move_dim(box, d, n++);
        }
    }
    for (int i = 1; i < n; i++) { /* insertion sort: equal strides keep their order */
        for (int j = i; j > 0 && box->stride[by][j] > box->stride[by][j - 1]; j--) {
            dmi_box_swap(box, j, j - 1);
        }
    }
    int kept = n > 0 ? n - 1 : 0;
    for (int d = n - 2; d >= 0; d--) { /* kept: the outermost dim so far, at the end of the arrays */
        if (joins(box, d, kept)) {
            box->extent[kept] *= box->extent[d];
        } else {
            move_dim(box, d, --kept);
        }
    }
    if (n == 0) {
        box->extent[0] = 1;
        for (int s = 0; s < box->sides; s++) {
            box->stride[s][0] = 1;
        }
        n = 1;
    }
    box->ndim = n - kept;
    for (int d = 0; d < box->ndim; d++) {
        move_dim(box, kept + d, d);
    }
}

/* own: strides of side 2, NULL: there is none. */
static bool box_of(const dmi_acc_store *d, const int64_t *own, int sides, dmi_box *box)
{
    int64_t dense = 1;
    assert(d->ndim >= 0 && d->ndim <= DM_MAX_DIMS);
    *box = (dmi_box){.ndim = d->ndim, .sides = sides};
    for (int dim = d->ndim - 1; dim >= 0; dim--) {
        if (d->extent[dim] == 0) {
            return false;
        }
        box->extent[dim] = d->extent[dim];
        box->stride[0][dim] = dense;
        box->stride[1][dim] = d->out_stride[dim];
        box->stride[2][dim] = own ? own[dim] : dense;
        dense *= d->extent[dim];
    }
    dmi_box_simplify(box, 0);
    return true;
}

bool dmi_box_of_store(const dmi_acc_store *d, dmi_box *box)
{
    return box_of(d, NULL, 2, box);
}

bool dmi_box_of_fold(const dmi_fold *d, dmi_box *box)
{
    return box_of(&d->store, d->own >= 0 ? d->own_stride : NULL, 3, box);
}

bool dmi_box_next(const dmi_box *box, int ndim, int64_t *index, int64_t *at)
{
    for (int d = ndim - 1; d >= 0; d--) {
        for (int s = 0; s < box->sides; s++) {
            at[s] += box->stride[s][d];
        }
        if (++index[d] < box->extent[d]) {
            return true;
        }
        index[d] = 0;
        for (int s = 0; s < box->sides; s++) {
            at[s] -= box->stride[s][d] * box->extent[d];
        }
    }
    return false;
}

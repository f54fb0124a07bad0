/* Lines that stay where they are: a worker reads them in the memory of those who hold them. */
#include "kernels/box/convert.h"
#include "kernels/box/stream.h"
#include "kernels/cpu/simd.h"
#include "kernels/kernel.h"

#include <stdlib.h>
#include <string.h>

__extension__ typedef unsigned __int128 uint128;

enum { SOME = 1024, NEAR = 64, STREAMED_ROW = 1024 /* bytes */ };
enum { INDICES, BOX, LINES }; /* sides; of lines only behind the dim, where all lenders have the same strides */

typedef struct borrowing {
    const dmi_borrow *d;
    const void *indices;
    void *box;
    int64_t elem, index_bytes;
    const int64_t *stride; /* of a lender. From the dim on all have the same ones */
    uintptr_t *line;       /* [g] address of position 0 along the dim, at the first index of the other dims */
    uintptr_t *here;  /* [g] that of index 0 (straight) or position 0, at the present index of the others */
    bool straight;    /* every lender has consecutive indices */
    uint64_t inverse; /* 2^64 / block */
    int last;         /* dims up to it have indices of their own, those behind share one */
    bool streams;
    dmi_box outer, inner;
} borrowing;

dm_status dmi_lend_cpu(const dmi_kernel_call *call)
{
    const dmi_lend *d = call->desc;
    const void **address = call->at[1];
    address[d->place] = call->at[0];
    return DM_OK;
}

/* Who holds an index, 0 .. n-1. The product is the quotient, or one less. */
DMI_BODY int64_t holder_of(const borrowing *b, int64_t i)
{
    const dmi_index_owner *o = &b->d->owner;
    const uint64_t at = (uint64_t)(i + o->origin), block = (uint64_t)o->block;
    uint64_t q = (uint64_t)((uint128)at * b->inverse >> 64);
    q += at - q * block >= block;
    return (int64_t)(q < (uint64_t)o->g ? q : q % (uint64_t)o->g);
}

static dmi_box box_of(const borrowing *b, int from, int to)
{
    const dmi_index *d = &b->d->index;
    dmi_box box = {.ndim = to - from, .sides = 3};
    for (int k = from; k < to; k++) {
        box.extent[k - from] = d->extent[k];
        box.stride[INDICES][k - from] = d->index_stride[k];
        box.stride[BOX][k - from] = d->box_stride[k];
        box.stride[LINES][k - from] = from > d->dim ? b->stride[k] : 0;
    }
    return box;
}

/* `here` for these indices of the dims before the one that is indexed, the last of ndim + 1. */
static void move_to(const borrowing *b, const int64_t *index, int ndim)
{
    for (int64_t h = 0; h < b->d->owner.g; h++) {
        const dmi_lender *lender = &b->d->lender[h];
        int64_t at = b->straight ? (lender->set.origin - lender->set.lbase) * lender->stride[ndim] : 0;
        for (int k = 0; k < ndim; k++) {
            at += index[k] * lender->stride[k];
        }
        b->here[h] = b->line[h] + (uintptr_t)(at * b->elem);
    }
}

/* All positions that share one index. */
static void one_index(const borrowing *b, const int64_t *index, const int64_t *at)
{
    const dmi_index *d = &b->d->index;
    const int64_t i =
        dmi_index_read(d->index_dtype, dmi_at(b->indices, at[INDICES] * b->index_bytes), d->mode, d->n);
    if (i < 0) {
        return;
    }
    const int64_t h = holder_of(b, i), place = dmi_index_place(&b->d->lender[h].set, i);
    const int64_t *stride = b->d->lender[h].stride;
    int64_t from = 0, counter[DMI_BOX_DIMS] = {0}, here[DMI_BOX_SIDES] = {[BOX] = at[BOX]};
    for (int k = 0; k <= b->last; k++) {
        from += (k == d->dim ? place : index[k]) * stride[k];
    }
    const int inner = b->inner.ndim - 1;
    const int64_t n = b->inner.extent[inner], by_box = b->inner.stride[BOX][inner],
                  by_line = b->inner.stride[LINES][inner];
    do {
        const void *src = (const void *)(b->line[h] + (uintptr_t)((from + here[LINES]) * b->elem));
        void *dst = dmi_at_mut(b->box, here[BOX] * b->elem);
        if (b->streams) {
            dmi_stream_row(dst, src, n * b->elem);
        } else {
            dmi_move_row(b->elem, src, by_line, dst, by_box, n);
        }
    } while (dmi_box_next(&b->inner, inner, counter, here));
}

/* Are so many indices, side by side and of this type, all from 0 to n-1? */
#define ALL_INSIDE(type)                                                                                       \
    for (int64_t k = 0; k < some; k++) {                                                                       \
        outside |= (uint64_t)((const type *)indices)[k] >= n;                                                  \
    }
static bool all_inside(const borrowing *b, const void *indices, int64_t some)
{
    const uint64_t n = (uint64_t)b->d->index.n;
    bool outside = false;
    if (b->d->index.index_dtype == DM_I64) {
        ALL_INSIDE(int64_t)
    } else {
        ALL_INSIDE(int32_t)
    }
    return !outside;
}

/* Elements as they mostly are. A loop of few instructions has most of them on their way from memory at once. */
DMI_BODY void move_straight(const borrowing *b, const void *indices, int64_t some, char *box, int64_t by_box,
                            int64_t elem)
{
    const uintptr_t *here = b->here;
    const dmi_index_owner *o = &b->d->owner;
    const bool two =
        o->g == 1 || (o->g == 2 && o->origin + b->d->index.n <= 2 * o->block); /* one bound between them */
    const int64_t second = o->g == 1 ? INT64_MAX : o->block - o->origin;
    const int64_t step = b->stride[b->last] * elem, by = by_box * elem;
    if (b->d->index.index_dtype == DM_I64 && two) {
        for (int64_t k = 0; k < some; k++) {
            const int64_t i = ((const int64_t *)indices)[k];
            memcpy(box + k * by, (const void *)(here[i >= second] + (uintptr_t)(i * step)), (size_t)elem);
        }
    } else if (b->d->index.index_dtype == DM_I64) {
        for (int64_t k = 0; k < some; k++) {
            const int64_t i = ((const int64_t *)indices)[k];
            memcpy(box + k * by, (const void *)(here[holder_of(b, i)] + (uintptr_t)(i * step)), (size_t)elem);
        }
    } else {
        for (int64_t k = 0; k < some; k++) {
            const int64_t i = ((const int32_t *)indices)[k];
            memcpy(box + k * by, (const void *)(here[holder_of(b, i)] + (uintptr_t)(i * step)), (size_t)elem);
        }
    }
}

/* Elements with any indices. */
static void move_some(const borrowing *b, const char *indices, int64_t by_index, int64_t some, char *box,
                      int64_t by_box)
{
    const dmi_index *d = &b->d->index;
    const int64_t step = b->stride[b->last] * b->elem;
    for (int64_t k = 0; k < some; k++) {
        const int64_t i = dmi_index_read(d->index_dtype, indices + k * by_index, d->mode, d->n);
        if (i >= 0) {
            const int64_t h = holder_of(b, i),
                          place = b->straight ? i : dmi_index_place(&b->d->lender[h].set, i);
            memcpy(box + k * by_box * b->elem, (const void *)(b->here[h] + (uintptr_t)(place * step)),
                   (size_t)b->elem);
        }
    }
}

/* All positions along the last dim of the outer box, an element each. */
static void one_line(const borrowing *b, const int64_t *at)
{
    const int last = b->last;
    const int64_t n = b->outer.extent[last], by_box = b->outer.stride[BOX][last];
    const int64_t by_index = b->outer.stride[INDICES][last] * b->index_bytes;
    const dm_dtype type = b->d->index.index_dtype;
    const bool usual = b->straight && by_index == b->index_bytes && (type == DM_I64 || type == DM_I32);
    for (int64_t first = 0; first < n; first += SOME) {
        const int64_t some = DMI_MIN(n - first, SOME);
        const char *indices = (const char *)b->indices + at[INDICES] * b->index_bytes + first * by_index;
        char *box = dmi_at_mut(b->box, (at[BOX] + first * by_box) * b->elem);
        switch (usual && all_inside(b, indices, some) ? b->elem : 0) {
        case 1:
            move_straight(b, indices, some, box, by_box, 1);
            break;
        case 2:
            move_straight(b, indices, some, box, by_box, 2);
            break;
        case 4:
            move_straight(b, indices, some, box, by_box, 4);
            break;
        case 8:
            move_straight(b, indices, some, box, by_box, 8);
            break;
        case 16:
            move_straight(b, indices, some, box, by_box, 16);
            break;
        default:
            move_some(b, indices, by_index, some, box, by_box);
            break;
        }
    }
}

/* Long rows, dense on both sides, of a result that does not stay in the caches, go past them. */
static bool streams(const borrowing *b, int64_t count)
{
    const int inner = b->inner.ndim - 1;
    return b->inner.stride[LINES][inner] == 1 && b->inner.stride[BOX][inner] == 1 &&
           b->inner.extent[inner] * b->elem >= STREAMED_ROW && count * b->elem >= DMI_STREAM_BYTES;
}

static void follow(borrowing *b, int64_t count)
{
    const dmi_index *d = &b->d->index;
    const bool by_elements = b->last == d->dim && b->last == d->ndim - 1;
    int64_t index[DMI_BOX_DIMS] = {0}, at[DMI_BOX_SIDES] = {[INDICES] = d->index_offset, [BOX] = d->box_offset};
    b->outer = box_of(b, 0, b->last + 1);
    b->inner = box_of(b, b->last + 1, d->ndim);
    dmi_box_simplify(&b->inner, BOX);
    b->streams = streams(b, count);
    do {
        if (by_elements) {
            move_to(b, index, b->last);
            one_line(b, at);
        } else {
            one_index(b, index, at);
        }
    } while (dmi_box_next(&b->outer, b->outer.ndim - by_elements, index, at));
    if (b->streams) {
        dmi_stream_fence();
    }
}

/* Addresses of the lenders' lines. */
static void find_lines(borrowing *b, const void *const *address)
{
    const dmi_borrow *d = b->d;
    b->straight = true;
    for (int64_t h = 0; h < d->owner.g; h++) {
        const dmi_lender *lender = &d->lender[h];
        b->line[h] = 0;
        if (lender->place >= 0) {
            b->line[h] = (uintptr_t)address[lender->place] + (uintptr_t)(lender->offset * b->elem);
            b->straight = b->straight && lender->set.g == 1;
            b->stride = lender->stride;
        }
    }
}

dm_status dmi_borrow_cpu(const dmi_kernel_call *call)
{
    const dmi_borrow *d = call->desc;
    const dmi_index *x = &d->index;
    uintptr_t few[2 * NEAR];
    int64_t count = 1, g = d->owner.g;
    borrowing b = {.d = d,
                   .indices = call->at[0],
                   .box = call->at[2],
                   .elem = dmi_dtype_bytes(x->dtype),
                   .index_bytes = dmi_dtype_bytes(x->index_dtype),
                   .inverse = UINT64_MAX / (uint64_t)d->owner.block,
                   .last = x->ndim - 1};
    while (b.last > x->dim && x->index_stride[b.last] == 0) {
        b.last--;
    }
    for (int k = 0; k < x->ndim; k++) {
        count *= x->extent[k];
    }
    b.line = g <= NEAR ? few : malloc((size_t)g * 2 * sizeof *b.line);
    if (!b.line) {
        return dmi_fail(DM_ERR_NOMEM, "no memory for the places of lent rows");
    }
    b.here = b.line + g;
    find_lines(&b, call->at[1]);
    if (count > 0 && b.stride) {
        follow(&b, count);
    }
    if (b.line != few) {
        free(b.line);
    }
    *(int64_t *)call->at[3] = 1;
    return DM_OK;
}

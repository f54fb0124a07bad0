/* Sorting of rows: elements become unsigned keys of their width, which a radix sort orders. */
#include "kernels/box/convert.h"
#include "kernels/kernel.h"

#include <assert.h>
#include <string.h>

enum { FEW = 40 }; /* so many are sorted by insertion */

/* Keys, and the places of their elements in the row (or NULL), of 4 or 8 bytes; beside each, room for as many.
 */
typedef struct keys {
    void *key[2], *place[2];
} keys;

typedef struct sort_job {
    const dmi_sort *d;
    int kind;
    bool descending;
    uint64_t most_bits; /* of floats: the largest that is a number; without a sign */
    int64_t n;
    keys keys;
    int64_t *run;
    void *count; /* of a selection; NULL: all are sorted */
} sort_job;

static void swap_buffers(keys *b)
{
    void *key = b->key[0], *place = b->place[0];
    b->key[0] = b->key[1];
    b->key[1] = key;
    b->place[0] = b->place[1];
    b->place[1] = place;
}

#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)
#define NAME(name) JOIN(name##_, BITS)
#define RAW JOIN(dmi_raw, BITS)
#define KEY uint8_t
#define BITS 8
#include "kernels/order/sort_keys_cpu.h"
#define KEY uint16_t
#define BITS 16
#include "kernels/order/sort_keys_cpu.h"
#define KEY uint32_t
#define BITS 32
#include "kernels/order/sort_keys_cpu.h"
#define KEY uint64_t
#define BITS 64
#include "kernels/order/sort_keys_cpu.h"

typedef struct sort_row {
    void (*sort)(sort_job *job, const void *x, int64_t stride, bool *odd);
    void (*decode)(const sort_job *job, bool odd, const void *x, int64_t stride, void *to);
    void (*gather)(const void *place, const void *x, int64_t stride, int64_t count, void *to);
} sort_row;

static const sort_row *row_of(int64_t bytes, bool wide)
{
    static const sort_row rows[][4] = {{{row_short_8, decode_8, gather_short_8},
                                        {row_short_16, decode_16, gather_short_16},
                                        {row_short_32, decode_32, gather_short_32},
                                        {row_short_64, decode_64, gather_short_64}},
                                       {{row_wide_8, decode_8, gather_wide_8},
                                        {row_wide_16, decode_16, gather_wide_16},
                                        {row_wide_32, decode_32, gather_wide_32},
                                        {row_wide_64, decode_64, gather_wide_64}}};
    return &rows[wide][bytes == 1 ? 0 : bytes == 2 ? 1 : bytes == 4 ? 2 : 3];
}

static int64_t place_at(const sort_job *job, int64_t i)
{
    return job->d->wide ? (int64_t)((uint64_t *)job->keys.place[0])[i]
                        : (int64_t)((uint32_t *)job->keys.place[0])[i];
}

static void *take(char **scratch, int64_t bytes)
{
    void *p = *scratch;
    *scratch += (bytes + 63) / 64 * 64;
    return p;
}

static void begin(sort_job *job, const dmi_sort *d, void *scratch)
{
    char *room = scratch;
    int64_t n = d->extent[d->dim], bytes = dmi_dtype_bytes(d->dtype);
    *job = (sort_job){.d = d, .descending = d->descending, .n = n};
    job->kind = dmi_sort_kind(d->dtype);
    job->most_bits = job->kind == DMI_SORT_FLOAT ? dmi_sort_most(d->dtype) : 0;
    assert(d->wide || n <= UINT32_MAX);
    for (int i = 0; i < dmi_sort_buffers(d); i++) {
        job->keys.key[i] = take(&room, n * bytes);
    }
    for (int i = 0; i < 2 && dmi_sort_places(d); i++) {
        job->keys.place[i] = take(&room, n * dmi_sort_place_bytes(d));
    }
    job->run = take(&room, (d->runs + 1) * (int64_t)sizeof *job->run);
    job->count = dmi_sort_selects(d) ? take(&room, DMI_SORT_SELECT * dmi_sort_place_bytes(d)) : NULL;
    assert(room - (char *)scratch <= d->scratch);
}

/* Where things are: sides of the box of rows. */
enum { X, VALUES, INDICES, CARRIED, SIDES };

static void sort_one(sort_job *job, const int64_t *at, const void *x, void *values, int64_t *indices,
                     const int64_t *carried)
{
    const dmi_sort *d = job->d;
    int64_t bytes = dmi_dtype_bytes(d->dtype), stride = d->stride[d->dim];
    const sort_row *row = row_of(bytes, d->wide);
    const void *from = dmi_at(x, at[X] * bytes);
    keys start = job->keys;
    bool odd;
    row->sort(job, from, stride, &odd);
    if (values) {
        int64_t to_stride = d->value_stride[d->dim];
        void *to = dmi_at_mut(values, at[VALUES] * bytes);
        bool direct = to_stride == 1 && values != x;
        void *made = direct ? to : job->keys.key[0];
        if (job->keys.place[0]) {
            row->gather(job->keys.place[0], from, stride, d->most, made);
        } else {
            row->decode(job, odd, from, stride, made);
        }
        if (!direct) {
            dmi_move_row(bytes, made, 1, to, to_stride, d->most);
        }
    }
    for (int64_t i = 0; i < d->most && indices; i++) {
        int64_t place = place_at(job, i);
        indices[at[INDICES] + i * d->index_stride[d->dim]] =
            carried ? carried[at[CARRIED] + place * d->carried_stride[d->dim]] : d->first + place;
    }
    job->keys = start;
}

dm_status dmi_sort_cpu(const dmi_kernel_call *call)
{
    const dmi_sort *d = call->desc;
    sort_job job;
    dmi_box box = {.sides = SIDES};
    int64_t index[DMI_BOX_DIMS] = {0},
            at[DMI_BOX_SIDES] = {d->offset, d->value_offset, d->index_offset, d->carried_offset};
    int ref = 2;
    void *values = d->values ? call->at[ref++] : NULL;
    int64_t *indices = d->indices ? call->at[ref++] : NULL;
    const int64_t *carried = d->carried ? call->at[ref] : NULL;
    if (d->extent[d->dim] == 0 || d->most == 0) {
        return DM_OK;
    }
    for (int dim = 0; dim < d->ndim; dim++) {
        if (d->extent[dim] == 0) {
            return DM_OK;
        }
        if (dim == d->dim) {
            continue;
        }
        box.extent[box.ndim] = d->extent[dim];
        box.stride[X][box.ndim] = d->stride[dim];
        box.stride[VALUES][box.ndim] = d->value_stride[dim];
        box.stride[INDICES][box.ndim] = d->index_stride[dim];
        box.stride[CARRIED][box.ndim++] = d->carried_stride[dim];
    }
    begin(&job, d, call->at[1]);
    do {
        sort_one(&job, at, call->at[0], values, indices, carried);
    } while (dmi_box_next(&box, box.ndim, index, at));
    return DM_OK;
}

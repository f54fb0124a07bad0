/* Reads and writes that know the type of the caller's memory: they convert, or refuse. */
#include "master/session.h"
#include "ops/common_host.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { CHUNK = 1 << 19 }; /* elements converted at once */

typedef struct transfer {
    dm_session *session;
    dm_array a; /* all of it is moved */
    bool writing;
    int ndim;
    dm_dtype array_dtype, host_dtype;
    int64_t extent[DM_MAX_DIMS], stride[DM_MAX_DIMS]; /* stride: of host, elements */
    char *host;
    void *packed; /* a chunk in the array's type */
} transfer;

/* Between the caller's memory from element `at` on and the packed chunk. */
static void convert(const transfer *t, const int64_t *extent, int64_t at)
{
    dmi_run run[DM_MAX_DIMS];
    dmi_copy copy = {.ndim = t->ndim,
                     .src_dtype = t->writing ? t->host_dtype : t->array_dtype,
                     .dst_dtype = t->writing ? t->array_dtype : t->host_dtype,
                     .count = 1};
    for (int d = t->ndim - 1; d >= 0; d--) {
        run[d] = (dmi_run){.len = extent[d]};
        copy.run[d] = &run[d];
        copy.nrun[d] = 1;
        copy.src_stride[d] = t->writing ? t->stride[d] : copy.count;
        copy.dst_stride[d] = t->writing ? copy.count : t->stride[d];
        copy.count *= extent[d];
    }
    char *host = t->host + at * dmi_dtype_bytes(t->host_dtype);
    dmi_kernel_call call = {.desc = &copy, .at = {host, t->packed}, .refs = 2};
    if (!t->writing) {
        call.at[0] = t->packed;
        call.at[1] = host;
    }
    dm_status status = dmi_backend_cpu()->run(DMI_KERNEL_copy, &call);
    assert(status == DM_OK);
    (void)status;
}

static dm_status move_chunk(const transfer *t, const int64_t *lo, const int64_t *extent, int64_t at)
{
    if (t->writing) {
        convert(t, extent, at);
        return dm_array_write(t->session, t->a, lo, extent, t->packed, 0);
    }
    dm_status status = dm_array_read(t->session, t->a, lo, extent, t->packed, 0);
    if (status == DM_OK) {
        convert(t, extent, at);
    }
    return status;
}

/* In chunks of whole rows of dim d, or, where one row is too long, each of its rows in the same way. lo and
 * extent say which element the dims before d stand at. */
static dm_status move_dim(const transfer *t, int d, int64_t *lo, int64_t *extent, int64_t at)
{
    int64_t row = 1;
    for (int i = d + 1; i < t->ndim; i++) {
        lo[i] = 0;
        extent[i] = t->extent[i];
        row *= t->extent[i];
    }
    if (t->ndim == 0) {
        return move_chunk(t, lo, extent, at);
    }
    int64_t step = row <= CHUNK ? CHUNK / row : 1;
    dm_status status = DM_OK;
    for (int64_t i = 0; i < t->extent[d] && status == DM_OK; i += step) {
        lo[d] = i;
        extent[d] = DMI_MIN(step, t->extent[d] - i);
        status = row <= CHUNK ? move_chunk(t, lo, extent, at + i * t->stride[d])
                              : move_dim(t, d + 1, lo, extent, at + i * t->stride[d]);
    }
    return status;
}

/* All of t->a, which may be a view made for it. */
static dm_status move_all(transfer *t, const dmi_desc *desc, int64_t ld)
{
    int64_t lo[DM_MAX_DIMS] = {0}, extent[DM_MAX_DIMS], stride = 1, count = 1;
    for (int d = desc->ndim - 1; d >= 0; d--) {
        t->extent[d] = desc->extent[d];
        t->stride[d] = stride;
        stride *= d == desc->ndim - 1 && ld ? ld : DMI_MAX(desc->extent[d], 1);
        count *= desc->extent[d];
    }
    if (count == 0) {
        return dm_sync(t->session); /* a read waits, whatever it reads */
    }
    t->packed = malloc((size_t)DMI_MIN(count, CHUNK) * (size_t)dmi_dtype_bytes(t->array_dtype));
    if (!t->packed) {
        return dmi_fail(DM_ERR_NOMEM, "no memory for elements that are converted");
    }
    dm_status status = move_dim(t, 0, lo, extent, 0);
    free(t->packed);
    return status;
}

/* Types that are converted: those that dm_copy takes. */
static bool takes(dm_dtype dtype)
{
    return dmi_dtype_bytes(dtype) > 0 && (dmi_ops[DMI_OP_copy].operand[0].dtypes >> dtype & 1);
}

static dm_status transfer_as(dm_session *session, bool writing, dm_array a, const int64_t *lo,
                             const int64_t *extent, dm_dtype dtype, void *host, int64_t ld)
{
    dmi_session *s;
    dmi_handle *h = NULL;
    const char *call = dmi_api_called();
    dm_status status = dmi_enter(session, &s);
    if (status != DM_OK || (status = dmi_handle_find(s, a, "a", &h)) != DM_OK) {
        return status;
    }
    if (dtype == h->desc.dtype) {
        return writing ? dm_array_write(session, a, lo, extent, host, ld)
                       : dm_array_read(session, a, lo, extent, host, ld);
    }
    if ((status = dmi_host_check_call(s, call, &h->desc, lo, extent, host)) != DM_OK) {
        return status;
    }
    if (!takes(dtype) || !takes(h->desc.dtype)) {
        return dmi_fail(DM_ERR_DTYPE, "%s: dtype: %s is not converted to and from %s", call,
                        dmi_dtype_name(dtype), dmi_dtype_name(h->desc.dtype));
    }
    transfer t = {.session = session,
                  .a = a,
                  .writing = writing,
                  .ndim = h->desc.ndim,
                  .array_dtype = h->desc.dtype,
                  .host_dtype = dtype,
                  .host = host};
    dmi_desc desc = h->desc;
    if (lo) {
        if ((status = dm_array_view(session, a, lo, extent, &t.a)) != DM_OK) {
            return status;
        }
        memcpy(desc.extent, extent, (size_t)desc.ndim * sizeof *extent);
    }
    status = dmi_host_check_ld(call, &desc, dtype, ld);
    if (status == DM_OK) {
        status = move_all(&t, &desc, ld);
    }
    return lo ? dmi_array_release(session, t.a, status) : status;
}

dm_status dm_array_read_as(dm_session *session, dm_array a, const int64_t *lo, const int64_t *extent,
                           dm_dtype dtype, void *host, int64_t ld)
{
    return transfer_as(session, false, a, lo, extent, dtype, host, ld);
}

dm_status dm_array_write_as(dm_session *session, dm_array a, const int64_t *lo, const int64_t *extent,
                            dm_dtype dtype, const void *host, int64_t ld)
{
    return transfer_as(session, true, a, lo, extent, dtype, (void *)(uintptr_t)host, ld);
}

/* The C type of an element in host memory, as the dtype that stands for it: f16, bf16 and u16 have the same. */
static dm_dtype host_type(dm_dtype dtype)
{
    switch (dtype) {
#define X(code, name, text, ctype, bytes)                                                                      \
    case DM_##name:                                                                                            \
        return DM_DTYPE_OF((ctype *)0);
        DM_DTYPE_MAP(X)
#undef X
    }
    return (dm_dtype)0;
}

static dm_status check_type(dm_session *session, const char *call, dm_array a, dm_dtype dtype)
{
    dm_array_info info = {.size = sizeof info};
    dm_status status = dm_array_query(session, a, &info);
    bool any_byte = dtype == DM_BOOL && info.dtype != DM_BOOL; /* C's bool holds 0 and 1 only */
    if (status != DM_OK || (host_type(dtype) && host_type(dtype) == host_type(info.dtype) && !any_byte)) {
        return status;
    }
    return dmi_fail(DM_ERR_DTYPE, "%s: the array is %s, but the host memory %s; dm_%s_as converts", call,
                    dmi_dtype_name(info.dtype), dmi_dtype_name(dtype), call);
}

dm_status dm_read_checked(dm_session *session, dm_array a, dm_dtype dtype, void *host)
{
    dm_status status = check_type(session, "read", a, dtype);
    return status == DM_OK ? dm_array_read(session, a, NULL, NULL, host, 0) : status;
}

dm_status dm_write_checked(dm_session *session, dm_array a, dm_dtype dtype, const void *host)
{
    dm_status status = check_type(session, "write", a, dtype);
    return status == DM_OK ? dm_array_write(session, a, NULL, NULL, host, 0) : status;
}

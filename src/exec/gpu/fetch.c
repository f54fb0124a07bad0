/* What user functions ask of their GPU: to read memory of the host, and to fetch parts of what they would write
 * from there.
 *
 * To make memory readable, and to end that, may wait for the device, so the communication thread does it when a
 * function has returned, not the function. What is fetched goes to the device with the rest of the operand,
 * behind what the stream has. */
#include "exec/gpu/host_work.h"

#include <stdlib.h>
#include <string.h>

void dmi_gpu_asks_begin(const dmi_engine *e, dmi_task_asks *asks)
{
    const struct dmi_host_work *h = e->gpu->host_work;
    memset(asks, 0, sizeof *asks);
    pthread_mutex_init(&asks->lock, NULL);
    memcpy(asks->mapped, h->map, sizeof h->map);
    asks->mappeds = h->maps;
}

void dmi_gpu_asks_end(dmi_task_asks *asks)
{
    pthread_mutex_destroy(&asks->lock);
    free(asks->piece);
}

static int by_place(const void *a, const void *b)
{
    const dmi_task_piece *x = a, *y = b;
    return (x->to > y->to) - (x->to < y->to);
}

/* --- maps --- */

static void map(dmi_engine *e, const dmi_task_map *wanted)
{
    struct dmi_host_work *h = e->gpu->host_work;
    dm_status status = h->maps < DMI_TASK_MAPS
                           ? dmi_cu_pin_to_read(wanted->at, wanted->bytes)
                           : dmi_fail(DM_ERR_LIMIT, "%d pieces of memory are mapped already", DMI_TASK_MAPS);
    if (status == DM_OK) {
        h->map[h->maps++] = *wanted;
    } else { /* functions write what they cannot fetch */
        dmi_log(DMI_LOG_INFO, "worker %d: GPU %d cannot fetch from %lld bytes of the host: %s", e->config.me,
                e->gpu->device, (long long)wanted->bytes, dmi_error_text());
    }
}

static void unmap(dmi_engine *e, const void *at)
{
    struct dmi_host_work *h = e->gpu->host_work;
    for (int i = 0; i < h->maps; i++) {
        if (h->map[i].at == at) {
            dmi_cu_unpin((void *)(uintptr_t)at);
            h->map[i] = h->map[--h->maps];
            return;
        }
    }
}

bool dmi_gpu_asks_serve(dmi_engine *e, dmi_task_asks *asks)
{
    if (asks->maps + asks->unmaps > 0 && (dmi_gpu_stands(e) || (asks->unmaps > 0 && dmi_gpu_task_reads(e)))) {
        return false;
    }
    for (int i = 0; i < asks->unmaps; i++) {
        unmap(e, asks->unmap[i]);
    }
    for (int i = 0; i < asks->maps; i++) {
        map(e, &asks->map[i]);
    }
    asks->maps = asks->unmaps = 0;
    if (asks->pieces > 1) {
        qsort(asks->piece, (size_t)asks->pieces, sizeof *asks->piece, by_place);
    }
    return true;
}

void dmi_gpu_maps_free(dmi_engine *e)
{
    struct dmi_host_work *h = e->gpu->host_work;
    while (h->maps > 0) {
        unmap(e, h->map[h->maps - 1].at);
    }
}

/* --- pieces --- */

/* Those of an operand: `count` of them from `first` on. */
static void find_pieces(const dmi_task_asks *asks, const char *host, int64_t bytes, int64_t *first,
                        int64_t *count)
{
    *first = 0;
    while (*first < asks->pieces && asks->piece[*first].to < host) {
        ++*first;
    }
    *count = 0;
    while (*first + *count < asks->pieces && asks->piece[*first + *count].to < host + bytes) {
        ++*count;
    }
}

dm_status dmi_gpu_asks_copy(dmi_engine *e, int lane, const dmi_task_asks *asks, char *device, const char *host,
                            int64_t bytes)
{
    const struct dmi_host_work *h = e->gpu->host_work;
    dmi_stream stream = e->gpu->stream[lane];
    int64_t first, count, n = 0, at = 0;
    find_pieces(asks, host, bytes, &first, &count);
    if (count == 0) {
        return dmi_cu_copy(stream, device, host, bytes);
    }
    dmi_cu_piece *piece = malloc((size_t)(2 * count + 1) * sizeof *piece);
    if (!piece) {
        return dmi_fail(DM_ERR_NOMEM, "no memory for %lld pieces that a GPU is to fetch", (long long)count);
    }
    dm_status status = DM_OK;
    for (int64_t i = first; status == DM_OK && i <= first + count; i++) {
        const dmi_task_piece *p = i < first + count ? &asks->piece[i] : NULL;
        const int64_t begin = p ? p->to - host : bytes;
        if (begin < at) {
            status = dmi_fail(DM_ERR_TASK, "a function has two fetches to one place");
        } else if (p && !dmi_task_map_of(h->map, h->maps, p->from, p->bytes)) {
            status = dmi_fail(DM_ERR_TASK, "a function fetches from memory that is not mapped any more");
        } else {
            if (begin > at) { /* what the function has written */
                piece[n++] = (dmi_cu_piece){device + at, host + at, begin - at};
            }
            if (p) {
                piece[n++] = (dmi_cu_piece){device + begin, p->from, p->bytes};
            }
            at = p ? begin + p->bytes : at;
        }
    }
    status = status == DM_OK ? dmi_cu_fetch(stream, piece, n) : status;
    free(piece);
    return status;
}

/* A replicated result in segments, one per holder. */
#include "plan/reduce.h"

#include <string.h>

/* Long segments begin at multiples of ALIGN elements, for vector loads and copy engines. */
enum { ALIGN = 64, LONG = 16 * ALIGN };

/* What an exchange costs beside its payloads (`adr/0073`). */
enum { EXCHANGE_BYTES = 1200000 };

bool dmi_segments_serve(const dmi_desc *out)
{
    return out->layout->kind == DMI_LAYOUT_GRID && out->layout->replicas > 1 && out->ndim > 0;
}

/* The first dim that can be cut evenly, because its segments are the densest in memory; else the longest. */
static int segment_dim(const dmi_region *region, int segments)
{
    int longest = 0;
    for (int d = 0; d < region->ndim; d++) {
        if (region->dim[d].count >= (int64_t)16 * segments) {
            return d;
        }
        longest = region->dim[d].count > region->dim[longest].count ? d : longest;
    }
    return longest;
}

static int64_t even_range(int64_t count, int parts)
{
    int64_t each = (count + parts - 1) / parts;
    return each >= LONG ? (each + ALIGN - 1) / ALIGN * ALIGN : each;
}

/* The elements number lo to hi-1 along dim d, in the same coordinates. */
static void cut(dmi_region *region, int d, int64_t lo, int64_t hi)
{
    dmi_dimset *set = &region->dim[d];
    if (lo >= hi) {
        *set = dmi_dimset_interval(0, 0);
        region->count = 0;
        return;
    }
    int64_t first = dmi_dimset_index(set, lo), last = dmi_dimset_index(set, hi - 1);
    region->count = region->count / set->count * (hi - lo);
    dmi_dimset_clip(set, first, last - first + 1, set);
    set->origin -= first; /* indices count as before */
}

void dmi_segment_region(const dmi_desc *out, int worker, int chunks, int chunk, dmi_region *region)
{
    int segments = out->layout->replicas;
    dmi_desc_region(out, worker, 0, region);
    if (region->count == 0) {
        return;
    }
    int d = segment_dim(region, segments);
    int64_t n = region->dim[d].count, each = even_range(n, segments);
    int64_t lo = DMI_MIN(dmi_layout_replica(out->layout, worker) * each, n), hi = DMI_MIN(lo + each, n);
    each = even_range(hi - lo, chunks);
    lo = DMI_MIN(lo + chunk * each, hi);
    cut(region, d, lo, DMI_MIN(lo + each, hi));
}

static double part_elements(const dmi_desc *out)
{
    double n = 1;
    for (int d = 0; d < out->ndim; d++) {
        n *= (double)out->extent[d];
    }
    return n / out->layout->group;
}

/* Two chunks are enough for a GPU, whose additions are many times faster than the transfers: the first is added
 * up during the second's transfer, the second while the first is shared. A further chunk costs two more pushes
 * to each other holder. On CPUs additions and transfers take about as long. */
int dmi_segment_chunks(const dmi_profile *profile, const dmi_desc *out, int64_t bytes)
{
    int most = profile->gpu && profile->reduce_chunk == 0 ? 2 : DMI_MOST_CHUNKS;
    int64_t least = profile->reduce_chunk > 0 ? profile->reduce_chunk
                    : profile->gpu            ? (INT64_C(3) << 20) * DMI_MAX(out->layout->replicas - 1, 1)
                                              : INT64_C(512) << 10;
    double segment = part_elements(out) / out->layout->replicas * (double)bytes;
    return (int)DMI_MAX(1, DMI_MIN(most, segment / (double)least));
}

/* Compares the bytes that a worker sends. The second hop and every further payload cost time, expressed here as
 * bytes: 1 MiB each on GPUs with their fast links, 16 KiB on CPUs. In a program on the devices alone an
 * exchange moves all payloads of a hop, so there is one exchange more, and that is all. */
bool dmi_scatter_pays(const dmi_builder *b, const dmi_desc *out, const dmi_load *load)
{
    const dmi_profile *profile = b->profile;
    if (!dmi_segments_serve(out) || profile->reduce_algorithm == DMI_REDUCE_DIRECT) {
        return false;
    }
    if (profile->reduce_algorithm == DMI_REDUCE_SCATTER) {
        return true;
    }
    double n = part_elements(out), holders = out->layout->replicas;
    double own = n * (double)load->addends / DMI_MAX(load->senders, 1) * (double)load->bytes;
    double direct = own * DMI_MAX(holders / DMI_MAX(load->replicas, 1) - 1, 0);
    double scatter = direct / holders + n * (holders - 1) / holders * (double)dmi_dtype_bytes(out->dtype);
    double payload = profile->gpu ? 1 << 20 : 16 << 10;
    double hop = b->in_program && profile->on_device ? EXCHANGE_BYTES : payload * (holders + 3);
    return direct - scatter > hop;
}

/* Do all workers reach each other's memory, or have no device? */
static bool all_near(const dmi_profile *profile)
{
    bool near = true;
    for (int w = 1; w < profile->workers && profile->gpu && profile->host_of; w++) {
        near = near && profile->host_of[w] == profile->host_of[0];
    }
    return near;
}

bool dmi_is_large(const dmi_profile *profile, double bytes)
{
    enum { LARGE = 256 << 10 };
    return bytes >= (profile->reduce_chunk > 0 ? (double)profile->reduce_chunk : LARGE);
}

int dmi_reduction_channel(const dmi_profile *profile, const dmi_desc *out, const dmi_load *load)
{
    return load->senders > 1 && dmi_is_large(profile, part_elements(out) * (double)load->bytes) &&
           all_near(profile);
}

static bool hold_the_same(const dmi_layout *layout, int a, int b)
{
    int x = layout->position[a], y = layout->position[b];
    return x >= 0 && y >= 0 && x % layout->group == y % layout->group;
}

/* The sender's finished chunk, as a copy from its replica of the result to the receiver's. */
static bool shared(dmi_builder *b, const dmi_desc *out, int sender, int receiver, int chunks, int chunk,
                   dmi_copy *copy)
{
    dmi_region segment, whole;
    if (!hold_the_same(out->layout, sender, receiver)) {
        return false;
    }
    dmi_segment_region(out, sender, chunks, chunk, &segment);
    dmi_desc_region(out, receiver, 0, &whole);
    return segment.count > 0 && dmi_region_copy(b, &segment, &whole, out->dtype, out->dtype, copy);
}

/* No deadlock: in this command a holder uses only its own segment of its replica, so grants of the others wait
 * for nothing and come before the pushes of the same round. A push waits for earlier kernels of this worker
 * and, if paced, for payloads of earlier rounds. */
void dmi_segments_share(dmi_builder *b, const dmi_value *out, int chunks, int chunk, const dmi_mark ready)
{
    int workers = b->profile->workers, me = b->me;
    dmi_copy copy;
    for (int t = 1; t < workers && !b->failed; t++) {
        dmi_build_round(b);
        int to = (me + t) % workers, from = (me - t + workers) % workers;
        if (shared(b, out->desc, from, me, chunks, chunk, &copy)) {
            dmi_build_expect(b, from, out->ref, &copy, NULL);
        }
        if (shared(b, out->desc, me, to, chunks, chunk, &copy)) {
            dmi_build_push(b, to, out->ref, &copy, ready);
        }
    }
}

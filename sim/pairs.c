/* The steps of all endpoints, and their transfers in pairs. */
#include "sim/parts.h"

#include <inttypes.h>
#include <stdlib.h>

bool dmi_run_add(dmi_run_end *end, int lane, const dmi_run_step *step)
{
    if (end->count[lane] == end->room[lane]) {
        uint32_t n = end->room[lane] ? 2 * end->room[lane] : 64;
        dmi_run_step *grown = realloc(end->step[lane], n * sizeof *grown);
        if (!grown) {
            return false;
        }
        end->step[lane] = grown;
        end->room[lane] = n;
    }
    if (end->total == end->lanes_room) {
        int64_t n = end->lanes_room ? 2 * end->lanes_room : 256;
        uint8_t *grown = realloc(end->lanes, (size_t)n);
        if (!grown) {
            return false;
        }
        end->lanes = grown;
        end->lanes_room = n;
    }
    end->step[lane][end->count[lane]++] = *step;
    end->lanes[end->total++] = (uint8_t)lane;
    return true;
}

static const dmi_run_step *find_transfer(const dmi_run_end *end, int lane, int peer, uint32_t ordinal)
{
    for (uint32_t i = 0; i < end->count[lane]; i++) {
        if (end->step[lane][i].peer == peer && end->step[lane][i].ordinal == ordinal) {
            return &end->step[lane][i];
        }
    }
    return NULL;
}

static void compare_pair(const dmi_run_end *end, int channel, int from, int to, dmi_sim_report *report)
{
    int lanes = channel * DMI_CHANNEL_LANES;
    for (uint32_t k = 0;; k++) {
        const dmi_run_step *push = find_transfer(&end[from], lanes + DMI_LANE_SEND, to, k);
        const dmi_run_step *expect = find_transfer(&end[to], lanes + DMI_LANE_RECV, from, k);
        if (!push && !expect) {
            return;
        }
        if (!push || !expect) {
            dmi_sim_note(report, DMI_SIM_PAIR, "transfer %u from %d to %d (call %d) has no %s", k, from, to,
                         (push ? push : expect)->call, push ? "EXPECT" : "PUSH");
            return;
        }
        if (push->bytes != expect->bytes || push->landing != expect->landing || push->call != expect->call) {
            dmi_sim_note(report, DMI_SIM_PAIR,
                         "transfer %u from %d to %d: %" PRId64 " bytes pushed (call %d), %" PRId64
                         " expected (call %d)%s",
                         k, from, to, push->bytes, push->call, expect->bytes, expect->call,
                         push->landing != expect->landing ? ", to other destinations" : "");
            return;
        }
    }
}

static uint64_t mix(uint64_t h, const dmi_run_step *s)
{
    uint64_t part[3] = {(uint64_t)s->bytes, s->landing, s->call};
    for (int i = 0; i < 3; i++) {
        h = (h ^ part[i]) * UINT64_C(0x9e3779b97f4a7c15);
        h ^= h >> 29;
    }
    return h;
}

static bool channel_pairs(const dmi_run_end *end, int ends, int channel, dmi_sim_report *report)
{
    int send = channel * DMI_CHANNEL_LANES + DMI_LANE_SEND, receive = channel * DMI_CHANNEL_LANES + DMI_LANE_RECV;
    size_t pairs = (size_t)ends * (size_t)ends;
    uint64_t *pushed = calloc(2 * pairs, sizeof *pushed), *expected = pushed ? pushed + pairs : NULL;
    if (!pushed) {
        return false;
    }
    for (int e = 0; e < ends; e++) {
        for (uint32_t i = 0; i < end[e].count[send]; i++) {
            const dmi_run_step *s = &end[e].step[send][i];
            uint64_t *h = &pushed[(size_t)e * (size_t)ends + (size_t)s->peer];
            *h = mix(*h, s);
        }
        for (uint32_t i = 0; i < end[e].count[receive]; i++) {
            const dmi_run_step *s = &end[e].step[receive][i];
            uint64_t *h = &expected[(size_t)s->peer * (size_t)ends + (size_t)e];
            *h = mix(*h, s);
        }
    }
    for (size_t p = 0; p < pairs; p++) {
        if (pushed[p] != expected[p]) {
            compare_pair(end, channel, (int)(p / (size_t)ends), (int)(p % (size_t)ends), report);
        }
    }
    free(pushed);
    return true;
}

bool dmi_run_pairs(const dmi_run_end *end, int ends, dmi_sim_report *report)
{
    bool all = true;
    for (int channel = 0; channel < DMI_CHANNELS && all; channel++) {
        all = channel_pairs(end, ends, channel, report);
    }
    return all;
}

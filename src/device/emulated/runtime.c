/* Devices, copies, and waits for words in memory. */
#include "base/config_value.h"
#include "device/emulated/emulated.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static _Thread_local int current;
static _Atomic(pid_t) owner; /* whose threads the devices are: a child made by fork has not got them */

/* --- settings ------------------------------------------------------------------------------ */
/* Read as the configuration's are, each into a field of its type there. */
enum { GPUS, GPU_MEMORY, DELAY_US, KERNEL_US, CUDA_MPI, WAITS };
static const dmi_config_row settings[] = {
    [GPUS] = {"DMATH_EMULATED_GPUS", DMI_CONFIG_INT, offsetof(dmi_config, workers), "0", .hi = DMI_EMU_DEVICES},
    [GPU_MEMORY] = {"DMATH_EMULATED_GPU_MEMORY", DMI_CONFIG_BYTES, offsetof(dmi_config, memory_limit), "2G",
                    .hi = INT64_MAX},
    [DELAY_US] = {"DMATH_EMULATED_DELAY_US", DMI_CONFIG_INT, offsetof(dmi_config, lanes), "0", .hi = 1000000},
    [KERNEL_US] = {"DMATH_EMULATED_KERNEL_US", DMI_CONFIG_INT, offsetof(dmi_config, file_threads), "0",
                   .hi = 1000000},
    [WAITS] = {"DMATH_EMULATED_WAITS", DMI_CONFIG_BOOL, offsetof(dmi_config, replicas), "0"},
    [CUDA_MPI] = {"DMATH_EMULATED_CUDA_MPI", DMI_CONFIG_BOOL, offsetof(dmi_config, sync), "1"},
};

/* False: the setting is not understood; the default applies. */
static bool read_setting(int which, dmi_config *out)
{
    const dmi_config_row *row = &settings[which];
    const char *text = getenv(row->key);
    bool given = text && *text;
    bool understood = given && dmi_config_parse(row, text, (int64_t)strlen(text), out);
    if (!understood) {
        (void)dmi_config_parse(row, row->standard, (int64_t)strlen(row->standard), out);
    }
    return understood || !given;
}

dmi_emu_settings dmi_emu_settings_read(void)
{
    dmi_config c = {0};
    (void)read_setting(GPUS, &c);
    (void)read_setting(GPU_MEMORY, &c);
    (void)read_setting(DELAY_US, &c);
    (void)read_setting(KERNEL_US, &c);
    (void)read_setting(WAITS, &c);
    return (dmi_emu_settings){.devices = c.workers,
                              .memory_bytes = c.memory_limit,
                              .delay_us = c.lanes,
                              .kernel_us = c.file_threads,
                              .waits = c.replicas};
}

dm_status dmi_cu_settings(void)
{
    dmi_config unused;
    pid_t of = owner;
    if (of && of != getpid()) {
        return dmi_fail(DM_ERR_STATE,
                        "the emulated GPUs are those of process %ld: a child made by fork has none", (long)of);
    }
    for (int i = 0; i < DMI_COUNT(settings); i++) {
        if (!read_setting(i, &unused)) {
            char accepts[DMI_CONFIG_TEXT];
            dmi_config_accepts(&settings[i], accepts);
            return dmi_fail(DM_ERR_CONFIG, "environment variable %s=%.*s is not understood: accepted is %s",
                            settings[i].key, DMI_CONFIG_TEXT, getenv(settings[i].key), accepts);
        }
    }
    return DM_OK;
}

/* --- devices ------------------------------------------------------------------------------- */

int dmi_emu_current(void)
{
    return current;
}

static dm_status check_device(int device)
{
    int devices = dmi_emu_settings_read().devices;
    return device >= 0 && device < devices
               ? DM_OK
               : dmi_fail(DM_ERR_STATE, "emulated GPU %d: there are %d", device, devices);
}

const char *dmi_cu_why_none(void)
{
    return "";
}

int dmi_cu_devices(void)
{
    return dmi_emu_settings_read().devices;
}

dm_status dmi_cu_use(int device)
{
    dm_status status = check_device(device);
    current = status == DM_OK ? device : current;
    owner = getpid();
    return status;
}

dm_status dmi_cu_own_thread(void)
{
    return DM_OK;
}

int dmi_cu_current(void)
{
    return current;
}

dm_status dmi_cu_peer(int peer)
{
    dm_status status = check_device(peer);
    return status == DM_OK && peer == current ? dmi_fail(DM_ERR_INTERNAL, "a device is no peer of its own")
                                              : status;
}

bool dmi_cu_can_peer(int device, int peer)
{
    return device != peer;
}

dm_status dmi_cu_name(int device, char *bus, size_t bus_room, char *model, size_t model_room)
{
    dm_status status = check_device(device);
    const char *given = getenv("DMATH_EMULATED_BUS_IDS");
    for (int i = 0; given && i < device; i++) {
        given = strchr(given, ',') ? strchr(given, ',') + 1 : NULL;
    }
    if (status == DM_OK) {
        snprintf(bus, bus_room, "%.*s", given ? (int)strcspn(given, ",") : 0, given ? given : "");
        snprintf(model, model_room, "emulated %d", device);
    }
    return status;
}

bool dmi_cu_in_mpi(void)
{
    dmi_config c = {0};
    (void)read_setting(CUDA_MPI, &c);
    return c.sync;
}

/* --- copies ---------------------------------------------------------------------------------- */
typedef struct copy_op {
    dmi_emu_op op;
    char *dst;
    const char *src; /* taken in full at the call: behind this structure */
    int64_t dst_pitch, src_pitch, width, height;
} copy_op;

/* A copy of four aligned bytes may raise a counter that streams wait for. */
static void run_copy(dmi_emu_stream *s, dmi_emu_op *op)
{
    const copy_op *c = (const copy_op *)op;
    (void)s;
    if (c->width == (int64_t)sizeof(uint32_t) && c->height == 1 && (uintptr_t)c->dst % sizeof(uint32_t) == 0) {
        uint32_t value;
        memcpy(&value, c->src, sizeof value);
        dmi_emu_raise((uint32_t *)(void *)c->dst, value);
        return;
    }
    for (int64_t row = 0; row < c->height; row++) {
        memcpy(c->dst + row * c->dst_pitch, c->src + row * c->src_pitch, (size_t)c->width);
    }
}

static bool of_host(const dmi_emu_place *place)
{
    return place->kind == DMI_EMU_PAGEABLE || place->kind == DMI_EMU_PINNED;
}

/* Pageable memory is read at the call, and written before it returns; so is any copy within the host. */
dm_status dmi_cu_copy_2d(dmi_stream s, void *dst, int64_t dst_pitch, const void *src, int64_t src_pitch,
                         int64_t width, int64_t height)
{
    dmi_emu_place to = dmi_emu_find(dst), from = dmi_emu_find(src);
    if (width < 0 || height < 0 || (height > 1 && (dst_pitch < width || src_pitch < width)) ||
        (height > 1 && DMI_MAX(dst_pitch, src_pitch) > INT32_MAX)) { /* as CUDA says of pitches */
        return dmi_fail(DM_ERR_INTERNAL, "a copy of %lld bytes in %lld rows, %lld and %lld apart",
                        (long long)width, (long long)height, (long long)dst_pitch, (long long)src_pitch);
    }
    if (width == 0 || height == 0) {
        return DM_OK;
    }
    if ((height - 1) * dst_pitch + width > to.bytes || (height - 1) * src_pitch + width > from.bytes) {
        return dmi_fail(DM_ERR_INTERNAL, "a copy of %lld bytes in %lld rows goes beyond its memory",
                        (long long)width, (long long)height);
    }
    bool at_once = from.kind == DMI_EMU_PAGEABLE,
         waits = to.kind == DMI_EMU_PAGEABLE || (of_host(&to) && of_host(&from));
    at_once = at_once && !waits;
    dm_status status = at_once || waits ? dmi_emu_refuse(s, "a copy of pageable memory") : DM_OK;
    if (status != DM_OK) {
        return status;
    }
    copy_op *c = dmi_emu_op_new(sizeof *c + (at_once ? (size_t)(width * height) : 0));
    if (!c) {
        return dmi_fail(DM_ERR_NOMEM, "no memory for a copy");
    }
    *c = (copy_op){.op.run = run_copy, .dst = dst, .src = src, .dst_pitch = dst_pitch};
    c->src_pitch = src_pitch;
    c->width = width;
    c->height = height;
    if (at_once) {
        char *taken = (char *)(c + 1);
        for (int64_t row = 0; row < height; row++) {
            memcpy(taken + row * width, (const char *)src + row * src_pitch, (size_t)width);
        }
        c->src = taken;
        c->src_pitch = width;
    }
    dmi_emu_put(s, &c->op);
    return waits ? dmi_cu_stream_wait(s) : DM_OK;
}

dm_status dmi_cu_copy(dmi_stream s, void *dst, const void *src, int64_t bytes)
{
    return dmi_cu_copy_2d(s, dst, bytes, src, bytes, bytes, 1);
}

dm_status dmi_cu_fetch(dmi_stream s, const dmi_cu_piece *piece, int64_t count)
{
    dm_status status = DM_OK;
    for (int64_t i = 0; status == DM_OK && i < count; i++) {
        status = dmi_cu_copy(s, piece[i].to, piece[i].from, piece[i].bytes);
    }
    return status;
}

dm_status dmi_cu_wait_value(dmi_stream s, uint32_t *flag, uint32_t value)
{
    dmi_emu_place place = dmi_emu_find(flag);
    if (place.kind != DMI_EMU_DEVICE || place.device != dmi_emu_device_of(s) ||
        place.bytes < (int64_t)sizeof *flag || (uintptr_t)flag % sizeof *flag != 0) {
        return dmi_fail(DM_ERR_INTERNAL, "%p is no word of emulated GPU %d", (void *)flag,
                        dmi_emu_device_of(s));
    }
    return dmi_emu_put_wait(s, flag, value, NULL);
}

dm_status dmi_cu_wait_words(dmi_stream s, const dmi_cu_word *word, int count)
{
    dm_status status = DM_OK;
    for (int i = 0; i < count && status == DM_OK; i++) {
        status = dmi_cu_wait_value(s, word[i].word, word[i].value);
    }
    return status;
}

typedef struct set_op {
    dmi_emu_op op;
    int count;
    dmi_cu_word word[DMI_CU_WORDS];
} set_op;

static void run_set(dmi_emu_stream *s, dmi_emu_op *op)
{
    const set_op *o = (const set_op *)op;
    (void)s;
    for (int i = 0; i < o->count; i++) {
        dmi_emu_raise(o->word[i].word, o->word[i].value);
    }
}

dm_status dmi_cu_set_words(dmi_stream s, const dmi_cu_word *word, int count)
{
    for (int i = 0; i < count; i++) {
        dmi_emu_place place = dmi_emu_find(word[i].word);
        if ((place.kind != DMI_EMU_DEVICE && place.kind != DMI_EMU_OPENED) ||
            place.bytes < (int64_t)sizeof *word[i].word ||
            (uintptr_t)word[i].word % sizeof *word[i].word != 0) {
            return dmi_fail(DM_ERR_INTERNAL, "%p is no word of an emulated GPU", (void *)word[i].word);
        }
    }
    set_op *o = dmi_emu_op_new(sizeof *o);
    if (!o) {
        return dmi_fail(DM_ERR_NOMEM, "no memory for an operation of an emulated GPU");
    }
    *o = (set_op){.op.run = run_set, .count = count};
    memcpy(o->word, word, (size_t)count * sizeof *word);
    dmi_emu_put(s, &o->op);
    return DM_OK;
}

bool dmi_cu_timed(void)
{
    return false;
}

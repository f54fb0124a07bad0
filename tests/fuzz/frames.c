/* Frames of the command ring: whatever bytes a worker gets, from its ring or from a message to its host, it
 * obeys them or refuses them, and the session learns it. Frames are made of the input: mostly right ones in any
 * order, of which some bytes, the length or the number are changed; some are raw, some come twice, some in a
 * message. Plans are empty: what an operation does with its operands is the master's to check.
 *
 * A worker serves many inputs, for its start takes much longer than most of them. What an input leaves is taken
 * from it, so that the next one finds it as new, but for the numbers of commands. */
#include "fuzz.h"
#include "master/session.h"
#include "worker/worker.h"

#include "ops/ops.h"

#include <sanitizer/asan_interface.h>

enum {
    WRONG_LENGTH = 1,
    WRONG_NUMBER = 2,
    RAW = 4,
    TWICE = 8,
    CHANGED = 16,
    IN_A_MESSAGE = 32,
    CUT = 64,
    NUDGED = 128,
    ROOM = 4096,
    SLOTS = 12,
    MOST_OPERANDS = 100, /* of a run; a changed frame may have made a program of more */
    INPUTS_OF_A_WORKER = 2000
};

typedef struct input {
    const uint8_t *at;
    size_t left;
} input;

static unsigned byte(input *in)
{
    if (in->left == 0) {
        return 0;
    }
    in->left--;
    return *in->at++;
}

static int below(input *in, int most)
{
    return (int)(byte(in) % (unsigned)most);
}

typedef union built {
    dmi_frame head;
    dmi_layout_frame layout;
    dmi_create_frame create;
    dmi_view_frame view;
    dmi_destroy_frame destroy;
    dmi_op_frame op;
    dmi_program_frame program;
    dmi_program_array_frame array;
    dmi_program_run_frame run;
    dmi_course_frame course;
    dmi_part_frame part;
    dmi_poison_frame poison;
    dmi_cancel_frame cancel;
    dmi_group_frame group;
    char bytes[ROOM];
} built;

static volatile unsigned touched;

static dm_status no_steps(dmi_builder *b, const dmi_call *call)
{
    (void)b;
    for (int i = 0; i < call->noperand; i++) {
        const dmi_desc *desc = &call->operand[i].desc;
        touched += call->operand[i].mode && desc->layout ? (unsigned)desc->layout->count : 0;
    }
    for (int64_t i = 0; i < (call->op == DMI_OP_program ? 0 : call->tail_bytes); i++) {
        touched += ((const unsigned char *)call->tail)[i];
    }
    return DM_OK;
}

static dm_status empty_plan(const dmi_call *call, const dmi_profile *profile, int me, dmi_plan **out)
{
    return dmi_plan_make_by(no_steps, "fuzz", call, profile, me, out);
}

/* --- frames that may be right --- */

static void make_place(input *in, int ndim, int64_t *lo, int64_t *extent, int64_t *skip)
{
    for (int d = 0; d < ndim && d < DM_MAX_DIMS; d++) {
        lo[d] = below(in, 3);
        extent[d] = below(in, 6);
        skip[d] = below(in, 8) == 0;
    }
}

static uint32_t make_layout(input *in, const dmi_worker *w, dmi_layout_frame *f)
{
    int list[16];
    dmi_layout_spec spec = {
        .kind = below(in, 8) == 0 ? below(in, 4) : DMI_LAYOUT_GRID, .ndim = below(in, 4), .session_workers = 2};
    spec.kind = below(in, 3) == 0 ? DMI_LAYOUT_EXPLICIT : spec.kind;
    for (int d = 0; d < spec.ndim; d++) {
        spec.shape[d] = below(in, 9);
        spec.block[d] = below(in, 4);
        spec.grid[d] = 1 + below(in, 2);
        spec.order[d] = below(in, 2);
    }
    spec.replicas = below(in, 3);
    spec.nworkers = below(in, 3);
    spec.map_count = spec.kind == DMI_LAYOUT_EXPLICIT ? below(in, 13) : 0;
    spec.workers = spec.nworkers ? list : NULL;
    spec.map = spec.map_count ? list : NULL;
    char *to = (char *)(f + 1);
    memcpy(to, &spec, sizeof spec);
    to += sizeof spec;
    for (int64_t i = 0; i < spec.nworkers + spec.map_count; i++, to += sizeof(int)) {
        int worker = below(in, 3);
        memcpy(to, &worker, sizeof worker);
    }
    f->layout_id = w->layouts;
    f->total = f->bytes = dmi_layout_spec_bytes(&spec);
    f->last = 1;
    if (below(in, 4) == 0) { /* a fragment, the rest of which may come */
        f->bytes = below(in, 120);
        f->last = 0;
    }
    return (uint32_t)(sizeof *f + (size_t)f->bytes);
}

static uint32_t make_op(input *in, dmi_op_frame *f)
{
    f->noperand = (int16_t)below(in, 4);
    f->numbers = (int16_t)below(in, 3);
    f->members = below(in, 4) ? UINT64_MAX : byte(in);
    f->tail_bytes = below(in, 3) ? 0 : below(in, 50);
    dmi_operand_ref *ref = (dmi_operand_ref *)(f + 1);
    for (int i = 0; i < f->noperand; i++) {
        ref[i].id = (uint64_t)below(in, SLOTS);
        ref[i].mode = (uint8_t)below(in, 4);
        ref[i].name[0] = 'a';
    }
    f->seeds = byte(in);
    f->group = (uint32_t)below(in, 4);
    f->group_place = f->group ? (uint32_t)below(in, (int)f->group) : 0;
    return (uint32_t)(sizeof *f + (size_t)f->noperand * sizeof *ref + (size_t)f->numbers * sizeof(dmi_number) +
                      (size_t)f->tail_bytes);
}

static uint32_t make_run(input *in, const dmi_worker *w, dmi_program_run_frame *f)
{
    f->program = (uint32_t)below(in, 3);
    const dmi_worker_program *p = f->program < w->program_room ? w->program[f->program] : NULL;
    f->operands = p ? DMI_MIN(p->p.operands, MOST_OPERANDS) : below(in, 3);
    f->numbers = below(in, 3);
    f->times = 1 + below(in, 4);
    f->first = below(in, 3) - 1;
    f->members = UINT64_MAX;
    f->every = below(in, 3) ? 0 : 1 + below(in, 2);
    f->asks = 1 + below(in, 2);
    f->group = (uint32_t)below(in, 2);
    f->asked = (uint64_t)below(in, SLOTS);
    f->value = (uint64_t)below(in, SLOTS);
    f->seen = (uint64_t)below(in, SLOTS);
    uint64_t *id = (uint64_t *)(f + 1);
    for (int i = 0; i < f->operands; i++) {
        id[i] = (uint64_t)below(in, SLOTS);
    }
    dmi_given_number *given = (dmi_given_number *)(id + f->operands);
    for (int i = 0; i < f->numbers; i++) {
        given[i].at = below(in, 4) - 1;
    }
    dmi_run_use *use = (dmi_run_use *)(given + f->numbers);
    for (int i = 0; i < f->operands; i++) {
        use[i].fresh = (uint16_t)below(in, 2);
    }
    return (uint32_t)dmi_run_frame_bytes(f->operands, f->numbers);
}

static uint32_t make_course(input *in, dmi_course_frame *f)
{
    dmi_course_step *step = (dmi_course_step *)(f + 1);
    f->program = (uint32_t)below(in, 3);
    f->parts = below(in, 3);
    f->steps = below(in, 7);
    f->operands = below(in, 3);
    f->numbers = below(in, 3);
    f->members = below(in, 4) ? UINT64_MAX : byte(in);
    for (int i = 0; i < f->steps; i++) {
        step[i] = (dmi_course_step){.kind = below(in, 3),
                                    .other = below(in, 7),
                                    .times = below(in, 4),
                                    .every = below(in, 3),
                                    .value = below(in, 3),
                                    .seen = (uint64_t)below(in, SLOTS),
                                    .asks = 1 + below(in, 2),
                                    .members = UINT64_MAX};
    }
    return (uint32_t)(sizeof *f + (size_t)f->steps * sizeof *step);
}

static uint32_t make_part(input *in, dmi_part_frame *f)
{
    int32_t *operand = (int32_t *)(f + 1);
    f->program = (uint32_t)below(in, 3);
    f->runs = (uint32_t)below(in, 3);
    f->part = below(in, 3);
    f->operands = below(in, 3);
    f->number = below(in, 3);
    f->passes = below(in, 3) - 1;
    f->first = below(in, 2);
    f->calls = f->first + below(in, 4);
    f->members = below(in, 4) ? UINT64_MAX : byte(in);
    for (int i = 0; i < f->operands; i++) {
        operand[i] = below(in, 4) - 1;
    }
    return (uint32_t)(sizeof *f + (size_t)f->operands * sizeof *operand);
}

static uint32_t make_program(input *in, const dmi_worker *w, built *b)
{
    switch (b->head.kind) {
    case DMI_FRAME_PROGRAM_ARRAY:
        b->array.layout_id = (uint32_t)below(in, (int)w->layouts % 200 + 1);
        b->array.dtype = below(in, 17);
        b->array.mode = below(in, 4);
        b->array.ndim = below(in, 4);
        make_place(in, b->array.ndim, b->array.lo, b->array.extent, b->array.skip);
        return sizeof b->array;
    case DMI_FRAME_PROGRAM_CALL:
        return make_op(in, &b->op);
    case DMI_FRAME_PROGRAM_COURSE:
        return make_course(in, &b->course);
    case DMI_FRAME_PROGRAM_PART:
        return make_part(in, &b->part);
    case DMI_FRAME_PROGRAM_RUN:
        return make_run(in, w, &b->run);
    default:
        b->program.program = (uint32_t)below(in, 3);
        b->program.arrays = below(in, 3);
        b->program.operands = below(in, 3);
        b->program.calls = below(in, 3);
        b->program.members = below(in, 4) ? UINT64_MAX : byte(in);
        return sizeof b->program;
    }
}

static uint32_t make_frame(input *in, const dmi_worker *w, built *b)
{
    uint32_t layout = (uint32_t)below(in, (int)w->layouts % 200 + 1);
    switch (b->head.kind) {
    case DMI_FRAME_LAYOUT:
        return make_layout(in, w, &b->layout);
    case DMI_FRAME_CREATE:
        b->create.id = (uint64_t)below(in, SLOTS);
        b->create.layout_id = layout;
        b->create.memory = byte(in);
        b->create.dtype = (int16_t)below(in, 17);
        b->create.owner = (int16_t)below(in, 5);
        return sizeof b->create;
    case DMI_FRAME_VIEW:
        b->view.id = (uint64_t)below(in, SLOTS);
        b->view.base = (uint64_t)below(in, SLOTS);
        b->view.layout_id = layout;
        b->view.ndim = below(in, 4);
        make_place(in, b->view.ndim, b->view.lo, b->view.extent, b->view.skip);
        return sizeof b->view;
    case DMI_FRAME_DESTROY:
        b->destroy.id = (uint64_t)below(in, SLOTS);
        return sizeof b->destroy;
    case DMI_FRAME_OP:
        return make_op(in, &b->op);
    case DMI_FRAME_POISON:
        b->poison.culprit = byte(in);
        b->poison.memory[0] = byte(in);
        return sizeof b->poison;
    case DMI_FRAME_CANCEL:
        return sizeof b->cancel;
    case DMI_FRAME_GROUP:
        b->group.group = 1 + (uint32_t)below(in, 4);
        b->group.group_place = (uint32_t)below(in, (int)b->group.group);
        return sizeof b->group;
    case DMI_FRAME_PROGRAM:
    case DMI_FRAME_PROGRAM_ARRAY:
    case DMI_FRAME_PROGRAM_CALL:
    case DMI_FRAME_PROGRAM_END:
    case DMI_FRAME_PROGRAM_COURSE:
    case DMI_FRAME_PROGRAM_PART:
    case DMI_FRAME_PROGRAM_RUN:
    case DMI_FRAME_PROGRAM_DESTROY:
        return make_program(in, w, b);
    default:
        return sizeof b->head;
    }
}

/* Large slots are right, and their tables only take time: of an array that is made, or of what may be one. */
static void small_slot(built *b)
{
    uint64_t id;
    memcpy(&id, b->bytes + sizeof b->head, sizeof id);
    id = (id & ~UINT64_C(0xffffff)) | (id & 0xff);
    memcpy(b->bytes + sizeof b->head, &id, sizeof id);
}

/* So is a loop of many passes, each as the one before: 4 show what comes after the first and before the last.
 */
static void few_passes(built *b)
{
    dmi_course_step *step = (dmi_course_step *)(&b->course + 1);
    const int64_t room = (int64_t)b->head.bytes - (int64_t)sizeof b->course;
    if (b->head.kind == DMI_FRAME_PROGRAM_RUN && b->run.times > 4) {
        b->run.times = 4;
    }
    for (int i = 0; b->head.kind == DMI_FRAME_PROGRAM_COURSE && i < room / (int64_t)sizeof *step; i++) {
        step[i].times = step[i].times > 4 ? 4 : step[i].times;
    }
}

/* A little more or less in a field of four bytes: half of the time one that counts something. */
static void nudge(input *in, built *b)
{
    static const struct {
        uint8_t kind;
        uint8_t at[4];
    } counts[] = {
#define AT(type, a, b, c, d) {offsetof(type, a), offsetof(type, b), offsetof(type, c), offsetof(type, d)}
        {DMI_FRAME_LAYOUT, AT(dmi_layout_frame, layout_id, total, bytes, last)},
        {DMI_FRAME_OP, AT(dmi_op_frame, noperand, numbers, tail_bytes, tail_key)},
        {DMI_FRAME_PROGRAM_CALL, AT(dmi_op_frame, noperand, numbers, tail_bytes, tail_key)},
        {DMI_FRAME_PROGRAM, AT(dmi_program_frame, program, arrays, operands, calls)},
        {DMI_FRAME_PROGRAM_ARRAY, AT(dmi_program_array_frame, layout_id, dtype, ndim, extent)},
        {DMI_FRAME_PROGRAM_COURSE, AT(dmi_course_frame, parts, steps, operands, numbers)},
        {DMI_FRAME_PROGRAM_PART, AT(dmi_part_frame, part, operands, number, passes)},
        {DMI_FRAME_PROGRAM_RUN, AT(dmi_program_run_frame, operands, numbers, every, asks)},
#undef AT
    };
    unsigned which = byte(in);
    uint32_t field, at = sizeof b->head + which * 4 % (b->head.bytes - 15) / 4 * 4;
    for (size_t i = 0; i < sizeof counts / sizeof *counts && which & 128; i++) {
        at = counts[i].kind == b->head.kind ? counts[i].at[which & 3] : at;
    }
    memcpy(&field, b->bytes + at, sizeof field);
    field += byte(in) - 128u;
    memcpy(b->bytes + at, &field, sizeof field);
}

/* What is wrong with the next frame: of a half nothing, for a worker takes no more after the first wrong one;
 * of most others one thing. */
static unsigned next_flags(input *in)
{
    unsigned v = byte(in);
    return v < 128 ? 0 : v < 224 ? 1u << (v & 7) : byte(in);
}

/* The next frame of the input, and what is changed of it. */
static unsigned next_frame(input *in, const dmi_worker *w, uint64_t command, built *b)
{
    memset(b, 0, sizeof *b);
    unsigned flags = next_flags(in);
    b->head.kind = (uint8_t)below(in, DMI_FRAME_STOP + 2);
    b->head.op = (uint8_t)byte(in);
    b->head.op = below(in, 8) ? b->head.op % DMI_OPS : b->head.op;
    b->head.called = (uint16_t)byte(in);
    uint32_t bytes = sizeof b->head;
    if (flags & RAW) {
        uint32_t more = byte(in) * 2u;
        for (; bytes < sizeof b->head + more; bytes++) {
            b->bytes[bytes] = (char)byte(in);
        }
    } else {
        bytes = make_frame(in, w, b);
    }
    b->head.bytes = (bytes + DMI_FRAME_ALIGN - 1) / DMI_FRAME_ALIGN * DMI_FRAME_ALIGN;
    b->head.command = command;
    if (flags & CHANGED) {
        unsigned at = byte(in) | (byte(in) & 3) << 8;
        b->bytes[8 + at % (b->head.bytes - 8)] = (char)byte(in);
    }
    if (flags & NUDGED) {
        nudge(in, b);
    }
    if (flags & RAW || b->head.kind == DMI_FRAME_CREATE || b->head.kind == DMI_FRAME_VIEW) {
        small_slot(b);
    }
    few_passes(b);
    return flags;
}

/* --- the worker --- */

typedef struct fuzzed {
    dmi_hub hub;
    dmi_worker worker;
    dmi_ring_writer ring;
    uint64_t command;
} fuzzed;

static void look(fuzzed *f)
{
    for (int i = 0; i < 20; i++) {
        bool moved = dmi_worker_take_frames(&f->worker);
        if (!dmi_engine_progress(&f->worker.engine) && !moved) {
            return;
        }
    }
}

/* Nothing of the ring may be read but what the worker has not yet taken; or all may be, while frames go there.
 */
static void fence(fuzzed *f, bool on)
{
    dmi_ring *ring = f->hub.ring;
    if (!on) {
        ASAN_UNPOISON_MEMORY_REGION(ring->data, ring->size);
        return;
    }
    ASAN_POISON_MEMORY_REGION(ring->data, ring->size);
    for (uint64_t at = f->worker.cursor; at < f->ring.head;) {
        uint64_t from = at & (ring->size - 1), bytes = DMI_MIN(f->ring.head - at, ring->size - from);
        ASAN_UNPOISON_MEMORY_REGION(ring->data + from, bytes);
        at += bytes;
    }
}

static void put(fuzzed *f, input *in, built *b, uint32_t bytes, unsigned flags)
{
    if (flags & WRONG_LENGTH) {
        b->head.bytes = byte(in) | byte(in) << 8;
    }
    if (flags & WRONG_NUMBER) {
        b->head.command += byte(in) - 128u;
    }
    if (flags & IN_A_MESSAGE) {
        const char *wrong = NULL;
        const dmi_frame *passed = NULL;
        int at = 0, length = (int)(flags & CUT ? bytes - byte(in) % bytes : bytes);
        char *message = exactly((const uint8_t *)b->bytes, (size_t)length, 0);
        while (at < length && dmi_frames_pass(&f->ring, message, length, &at, &wrong, &passed)) {
        }
        free(message);
        return;
    }
    void *to = dmi_ring_reserve(&f->ring, bytes);
    if (to) {
        memcpy(to, b->bytes, bytes);
        dmi_ring_publish(&f->ring, bytes);
    }
}

static fuzzed it;
static bool alive;

static void begin_worker(void)
{
    static const int consumer[] = {0};
    static dmi_config config;
    dm_config public = {.size = sizeof public, .options = "device=cpu,memory_limit=16M,slab=256K,pool_debug=0"};
    dmi_slab_ops slabs = dmi_slab_ops_malloc();
    dmi_profile profile = {.workers = 2, .one_space = true, .chunk = 1 << 20, .file_chunk = 1 << 20};
    HOLDS(dmi_config_from(&public, &config) == DM_OK);
    it = (fuzzed){.command = 0};
    HOLDS(dmi_hub_create(3, 32768, false, &it.hub) == DM_OK);
    HOLDS(dmi_worker_start(&it.worker, 0, &config, &profile, &it.hub, &slabs, NULL, 0, NULL) == DM_OK);
    dmi_plan_cache_destroy(it.worker.plans);
    it.worker.plans = NULL;
    it.worker.plan = empty_plan;
    it.ring = (dmi_ring_writer){.hub = &it.hub, .consumer = consumer, .nconsumer = 1};
    alive = true;
}

static void end_worker(void)
{
    if (alive) {
        dmi_worker_finish(&it.worker);
        dmi_hub_close(&it.hub);
        alive = false;
    }
}

/* The master takes all reports. */
static void take_reports(dmi_engine *e)
{
    do {
        for (int i = 0; i < DMI_ERROR_RECORDS; i++) {
            atomic_store(&e->port->error[i].present, DMI_RECORD_EMPTY);
        }
    } while (dmi_engine_report_rest(e));
}

/* Makes the worker as new. Nothing may be left of what it had. */
static void tidy(void)
{
    dmi_worker *w = &it.worker;
    dmi_pool_stats stats;
    dmi_engine_drain(&w->engine);
    HOLDS(w->in_flight == 0 && !w->engine.first);
    dmi_programs_clear(w);
    dmi_group_counts_clear(w);
    w->receiving = NULL;
    memset(&w->run, 0, sizeof w->run);
    dmi_store_clear(w);
    w->layouts = 0;
    w->spec_bytes = w->spec_total = 0;
    dmi_pool_stats_get(w->pool, &stats);
    for (int i = 0; i < DMI_OWNERS; i++) {
        HOLDS(stats.live_bytes[i] == 0);
    }
    take_reports(&w->engine);
    w->lost = w->broken = w->stopping = false;
    w->sync_command = 0;
    w->cursor = it.ring.head;
    atomic_store(&w->engine.port->consumed, w->cursor);
    atomic_store(&w->engine.port->broken, 0);
    atomic_store(&it.hub.ring->cancelled, 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static int inputs;
    input in = {data, size};
    if (!alive) {
        HOLDS(inputs > 0 || atexit(end_worker) == 0);
        begin_worker();
    }
    while (in.left > 0 && !it.worker.lost && !it.worker.stopping) {
        built b;
        unsigned flags = next_frame(&in, &it.worker, it.worker.dispatched + 1, &b);
        const uint32_t bytes = b.head.bytes;
        fence(&it, false);
        put(&it, &in, &b, bytes, flags);
        if (flags & TWICE) {
            put(&it, &in, &b, bytes, flags & ~(unsigned)(WRONG_LENGTH | WRONG_NUMBER));
        }
        fence(&it, true);
        look(&it);
    }
    fence(&it, false);
    HOLDS(!it.worker.lost ||
          atomic_load(&it.worker.engine.port->broken) != 0); /* by this, or by something before */
    tidy();
    if (++inputs % INPUTS_OF_A_WORKER == 0) {
        end_worker();
    }
    return 0;
}

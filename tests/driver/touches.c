/* Kernels beside the bytes that they say they touch.
 *
 * Each call of a kernel runs twice on copies of its references, which stand between guards. Bytes that the
 * kernel says it reads have their contents. All others hold one pattern in the first run and another one in the
 * second. So a byte that changes without being said to be written   is written without being said; a byte that
 * comes out in two ways                      depends on what was not said to be read, or keeps a pattern though
 * it is said to be written. What the first run wrote goes to the real memory. To know that this would see a
 * wrong row, the same is done again with one reference left out, for each reference of each kernel until it is
 * seen. */
#include "driver/touches.h"

#include "kernels/kernel.h"
#include "kernels/random/fill.h"
#include "sim/parts.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { GUARD = 256, LARGEST = 1 << 22, MOST_TOLD = 10, TRIES = 400 };
enum { FIRST = 400, THEN = 10 }; /* of each kernel the first calls, and then one of so many */
enum { READS = 1, WRITES = 2 };

/* What a byte holds that nobody has said to be read: 0 in one run; in the other one -1, not a number, true, or
 * (by turns) bytes of which no two neighbours are equal, for functions that only compare. */
static unsigned char pattern(int which, int64_t i, bool uneven)
{
    return which == 0 ? 0 : uneven ? (unsigned char)(i * 29 % 61 + 1) : 0xff;
}

/* Kernels that this cannot run twice, or does not meet. */
static const struct exception {
    int kernel;
    const char *why;
} exceptions[] = {
    {DMI_KERNEL_file_read, "it reads a file; its reference is a dense range"},
    {DMI_KERNEL_file_write, "it writes a file; its reference is a dense range"},
    {DMI_KERNEL_user_read, "it reads the caller's memory, which these tests do not have"},
    {DMI_KERNEL_task, "it runs a user's function, once"},
    {DMI_KERNEL_fused, "it runs on GPUs only"},
    {DMI_KERNEL_lend, "it writes the address of a reference, and the copy's is no use to others"},
    {DMI_KERNEL_borrow, "it reads the memory of other workers, which no reference names"},
};

/* Scratch: contents that nobody reads, so that it need not be written as a whole. */
static const struct scratch {
    int kernel, ref;
} scratches[] = {
    {DMI_KERNEL_sort, 1},      {DMI_KERNEL_index_sort, 3},   {DMI_KERNEL_conv, 4},
    {DMI_KERNEL_conv_data, 3}, {DMI_KERNEL_conv_weights, 4}, {DMI_KERNEL_lrn, 2},
    {DMI_KERNEL_lrn_back, 3},  {DMI_KERNEL_lrn_pool, 3},     {DMI_KERNEL_lrn_pool_back, 4},
};

static atomic_int found, met[DMI_KERNELS], calls[DMI_KERNELS];
static atomic_int seen[DMI_KERNELS][DMI_MAX_REFS][2],
    tried[DMI_KERNELS][DMI_MAX_REFS][2]; /* of reads, of writes */

static const char *why_not(int kernel)
{
    for (size_t i = 0; i < DMI_COUNT(exceptions); i++) {
        if (exceptions[i].kernel == kernel) {
            return exceptions[i].why;
        }
    }
    return NULL;
}

static bool listed(const struct scratch *list, size_t count, int kernel, int ref)
{
    for (size_t i = 0; i < count; i++) {
        if (list[i].kernel == kernel && list[i].ref == ref) {
            return true;
        }
    }
    return false;
}

/* --- copies of the references --- */

typedef struct piece {
    int64_t from, to; /* bytes that are touched, from the reference */
    unsigned char *said, *memory,
        *first; /* [to - from + 2 GUARD]: READS and WRITES; the copy; it after the first run */
    void *block;
} piece;

static int64_t size_of(const piece *p)
{
    return p->to - p->from + 2 * GUARD;
}

static void widen(void *context, int64_t from, int64_t to)
{
    piece *p = context;
    p->from = DMI_MIN(p->from, from);
    p->to = DMI_MAX(p->to, to);
}

typedef struct marking {
    piece *p;
    int as;
} marking;

static void mark(void *context, int64_t from, int64_t to)
{
    const marking *m = context;
    for (int64_t i = from; i < to; i++) {
        m->p->said[i - m->p->from + GUARD] |= (unsigned char)m->as;
    }
}

/* The copy is aligned as the memory is. */
static bool take_piece(piece *p, const dmi_touch *touch, const void *at)
{
    *p = (piece){.from = INT64_MAX, .to = INT64_MIN};
    dmi_sim_walk(touch, widen, p);
    if (p->to < p->from) {
        p->from = p->to = 0;
    }
    int64_t size = size_of(p);
    int64_t align = (int64_t)(((uintptr_t)at + (uintptr_t)(p->from - GUARD)) % 64);
    p->block = size <= LARGEST ? aligned_alloc(64, (size_t)(3 * size + 256) / 64 * 64) : NULL;
    p->memory = p->block ? (unsigned char *)p->block + align : NULL;
    p->first = p->memory + size;
    p->said = p->first + size;
    if (p->block) {
        memset(p->said, 0, (size_t)size);
        dmi_sim_walk(touch, mark,
                     &(marking){p, (touch->rw & DMI_READ ? READS : 0) | (touch->rw & DMI_WRITE ? WRITES : 0)});
    }
    return p->block != NULL;
}

static void fill(piece *p, const unsigned char *at, int which, int without, bool uneven)
{
    for (int64_t i = 0, size = size_of(p); i < size; i++) {
        bool real = p->said[i] & READS & ~without;
        p->memory[i] = real ? at[i + p->from - GUARD] : pattern(which, i, uneven);
    }
}

/* --- one call --- */

typedef struct trial {
    int kernel;
    const dmi_kernel_call *call;
    piece piece[DMI_MAX_REFS];
    int left_out, part; /* a reference, and READS or WRITES of it; -1: none */
    bool uneven;
    char what[256]; /* the first complaint */
    uint32_t failure[2];
    dm_status status;
} trial;

static DMI_PRINTF(2, 3) void complain(trial *t, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    if (!t->what[0]) {
        vsnprintf(t->what, sizeof t->what, format, list);
    }
    va_end(list);
}

static int without(const trial *t, int ref)
{
    return t->left_out == ref ? t->part : 0;
}

static void run(trial *t, int which)
{
    dmi_kernel_call call = *t->call;
    for (int i = 0; i < DMI_MAX_REFS; i++) {
        piece *p = &t->piece[i];
        if (p->block) {
            fill(p, t->call->at[i], which, without(t, i), t->uneven);
            call.at[i] = p->memory + GUARD - p->from;
        }
    }
    call.status = &t->failure[which];
    t->status = dmi_kernels[t->kernel].cpu(&call);
}

static void look(trial *t, int ref)
{
    const piece *p = &t->piece[ref];
    const unsigned char *at = t->call->at[ref];
    bool scratch = listed(scratches, DMI_COUNT(scratches), t->kernel, ref);
    for (int64_t i = 0, size = size_of(p); i < size; i++) {
        int said = p->said[i] & ~without(t, ref);
        long long byte = (long long)(i + p->from - GUARD);
        if (!(said & WRITES)) {
            unsigned char was[2] = {pattern(0, i, t->uneven), pattern(1, i, t->uneven)};
            if (said & READS) {
                was[0] = was[1] = at[byte];
            }
            if (p->first[i] != was[0] || p->memory[i] != was[1]) {
                complain(t, "writes byte %lld of reference %d, but does not say so", byte, ref);
            }
        } else if (p->first[i] != p->memory[i] && !scratch) {
            bool kept = p->first[i] == pattern(0, i, t->uneven) && p->memory[i] == pattern(1, i, t->uneven);
            complain(t,
                     kept ? "says that it writes byte %lld of reference %d, but does not"
                          : "makes byte %lld of reference %d of bytes that it does not say it reads",
                     byte, ref);
        }
    }
}

static void attempt(trial *t)
{
    t->what[0] = 0;
    t->failure[0] = t->failure[1] = 0;
    run(t, 0);
    for (int i = 0; i < DMI_MAX_REFS; i++) {
        if (t->piece[i].block) {
            memcpy(t->piece[i].first, t->piece[i].memory, (size_t)size_of(&t->piece[i]));
        }
    }
    run(t, 1);
    if (t->failure[0] != t->failure[1]) {
        complain(t, "fails by bytes that it does not say it reads");
    }
    for (int i = 0; i < DMI_MAX_REFS; i++) {
        if (t->piece[i].block) {
            look(t, i);
        }
    }
}

static void keep(trial *t)
{
    for (int r = 0; r < DMI_MAX_REFS; r++) {
        const piece *p = &t->piece[r];
        unsigned char *at = t->call->at[r];
        for (int64_t i = 0, size = p->block ? size_of(p) : 0; i < size; i++) {
            if (p->said[i] & WRITES) {
                at[i + p->from - GUARD] = p->first[i];
            }
        }
    }
    if (t->call->status) {
        *t->call->status = t->failure[0];
    }
}

/* Would it be seen if a reference were not said? */
static void leave_out(trial *t, const dmi_touch *touch)
{
    for (int r = 0; r < DMI_MAX_REFS; r++) {
        for (int part = READS; part <= WRITES; part++) {
            bool has =
                touch[r].rw & (part == READS ? DMI_READ : DMI_WRITE) && t->piece[r].to > t->piece[r].from;
            if (!has || !t->piece[r].block || atomic_load(&seen[t->kernel][r][part - 1]) ||
                atomic_fetch_add(&tried[t->kernel][r][part - 1], 1) >= TRIES) {
                continue;
            }
            t->left_out = r;
            t->part = part;
            t->uneven = atomic_load(&tried[t->kernel][r][part - 1]) % 2 == 0;
            attempt(t);
            atomic_fetch_or(&seen[t->kernel][r][part - 1], t->what[0] != 0);
        }
    }
}

static dm_status twice(int kernel, const dmi_kernel_call *call, const dmi_touch *touch)
{
    trial t = {.kernel = kernel, .call = call, .left_out = -1};
    bool ok = true;
    for (int i = 0; i < DMI_MAX_REFS && ok; i++) {
        ok = !call->at[i] || take_piece(&t.piece[i], &touch[i], call->at[i]);
    }
    if (ok) {
        leave_out(&t, touch);
        t.left_out = -1;
        t.uneven = atomic_load(&calls[kernel]) % 2 == 1;
        attempt(&t);
        keep(&t);
        atomic_fetch_add(&calls[kernel], 1);
        if (t.what[0] && atomic_fetch_add(&found, 1) < MOST_TOLD) {
            fprintf(stderr, "touches: %s %s\n", dmi_kernels[kernel].name, t.what);
        }
    }
    for (int i = 0; i < DMI_MAX_REFS; i++) {
        free(t.piece[i].block);
    }
    return ok ? t.status : dmi_kernels[kernel].cpu(call);
}

/* Is there a reference that could be left out, as far as known? */
static bool unseen(int kernel)
{
    bool some = false;
    for (int r = 0; r < 2 * DMI_MAX_REFS; r++) {
        some = some || (atomic_load(&tried[kernel][r / 2][r % 2]) && !atomic_load(&seen[kernel][r / 2][r % 2]));
    }
    return some;
}

/* Its second run comes later, and so do its bytes. */
static bool is_clock(int kernel, const void *desc)
{
    return kernel == DMI_KERNEL_fill && ((const dmi_fill *)desc)->kind == DMI_FILL_CLOCK;
}

static dm_status run_kernel(int kernel, const dmi_kernel_call *call)
{
    dmi_touch touch[DMI_MAX_REFS] = {{0}};
    dmi_touching touching = {.desc = call->desc, .refs = call->refs};
    int before = atomic_fetch_add(&met[kernel], 1);
    if (why_not(kernel) || is_clock(kernel, call->desc) ||
        (before >= FIRST && before % THEN != 0 && !unseen(kernel))) {
        return dmi_kernels[kernel].cpu(call);
    }
    for (int i = 0; i < DMI_COUNT(touching.zero); i++) {
        touching.zero[i] = call->scalar[i] == 0;
    }
    dmi_kernels[kernel].touches(&touching, touch);
    return twice(kernel, call, touch);
}

/* --- in place of the CPU's kernels: the linker gives every caller of dmi_backend_cpu this one --- */

const dmi_backend *__real_dmi_backend_cpu(void);
const dmi_backend *__wrap_dmi_backend_cpu(void);
const dmi_backend *__wrap_dmi_backend_cpu(void)
{
    static const dmi_backend compared = {"cpu", run_kernel};
    return getenv("DMATH_TEST_TOUCHES") ? &compared : __real_dmi_backend_cpu();
}

int dmt_touches_end(int all)
{
    int wrong = atomic_load(&found), kernels = 0;
    long total = 0;
    for (int k = 0; k < DMI_KERNELS; k++) {
        kernels += atomic_load(&calls[k]) > 0;
        total += atomic_load(&calls[k]);
        if (all && !atomic_load(&calls[k]) && !why_not(k)) {
            wrong++;
            fprintf(stderr, "touches: no test has run %s\n", dmi_kernels[k].name);
        }
        for (int r = 0; r < 2 * DMI_MAX_REFS; r++) {
            if (all && atomic_load(&tried[k][r / 2][r % 2]) && !atomic_load(&seen[k][r / 2][r % 2])) {
                wrong++;
                fprintf(stderr, "touches: that %s %s reference %d could be left out without being seen\n",
                        dmi_kernels[k].name, r % 2 ? "writes" : "reads", r / 2);
            }
        }
    }
    printf("%ld calls of %d kernels beside what they say they touch, %d complaints\n", total, kernels, wrong);
    return wrong;
}

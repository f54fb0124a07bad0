/* Slabs of anonymous host memory, and the pattern of red zones. */
#include "memory/pool.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { HUGE_PAGE = 2 << 20, PATTERN = 0xc5, MALLOC_ALIGN = 256 };

/* A slab with room for a huge page begins at one: the excess on both sides is unmapped. */
static void *map_huge(size_t bytes)
{
    char *mapped = mmap(NULL, bytes + HUGE_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapped == MAP_FAILED) {
        return NULL;
    }
    size_t before = (HUGE_PAGE - (uintptr_t)mapped % HUGE_PAGE) % HUGE_PAGE;
    if (before > 0) {
        munmap(mapped, before);
    }
    char *base = mapped + before;
    size_t page = (size_t)sysconf(_SC_PAGESIZE), used = (bytes + page - 1) / page * page;
    munmap(base + used, HUGE_PAGE - before); /* before < HUGE_PAGE: there is something */
    madvise(base, used, MADV_HUGEPAGE);      /* a wish: without it the memory is as good, only slower */
    return base;
}

static void *get_anonymous(void *context, int index, int64_t bytes)
{
    (void)context, (void)index;
    if (bytes > INT64_MAX - 2 * (int64_t)HUGE_PAGE) {
        return NULL;
    }
    if (bytes >= HUGE_PAGE) {
        return map_huge((size_t)bytes);
    }
    void *base = mmap(NULL, (size_t)bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return base == MAP_FAILED ? NULL : base;
}

static void give_back_anonymous(void *context, int index, void *base, int64_t bytes)
{
    (void)context, (void)index;
    munmap(base, (size_t)bytes);
}

dmi_slab_ops dmi_slab_ops_anonymous(void)
{
    return (dmi_slab_ops){.get = get_anonymous,
                          .give_back = give_back_anonymous,
                          .fill = dmi_redzone_fill,
                          .check = dmi_redzone_check,
                          .debug_fill = dmi_debug_fill};
}

static void *get_malloc(void *context, int index, int64_t bytes)
{
    void *base = NULL;
    (void)context, (void)index;
    if (dmi_fault(DMI_FAULT_MALLOC) || posix_memalign(&base, MALLOC_ALIGN, (size_t)bytes) != 0) {
        dmi_memory_missed((size_t)bytes);
        return NULL;
    }
    return base;
}

static void give_back_malloc(void *context, int index, void *base, int64_t bytes)
{
    (void)context, (void)index, (void)bytes;
    free(base);
}

dmi_slab_ops dmi_slab_ops_malloc(void)
{
    return (dmi_slab_ops){.get = get_malloc, .give_back = give_back_malloc, .debug_fill = dmi_debug_fill};
}

void dmi_redzone_fill(void *context, void *at, int64_t bytes)
{
    (void)context;
    memset(at, PATTERN, (size_t)bytes);
}

bool dmi_redzone_check(void *context, const void *at, int64_t bytes)
{
    (void)context;
    const unsigned char *byte = at;
    /* The first is right, and each equals the one before it. */
    return bytes == 0 || (byte[0] == PATTERN && memcmp(byte, byte + 1, (size_t)bytes - 1) == 0);
}

void dmi_debug_fill(void *context, void *at, int64_t bytes)
{
    (void)context;
    memset(at, DMI_DEBUG_FILL, (size_t)bytes);
}

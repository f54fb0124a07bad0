/* Bump allocator over a list of zeroed chunks. */
#include "base/base.h"
#include "base/fault.h"

#include <stdlib.h>
#include <string.h>

enum { FIRST_BYTES = 4096, LARGEST_BYTES = 1 << 20, ALIGN = 16 };

struct dmi_arena_chunk {
    dmi_arena_chunk *next;
    size_t used, bytes;
    size_t grow; /* size of the chunk after this one; read at the head only */
    _Alignas(ALIGN) unsigned char data[];
};

static dmi_arena_chunk *chunk_make(size_t bytes)
{
    /* Memory is handed out once, so zeroed here it is zeroed there. */
    dmi_arena_chunk *chunk = calloc(1, sizeof *chunk + bytes);
    if (chunk) {
        chunk->bytes = bytes;
        chunk->grow = FIRST_BYTES;
    }
    return chunk;
}

/* A chunk with room for `bytes`. One made for a single large request goes behind the head, whose rest stays in
 * use. */
static dmi_arena_chunk *chunk_add(dmi_arena *arena, size_t bytes)
{
    dmi_arena_chunk *head = arena->head;
    size_t normal = head ? head->grow : arena->first ? arena->first : FIRST_BYTES;
    size_t next = DMI_MIN(normal * 2, (size_t)LARGEST_BYTES);
    dmi_arena_chunk *chunk = chunk_make(DMI_MAX(normal, bytes));
    if (!chunk) {
        return NULL;
    }
    if (bytes > normal && head) {
        chunk->next = head->next;
        head->next = chunk;
        head->grow = next;
    } else {
        chunk->next = head;
        chunk->grow = next;
        arena->head = chunk;
    }
    return chunk;
}

void *dmi_arena_alloc(dmi_arena *arena, size_t bytes)
{
    if (bytes > SIZE_MAX / 2) {
        return NULL;
    }
    /* Even a request of nothing gets an address of its own. */
    size_t rounded = (DMI_MAX(bytes, (size_t)1) + ALIGN - 1) / ALIGN * ALIGN;
    dmi_arena_chunk *chunk = arena->head;
    if (!chunk || chunk->bytes - chunk->used < rounded) {
        chunk = chunk_add(arena, rounded);
        if (!chunk) {
            return NULL;
        }
    }
    void *at = chunk->data + chunk->used;
    chunk->used += rounded;
    arena->bytes += bytes;
    return at;
}

void dmi_arena_free(dmi_arena *arena)
{
    dmi_arena_chunk *chunk = arena->head;
    while (chunk) {
        dmi_arena_chunk *next = chunk->next;
        free(chunk);
        chunk = next;
    }
    *arena = (dmi_arena){.first = arena->first};
}

void *dmi_alloc_lines(size_t count, size_t bytes)
{
    enum { LINE = 64 };
    void *at = NULL;
    if (dmi_fault(DMI_FAULT_MALLOC) || posix_memalign(&at, LINE, count * bytes) != 0) {
        dmi_memory_missed(count * bytes);
        return NULL;
    }
    return memset(at, 0, count * bytes);
}

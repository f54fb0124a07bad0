#include "data/fetch.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

enum { LEAST = 48 << 10 /* bytes of a record: a copy of its own takes a microsecond */ };
static const int64_t MOST = (int64_t)16 << 30; /* takes 6 s to be held, in which the worker does nothing else */
enum { PART = 4 };                             /* and not more than this part of the memory that there is */

/* Bytes that this process may have at most: those of the host or of its container. */
static int64_t memory_of_process(void)
{
    const int64_t host = (int64_t)sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE);
    long long most = 0;
    FILE *file = fopen("/sys/fs/cgroup/memory.max", "r");
    const bool limited = file && fscanf(file, "%lld", &most) == 1 && most > 0 && most < host;
    if (file) {
        fclose(file);
    }
    return limited ? most : host;
}

/* Are all pages in memory? */
static bool is_there(const void *memory, int64_t bytes)
{
    const int64_t page = sysconf(_SC_PAGESIZE), pages = (bytes + page - 1) / page;
    unsigned char *there = malloc((size_t)pages + 1);
    bool all = there && mincore((void *)(uintptr_t)memory, (size_t)bytes, there) == 0;
    for (int64_t i = 0; all && i < pages; i++) {
        all = there[i] & 1;
    }
    free(there);
    return all;
}

const char *nn_fetch_wrong(const void *memory, int64_t bytes, const int64_t record[3])
{
    return !memory                                     ? "they are decoded, or in no file of this user's"
           : record[0] * record[1] * record[2] < LEAST ? "they are small"
           : bytes > MOST || bytes > memory_of_process() / PART ? "they are too many to be held in memory"
           : !is_there(memory, bytes)                           ? "not all of them are in memory"
                                                                : NULL;
}

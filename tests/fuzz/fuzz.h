/* What the fuzz targets share. A check that does not hold ends the program, as what the sanitizers find does. */
#ifndef FUZZ_H
#define FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define HOLDS(what)                                                              \
    do {                                                                         \
        if (!(what)) {                                                           \
            fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #what);   \
            abort();                                                             \
        }                                                                        \
    } while (0)

/* A copy without spare bytes, so that a read behind it is found; with an end where it is text. */
static inline void *exactly(const uint8_t *data, size_t size, int end)
{
    char *copy = malloc(size + (size_t)end + (size + (size_t)end == 0));
    HOLDS(copy);
    if (size > 0) {
        memcpy(copy, data, size);
    }
    if (end) {
        copy[size] = 0;
    }
    return copy;
}

#endif

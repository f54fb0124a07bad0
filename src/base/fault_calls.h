/* Calls of the C library that can fail, with their planted faults. CMake has every C source of dmath include
 * this first, so that no call is left out, and none needs to remember it. */
#ifndef DMI_FAULT_CALLS_H
#define DMI_FAULT_CALLS_H

#include "base/fault.h"

#ifndef DMI_FAULT_NONE /* emulated GPUs: their driver is no part of dmath; they ask for the memory of GPUs     \
                          alone */

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* --- memory, and threads, which need it */
#define malloc(bytes) (dmi_fault(DMI_FAULT_MALLOC) ? NULL : (malloc)(bytes))
#define calloc(count, bytes) (dmi_fault(DMI_FAULT_MALLOC) ? NULL : (calloc)(count, bytes))
#define realloc(at, bytes) (dmi_fault(DMI_FAULT_MALLOC) ? NULL : (realloc)(at, bytes))
#undef strdup
#define strdup(text) (dmi_fault(DMI_FAULT_MALLOC) ? NULL : (strdup)(text))
#undef strndup
#define strndup(text, bytes) (dmi_fault(DMI_FAULT_MALLOC) ? NULL : (strndup)(text, bytes))
/* Not posix_memalign, which compilers declare in headers of their own: its callers ask dmi_fault. */
#define open_memstream(text, bytes) (dmi_fault(DMI_FAULT_MALLOC) ? NULL : (open_memstream)(text, bytes))
#define mmap(...) (dmi_fault(DMI_FAULT_MALLOC) ? MAP_FAILED : (mmap)(__VA_ARGS__))
#define memfd_create(name, flags) (dmi_fault(DMI_FAULT_MALLOC) ? -1 : (memfd_create)(name, flags))
#define pthread_create(...) (dmi_fault(DMI_FAULT_MALLOC) ? EAGAIN : (pthread_create)(__VA_ARGS__))

/* --- files */
#define pread(file, into, bytes, at) (dmi_fault(DMI_FAULT_READ) ? -1 : (pread)(file, into, bytes, at))
#define pwrite(file, from, bytes, at)                                                                          \
    (dmi_fault(DMI_FAULT_WRITE) ? (dmi_fault_is_short() ? (pwrite)(file, from, (bytes) / 2, at) : -1)          \
                                : (pwrite)(file, from, bytes, at))
#define ftruncate(file, bytes)                                                                                 \
    (dmi_fault(DMI_FAULT_WRITE) && !dmi_fault_is_short() ? -1 : (ftruncate)(file, bytes))
#define fsync(file) (dmi_fault(DMI_FAULT_FSYNC) ? -1 : (fsync)(file))
#define rename(from, to) (dmi_fault(DMI_FAULT_RENAME) ? -1 : (rename)(from, to))

#endif
#endif

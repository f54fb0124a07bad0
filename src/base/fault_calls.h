/* Calls of the C library that can fail, with their planted faults. CMake has every C source of dmath include
 * this first, so that no call is left out, and none needs to remember it. */
#ifndef DMI_FAULT_CALLS_H
#define DMI_FAULT_CALLS_H

#include "base/descriptors.h"
#include "base/fault.h"
#include "base/threads.h"

/* Emulated GPUs: their driver is no part of dmath, and fails by a kind of its own. Only the memory of GPUs
 * fails with that of the library (memory.c there). */
#ifdef DMI_FAULT_OF_DRIVER
#define DMI_FAULT_KIND(kind) DMI_FAULT_DRIVER
#else
#define DMI_FAULT_KIND(kind) (kind)
#endif

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#undef strdup
#undef strndup

/* A function for each, so that the question is one branch of the source, and a macro with the call's name. */
#define DMI_FAULTY(type, name, kind, failed, parameters, arguments)                                            \
    static inline type dmi_faulty_##name parameters                                                            \
    {                                                                                                          \
        return dmi_fault(DMI_FAULT_KIND(kind)) ? (failed) : (name)arguments;                                   \
    }

/* --- memory, and threads, which need it. A failure is noted with the bytes asked for, so that the error names
 * them (dmi_fail). Not posix_memalign, which compilers declare in headers of their own: its callers ask
 * dmi_fault, and note what they missed. */
#define DMI_FAULTY_MEMORY(type, name, failed, bytes, parameters, arguments)                                    \
    static inline type dmi_faulty_##name parameters                                                            \
    {                                                                                                          \
        type got = dmi_fault(DMI_FAULT_KIND(DMI_FAULT_MALLOC)) ? (failed) : (name)arguments;                   \
        if (__builtin_expect(got == (failed), 0)) {                                                            \
            dmi_memory_missed(bytes);                                                                          \
        }                                                                                                      \
        return got;                                                                                            \
    }
DMI_FAULTY_MEMORY(void *, malloc, NULL, bytes, (size_t bytes), (bytes))
DMI_FAULTY_MEMORY(void *, calloc, NULL, bytes &&count > SIZE_MAX / bytes ? SIZE_MAX : count * bytes,
                  (size_t count, size_t bytes), (count, bytes))
DMI_FAULTY_MEMORY(void *, realloc, NULL, bytes, (void *at, size_t bytes), (at, bytes))
DMI_FAULTY_MEMORY(char *, strdup, NULL, strlen(text) + 1, (const char *text), (text))
DMI_FAULTY_MEMORY(char *, strndup, NULL, bytes + 1, (const char *text, size_t bytes), (text, bytes))
DMI_FAULTY_MEMORY(FILE *, open_memstream, NULL, BUFSIZ, (char **text, size_t *bytes), (text, bytes))
DMI_FAULTY_MEMORY(void *, mmap, MAP_FAILED, bytes,
                  (void *at, size_t bytes, int protection, int flags, int file, off_t from),
                  (at, bytes, protection, flags, file, from))
DMI_FAULTY_MEMORY(int, memfd_create, -1, 0, (const char *name, unsigned flags), (name, flags))
DMI_FAULTY_MEMORY(int, dmi_thread_create, EAGAIN, 0,
                  (pthread_t * thread, const pthread_attr_t *attributes, void *(*run)(void *), void *context),
                  (thread, attributes, run, context))

/* --- files; none of them is opened as standard input, output or error: base/descriptors.h */
DMI_FAULTY(ssize_t, pread, DMI_FAULT_READ, -1, (int file, void *into, size_t bytes, off_t at), (file, into, bytes, at))
DMI_FAULTY(int, fstat, DMI_FAULT_READ, -1, (int file, struct stat *about), (file, about))
DMI_FAULTY(ssize_t, pwrite, DMI_FAULT_WRITE, dmi_fault_is_short() ? (pwrite)(file, from, bytes / 2, at) : -1,
           (int file, const void *from, size_t bytes, off_t at), (file, from, bytes, at))
DMI_FAULTY(int, ftruncate, DMI_FAULT_WRITE, dmi_fault_is_short() ? (ftruncate)(file, bytes) : -1, (int file, off_t bytes),
           (file, bytes))
DMI_FAULTY(int, fsync, DMI_FAULT_FSYNC, -1, (int file), (file))
DMI_FAULTY(int, rename, DMI_FAULT_RENAME, -1, (const char *from, const char *to), (from, to))
DMI_FAULTY(int, unlink, DMI_FAULT_RENAME, -1, (const char *path), (path))
DMI_FAULTY(int, open, DMI_FAULT_OPEN, -1, (const char *path, int flags, mode_t mode), (path, flags, mode))
DMI_FAULTY(FILE *, fopen, DMI_FAULT_OPEN, NULL, (const char *path, const char *how), (path, how))
DMI_FAULTY(DIR *, opendir, DMI_FAULT_OPEN, NULL, (const char *path), (path))
DMI_FAULTY(int, mkdir, DMI_FAULT_OPEN, -1, (const char *path, mode_t mode), (path, mode))
DMI_FAULTY(int, close, DMI_FAULT_CLOSE, ((void)(close)(file), -1), (int file), (file))
DMI_FAULTY(int, fclose, DMI_FAULT_CLOSE, ((void)(fclose)(file), EOF), (FILE * file), (file))

#define malloc(bytes) dmi_faulty_malloc(bytes)
#define calloc(count, bytes) dmi_faulty_calloc(count, bytes)
#define realloc(at, bytes) dmi_faulty_realloc(at, bytes)
#define strdup(text) dmi_faulty_strdup(text)
#define strndup(text, bytes) dmi_faulty_strndup(text, bytes)
#define open_memstream(text, bytes) dmi_faulty_open_memstream(text, bytes)
#define mmap(...) dmi_faulty_mmap(__VA_ARGS__)
#define memfd_create(name, flags)                                                                              \
    (dmi_standard_taken(), dmi_above_standard(dmi_faulty_memfd_create(name, flags)))
#define pthread_create(...) dmi_faulty_dmi_thread_create(__VA_ARGS__)
#define pread(file, into, bytes, at) dmi_faulty_pread(file, into, bytes, at)
#define fstat(file, about) dmi_faulty_fstat(file, about)
#define pwrite(file, from, bytes, at) dmi_faulty_pwrite(file, from, bytes, at)
#define ftruncate(file, bytes) dmi_faulty_ftruncate(file, bytes)
#define fsync(file) dmi_faulty_fsync(file)
#define rename(from, to) dmi_faulty_rename(from, to)
#define unlink(path) dmi_faulty_unlink(path)
#define DMI_FAULTY_OPEN(path, flags, mode, ...)                                                                \
    (dmi_standard_taken(), dmi_above_standard(dmi_faulty_open(path, flags, mode)))
#define open(...) DMI_FAULTY_OPEN(__VA_ARGS__, 0, 0)
/* A literal: programs that the process starts do not have the file. */
#define fopen(path, how) (dmi_standard_taken(), dmi_above_standard_file(dmi_faulty_fopen(path, how "e"), how))
#define opendir(path) dmi_faulty_opendir(path)
#define mkdir(path, mode) dmi_faulty_mkdir(path, mode)
#define close(file) dmi_faulty_close(file)
#define fclose(file) dmi_faulty_fclose(file)

#endif

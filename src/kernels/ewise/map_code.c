#include "kernels/ewise/map_code.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PATH_BYTES = 4096, MOST_BYTES = 64 << 20 };

/* The head of a file; the code follows. */
typedef struct code_head {
    char magic[8];
    dmi_code_key key;
    uint64_t bytes, checksum;
} code_head;
static const char magic[8] = "dmcode1";

/* FNV-1a, with a last mixing step so that all bits depend on all bytes. */
static uint64_t hash(uint64_t h, const void *data, size_t bytes)
{
    const unsigned char *at = data;
    for (size_t i = 0; i < bytes; i++) {
        h = (h ^ at[i]) * UINT64_C(0x100000001b3);
    }
    h ^= h >> 32;
    h *= UINT64_C(0xd6e8feb86659fd93);
    return h ^ h >> 32;
}

dmi_code_key dmi_code_key_of(const char *source, const char *made_by)
{
    static const uint64_t start[2] = {UINT64_C(0xcbf29ce484222325), UINT64_C(0x9e3779b97f4a7c15)};
    dmi_code_key key;
    for (int i = 0; i < 2; i++) {
        key.half[i] = hash(hash(start[i], source, strlen(source)), made_by, strlen(made_by));
    }
    return key;
}

static bool fits(int written, size_t room)
{
    return written >= 0 && (size_t)written < room;
}

bool dmi_code_folder(const char *folder, char *out, size_t room)
{
    const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    if (folder[0]) {
        return fits(snprintf(out, room, "%s", folder), room);
    }
    if (cache && cache[0] == '/') { /* a relative path counts as none, says the XDG specification */
        return fits(snprintf(out, room, "%s/dmath", cache), room);
    }
    return home && home[0] && fits(snprintf(out, room, "%s/.cache/dmath", home), room);
}

static bool file_name(const char *folder, dmi_code_key key, char out[PATH_BYTES])
{
    return fits(snprintf(out, PATH_BYTES, "%s/%016llx%016llx.code", folder, (unsigned long long)key.half[0],
                         (unsigned long long)key.half[1]),
                PATH_BYTES);
}

static code_head head_of(dmi_code_key key, const void *code, size_t bytes)
{
    code_head head = {.key = key, .bytes = bytes, .checksum = hash(bytes, code, bytes)};
    memcpy(head.magic, magic, sizeof head.magic);
    return head;
}

void *dmi_code_read(const char *folder, dmi_code_key key, size_t *bytes)
{
    char path[PATH_BYTES];
    code_head head;
    void *code = NULL;
    FILE *from = file_name(folder, key, path) ? fopen(path, "rb") : NULL;
    if (from && fread(&head, sizeof head, 1, from) == 1 && head.bytes > 0 && head.bytes <= MOST_BYTES) {
        code = malloc((size_t)head.bytes);
    }
    bool whole = code && fread(code, 1, (size_t)head.bytes, from) == head.bytes && fgetc(from) == EOF;
    if (whole) {
        code_head wanted = head_of(key, code, (size_t)head.bytes);
        whole = memcmp(&head, &wanted, sizeof head) == 0;
    }
    if (from) {
        fclose(from);
    }
    if (!whole) {
        free(code);
        return NULL;
    }
    *bytes = (size_t)head.bytes;
    return code;
}

/* The folder, and those that it is in. */
static bool make_folder(const char *folder)
{
    char path[PATH_BYTES];
    if (!fits(snprintf(path, sizeof path, "%s", folder), sizeof path)) {
        return false;
    }
    for (char *at = path + 1; *at; at++) {
        if (*at == '/') {
            *at = 0;
            if (mkdir(path, 0700) != 0 && errno != EEXIST) {
                return false;
            }
            *at = '/';
        }
    }
    return mkdir(path, 0700) == 0 || errno == EEXIST;
}

static bool write_all(int file, const void *data, size_t bytes)
{
    const char *at = data;
    while (bytes > 0) {
        ssize_t n = write(file, at, bytes);
        if (n < 0 && errno != EINTR) {
            return false;
        }
        at += n > 0 ? n : 0;
        bytes -= n > 0 ? (size_t)n : 0;
    }
    return true;
}

/* Others see the whole file or none: it gets its name when it is written. */
bool dmi_code_write(const char *folder, dmi_code_key key, const void *code, size_t bytes)
{
    char path[PATH_BYTES], temporary[PATH_BYTES];
    code_head head = head_of(key, code, bytes);
    if (!file_name(folder, key, path) ||
        !fits(snprintf(temporary, sizeof temporary, "%s/new-XXXXXX", folder), sizeof temporary) ||
        !make_folder(folder)) {
        return false;
    }
    int file = mkostemp(temporary, O_CLOEXEC);
    if (file < 0) {
        return false;
    }
    bool written = write_all(file, &head, sizeof head) && write_all(file, code, bytes);
    written = close(file) == 0 && written;
    written = written && rename(temporary, path) == 0;
    if (!written) {
        unlink(temporary);
    }
    return written;
}

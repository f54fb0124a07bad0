/* Manifests of checkpoints: any bytes are an error, or a manifest that is written and read back as the same. What is read gets
 * its right hash, unless the first byte is '!'. */
#include "fuzz.h"
#include "io/folder.h"
#include "io/hash.h"
#include "io/manifest.h"

#include <dmath/dmath.h>
#include <inttypes.h>
#include <sys/stat.h>
#include <unistd.h>

/* Of the library only what reads manifests is here. */
const char *dm_version(void)
{
    return "0";
}

static char name[2][64];

static void remove_folders(void)
{
    char path[128];
    for (int i = 0; i < 2; i++) {
        snprintf(path, sizeof path, "%s/" DMI_MANIFEST, name[i]);
        (void)unlink(path);
        (void)rmdir(name[i]);
    }
}

static const char *folder(int which)
{
    if (!name[which][0]) {
        HOLDS(name[0][0] || name[1][0] || atexit(remove_folders) == 0);
        snprintf(name[which], sizeof name[which], "/dev/shm/dmath-fuzz-%d-%d", (int)getpid(), which);
        HOLDS(mkdir(name[which], 0700) == 0);
    }
    return name[which];
}

static const char *empty_folder(int which)
{
    char path[128];
    snprintf(path, sizeof path, "%s/" DMI_MANIFEST, folder(which));
    (void)unlink(path);
    return folder(which);
}

static void put(const uint8_t *data, size_t size)
{
    char path[128];
    snprintf(path, sizeof path, "%s/" DMI_MANIFEST, folder(0));
    FILE *to = fopen(path, "w");
    HOLDS(to);
    HOLDS(fwrite(data + 1, 1, size - 1, to) == size - 1);
    if (data[0] != '!') {
        fprintf(to, ",\n \"manifest_xxh3\": \"%016" PRIx64 "\"\n}\n", dmi_hash64(data + 1, (int64_t)size - 1));
    }
    HOLDS(fclose(to) == 0);
}

static bool same_text(const char *a, const char *b)
{
    return (!a && !b) || (a && b && strcmp(a, b) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    dmi_manifest once, again;
    if (size < 2) {
        return 0;
    }
    put(data, size);
    if (dmi_manifest_read(folder(0), &once) != DM_OK) {
        HOLDS(dmi_error_text()[0] != 0);
        return 0;
    }
    HOLDS(dmi_manifest_write(&once, empty_folder(1)) == DM_OK);
    HOLDS(dmi_manifest_read(folder(1), &again) == DM_OK);
    HOLDS(once.items == again.items && once.workers == again.workers);
    for (int i = 0; i < once.items; i++) {
        const dmi_saved *a = &once.item[i], *b = &again.item[i];
        HOLDS(same_text(a->name, b->name) && same_text(a->file, b->file) && a->dtype == b->dtype);
        HOLDS(a->parts.count == b->parts.count && a->file_bytes == b->file_bytes && a->value_bytes == b->value_bytes);
        HOLDS(a->parts.count == 0 || !a->hash || memcmp(a->hash, b->hash, (size_t)a->parts.count * sizeof *a->hash) == 0);
    }
    dmi_manifest_free(&once);
    dmi_manifest_free(&again);
    return 0;
}

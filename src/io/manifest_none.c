/* Where jansson or xxhash.h was not found: there are no checkpoints. */
#include "io/hash.h"
#include "io/manifest.h"

dm_status dmi_manifest_possible(void)
{
    return dmi_fail(DM_ERR_UNSUPPORTED,
                    "%s: this build has no checkpoints: jansson or xxHash was not found when it was made",
                    dmi_api_called());
}

dm_status dmi_manifest_write(const dmi_manifest *manifest, const char *folder)
{
    (void)manifest, (void)folder;
    return dmi_manifest_possible();
}

dm_status dmi_manifest_read(const char *folder, dmi_manifest *out)
{
    (void)folder;
    *out = (dmi_manifest){0};
    return dmi_manifest_possible();
}

dm_status dmi_manifest_fits(const char *path, int64_t value_bytes, int64_t hashes)
{
    (void)path, (void)value_bytes, (void)hashes;
    return dmi_manifest_possible();
}

void dmi_manifest_free(dmi_manifest *manifest)
{
    (void)manifest; /* none is ever filled in */
}

const dmi_saved *dmi_manifest_find(const dmi_manifest *manifest, const char *name)
{
    (void)manifest, (void)name;
    return NULL;
}

bool dmi_manifest_name_fits(const char *name)
{
    (void)name;
    return false;
}

char *dmi_manifest_file_name(const char *name, int number)
{
    (void)name, (void)number;
    return NULL;
}

uint64_t dmi_hash64(const void *data, int64_t bytes)
{
    (void)data, (void)bytes;
    return 0;
}

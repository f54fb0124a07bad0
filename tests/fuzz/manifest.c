/* Manifests of checkpoints: any bytes are an error, or a manifest that is written and read back as the same. What is read gets
 * its right hash, unless the first byte is '!'. */
#include "io/manifest.h"
#include "fuzz.h"
#include "io/hash.h"

#include <dmath/dmath.h>

/* Of the library only what reads manifests is here. */
const char *dm_version(void)
{
    return "0";
}

/* The bytes with their right hash, exactly as long. */
static char *whole(const uint8_t *data, size_t size, int64_t *bytes)
{
    *bytes = (int64_t)size - 1 + (data[0] == '!' ? 0 : DMI_MANIFEST_TAIL);
    char *text = malloc((size_t)*bytes), tail[DMI_MANIFEST_TAIL + 1];
    HOLDS(text);
    memcpy(text, data + 1, size - 1);
    if (data[0] != '!') {
        HOLDS(snprintf(tail, sizeof tail, DMI_MANIFEST_TAIL_FORMAT, dmi_hash64(data + 1, (int64_t)size - 1)) ==
              DMI_MANIFEST_TAIL);
        memcpy(text + size - 1, tail, DMI_MANIFEST_TAIL);
    }
    return text;
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
    int64_t bytes = 0;
    char *text = whole(data, size, &bytes), *written = NULL;
    dm_status status = dmi_manifest_parse("fuzz", text, bytes, &once);
    free(text);
    if (status != DM_OK) {
        HOLDS(dmi_error_text()[0] != 0);
        return 0;
    }
    HOLDS(dmi_manifest_text(&once, "again", &written, &bytes) == DM_OK);
    HOLDS(dmi_manifest_parse("again", written, bytes, &again) == DM_OK);
    free(written);
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

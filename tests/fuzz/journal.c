/* Journals: any text is an error, or calls that each succeed or are an error; the session goes on and ends. Each line gets
 * its right hash, so this is also a fuzzer of all public calls that journals keep, of the frames that they become, and
 * of the workers that read them: two, as threads. Calls that name files are left out. */
#include "api/replay.h"
#include "fuzz.h"

#include <dmath/dmath.h>
#include <inttypes.h>
#include <sys/mman.h>
#include <unistd.h>

static bool names_files(const char *line)
{
    static const char *const not[] = {"save", "load", "checkpoint", "trace", "journal"};
    size_t name = strcspn(line, " ");
    for (size_t i = 0; i < sizeof not / sizeof *not; i++) {
        const char *at = strstr(line, not[i]);
        if (at && at < line + name) {
            return true;
        }
    }
    return false;
}

static void put_line(FILE *to, const char *line)
{
    fprintf(to, "%s ~%08" PRIx32 "\n", line, dmi_journal_hash(0, line, strlen(line)));
}

/* The first byte: '!' for a text as it is, else each line gets its hash. */
static int journal_of(const uint8_t *data, size_t size)
{
    char *text = exactly(data + 1, size - 1, 1), *rest = text;
    int file = memfd_create("journal", MFD_CLOEXEC);
    HOLDS(file >= 0);
    FILE *to = fdopen(dup(file), "w");
    HOLDS(to);
    if (data[0] == '!') {
        HOLDS(fwrite(text, 1, size - 1, to) == size - 1);
    } else {
        put_line(to, DMI_JOURNAL_HEAD "2");
        for (char *line; (line = strsep(&rest, "\n"));) {
            if (!names_files(line)) {
                put_line(to, line);
            }
        }
    }
    HOLDS(fclose(to) == 0);
    free(text);
    return file;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static FILE *nowhere;
    char path[64];
    if (size == 0 || (data[0] == '!' && memmem(data, size, "save", 4))) {
        return 0;
    }
    nowhere = nowhere ? nowhere : fopen("/dev/null", "w");
    HOLDS(nowhere);
    dm_config config = {.size = sizeof config, .workers = 2, .options = "device=cpu,log=error,memory_limit=16M,slab=1M,watchdog_s=5"};
    dm_session *s = NULL;
    HOLDS(dm_init(&config, &s) == DM_OK);
    int file = journal_of(data, size);
    snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    dm_status status = dmi_replay_run(s, path, nowhere);
    HOLDS(status != DM_ERR_TIMEOUT && status != DM_ERR_INTERNAL);
    HOLDS(status == DM_OK || dm_error_message()[0]);
    close(file);
    int64_t alive = 0;
    status = dm_finalize(s, &alive);
    HOLDS(status != DM_ERR_TIMEOUT);
    return 0;
}

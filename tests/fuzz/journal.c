/* Journals: any text is an error, or calls that each succeed or are an error; the session goes on and ends.
 * Each line gets its right hash, so this is also a fuzzer of all public calls that journals keep, of the frames
 * that they become, and of the workers that read them: two, as threads. Calls that name files are left out.
 *
 * A session serves many inputs, for its start takes longer than most of them. What an input leaves open is
 * ended behind it; a session with arrays that nothing names any more, or with something wrong, ends and is
 * followed by a new one. */
#include "api/replay.h"
#include "fuzz.h"
#include "master/session.h"

#include <dmath/dmath.h>
#include <dmath/group.h>
#include <dmath/program.h>
#include <inttypes.h>

enum { INPUTS_OF_A_SESSION = 500 };

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
static char *journal_of(const uint8_t *data, size_t size, size_t *bytes)
{
    char *text = exactly(data + 1, size - 1, 1), *rest = text, *out = NULL;
    FILE *to = open_memstream(&out, bytes);
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
    return out;
}

static dm_session *session;

static void end_session(void)
{
    int64_t alive = 0;
    if (session) {
        HOLDS(dm_finalize(session, &alive) != DM_ERR_TIMEOUT);
        session = NULL;
    }
}

static void begin_session(void)
{
    dm_config config = {.size = sizeof config,
                        .workers = 2,
                        .options = "device=cpu,log=error,memory_limit=16M,slab=1M,watchdog_s=5"};
    if (!session) {
        HOLDS(dm_init(&config, &session) == DM_OK);
    }
}

/* Ends what a journal may leave open. Is the session then as good as new? */
static bool tidy(void)
{
    dmi_session *s = NULL;
    char *text = NULL;
    (void)!dm_program_end(session, NULL);
    if (dm_explain_end(session, &text) == DM_OK) {
        free(text);
    }
    while (dm_scope_end(session, NULL, 0) == DM_OK) {
    }
    while (dm_group_end(session) == DM_OK) {
    }
    return dm_sync(session) == DM_OK && dmi_enter(session, &s) == DM_OK && s->alive == 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static FILE *nowhere;
    static int inputs;
    if (size == 0 || (data[0] == '!' && memmem(data, size, "save", 4))) {
        return 0;
    }
    if (!nowhere) {
        HOLDS((nowhere = fopen("/dev/null", "w")) && atexit(end_session) == 0);
    }
    begin_session();
    size_t bytes = 0;
    char *journal = journal_of(data, size, &bytes);
    FILE *from = fmemopen(journal, bytes ? bytes : 1, "r"); /* of no bytes there is none */
    HOLDS(from && dm_scope_begin(session) == DM_OK);
    dm_status status = dmi_replay_from(session, from, "fuzz", nowhere);
    HOLDS(status != DM_ERR_TIMEOUT && status != DM_ERR_INTERNAL);
    HOLDS(status == DM_OK || dm_error_message()[0]);
    fclose(from);
    free(journal);
    if (!tidy() || ++inputs % INPUTS_OF_A_SESSION == 0) {
        end_session();
    }
    return 0;
}

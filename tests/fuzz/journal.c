/* Journals: any text is an error, or calls that each succeed or are an error; the session goes on and ends.
 * Each line gets its right hash. Of all inputs every line is read and checked (journal_read.c). Of one in
 * EVERY, which its bytes choose, the calls are made, too: so this is also a fuzzer of all public calls that
 * journals keep, of the frames that they become, and of the workers that read them: two, as threads. That takes
 * a hundred times as long. DMATH_FUZZ_EVERY=1 makes the calls of all. Calls that name files are left out.
 *
 * A session serves many inputs, for its start takes longer than most of them. What an input leaves open is
 * ended behind it; a session with arrays that nothing names any more, or with something wrong, ends and is
 * followed by a new one. */
#include "fuzz.h"
#include "journal_read.h"

#include <dmath/dmath.h>
#include <dmath/group.h>
#include <dmath/program.h>
#include <inttypes.h>

enum { INPUTS_OF_A_SESSION = 500, EVERY = 256 };

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

/* --- the session whose arrays journals are read with --- */

static dm_session *shelf_session;
static journal_shelf shelf;

static void end_shelf(void)
{
    HOLDS(dm_finalize(shelf_session, &(int64_t){0}) == DM_OK);
}

static void begin_shelf(void)
{
    dm_config config = {.size = sizeof config, .workers = 2, .options = "device=cpu,log=error,slab=1M"};
    static const struct {
        dm_dtype dtype;
        int ndim;
        int64_t shape[3];
    } array[JOURNAL_ARRAYS] = {{DM_F64, 2, {4, 3}}, {DM_I32, 1, {5}}, {DM_BF16, 3, {2, 1, 2}}};
    HOLDS(dm_init(&config, &shelf_session) == DM_OK && atexit(end_shelf) == 0);
    for (int i = 0; i < JOURNAL_ARRAYS; i++) {
        HOLDS(dm_array_create(shelf_session, array[i].dtype, array[i].ndim, array[i].shape, NULL,
                              &shelf.array[i]) == DM_OK);
        HOLDS(dm_fill(shelf_session, shelf.array[i], 1) == DM_OK);
    }
    HOLDS(dm_program_begin(shelf_session) == DM_OK && dm_fill(shelf_session, shelf.array[0], 2) == DM_OK &&
          dm_program_end(shelf_session, &shelf.program) == DM_OK);
    HOLDS(dm_group_create(shelf_session, (int[]){1}, 1, &shelf.group) == DM_OK);
    HOLDS(dm_sync(shelf_session) == DM_OK);
    journal_shelf_now = &shelf;
}

/* --- an input --- */

typedef dm_status replay(dm_session *session, FILE *from, const char *path, FILE *to);

static void run(replay *how, dm_session *with, char *journal, size_t bytes)
{
    static FILE *nowhere;
    HOLDS(nowhere || (nowhere = fopen("/dev/null", "w")));
    FILE *from = fmemopen(journal, bytes ? bytes : 1, "r"); /* of no bytes there is none */
    HOLDS(from);
    dm_status status = how(with, from, "fuzz", nowhere);
    HOLDS(status != DM_ERR_TIMEOUT && status != DM_ERR_INTERNAL);
    HOLDS(status == DM_OK || dm_error_message()[0]);
    fclose(from);
}

static void make_calls(char *journal, size_t bytes)
{
    static int inputs;
    HOLDS(inputs > 0 || atexit(end_session) == 0);
    begin_session();
    HOLDS(dm_scope_begin(session) == DM_OK);
    run(dmi_replay_from, session, journal, bytes);
    if (!tidy() || ++inputs % INPUTS_OF_A_SESSION == 0) {
        end_session();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static unsigned every;
    if (!every) {
        const char *given = getenv("DMATH_FUZZ_EVERY");
        every = given ? (unsigned)atoi(given) : EVERY;
        HOLDS(every > 0);
        begin_shelf();
    }
    if (size == 0) {
        return 0;
    }
    size_t bytes = 0;
    char *journal = journal_of(data, size, &bytes);
    run(journal_read_from, shelf_session, journal, bytes);
    if (dmi_journal_hash(0, data, size) % every == 0 && !(data[0] == '!' && memmem(data, size, "save", 4))) {
        make_calls(journal, bytes);
    }
    free(journal);
    return 0;
}

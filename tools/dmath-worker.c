/* dmath-worker: serves a master that runs another program.
 *
 *     mpirun -n 1 ./program : -n 8 dmath-worker [--load ops.so]
 *
 * On a rank other than 0 dm_init does not return; where it does, this program was started the wrong way. */
#include <dmath/dmath.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int usage(void)
{
    fputs("usage: dmath-worker [--load ops.so]...\n"
          "--load: a shared object whose function `void dmath_ops(void)` calls dm_register; as "
          "DMATH_LOAD=a.so:b.so\n",
          stderr);
    return 2;
}

/* Adds a path to DMATH_LOAD, from which dm_init takes it. */
static int add_load(const char *path)
{
    const char *before = getenv("DMATH_LOAD");
    size_t room = strlen(path) + (before ? strlen(before) : 0) + 2;
    char *list = malloc(room);
    if (!list) {
        return -1;
    }
    snprintf(list, room, "%s%s%s", before ? before : "", before && *before ? ":" : "", path);
    int result = setenv("DMATH_LOAD", list, 1);
    free(list);
    return result;
}

int main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--load") != 0 || i + 1 == argc) {
            return usage();
        }
        if (add_load(argv[++i]) != 0) {
            fputs("dmath-worker: no memory\n", stderr);
            return 2;
        }
    }
    dm_session *session = NULL;
    dm_status status = dm_init(NULL, &session);
    if (status == DM_OK) {
        fprintf(stderr, "dmath-worker: started alone or as rank 0; start it beside a master: "
                        "mpirun -n 1 ./program : -n P dmath-worker\n");
        status = dm_finalize(session, NULL);
    }
    if (status != DM_OK) {
        fprintf(stderr, "dmath-worker: %s: %s\n", dm_status_name(status), dm_error_message());
    }
    return 2;
}

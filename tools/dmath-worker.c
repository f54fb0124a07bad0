/* dmath-worker: serves a master that runs another program.
 *
 *     mpirun -n 1 ./program : -n 8 dmath-worker
 *
 * On a rank other than 0 dm_init does not return; where it does, this program was started the wrong way. */
#include <dmath/dmath.h>
#include <stdio.h>

int main(void)
{
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

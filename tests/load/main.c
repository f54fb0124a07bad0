/* Uses what tests/load/ops.c registers; contains none of it itself.
 *   load_main                 the functions come from DMATH_LOAD, on all ranks
 *   load_main OBJECT          this rank takes them from an option of its own
 *   load_main - STATUS WORD   dm_init must fail with that status and a message with that word */
#include <dmath/check.h>
#include <string.h>

int main(int argc, char **argv)
{
    enum { N = 101 };
    char options[400] = "";
    double x[N];
    dm_session *s;
    dm_array a;
    dm_config config = DM_CONFIG_INIT;
    if (argc == 2) {
        snprintf(options, sizeof options, "load='%s'", argv[1]);
    }
    config.options = options;
    dm_status status = dm_init(&config, &s);
    if (argc == 4) {
        printf("%s: %s\n", dm_status_name(status), dm_error_message());
        return strcmp(dm_status_name(status), argv[2]) != 0 || !strstr(dm_error_message(), argv[3]);
    }
    DM_CHECK(status);
    for (int turn = 0; turn < 2; turn++) { /* a second session, where there may be one, loads nothing again */
        DM_CHECK(dm_vector(s, DM_F64, N, &a));
        DM_CHECK(dm_apply(s, "load_count_up", 1, &a, (int[]){DM_WRITE}, NULL, 0));
        DM_CHECK(dm_read(s, a, x));
        for (int i = 0; i < N; i++) {
            if (x[i] != i + 1) {
                printf("element %d is %g\n", i, x[i]);
                return 1;
            }
        }
        DM_CHECK(dm_array_destroy(s, a));
        DM_CHECK(dm_finalize(s, NULL));
        if (dm_init(&config, &s) != DM_OK) {
            break;
        }
    }
    return 0;
}

/* A job that works for ever, to be killed: kill_main <folder> <seed> [<seconds after which it ends all the
 * same>]. Every rank leaves its process id as job_main's do; rank 0 leaves the file "running" when it works,
 * with the number of calls so far. Products, transposes, sums, saves, a user function, waits, and time outside
 * of the library, in an order that the seed gives. Where calls are cancelled (option interrupt) it goes on. */
#include "job.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>

enum { SIDE = 300 };

static int crawl(const dm_task *task)
{
    double *x = task->block[0]->data;
    for (int64_t i = 0; task->blocks[0] > 0 && i < task->block[0]->extent[0]; i++) {
        x[i * task->block[0]->stride[0]] += 1;
    }
    usleep(20000);
    return 0;
}

static dm_array square(dm_session *s, dm_layout layout)
{
    dm_array a;
    OK(dm_array_create(s, DM_F64, 2, (int64_t[]){SIDE, SIDE}, &layout, &a));
    OK(dm_fill_uniform(s, a, 0, 1, 7));
    return a;
}

int main(int argc, char **argv)
{
    char path[300], save[300];
    if (argc < 3) {
        return 2;
    }
    leave_pid(argv[1]);
    snprintf(path, sizeof path, "%s/running", argv[1]);
    snprintf(save, sizeof save, "%s/saved.npy", argv[1]);
    srand((unsigned)atoi(argv[2]));
    bool own_workers = !getenv("DMATH_TEST_PLAIN"); /* else dmath-worker, which does not know the function */
    OK(own_workers ? dm_register("crawl", crawl) : DM_OK);
    alarm(argc > 3 ? (unsigned)atoi(argv[3]) : 60);
    dm_session *s = start("");
    dm_array a = square(s, dm_layout_rows(s)), b = square(s, dm_layout_cols(s)),
             c = square(s, dm_layout_cyclic(s, 0, 7)), sum;
    OK(dm_vector(s, DM_F64, SIDE, &sum));
    OK(dm_sync(s));
    int running = open(path, O_CREAT | O_WRONLY, 0600);
    for (int calls = 0;; calls++) {
        static double values[SIDE];
        char count[16];
        int digits = snprintf(count, sizeof count, "%d\n", calls);
        CHECK(pwrite(running, count, (size_t)digits, 0) == digits);
        dm_status status = DM_OK;
        switch (rand() % 8) {
        case 0:
            status = dm_transpose(s, a, b);
            break;
        case 1:
            status = dm_sum_dim(s, c, 0, sum);
            break;
        case 2:
            status = dm_array_save(s, c, save);
            break;
        case 3:
            status =
                own_workers ? dm_apply(s, "crawl", 1, &a, (int[]){DM_READWRITE}, NULL, 0) : dm_fill(s, a, 1);
            break;
        case 4:
            status = dm_read(s, sum, values);
            break;
        case 5:
            usleep(50000);
            break;
        default:
            status = dm_gemm(s, DM_N, DM_N, 1, a, b, 0, c);
        }
        if (status == DM_ERR_CANCELLED || status == DM_ERR_POISONED) {
            const dm_array all[] = {a, b, c, sum};
            for (int i = 0; i < 4; i++) { /* these may be cancelled, too */
                (void)!dm_fill(s, all[i], 1);
            }
        } else if (status != DM_OK) {
            fprintf(stderr, "returned: %s: %s\n", dm_status_name(status), dm_error_message());
            return 0; /* the job is a failure all the same */
        }
    }
}

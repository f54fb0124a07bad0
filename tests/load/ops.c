/* A shared object of a user's: functions for dm_apply. With TWICE it registers a name twice; with MANY five
 * others. */
#include <dmath/dmath.h>

void dmath_ops(void);

/* x[i] = i + 1, f64 of one dim */
static int count_up(const dm_task *task)
{
    for (int64_t b = 0; b < task->blocks[0]; b++) {
        const dm_block *block = &task->block[0][b];
        for (int64_t i = 0; i < block->extent[0]; i++) {
            ((double *)block->data)[i * block->stride[0]] = (double)(block->start[0] + i + 1);
        }
    }
    return 0;
}

static int nothing(const dm_task *task)
{
    return task->count;
}

void dmath_ops(void)
{
#ifdef MANY
    static const char *const names[] = {"load_a", "load_b", "load_c", "load_d", "load_e"};
    for (int i = 0; i < 5; i++) {
        (void)!dm_register(names[i], i % 2 ? nothing : count_up);
    }
#else
    (void)!dm_register("load_count_up", count_up);
    (void)!dm_register("load_nothing", nothing);
#endif
#ifdef TWICE
    (void)!dm_register("load_nothing", nothing);
#endif
}

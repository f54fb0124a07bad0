/* A program built with the headers of 0.1.0's first days (tests/abi/0.1.0), which runs with the library as it
 * is now. */
#include <dmath/dmath.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

_Static_assert(sizeof(dm_config) == 24, "these are not the headers of 0.1.0");

#define CHECK(call) check((call), #call)

static void check(dm_status status, const char *call)
{
    if (status != DM_OK) {
        printf("%s: %s: %s\n", call, dm_status_name(status), dm_error_message());
        exit(1);
    }
}

static void require(int truth, const char *what)
{
    if (!truth) {
        printf("not so: %s\n", what);
        exit(1);
    }
}

/* Memory of just the size of a structure, with a mark behind it. */
static void *marked(size_t size)
{
    unsigned char *memory = calloc(1, size + 8);
    require(memory != NULL, "there is memory");
    memcpy(memory, &size, sizeof size);
    memset(memory + size, 0xa5, 8);
    return memory;
}

static void release(void *memory, size_t size)
{
    for (int i = 0; i < 8; i++) {
        require(((unsigned char *)memory)[size + (size_t)i] == 0xa5, "nothing is written behind a structure");
    }
    free(memory);
}

static int double_it(const dm_task *task)
{
    for (int64_t b = 0; b < task->blocks[0]; b++) {
        const dm_block *block = &task->block[0][b];
        for (int64_t i = 0; i < block->extent[0]; i++) {
            for (int64_t j = 0; j < block->extent[1]; j++) {
                ((float *)block->data)[i * block->stride[0] + j * block->stride[1]] *= 2;
            }
        }
    }
    return 0;
}

int main(void)
{
    enum { M = 6, K = 5, N = 4 };
    dm_session *s;
    dm_array a, b, c;
    float got[M * N];
    CHECK(dm_register("double_it", double_it));
    dm_config *config = marked(sizeof *config);
    config->workers = 3;
    config->options = "plan_cache=100";
    CHECK(dm_init(config, &s));
    require(dm_workers(s) == 3, "there are three workers");
    release(config, sizeof *config);

    struct {
        dm_layout layout;
        unsigned char mark[64]; /* makers return the structure by value */
    } l;
    memset(&l, 0xa5, sizeof l);
    l.layout = dm_layout_cyclic(s, 0, 1);
    for (int i = 0; i < 64; i++) {
        require(l.mark[i] == 0xa5, "a maker writes a layout and no more");
    }
    const int64_t shape[] = {M, K}, result[] = {M, N};
    dm_layout rows = dm_layout_rows(s);
    CHECK(dm_array_create(s, DM_F32, 2, shape, &l.layout, &a));
    CHECK(dm_matrix(s, DM_F32, K, N, &b));
    CHECK(dm_array_create(s, DM_F32, 2, result, &rows, &c));
    CHECK(dm_fill(s, a, 1));
    CHECK(dm_fill(s, b, 3));
    dm_gemm_options *options = marked(sizeof *options);
    options->compute = DM_COMPUTE_F32;
    CHECK(dm_gemm_with(s, DM_N, DM_N, 1, a, b, 0, c, options));
    release(options, sizeof *options);
    CHECK(dm_apply(s, "double_it", 1, &c, (int[]){DM_READWRITE}, NULL, 0));
    CHECK(dm_array_read(s, c, NULL, NULL, got, 0));
    for (int i = 0; i < M * N; i++) {
        require(got[i] == 30, "the product is right");
    }

    dm_array_info *info = marked(sizeof *info);
    CHECK(dm_array_query(s, a, info));
    require(info->ndim == 2 && info->shape[1] == K && info->grid[0] == 3 && info->block[0] == 1,
            "info is right");
    release(info, sizeof *info);
    dm_counters *counters = marked(sizeof *counters);
    CHECK(dm_counters_get(s, 1, counters));
    require(counters->commands > 0 && counters->flops > 0, "there are counters");
    release(counters, sizeof *counters);
    dm_memory *memory = marked(sizeof *memory);
    CHECK(dm_memory_report(s, 1, memory));
    require(memory->arrays > 0 && memory->limit == 0, "there is memory in use");
    release(memory, sizeof *memory);
    require(dm_copy(s, a, DM_NO_ARRAY) == DM_ERR_HANDLE && *dm_error_message(), "errors are as they were");
    int64_t alive = 0;
    CHECK(dm_finalize(s, &alive));
    require(alive == 3, "three arrays were alive");
    return 0;
}

/* Parts of files against plain loops: geometries of all kinds on both sides, with gaps of all sizes, stretches
 * that go past the window and such that go through it, swapped bytes; and files that end too early. */
#include "io/file.h"
#include "support/cases.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { DIMS = 4, OFFSET = 80, MOST_RUNS = 4, MOST_ELEMENTS = 300000 };

typedef struct part_case {
    dmi_file_range part;
    dmi_run run[DIMS][MOST_RUNS];
    int64_t file_elements, memory_elements, elem;
    bool reading;
} part_case;

/* Runs along one dim in increasing order; one side counts on without holes where it is dense. Returns the
 * extents. */
static void random_runs(dmt_random *r, dmi_run *run, int64_t *count, int64_t most, bool holes,
                        int64_t extent[2])
{
    int64_t at[2] = {holes ? dmt_int(r, 0, 3) : 0, holes ? dmt_int(r, 0, 3) : 0};
    *count = holes ? dmt_int(r, 1, MOST_RUNS) : 1;
    for (int64_t i = 0; i < *count; i++) {
        int64_t len = dmt_int(r, 1, DMI_MAX(most / *count, 1));
        run[i] = (dmi_run){.a = at[0], .b = at[1], .len = len};
        for (int side = 0; side < 2; side++) {
            at[side] += len + (holes ? dmt_int(r, 0, dmt_chance(r, 20) ? 300 : 4) : 0);
        }
    }
    extent[0] = at[0] + (holes ? dmt_int(r, 0, 3) : 0);
    extent[1] = at[1] + (holes ? dmt_int(r, 0, 3) : 0);
}

/* Strides of a dense array with dims in a random order (most often the given one). */
static int64_t random_strides(dmt_random *r, int ndim, int64_t (*extent)[2], int side, int64_t *stride)
{
    int order[DIMS] = {0, 1, 2, 3};
    int64_t total = 1;
    if (dmt_chance(r, 35)) {
        dmt_shuffle(r, ndim, order);
    }
    for (int k = ndim - 1; k >= 0; k--) {
        stride[order[k]] = total;
        total *= extent[order[k]][side];
    }
    return total;
}

static void make_part(dmt_random *r, part_case *c)
{
    static const dm_dtype types[] = {DM_F64, DM_F32, DM_BF16, DM_U8};
    int64_t extent[DIMS][2];
    dmi_copy *g = &c->part.geometry;
    memset(c, 0, sizeof *c);
    g->ndim = (int)dmt_int(r, 0, DIMS);
    g->src_dtype = g->dst_dtype = types[dmt_int(r, 0, 3)];
    g->count = 1;
    bool large = dmt_chance(r, 30);
    for (int d = 0; d < g->ndim; d++) {
        int64_t most = d == g->ndim - 1 && large ? 60000 : g->ndim > 2 ? 9 : 40, n = 0;
        random_runs(r, c->run[d], &g->nrun[d], most, dmt_chance(r, 50), extent[d]);
        g->run[d] = c->run[d];
        for (int64_t i = 0; i < g->nrun[d]; i++) {
            n += c->run[d][i].len;
        }
        g->count *= n;
    }
    int64_t of[2] = {random_strides(r, g->ndim, extent, 0, g->src_stride),
                     random_strides(r, g->ndim, extent, 1, g->dst_stride)};
    g->src_offset = dmt_int(r, 0, 5);
    g->dst_offset = dmt_int(r, 0, 5);
    c->reading = dmt_chance(r, 50);
    c->elem = dmi_dtype_bytes(g->src_dtype);
    c->file_elements = (c->reading ? of[0] + g->src_offset : of[1] + g->dst_offset) + dmt_int(r, 0, 3);
    c->memory_elements = (c->reading ? of[1] + g->dst_offset : of[0] + g->src_offset) + dmt_int(r, 0, 3);
    c->part.data_offset = OFFSET;
    c->part.swap = c->reading && dmt_chance(r, 30);
}

/* What the part says, element by element. */
static void move_plainly(const part_case *c, char *file, char *memory, int d, int64_t src, int64_t dst)
{
    const dmi_copy *g = &c->part.geometry;
    if (d < g->ndim) {
        for (int64_t r = 0; r < g->nrun[d]; r++) {
            for (int64_t i = 0; i < g->run[d][r].len; i++) {
                move_plainly(c, file, memory, d + 1, src + (g->run[d][r].a + i) * g->src_stride[d],
                             dst + (g->run[d][r].b + i) * g->dst_stride[d]);
            }
        }
        return;
    }
    char *f = file + (c->reading ? src : dst) * c->elem, *m = memory + (c->reading ? dst : src) * c->elem;
    for (int64_t k = 0; k < c->elem; k++) {
        char *to = c->reading ? m : f;
        to[k] = (c->reading ? f : m)[c->part.swap ? c->elem - 1 - k : k];
    }
}

static void put_file(const char *path, const char *bytes, int64_t count)
{
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(bytes, 1, (size_t)count, f), count);
    assert_int_equal(fclose(f), 0);
}

static void get_file(const char *path, char *bytes, int64_t count)
{
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    assert_int_equal(fread(bytes, 1, (size_t)count, f), count);
    assert_int_equal(fgetc(f), EOF);
    fclose(f);
}

static const char path[] = "test_file.bin";

static void test_parts(void **state)
{
    (void)state;
    static part_case c;
    for (int64_t i = 0; i < dmt_case_count(1500); i++) {
        dmt_random r;
        dmt_random_start(&r, dmt_seed_of("file", 0, i));
        do {
            make_part(&r, &c);
        } while (DMI_MAX(c.file_elements, c.memory_elements) > MOST_ELEMENTS);
        int64_t file_bytes = OFFSET + c.file_elements * c.elem, memory_bytes = c.memory_elements * c.elem;
        char *file = malloc((size_t)file_bytes), *got = malloc((size_t)file_bytes);
        char *memory = malloc((size_t)memory_bytes + 1), *want = malloc((size_t)memory_bytes + 1);
        for (int64_t k = 0; k < file_bytes; k++) {
            file[k] = (char)dmt_bits(&r);
        }
        for (int64_t k = 0; k < memory_bytes; k++) {
            memory[k] = want[k] = (char)dmt_bits(&r);
        }
        put_file(path, file, file_bytes);
        dm_status status =
            c.reading ? dmi_file_read(&c.part, path, memory) : dmi_file_write(&c.part, path, memory);
        if (status != DM_OK) {
            fail_msg("case %d: %s", (int)i, dmi_error_text());
        }
        move_plainly(&c, file + OFFSET, want, 0, c.part.geometry.src_offset, c.part.geometry.dst_offset);
        get_file(path, got, file_bytes);
        if (memcmp(memory, want, (size_t)memory_bytes) != 0 || memcmp(got, file, (size_t)file_bytes) != 0) {
            fail_msg("case %d: %s, %d dims, %d elements of %d bytes: wrong", (int)i,
                     c.reading ? "reading" : "writing", c.part.geometry.ndim, (int)c.part.geometry.count,
                     (int)c.elem);
        }
        free(file);
        free(got);
        free(memory);
        free(want);
    }
    unlink(path);
}

/* The end of a file comes inside a part: said, with the place; and a file that is not there, or may not be
 * read. */
static void test_short(void **state)
{
    (void)state;
    enum { COUNT = 100000, HAS = 70000 };
    dmi_run all = {.len = COUNT};
    dmi_file_range part = {.data_offset = OFFSET};
    part.geometry = (dmi_copy){.ndim = 1, .src_dtype = DM_U8, .dst_dtype = DM_U8, .count = COUNT};
    part.geometry.nrun[0] = 1;
    part.geometry.run[0] = &all;
    part.geometry.src_stride[0] = part.geometry.dst_stride[0] = 1;
    char *memory = calloc(2, COUNT);
    put_file(path, memory, OFFSET + HAS);
    for (int step = 1; step <= 2; step++) { /* past the window and through it */
        part.geometry.dst_stride[0] = step;
        assert_int_equal(dmi_file_read(&part, path, memory), DM_ERR_IO);
        assert_non_null(strstr(dmi_error_text(), "ends early"));
        assert_non_null(strstr(dmi_error_text(), path));
    }
    unlink(path);
    assert_int_equal(dmi_file_read(&part, path, memory), DM_ERR_IO);
    assert_int_equal(dmi_file_write(&part, path, memory), DM_ERR_IO);
    assert_non_null(strstr(dmi_error_text(), path));
    if (access("/dev/full", W_OK) == 0) {
        part.geometry.dst_stride[0] = 1;
        assert_int_equal(dmi_file_write(&part, "/dev/full", memory), DM_ERR_IO);
        assert_non_null(strstr(dmi_error_text(), "/dev/full: writing"));
    }
    free(memory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_parts), cmocka_unit_test(test_short)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* A program that saves one generation after the other, and knows every byte of each: ckpt_main save FOLDER
 * COUNT, which goes on from the newest and says when one is on the disk; ckpt_main load FOLDER..., which says
 * for each the generation that is there. With CKPT_SMALL the arrays are small. With CKPT_ARRAY it saves no
 * checkpoint, but an array alone, into FOLDER/array.npy. */
#include <dmath/check.h>
#include <dmath/dmath.h>

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ARRAYS = 3, MOST = 3 << 20 };
static const char *const names[ARRAYS] = {"weights", "bias", "bytes"};
static const dm_dtype dtypes[ARRAYS] = {DM_F32, DM_F64, DM_U8};
static int64_t shapes[ARRAYS][2] = {{37, 211}, {1, 501}, {3, 1 << 20}};
static dm_array array[ARRAYS];
static unsigned char host[MOST];

static int64_t bytes_of(int i)
{
    return shapes[i][0] * shapes[i][1] * dm_dtype_bytes(dtypes[i]);
}

static unsigned char byte_of(int64_t generation, int i, int64_t at)
{
    uint64_t x = (uint64_t)generation * 1000003u + (uint64_t)i * 7919u + (uint64_t)at;
    x = (x ^ x >> 31) * 0x9e3779b97f4a7c15u;
    return (unsigned char)(x >> 56);
}

static void fill_host(int64_t generation, int i)
{
    for (int64_t k = 0; k < bytes_of(i); k++) {
        host[k] = byte_of(generation, i, k);
    }
}

static void take_items(dm_checkpoint_item *items, int64_t *generation)
{
    for (int i = 0; i < ARRAYS; i++) {
        items[i] = (dm_checkpoint_item)DM_KEEP_ARRAY(names[i], array[i]);
    }
    items[ARRAYS] = (dm_checkpoint_item)DM_KEEP_VALUE("generation", generation);
}

/* The generation of the newest checkpoint, all of whose bytes are right; 0: there is none. */
static int64_t load(dm_session *s, const char *folder)
{
    int64_t generation = 0;
    dm_checkpoint_item items[ARRAYS + 1];
    take_items(items, &generation);
    dm_status status = dm_checkpoint_load(s, folder, ARRAYS + 1, items);
    if (status == DM_ERR_IO && strstr(dm_error_message(), "here is no checkpoint")) {
        return 0;
    }
    if (status == DM_ERR_IO && access(folder, F_OK) != 0) {
        return 0;
    }
    if (status != DM_OK) {
        fprintf(stderr, "%s: %s\n", folder, dm_error_message());
        exit(3);
    }
    for (int i = 0; i < ARRAYS; i++) {
        DM_CHECK(dm_array_read(s, array[i], NULL, NULL, host, 0));
        for (int64_t k = 0; k < bytes_of(i); k++) {
            if (host[k] != byte_of(generation, i, k)) {
                fprintf(stderr, "%s: generation %lld: byte %lld of %s is wrong\n", folder,
                        (long long)generation, (long long)k, names[i]);
                exit(3);
            }
        }
    }
    return generation;
}

/* The array that is saved alone: the generation, then bytes that follow from it. */
enum { ALONE = 2 };
static void fill_alone(int64_t generation)
{
    fill_host(generation, ALONE);
    memcpy(host, &generation, sizeof generation);
}

static int64_t load_alone(dm_session *s, const char *folder)
{
    static unsigned char there[MOST];
    int64_t generation = 0;
    char path[4096];
    dm_array x;
    snprintf(path, sizeof path, "%s/array.npy", folder);
    if (access(path, F_OK) != 0) {
        return 0;
    }
    if (dm_array_load(s, path, NULL, &x) != DM_OK) {
        fprintf(stderr, "%s: %s\n", path, dm_error_message());
        exit(3);
    }
    DM_CHECK(dm_array_read(s, x, NULL, NULL, there, 0));
    DM_CHECK(dm_array_destroy(s, x));
    memcpy(&generation, there, sizeof generation);
    fill_alone(generation);
    if (memcmp(host, there, (size_t)bytes_of(ALONE)) != 0) {
        fprintf(stderr, "%s: generation %lld: bytes are wrong\n", path, (long long)generation);
        exit(3);
    }
    return generation;
}

static void say(const char *text, int64_t generation)
{
    char line[64];
    int n = snprintf(line, sizeof line, "%s %lld\n", text, (long long)generation);
    if (write(STDOUT_FILENO, line, (size_t)n) != n) {
        exit(4);
    }
}

static void save(dm_session *s, const char *folder, int64_t generation)
{
    dm_checkpoint_item items[ARRAYS + 1];
    dm_checkpoint_options options = DM_CHECKPOINT_OPTIONS_INIT;
    dm_event event;
    options.keep = 2;
    for (int i = 0; i < ARRAYS; i++) {
        fill_host(generation, i);
        DM_CHECK(dm_array_write(s, array[i], NULL, NULL, host, 0));
    }
    take_items(items, &generation);
    DM_CHECK(dm_checkpoint_save(s, folder, ARRAYS + 1, items, &options, &event));
    for (int i = 0; i < ARRAYS; i++) { /* the program goes on */
        DM_CHECK(dm_fill(s, array[i], 1));
    }
    DM_CHECK(dm_event_wait(s, event, -1));
    say("saved", generation);
}

static void save_alone(dm_session *s, const char *folder, int64_t generation)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/array.npy", folder);
    fill_alone(generation);
    DM_CHECK(dm_array_write(s, array[ALONE], NULL, NULL, host, 0));
    DM_CHECK(dm_array_save(s, array[ALONE], path));
    say("saved", generation);
}

int main(int argc, char **argv)
{
    dm_session *s;
    bool alone = getenv("CKPT_ARRAY") != NULL;
    if (argc < 3) {
        return 2;
    }
    if (getenv("CKPT_SMALL")) {
        shapes[0][0] = 3;
        shapes[0][1] = 5;
        shapes[1][1] = 2;
        shapes[2][1] = 7;
    }
    DM_CHECK(dm_init(NULL, &s));
    for (int i = 0; i < ARRAYS; i++) {
        dm_layout cols = dm_layout_cols(s), rows = dm_layout_rows(s);
        DM_CHECK(dm_array_create(s, dtypes[i], 2, shapes[i], i == 1 ? &cols : &rows, &array[i]));
    }
    if (strcmp(argv[1], "save") == 0) {
        int64_t generation = (alone ? load_alone : load)(s, argv[2]);
        for (int i = 0; argc > 3 && i < atoi(argv[3]); i++) {
            (alone ? save_alone : save)(s, argv[2], ++generation);
        }
    } else {
        for (int i = 2; i < argc; i++) {
            say("generation", (alone ? load_alone : load)(s, argv[i]));
        }
    }
    for (int i = 0; i < ARRAYS; i++) {
        DM_CHECK(dm_array_destroy(s, array[i]));
    }
    DM_CHECK(dm_finalize(s, NULL));
    return 0;
}

/* Sorts many keys in place and checks what comes: in order, the same keys as before, and found where they are.
 *   large_sort [keys [type [descending [seconds]]]]
 * type: u8 (default), i8, bool, f8e5m2, bf16, f32. keys: default 2^32 + 12345. Workers and options: the
 * environment. Status: 0; 1: a check failed; 2: wrong usage; 77: the machine has too little free memory. After
 * `seconds` (default 3600) the program ends by SIGALRM. It makes and counts its keys itself, and knows nothing
 * of how they are sorted. */
#include <dmath/check.h>
#include <dmath/dmath.h>
#include <dmath/order.h>

#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PIECE = 1 << 24, SPARE = 512 << 20 };

typedef struct kind {
    const char *name;
    dm_dtype dtype;
    int bytes;
} kind;

static const kind kinds[] = {{"u8", DM_U8, 1},         {"i8", DM_I8, 1},     {"bool", DM_BOOL, 1},
                             {"f8e5m2", DM_F8E5M2, 1}, {"bf16", DM_BF16, 2}, {"f32", DM_F32, 4}};

/* Of all keys: how many there are of each of up to 16 bits, and two sums over all, whatever their order. */
typedef struct tally {
    int64_t count[1 << 16];
    uint64_t sum, squares;
} tally;

static uint64_t next(uint64_t *state)
{
    uint64_t x = *state += UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

static uint32_t bits_at(const kind *k, const void *keys, int64_t i)
{
    return k->bytes == 1   ? ((const uint8_t *)keys)[i]
           : k->bytes == 2 ? ((const uint16_t *)keys)[i]
                           : ((const uint32_t *)keys)[i];
}

static double value_of(const kind *k, uint32_t bits)
{
    float f;
    if (k->dtype == DM_U8 || k->dtype == DM_BOOL) {
        return bits;
    }
    if (k->dtype == DM_I8) {
        return bits < 128 ? (double)bits : (double)bits - 256;
    }
    if (k->dtype == DM_F8E5M2) { /* a sign, five bits of exponent, two of fraction */
        int exponent = (int)(bits >> 2 & 31), fraction = (int)(bits & 3);
        double size = exponent == 31  ? (fraction ? (double)NAN : (double)INFINITY)
                      : exponent == 0 ? ldexp(fraction, -16)
                                      : ldexp(4 + fraction, exponent - 17);
        return bits & 128 ? -size : size;
    }
    bits <<= k->bytes == 2 ? 16 : 0;
    memcpy(&f, &bits, sizeof f);
    return f;
}

static void add(const kind *k, tally *t, uint32_t bits)
{
    uint64_t state = bits, mixed = next(&state);
    t->count[k->bytes < 4 ? bits : bits >> 16]++;
    t->sum += mixed;
    t->squares += mixed * mixed;
}

static void make(const kind *k, uint64_t *state, void *keys, int64_t n, tally *t)
{
    for (int64_t i = 0; i < n; i++) {
        uint32_t bits = (uint32_t)(next(state) >> 20);
        if (k->bytes == 1) {
            bits = k->dtype == DM_BOOL ? bits & 1 : bits & 255;
            ((uint8_t *)keys)[i] = (uint8_t)bits;
        } else if (k->bytes == 2) {
            ((uint16_t *)keys)[i] = (uint16_t)(bits &= 0xffff);
        } else {
            ((uint32_t *)keys)[i] = bits;
        }
        add(k, t, bits);
    }
}

/* Is b allowed behind a? NaN is the largest. */
static bool in_order(double a, double b, bool descending)
{
    double low = descending ? b : a, high = descending ? a : b;
    return isnan(high) || low <= high;
}

/* The sorted keys, piece by piece. */
static bool check_keys(dm_session *s, const kind *k, dm_array x, int64_t n, bool descending, void *piece,
                       tally *t)
{
    double last = 0;
    for (int64_t at = 0; at < n; at += PIECE) {
        int64_t count = n - at < PIECE ? n - at : PIECE;
        DM_CHECK(dm_array_read(s, x, &at, &count, piece, 0));
        for (int64_t i = 0; i < count; i++) {
            uint32_t bits = bits_at(k, piece, i);
            double v = value_of(k, bits);
            if (at + i > 0 && !in_order(last, v, descending)) {
                printf("key %" PRId64 " is %g, behind %g\n", at + i, v, last);
                return false;
            }
            last = v;
            add(k, t, bits);
        }
    }
    return true;
}

/* Of integers in ascending order: where each of 256 values begins and ends. */
static bool check_places(dm_session *s, const kind *k, dm_array x, const tally *t)
{
    const int64_t n = 256;
    uint8_t values[256];
    int64_t place[256], before = 0;
    dm_array v, out;
    DM_CHECK(dm_array_create(s, k->dtype, 1, &n, NULL, &v));
    DM_CHECK(dm_array_create(s, DM_I64, 1, &n, NULL, &out));
    for (int i = 0; i < n; i++) {
        values[i] = (uint8_t)(k->dtype == DM_I8 ? i - 128 : i);
    }
    DM_CHECK(dm_array_write(s, v, NULL, NULL, values, 0));
    bool fine = true;
    for (int right = 0; right < 2 && fine; right++) {
        DM_CHECK(dm_searchsorted(s, x, v, right, out));
        DM_CHECK(dm_array_read(s, out, NULL, NULL, place, 0));
        before = 0;
        for (int i = 0; i < n && fine; i++) {
            int64_t want = before + (right ? t->count[values[i]] : 0);
            fine = place[i] == want;
            if (!fine) {
                printf("value %d is found at %" PRId64 ", not %" PRId64 "\n", i, place[i], want);
            }
            before += t->count[values[i]];
        }
    }
    DM_CHECK(dm_array_destroy(s, v));
    DM_CHECK(dm_array_destroy(s, out));
    return fine;
}

/* The keys, sorted parts of them and what comes to each worker, and buffers for sorting: two, or one for keys
 * of one byte. One worker needs no parts. */
static int64_t bytes_needed(const kind *k, int64_t n, int workers)
{
    return n * k->bytes * ((workers > 1 ? 3 : 1) + (k->bytes == 1 ? 1 : 2)) + SPARE;
}

static bool enough_memory(int64_t bytes)
{
    char line[128];
    long long kib = 0;
    FILE *f = fopen("/proc/meminfo", "r");
    while (f && fgets(line, sizeof line, f) && sscanf(line, "MemAvailable: %lld", &kib) != 1) {
    }
    if (f) {
        fclose(f);
    }
    return kib == 0 || kib * 1024 > bytes;
}

static bool run(dm_session *s, const kind *k, int64_t n, bool descending)
{
    dm_array x;
    uint64_t state = 20261126;
    void *piece = malloc((size_t)PIECE * (size_t)k->bytes);
    tally *before = calloc(2, sizeof *before), *after = before + 1;
    if (!piece || !before) {
        printf("no memory\n");
        free(piece);
        free(before);
        return false;
    }
    DM_CHECK(dm_array_create(s, k->dtype, 1, &n, NULL, &x));
    for (int64_t at = 0; at < n; at += PIECE) {
        int64_t count = n - at < PIECE ? n - at : PIECE;
        make(k, &state, piece, count, before);
        DM_CHECK(dm_array_write(s, x, &at, &count, piece, 0));
    }
    printf("%" PRId64 " keys of %s, %d workers%s: made\n", n, k->name, dm_workers(s),
           descending ? ", descending" : "");
    fflush(stdout);
    DM_CHECK(dm_sort(s, x, 0, descending, x));
    DM_CHECK(dm_sync(s));
    printf("sorted\n");
    fflush(stdout);
    bool fine = check_keys(s, k, x, n, descending, piece, after);
    if (fine && memcmp(before, after, sizeof *before) != 0) {
        printf("they are not the same keys as before\n");
        fine = false;
    }
    if (fine && !descending && (k->dtype == DM_U8 || k->dtype == DM_I8)) {
        fine = check_places(s, k, x, before);
    }
    DM_CHECK(dm_array_destroy(s, x));
    free(piece);
    free(before);
    return fine;
}

int main(int argc, char **argv)
{
    dm_session *s;
    const kind *k = NULL;
    int64_t n = argc > 1 ? strtoll(argv[1], NULL, 10) : (INT64_C(1) << 32) + 12345;
    long seconds = argc > 4 ? strtol(argv[4], NULL, 10) : 3600;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        k = strcmp(argc > 2 ? argv[2] : "u8", kinds[i].name) == 0 ? &kinds[i] : k;
    }
    if (!k || n < 1 || seconds < 1) {
        fprintf(stderr, "usage: large_sort [keys [u8|i8|bool|f8e5m2|bf16|f32 [descending [seconds]]]]\n");
        return 2;
    }
    alarm((unsigned)seconds);
    DM_CHECK(dm_init(NULL, &s));
    const int64_t bytes = bytes_needed(k, n, dm_workers(s));
    if (!enough_memory(bytes)) {
        printf("skipped: %" PRId64 " keys of %s need %" PRId64 " GiB of free memory\n", n, k->name,
               bytes >> 30);
        DM_CHECK(dm_finalize(s, NULL));
        return 77;
    }
    bool fine = run(s, k, n, argc > 3 && strcmp(argv[3], "0") != 0);
    DM_CHECK(dm_finalize(s, NULL));
    printf("%s\n", fine ? "all is as it must be" : "FAILED");
    return fine ? 0 : 1;
}

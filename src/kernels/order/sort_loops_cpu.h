/* Sorting of keys of one width, with places of one width. The file that includes this has defined KEY and PLACE
 * (unsigned types), BITS (of KEY), NAME(x) and PLACED(x). Radix sort from the lowest digit on: stable, and as
 * fast for any numbers. Digits that all keys share are skipped. Counts of keys have the type of places too. */

/* Places of keys beside them may be NULL: the keys alone are sorted then. */
static void PLACED(insertion)(KEY *key, PLACE *place, int64_t n)
{
    for (int64_t i = 1; i < n; i++) {
        KEY k = key[i];
        PLACE p = place ? place[i] : 0;
        int64_t j = i;
        for (; j > 0 && key[j - 1] > k; j--) {
            key[j] = key[j - 1];
            if (place) {
                place[j] = place[j - 1];
            }
        }
        key[j] = k;
        if (place) {
            place[j] = p;
        }
    }
}

/* One digit. begin: where each digit's keys go. */
static void PLACED(scatter)(const KEY *from, KEY *to, const PLACE *place, PLACE *place_to, int64_t n, int shift,
                            PLACE *begin)
{
    if (!place) {
        for (int64_t i = 0; i < n; i++) {
            to[begin[from[i] >> shift & 255]++] = from[i];
        }
        return;
    }
    for (int64_t i = 0; i < n; i++) {
        PLACE at = begin[from[i] >> shift & 255]++;
        to[at] = from[i];
        place_to[at] = place[i];
    }
}

/* Keys of one byte need no other buffer. */
static void PLACED(count_and_write)(KEY *key, int64_t n)
{
    PLACE count[256] = {0};
    for (int64_t i = 0; i < n; i++) {
        count[key[i] & 255]++;
    }
    for (int i = 0; i < 256; i++) {
        memset(key, i, count[i]);
        key += count[i];
    }
}

/* Sorts b->key (and b->place); what is sorted is there again. */
static void PLACED(sort)(keys *b, int64_t n)
{
    enum { DIGITS = BITS / 8 };
    PLACE count[DIGITS][256] = {{0}};
    KEY *key = b->key[0], *other = b->key[1];
    PLACE *place = b->place[0], *place_other = b->place[1];
    if (n <= FEW) {
        PLACED(insertion)(key, place, n);
        return;
    }
    if (DIGITS == 1 && !place) {
        PLACED(count_and_write)(key, n);
        return;
    }
    for (int64_t i = 0; i < n; i++) {
        for (int d = 0; d < DIGITS; d++) {
            count[d][key[i] >> 8 * d & 255]++;
        }
    }
    for (int d = 0; d < DIGITS; d++) {
        PLACE sum = 0;
        if ((int64_t)count[d][key[0] >> 8 * d & 255] == n) {
            continue;
        }
        for (int i = 0; i < 256; i++) {
            PLACE next = sum + count[d][i];
            count[d][i] = sum;
            sum = next;
        }
        PLACED(scatter)(key, other, place, place_other, n, 8 * d, count[d]);
        swap_buffers(b);
        key = b->key[0];
        other = b->key[1];
        place = b->place[0];
        place_other = b->place[1];
    }
}

/* Sorted runs i and i+1 together. */
static void PLACED(merge_two)(const keys *b, int64_t lo, int64_t middle, int64_t hi)
{
    const KEY *from = b->key[0];
    KEY *to = b->key[1];
    const PLACE *place = b->place[0];
    PLACE *place_to = b->place[1];
    int64_t i = lo, j = middle, k = lo;
    while (i < middle && j < hi) {
        bool second = from[j] < from[i];
        int64_t at = second ? j : i;
        to[k] = from[at];
        if (place) {
            place_to[k] = place[at];
        }
        k++;
        j += second;
        i += !second;
    }
    int64_t rest = i < middle ? i : j;
    memcpy(to + k, from + rest, (size_t)(hi - k) * sizeof *to);
    if (place) {
        memcpy(place_to + k, place + rest, (size_t)(hi - k) * sizeof *place);
    }
}

/* Sorted runs, pair by pair. run[runs + 1]: where they begin; it is used up. */
static void PLACED(merge)(keys *b, int runs, int64_t *run)
{
    while (runs > 1) {
        int made = 0;
        for (int r = 0; r < runs; r += 2) {
            PLACED(merge_two)(b, run[r], run[r + 1], run[DMI_MIN(r + 2, runs)]);
            run[made++] = run[r];
        }
        run[made] = run[runs];
        runs = made;
        swap_buffers(b);
    }
}

/* Keys and places of the candidates for the first `most` places, in the order in which they are. Returns how
 * many. */
static int64_t PLACED(select)(keys *b, int64_t n, int64_t most, PLACE *count)
{
    KEY *key = b->key[0];
    PLACE *place = b->place[0];
    int shift = BITS > 16 ? BITS - 16 : 0;
    int64_t sum = 0, made = 0;
    KEY last = 0;
    memset(count, 0, (1 << 16) * sizeof *count);
    for (int64_t i = 0; i < n; i++) {
        count[key[i] >> shift]++;
    }
    while ((sum += count[last]) < most) {
        last++;
    }
    for (int64_t i = 0; i < n; i++) {
        if (key[i] >> shift <= last) {
            key[made] = key[i];
            place[made++] = place[i];
        }
    }
    return made;
}

/* The elements at these places, count of them. */
static void PLACED(gather)(const void *places, const void *x, int64_t stride, int64_t count, void *to)
{
    const PLACE *place = places;
    const RAW *from = x;
    RAW *out = to;
    for (int64_t i = 0; i < count; i++) {
        out[i] = from[(int64_t)place[i] * stride];
    }
}

/* Sorts one row; what is sorted is in the first buffers. odd: see encode. */
static void PLACED(row)(sort_job *job, const void *x, int64_t stride, bool *odd)
{
    int64_t n = job->n;
    PLACE *place = job->keys.place[0];
    NAME(encode)(job, x, stride, odd);
    for (int64_t i = 0; i < n && place; i++) {
        place[i] = (PLACE)i;
    }
    if (job->d->runs > 0 && (place || BITS > 8)) {
        memcpy(job->run, job->d->run, ((size_t)job->d->runs + 1) * sizeof *job->run);
        PLACED(merge)(&job->keys, job->d->runs, job->run);
        return;
    }
    if (job->count) {
        n = PLACED(select)(&job->keys, n, job->d->most, job->count);
    }
    PLACED(sort)(&job->keys, n);
}

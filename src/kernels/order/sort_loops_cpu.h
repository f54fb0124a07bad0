/* Sorting of keys of one width. The file that includes this has defined KEY (an unsigned type), BITS and
 * NAME(x). Radix sort from the lowest digit on: stable, and as fast for any numbers. Digits that all keys share
 * are skipped. */

/* Places of keys beside them may be NULL: the keys alone are sorted then. */
static void NAME(insertion)(KEY *key, uint32_t *place, int64_t n)
{
    for (int64_t i = 1; i < n; i++) {
        KEY k = key[i];
        uint32_t p = place ? place[i] : 0;
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
static void NAME(scatter)(const KEY *from, KEY *to, const uint32_t *place, uint32_t *place_to, int64_t n,
                          int shift, uint32_t *begin)
{
    if (!place) {
        for (int64_t i = 0; i < n; i++) {
            to[begin[from[i] >> shift & 255]++] = from[i];
        }
        return;
    }
    for (int64_t i = 0; i < n; i++) {
        uint32_t at = begin[from[i] >> shift & 255]++;
        to[at] = from[i];
        place_to[at] = place[i];
    }
}

/* Sorts b->key (and b->place); what is sorted is there again. */
static void NAME(sort)(keys *b, int64_t n)
{
    enum { DIGITS = BITS / 8 };
    uint32_t count[DIGITS][256] = {{0}};
    KEY *key = b->key[0], *other = b->key[1];
    uint32_t *place = b->place[0], *place_other = b->place[1];
    if (n <= FEW) {
        NAME(insertion)(key, place, n);
        return;
    }
    for (int64_t i = 0; i < n; i++) {
        for (int d = 0; d < DIGITS; d++) {
            count[d][key[i] >> 8 * d & 255]++;
        }
    }
    for (int d = 0; d < DIGITS; d++) {
        uint32_t sum = 0;
        if (count[d][key[0] >> 8 * d & 255] == n) {
            continue;
        }
        for (int i = 0; i < 256; i++) {
            uint32_t next = sum + count[d][i];
            count[d][i] = sum;
            sum = next;
        }
        NAME(scatter)(key, other, place, place_other, n, 8 * d, count[d]);
        swap_buffers(b);
        key = b->key[0];
        other = b->key[1];
        place = b->place[0];
        place_other = b->place[1];
    }
}

/* Sorted runs i and i+1 together. */
static void NAME(merge_two)(const keys *b, int64_t lo, int64_t middle, int64_t hi)
{
    const KEY *from = b->key[0];
    KEY *to = b->key[1];
    const uint32_t *place = b->place[0];
    uint32_t *place_to = b->place[1];
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
static void NAME(merge)(keys *b, int runs, int64_t *run)
{
    while (runs > 1) {
        int made = 0;
        for (int r = 0; r < runs; r += 2) {
            NAME(merge_two)(b, run[r], run[r + 1], run[DMI_MIN(r + 2, runs)]);
            run[made++] = run[r];
        }
        run[made] = run[runs];
        runs = made;
        swap_buffers(b);
    }
}

/* Keys and places of the candidates for the first `most` places, in the order in which they are. Returns how
 * many. */
static int64_t NAME(select)(keys *b, int64_t n, int64_t most, uint32_t *count)
{
    KEY *key = b->key[0];
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
            b->place[0][made++] = b->place[0][i];
        }
    }
    return made;
}

/* Keys of n elements; *odd: some of them are zeros with a sign, or no numbers, of which the key does not say
 * all. */
static void NAME(encode)(const sort_job *job, const void *x, int64_t stride, bool *odd)
{
    const RAW *from = x;
    int64_t n = job->n;
    KEY *key = job->keys.key[0];
    const KEY top = (KEY)((KEY)1 << (BITS - 1)), flip = job->descending ? (KEY) ~(KEY)0 : 0;
    KEY strange = 0;
    *odd = false;
    if (job->kind != DMI_SORT_FLOAT) {
        KEY sign = job->kind == DMI_SORT_SIGNED ? top : 0;
        for (int64_t i = 0; i < n; i++) {
            key[i] = (KEY)(from[i * stride] ^ sign ^ flip);
        }
        return;
    }
    const KEY most = (KEY)job->most_bits;
    for (int64_t i = 0; i < n; i++) {
        KEY bits = from[i * stride], size = (KEY)(bits & (KEY)~top);
        KEY k = bits & top ? (KEY)(top - size) : (KEY)(bits | top); /* -0 as 0 */
        k = size > most ? (KEY) ~(KEY)0 : k;
        strange |= (KEY)(size > most) | (KEY)(bits == top);
        key[i] = (KEY)(k ^ flip);
    }
    *odd = strange != 0;
}

/* The first key that is not below `lo`. */
static int64_t NAME(find)(const KEY *key, int64_t n, KEY lo)
{
    int64_t from = 0;
    while (n > 0) {
        int64_t half = n / 2;
        if (key[from + half] < lo) {
            from += half + 1;
            n -= half + 1;
        } else {
            n = half;
        }
    }
    return from;
}

/* The elements of the keys, in their order. Zeros and NaNs are then put in the order in which x has them, for
 * their keys do not tell their bits. */
static void NAME(decode)(const sort_job *job, bool odd, const void *x, int64_t stride, void *to)
{
    const KEY *key = job->keys.key[0];
    const RAW *from = x;
    RAW *out = to;
    const KEY top = (KEY)((KEY)1 << (BITS - 1)), flip = job->descending ? (KEY) ~(KEY)0 : 0;
    const KEY sign = job->kind == DMI_SORT_SIGNED ? top : 0;
    int64_t n = job->n;
    if (job->kind != DMI_SORT_FLOAT) {
        for (int64_t i = 0; i < n; i++) {
            out[i] = (KEY)(key[i] ^ flip ^ sign);
        }
        return;
    }
    for (int64_t i = 0; i < n; i++) {
        KEY k = (KEY)(key[i] ^ flip);
        out[i] = k & top ? (KEY)(k ^ top) : (KEY)(top | (KEY)(top - k));
    }
    if (odd) {
        int64_t zero = NAME(find)(key, n, (KEY)(top ^ flip)),
                none = job->descending ? 0 : NAME(find)(key, n, (KEY) ~(KEY)0);
        for (int64_t i = 0; i < n; i++) {
            KEY bits = from[i * stride], size = (KEY)(bits & (KEY)~top);
            if (size == 0) {
                out[zero++] = bits;
            } else if (size > (KEY)job->most_bits) {
                out[none++] = bits;
            }
        }
    }
}

/* The elements at these places, count of them. */
static void NAME(gather)(const uint32_t *place, const void *x, int64_t stride, int64_t count, void *to)
{
    const RAW *from = x;
    RAW *out = to;
    for (int64_t i = 0; i < count; i++) {
        out[i] = from[place[i] * stride];
    }
}

/* Sorts one row; what is sorted is in the first buffers. odd: see encode. */
static void NAME(row)(sort_job *job, const void *x, int64_t stride, bool *odd)
{
    int64_t n = job->n;
    NAME(encode)(job, x, stride, odd);
    for (int64_t i = 0; i < n && job->keys.place[0]; i++) {
        job->keys.place[0][i] = (uint32_t)i;
    }
    if (job->d->runs > 0) {
        memcpy(job->run, job->d->run, ((size_t)job->d->runs + 1) * sizeof *job->run);
        NAME(merge)(&job->keys, job->d->runs, job->run);
        return;
    }
    if (job->count) {
        n = NAME(select)(&job->keys, n, job->d->most, job->count);
    }
    NAME(sort)(&job->keys, n);
}

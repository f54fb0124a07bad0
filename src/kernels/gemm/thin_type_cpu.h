/* The loops of thin_cpu.c for one type; included once for each, with
 *   REAL     the type
 *   NAME(x)  the name x of this type's function
 * Sums are written out lane by lane, so that both compilations of a loop give the same bits. */
typedef REAL NAME(vec) __attribute__((vector_size(THIN_VECTOR)));
typedef REAL NAME(vec_at) __attribute__((vector_size(THIN_VECTOR), aligned(sizeof(REAL)), may_alias));
enum { NAME(LANES) = THIN_VECTOR / sizeof(REAL) };
#define LOAD(p) (*(const NAME(vec_at) *)(p))

static inline void NAME(put)(const thin_tile *t, int64_t row, int64_t col, REAL sum)
{
    REAL *y = (REAL *)t->y + row * t->y_row + col * t->y_col;
    *y = t->beta == 0 ? (REAL)t->alpha * sum : (REAL)t->alpha * sum + (REAL)t->beta * *y;
}

/* The ends of the loops, compiled once for all of them: sums of vector lanes, and k from p. */
THIN_REST void NAME(put_dots)(const thin_tile *t, const REAL *lane, int64_t p, int R, int W)
{
    const REAL *a = (const REAL *)t->a + t->row * t->lda, *x = t->x;
    for (int i = 0; i < R * DMI_MIN(W, t->cols); i++) {
        REAL sum[4] = {0};
        int w = i / R, r = i % R;
        for (int l = 0; l < NAME(LANES); l++) {
            sum[l % 4] += lane[i * NAME(LANES) + l];
        }
        for (int64_t q = p; q < t->k; q++) {
            sum[q % 4] += a[r * t->lda + q] * x[w * t->ldx + q];
        }
        NAME(put)(t, t->row + r, w, (sum[0] + sum[1]) + (sum[2] + sum[3]));
    }
}

THIN_REST void NAME(put_rows)(const thin_tile *t, const REAL *sum, int R, int lanes)
{
    for (int r = 0; r < R; r++) {
        for (int64_t j = 0; j < DMI_MIN(t->cols, lanes); j++) {
            NAME(put)(t, t->row + r, j, sum[r * lanes + j]);
        }
    }
}

THIN_REST void NAME(take_x)(const thin_tile *t, int P, int W, REAL *x)
{
    for (int j = 0; j < P * W; j++) {
        bool filling = j / P >= t->cols;
        x[j] = filling ? 0 : ((const REAL *)t->x)[(t->at + j % P) * t->x_k + j / P * t->x_col];
    }
}

THIN_REST void NAME(add_rest)(const thin_tile *t, const REAL *x, int64_t i, int P, int W)
{
    const REAL *a = (const REAL *)t->a + t->at * t->lda;
    for (; i < t->rows; i++) {
        for (int j = 0; j < P * W; j++) {
            ((REAL *)t->sum)[j / P * t->lds + i] += a[j % P * t->lda + i] * x[j];
        }
    }
}

/* What is read THIN_AHEAD bytes after element `at` of a row of `count`: further on in the row, or in the row
 * `next` of the next group. The hardware prefetches less well: it stops at the end of a page, and not all rows
 * begin on one. */
static inline const REAL *NAME(soon)(const REAL *row, const REAL *next, int64_t at, int64_t count)
{
    int64_t far = at + DMI_MIN(THIN_AHEAD / (int64_t)sizeof(REAL), count);
    return far < count ? row + far : next + (far - count);
}

/* R rows of a, which lie along k, by W packed columns of x. */
DMI_BODY void NAME(dots)(thin_tile *t, const int R, const int W)
{
    enum { STEP = 2 * NAME(LANES) };
    const REAL *x = t->x;
    int64_t lda = t->lda, ldx = t->ldx, k = t->k;
    for (; t->row + R <= t->rows; t->row += R) {
        const REAL *a = (const REAL *)t->a + t->row * lda;
        const REAL *ahead = t->row + 2 * R <= t->rows ? a + R * lda : a;
        NAME(vec) s[THIN_SUMS];
        REAL lane[THIN_SUMS][NAME(LANES)];
        int64_t p = 0;
        UNROLL
        for (int i = 0; i < R * W; i++) {
            s[i] = (NAME(vec)){0};
        }
        for (; p + STEP <= k; p += STEP) {
            const REAL *soon = NAME(soon)(a, ahead, p, k);
            UNROLL
            for (int r = 0; r < R; r++) {
                __builtin_prefetch(soon + r * lda);
            }
            UNROLL
            for (int i = 0; i < 2 * R * W; i++) {
                int64_t at = p + i / (R * W) * NAME(LANES);
                s[i % (R * W)] += LOAD(a + i % R * lda + at) * LOAD(x + i / R % W * ldx + at);
            }
        }
        UNROLL
        for (int i = 0; i < R * W; i++) {
            memcpy(lane[i], &s[i], sizeof s[i]);
        }
        NAME(put_dots)(t, lane[0], p, R, W);
    }
}

/* R rows of a, which lie along k, by the columns of x in C vectors: a[r][p] times row p of x. */
DMI_BODY void NAME(rows)(thin_tile *t, const int R, const int C)
{
    enum { LINE = 64 / sizeof(REAL) };
    int64_t lda = t->lda;
    for (; t->row + R <= t->rows; t->row += R) {
        const REAL *a = (const REAL *)t->a + t->row * lda, *x = t->x;
        const REAL *ahead = t->row + 2 * R <= t->rows ? a + R * lda : a;
        NAME(vec) s[THIN_SUMS];
        REAL sum[THIN_SUMS * NAME(LANES)];
        UNROLL
        for (int i = 0; i < R * C; i++) {
            s[i] = (NAME(vec)){0};
        }
        for (int64_t p = 0; p < t->k; p++, x += C * NAME(LANES)) {
            if (p % LINE == 0) {
                const REAL *soon = NAME(soon)(a, ahead, p, t->k);
                UNROLL
                for (int r = 0; r < R; r++) {
                    __builtin_prefetch(soon + r * lda);
                }
            }
            UNROLL
            for (int i = 0; i < R * C; i++) {
                s[i] += a[i / C * lda + p] * LOAD(x + i % C * NAME(LANES));
            }
        }
        UNROLL
        for (int i = 0; i < R * C; i++) {
            memcpy(sum + i * NAME(LANES), &s[i], sizeof s[i]);
        }
        NAME(put_rows)(t, sum, R, C * NAME(LANES));
    }
}

/* sum[w][i] += a[p][i] * x[p][w], P indices of k at a time, W columns. */
DMI_BODY void NAME(adds)(thin_tile *t, const int P, const int W)
{
    enum { LINE = 64 / sizeof(REAL) };
    int64_t lda = t->lda, rows = t->rows, lds = t->lds;
    REAL *sum = t->sum;
    for (; t->at + P <= t->k; t->at += P) {
        const REAL *a = (const REAL *)t->a + t->at * lda, *ahead = t->at + 2 * P <= t->k ? a + P * lda : a;
        REAL x[4 * THIN_SUMS];
        int64_t i = 0;
        NAME(take_x)(t, P, W, x);
        for (; i + LINE <= rows; i += LINE) {
            const REAL *soon = NAME(soon)(a, ahead, i, rows);
            UNROLL
            for (int p = 0; p < P; p++) {
                __builtin_prefetch(soon + p * lda);
            }
            UNROLL
            for (int64_t at = i; at < i + LINE; at += NAME(LANES)) {
                NAME(vec) v[8];
                UNROLL
                for (int p = 0; p < P; p++) {
                    v[p] = LOAD(a + p * lda + at);
                }
                UNROLL
                for (int w = 0; w < W; w++) {
                    NAME(vec) s = LOAD(sum + w * lds + at);
                    UNROLL
                    for (int p = 0; p < P; p++) {
                        s += v[p] * x[w * P + p];
                    }
                    *(NAME(vec_at) *)(sum + w * lds + at) = s;
                }
            }
        }
        NAME(add_rest)(t, x, i, P, W);
    }
}

LOOP(NAME(dots_1_1), NAME(dots)(t, 1, 1))
LOOP(NAME(dots_8_1), NAME(dots)(t, 8, 1))
LOOP(NAME(dots_1_2), NAME(dots)(t, 1, 2))
LOOP(NAME(dots_4_2), NAME(dots)(t, 4, 2))
LOOP(NAME(rows_1_1), NAME(rows)(t, 1, 1))
LOOP(NAME(rows_8_1), NAME(rows)(t, 8, 1))
LOOP(NAME(rows_1_2), NAME(rows)(t, 1, 2))
LOOP(NAME(rows_4_2), NAME(rows)(t, 4, 2))
LOOP(NAME(adds_1_1), NAME(adds)(t, 1, 1))
LOOP(NAME(adds_8_1), NAME(adds)(t, 8, 1))
LOOP(NAME(adds_1_2), NAME(adds)(t, 1, 2))
LOOP(NAME(adds_4_2), NAME(adds)(t, 4, 2))
LOOP(NAME(adds_1_4), NAME(adds)(t, 1, 4))
LOOP(NAME(adds_4_4), NAME(adds)(t, 4, 4))
LOOP(NAME(adds_1_8), NAME(adds)(t, 1, 8))
LOOP(NAME(adds_4_8), NAME(adds)(t, 4, 8))

/* Writes the sums of adds to y. */
static void NAME(store)(const thin_tile *t)
{
    for (int64_t j = 0; j < t->cols; j++) {
        for (int64_t i = 0; i < t->rows; i++) {
            NAME(put)(t, i, j, ((const REAL *)t->sum)[j * t->lds + i]);
        }
    }
}

static const thin_loops NAME(loops) = {
    .dots = {{NAME(dots_8_1), NAME(dots_1_1)}, {NAME(dots_4_2), NAME(dots_1_2)}},
    .rows = {{NAME(rows_8_1), NAME(rows_1_1)}, {NAME(rows_4_2), NAME(rows_1_2)}},
    .adds = {{NAME(adds_8_1), NAME(adds_1_1)},
             {NAME(adds_4_2), NAME(adds_1_2)},
             {NAME(adds_4_4), NAME(adds_1_4)},
             {NAME(adds_4_8), NAME(adds_1_8)}},
    .store = NAME(store),
};

#undef LOAD

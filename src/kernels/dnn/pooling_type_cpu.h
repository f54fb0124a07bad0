/* Pooling of elements of type T; FN(name), BODY(name): names for this type. Included by pooling_cpu.c. */

/* The largest elements of a window in channels c .. c + width; the first NaN, where there is one. */
DMI_BODY void BODY(largest)(const dmi_pooling *d, const window *w, const T *x, int64_t c, int64_t width,
                            T *best)
{
    for (int64_t k = 0; k < width; k++) {
        best[k] = x[(w->lo[0] * d->in[1] + w->lo[1]) * d->in[2] + c + k];
    }
    for (int64_t h = w->lo[0]; h < w->hi[0]; h++) {
        for (int64_t v = w->lo[1]; v < w->hi[1]; v++) {
            const T *from = x + (h * d->in[1] + v) * d->in[2] + c;
            DMI_IVDEP
            for (int64_t k = 0; k < width; k++) {
                T value = from[k], old = best[k], next = value <= old ? old : value;
                best[k] = old == old ? next : old;
            }
        }
    }
}
TWICE(static, FN(largest),
      (const dmi_pooling *d, const window *w, const T *x, int64_t c, int64_t width, T *best),
      (d, w, x, c, width, best))

/* And the number of each. */
DMI_BODY void BODY(places)(const dmi_pooling *d, const window *w, const T *x, int64_t c, int64_t width, T *best,
                           int32_t *at)
{
    for (int64_t k = 0; k < width; k++) {
        best[k] = x[(w->lo[0] * d->in[1] + w->lo[1]) * d->in[2] + c + k];
        at[k] = w->at;
    }
    for (int64_t h = w->lo[0]; h < w->hi[0]; h++) {
        for (int64_t v = w->lo[1]; v < w->hi[1]; v++) {
            const T *from = x + (h * d->in[1] + v) * d->in[2] + c;
            int32_t here = number_of(w, h, v);
            DMI_IVDEP
            for (int64_t k = 0; k < width; k++) {
                T value = from[k], old = best[k];
                bool stays = (value <= old) | (old != old);
                best[k] = stays ? old : value;
                at[k] = stays ? at[k] : here;
            }
        }
    }
}
TWICE(static, FN(places),
      (const dmi_pooling *d, const window *w, const T *x, int64_t c, int64_t width, T *best, int32_t *at),
      (d, w, x, c, width, best, at))

/* The elements that are taken at random in channels c .. c + width, and their numbers. */
static void FN(taken)(const dmi_pooling *d, uint64_t seed, const window *w, const T *x, int64_t c,
                      int64_t width, T *best, int32_t *at)
{
    for (int64_t k = 0; k < width; k++) {
        T sum = 0, reached = 0;
        for (int64_t h = w->lo[0]; h < w->hi[0]; h++) {
            for (int64_t v = w->lo[1]; v < w->hi[1]; v++) {
                sum += x[(h * d->in[1] + v) * d->in[2] + c + k];
            }
        }
        T threshold = sum * (T)uniform_at(seed, w->first + c + k);
        best[k] = 0;
        at[k] = -1;
        for (int64_t h = w->lo[0]; h < w->hi[0]; h++) {
            for (int64_t v = w->lo[1]; v < w->hi[1] && !(at[k] >= 0 && reached >= threshold); v++) {
                best[k] = x[(h * d->in[1] + v) * d->in[2] + c + k];
                at[k] = number_of(w, h, v);
                reached += best[k];
            }
        }
    }
}

/* The sum of squares divided by the sum. */
static void FN(weighted)(const dmi_pooling *d, const window *w, const T *x, int64_t c, int64_t width, T *mean)
{
    for (int64_t k = 0; k < width; k++) {
        T sum = 0, squares = 0;
        for (int64_t h = w->lo[0]; h < w->hi[0]; h++) {
            for (int64_t v = w->lo[1]; v < w->hi[1]; v++) {
                T value = x[(h * d->in[1] + v) * d->in[2] + c + k];
                sum += value;
                squares += value * value;
            }
        }
        mean[k] = sum != 0 ? squares / sum : 0;
    }
}

static void FN(mean)(const dmi_pooling *d, const window *w, const T *x, int64_t c, int64_t width, T *mean)
{
    for (int64_t k = 0; k < width; k++) {
        mean[k] = 0;
    }
    for (int64_t h = w->lo[0]; h < w->hi[0]; h++) {
        for (int64_t v = w->lo[1]; v < w->hi[1]; v++) {
            const T *from = x + (h * d->in[1] + v) * d->in[2] + c;
            for (int64_t k = 0; k < width; k++) {
                mean[k] += from[k];
            }
        }
    }
    for (int64_t k = 0; k < width && w->size > 0; k++) {
        mean[k] /= (T)w->size;
    }
}

/* The elements that are taken, by one of the two methods that take single ones; at NULL: their places are not
 * needed. */
static void FN(select)(const dmi_pooling *d, uint64_t seed, const window *w, const T *x, int64_t c,
                       int64_t width, T *best, int32_t *at)
{
    int32_t places[TILE];
    bool empty = w->lo[0] >= w->hi[0] || w->lo[1] >= w->hi[1];
    for (int64_t k = 0; k < width && empty; k++) {
        best[k] = 0;
        (at ? at : places)[k] = -1;
    }
    if (empty) {
        return;
    }
    if (d->method == DM_POOL_STOCHASTIC) {
        FN(taken)(d, seed, w, x, c, width, best, at ? at : places);
    } else if (at) {
        FN(places)(d, w, x, c, width, best, at);
    } else {
        FN(largest)(d, w, x, c, width, best);
    }
}

/* Where nothing receives a gradient. */
static void FN(pass)(const dmi_pooling *d, int64_t width, const T *best, int32_t *at)
{
    for (int64_t k = 0; k < width && d->relu && d->method == DM_POOL_MAX; k++) {
        at[k] = best[k] > 0 ? at[k] : -1;
    }
}

/* Of a window, whose results go to y, and their numbers to which. */
static void FN(forward_one)(const dmi_pooling *d, uint64_t seed, const window *w, const T *x, T *y, void *which,
                            int64_t to)
{
    int32_t at[TILE];
    for (int64_t c = 0; c < d->in[2]; c += TILE, to += TILE) {
        int64_t width = DMI_MIN(TILE, d->in[2] - c);
        if (d->method == DM_POOL_AVERAGE || d->method == DM_POOL_WEIGHTED) {
            (d->method == DM_POOL_AVERAGE ? FN(mean) : FN(weighted))(d, w, x, c, width, y + to);
            continue;
        }
        bool taps = which && d->taps;
        FN(select)(d, seed, w, x, c, width, y + to, taps ? at : which ? (int32_t *)which + to : NULL);
        if (taps) {
            FN(pass)(d, width, y + to, at);
            keep_taps(at, width, (uint8_t *)which + to);
        }
    }
}

static void FN(forward)(const dmi_pooling *d, uint64_t seed, const T *x, T *y, void *which)
{
    int64_t to = 0;
    for (int64_t n = 0; n < d->dnn.samples; n++, x += d->in[0] * d->in[1] * d->in[2]) {
        for (int64_t row = 0; row < d->out[0]; row++) {
            for (int64_t column = 0; column < d->out[1]; column++, to += d->in[2]) {
                const window w = window_of(d, n, row, column);
                FN(forward_one)(d, seed, &w, x, y, which, to);
            }
        }
    }
}

static void FN(spread)(const dmi_pooling *d, const window *w, const T *dy, int64_t c, int64_t width, T *dx)
{
    for (int64_t h = w->lo[0]; h < w->hi[0]; h++) {
        for (int64_t v = w->lo[1]; v < w->hi[1]; v++) {
            T *to = dx + (h * d->in[1] + v) * d->in[2] + c;
            for (int64_t k = 0; k < width; k++) {
                to[k] += dy[k] / (T)w->size;
            }
        }
    }
}

/* The elements that were taken receive dy. */
DMI_BODY void BODY(give)(const dmi_pooling *d, const window *w, const int32_t *at, const T *dy, int64_t c,
                         int64_t width, T *dx)
{
    for (int64_t h = w->lo[0]; h < w->hi[0]; h++) {
        for (int64_t v = w->lo[1]; v < w->hi[1]; v++) {
            T *to = dx + (h * d->in[1] + v) * d->in[2] + c;
            int32_t here = number_of(w, h, v);
            DMI_IVDEP
            for (int64_t k = 0; k < width; k++) {
                to[k] += at[k] == here ? dy[k] : (T)0;
            }
        }
    }
}
TWICE(static, FN(give),
      (const dmi_pooling *d, const window *w, const int32_t *at, const T *dy, int64_t c, int64_t width, T *dx),
      (d, w, at, dy, c, width, dx))

/* Of a window. x: the kept taps of all, or the elements; dx: of its sample; from: where its results begin. */
static void FN(backward_one)(const dmi_pooling *d, uint64_t seed, const window *w, const void *x, const T *dy,
                             T *dx, int64_t from)
{
    T best[TILE];
    int32_t at[TILE];
    for (int64_t c = 0; c < d->in[2]; c += TILE, from += TILE) {
        int64_t width = DMI_MIN(TILE, d->in[2] - c);
        if (d->method == DM_POOL_AVERAGE) {
            FN(spread)(d, w, dy + from, c, width, dx);
            continue;
        }
        if (d->taps) {
            kept_taps((const uint8_t *)x + from, width, at);
        } else {
            FN(select)
            (d, seed, w, (const T *)x + w->sample * d->in[0] * d->in[1] * d->in[2], c, width, best, at);
            FN(pass)(d, width, best, at);
        }
        FN(give)(d, w, at, dy + from, c, width, dx);
    }
}

static void FN(backward)(const dmi_pooling *d, uint64_t seed, const void *x, const T *dy, T *dx)
{
    int64_t plane = d->in[0] * d->in[1] * d->in[2], from = 0;
    memset(dx, 0, (size_t)(d->dnn.samples * plane) * sizeof *dx);
    for (int64_t n = 0; n < d->dnn.samples; n++, dx += plane) {
        for (int64_t row = 0; row < d->out[0]; row++) {
            for (int64_t column = 0; column < d->out[1]; column++, from += d->in[2]) {
                const window w = window_of(d, n, row, column);
                FN(backward_one)(d, seed, &w, x, dy, dx, from);
            }
        }
    }
}

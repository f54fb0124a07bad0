/* An image: T, X and FN(name) are the includer's; X: the type of x. */

/* n elements of a channel: they come from `from`, and from `back` places before its end where mirrored. */
static inline void FN(convert)(const X *x, const T *mean, T channel, T scale, int64_t n, T *out)
{
    if (mean) {
        for (int64_t j = 0; j < n; j++) {
            out[j] = ((T)x[j] - mean[j]) * scale;
        }
    } else {
        for (int64_t j = 0; j < n; j++) {
            out[j] = ((T)x[j] - channel) * scale;
        }
    }
}

/* Elements `apart` from one another; the first is the last one made where it is mirrored. */
static inline void FN(spread)(const T *made, int64_t n, int64_t apart, bool mirrored, T *y)
{
    if (mirrored) {
        for (int64_t j = 0; j < n; j++) {
            y[(n - 1 - j) * apart] = made[j];
        }
    } else {
        for (int64_t j = 0; j < n; j++) {
            y[j * apart] = made[j];
        }
    }
}

static void FN(image)(const window *w, int64_t n, const X *x, const T *mean, double scale, T *y)
{
    const dmi_images *d = w->d;
    const int64_t channels = d->out[2], columns = d->out[1], size = d->in[0] * d->in[1],
                  area = d->whole[0] * d->whole[1];
    T made[COLUMNS];
    x += n * channels * size + w->first;
    y += n * d->out[0] * columns * channels;
    for (int64_t i = 0; i < d->out[0]; i++) {
        for (int64_t c = 0; c < channels; c++) {
            for (int64_t j = 0; j < columns; j += COLUMNS) {
                const int64_t part = DMI_MIN(columns - j, (int64_t)COLUMNS);
                const T *plane =
                    mean && d->plane ? mean + c * area + (w->row + i) * d->whole[1] + w->column + j : NULL;
                FN(convert)
                (x + c * size + i * d->in[1] + j, plane, mean && !plane ? mean[c] : 0, (T)scale, part, made);
                FN(spread)
                (made, part, channels, w->mirrored,
                 y + (i * columns + (w->mirrored ? columns - j - part : j)) * channels + c);
            }
        }
    }
}

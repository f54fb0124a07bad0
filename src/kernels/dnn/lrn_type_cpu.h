/* Local response normalisation of elements of type T; FN(name): the name for this type. Included by lrn_cpu.c.
 * A unit is what windows stay in: the channels of a pixel, or a sample. */

/* out += in, moved by `by` places in a line of n, each of `width` elements; what leaves the line is dropped. */
static void FN(add_moved)(const T *in, int64_t n, int64_t width, int64_t by, T *out)
{
    int64_t lo = DMI_MAX(by, 0), hi = DMI_MIN(n + by, n);
    for (int64_t i = lo * width; i < hi * width; i++) {
        out[i] += in[i - by * width];
    }
}

/* out = the sum of `in` over the window of each element of a unit. */
static void FN(window_sums)(const dmi_lrn *d, const T *in, T *out)
{
    int64_t half = d->size / 2, line = d->in[1] * d->in[2];
    memset(out, 0, (size_t)d->unit * sizeof *out);
    for (int64_t by = -half; by <= half && !d->within; by++) {
        FN(add_moved)(in, d->unit, 1, by, out);
    }
    for (int64_t by = -half; by <= half && d->within; by++) {
        for (int64_t h = DMI_MAX(by, 0); h < DMI_MIN(d->in[0] + by, d->in[0]); h++) {
            for (int64_t v = -half; v <= half; v++) {
                FN(add_moved)(in + (h - by) * line, d->in[1], d->in[2], v, out + h * line);
            }
        }
    }
}

/* scale = k + factor * (sum of x^2 over the window); squares: room for a unit. */
static void FN(scales)(const dmi_lrn *d, const numbers *p, const T *x, T *squares, T *scale)
{
    for (int64_t i = 0; i < d->unit; i++) {
        squares[i] = x[i] * x[i];
    }
    FN(window_sums)(d, squares, scale);
    for (int64_t i = 0; i < d->unit; i++) {
        scale[i] = (T)p->k + (T)p->factor * scale[i];
    }
}

static T FN(lowered)(T scale, double beta)
{
    if (beta == 0.75) {
        T root = FN(root)(scale);
        return 1 / (root * FN(root)(root));
    }
    return FN(power)(scale, (T)-beta);
}

static void FN(forward)(const dmi_lrn *d, const numbers *p, const T *x, T *y, T *scratch)
{
    T *scale = scratch + d->unit;
    FN(scales)(d, p, x, scratch, scale);
    for (int64_t i = 0; i < d->unit; i++) {
        y[i] = x[i] * FN(lowered)(scale[i], p->beta);
    }
}

static void FN(backward)(const dmi_lrn *d, const numbers *p, const T *x, const T *dy, T *dx, T *scratch)
{
    T *ratio = scratch, *scale = scratch + d->unit;
    FN(scales)(d, p, x, scratch, scale);
    for (int64_t i = 0; i < d->unit; i++) {
        T lowered = FN(lowered)(scale[i], p->beta);
        dx[i] = dy[i] * lowered;
        ratio[i] = dx[i] * x[i] / scale[i];
    }
    FN(window_sums)(d, ratio, scale);
    T factor = (T)(2 * p->factor * p->beta);
    for (int64_t i = 0; i < d->unit; i++) {
        dx[i] = d->relu && !(x[i] > 0) ? 0 : dx[i] - factor * x[i] * scale[i];
    }
}

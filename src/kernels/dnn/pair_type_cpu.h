/* Losses of elements of type T; FN(name): the name for this type. Included by pair_cpu.c. */

static double FN(pair_loss)(const dmi_labelled *d, const T *x, const T *target)
{
    double sum = 0;
    for (int64_t i = 0; i < d->dnn.samples * d->places; i++) {
        double a = (double)x[i], t = (double)target[i];
        if (d->loss == DMI_LOSS_EUCLIDEAN) {
            sum += (a - t) * (a - t);
        } else if (!FN(is_ignored)(d, target[i])) { /* -(t log s + (1 - t) log(1 - s)), s = 1 / (1 + e^-x) */
            sum += (a > 0 ? a : 0) - a * t + log1p(exp(-fabs(a)));
        }
    }
    return sum;
}

static void FN(pair_gradient)(const dmi_labelled *d, const T *x, const T *target, double scale, T *dx)
{
    for (int64_t i = 0; i < d->dnn.samples * d->places; i++) {
        double s = 1 / (1 + exp(-(double)x[i]));
        dx[i] = FN(is_ignored)(d, target[i]) ? (T)0 : (T)((s - (double)target[i]) * scale);
    }
}

/* max(0, 1 - x) at the label, max(0, 1 + x) elsewhere. */
static double FN(margin)(T x, bool is_label)
{
    double m = 1 + (is_label ? -(double)x : (double)x);
    return m > 0 || m != m ? m : 0;
}

static double FN(hinge_loss)(const dmi_labelled *d, const T *x, const int32_t *label)
{
    double sum = 0;
    for (int64_t i = 0; i < d->dnn.samples * d->places; i++) {
        for (int64_t c = 0; c < d->classes; c++) {
            double m = FN(margin)(x[i * d->classes + c], c == label[i]);
            sum += d->loss == DMI_LOSS_HINGE_1 ? m : m * m;
        }
        sum = label[i] < 0 || label[i] >= d->classes ? NAN : sum;
    }
    return sum;
}

static void FN(hinge_gradient)(const dmi_labelled *d, const T *x, const int32_t *label, double scale, T *dx)
{
    for (int64_t i = 0; i < d->dnn.samples * d->places; i++) {
        bool wrong = label[i] < 0 || label[i] >= d->classes;
        for (int64_t c = 0; c < d->classes; c++) {
            int64_t at = i * d->classes + c;
            double m = FN(margin)(x[at], c == label[i]),
                   g = d->loss == DMI_LOSS_HINGE_1 ? (m > 0 ? 1 : m) : 2 * m;
            dx[at] = wrong ? (T)NAN : (T)((c == label[i] ? -g : g) * scale);
        }
    }
}

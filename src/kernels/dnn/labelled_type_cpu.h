/* Losses and accuracy of scores of type T; FN(name): the name for this type. Included by labelled_cpu.c. */

/* prob = softmax of n elements. */
static void FN(softmax)(const T *x, int64_t n, T *prob)
{
    T top = x[0], sum = 0;
    for (int64_t c = 1; c < n; c++) {
        top = x[c] > top ? x[c] : top;
    }
    for (int64_t c = 0; c < n; c++) {
        prob[c] = FN(exponential)(x[c] - top);
        sum += prob[c];
    }
    for (int64_t c = 0; c < n; c++) {
        prob[c] /= sum;
    }
}

/* The softmax of one element, without room for the others. */
static T FN(softmax_at)(const T *x, int64_t n, int64_t at)
{
    T top = x[0], sum = 0;
    for (int64_t c = 1; c < n; c++) {
        top = x[c] > top ? x[c] : top;
    }
    for (int64_t c = 0; c < n; c++) {
        sum += FN(exponential)(x[c] - top);
    }
    return FN(exponential)(x[at] - top) / sum;
}

static void FN(loss)(const dmi_labelled *d, const T *x, const int32_t *label, T *prob, double *out)
{
    int64_t n = d->classes;
    double sum = 0;
    for (int64_t i = 0; i < d->dnn.samples * d->places; i++) {
        if (prob) {
            FN(softmax)(x + i * n, n, prob + i * n);
        }
        if (is_ignored(d, label[i])) {
            continue;
        }
        if (label[i] < 0 || label[i] >= n) {
            sum = NAN;
            continue;
        }
        T p = prob ? prob[i * n + label[i]] : FN(softmax_at)(x + i * n, n, label[i]);
        sum -= log((double)(p < (T)FLT_MIN ? (T)FLT_MIN : p));
    }
    *out = sum;
}

static void FN(gradient)(const dmi_labelled *d, const T *prob, const int32_t *label, double scale, T *dx)
{
    int64_t n = d->classes;
    T factor = (T)scale;
    for (int64_t i = 0; i < d->dnn.samples * d->places; i++) {
        bool ignored = is_ignored(d, label[i]), wrong = !ignored && (label[i] < 0 || label[i] >= n);
        for (int64_t c = 0; c < n; c++) {
            T g = (prob[i * n + c] - (c == label[i] ? (T)1 : (T)0)) * factor;
            dx[i * n + c] = ignored ? (T)0 : wrong ? (T)NAN : g;
        }
    }
}

static double FN(correct)(const dmi_labelled *d, const T *x, const int32_t *label)
{
    int64_t n = d->classes, correct = 0;
    for (int64_t i = 0; i < d->dnn.samples * d->places; i++) {
        if (is_ignored(d, label[i])) {
            continue;
        }
        if (label[i] < 0 || label[i] >= n) {
            return NAN;
        }
        int64_t better = 0;
        for (int64_t c = 0; c < n; c++) {
            better += c != label[i] && !(x[i * n + c] < x[i * n + label[i]]);
        }
        correct += better < d->top_k;
    }
    return (double)correct;
}

/* Layers of networks for `dmath bench`, beside plain loops. Images have 16 x 16 pixels of 16 channels. */
#include "dmath_bench_op.h"

#include <dmath/layers.h>

#include <math.h>

enum { SIDE = 16, CHANNELS = 16, KERNEL = 3, COLOURS = 3, WHOLE_SIDE = 20, WINDOW = 5 };

static int64_t samples_of(const tool_op *o)
{
    return DMI_MAX(o->n / (SIDE * SIDE * CHANNELS), 1);
}

static dm_status images(tool_op *o, int slot, int side, bool result)
{
    const int64_t shape[4] = {samples_of(o), side, side, CHANNELS};
    return result ? tool_op_result(o, slot, o->dtype, 4, shape)
                  : tool_op_fill(o, slot, o->dtype, 4, shape, -1, 1);
}

static int64_t at(int64_t n, int side, int i, int j, int c)
{
    return ((n * side + i) * side + j) * CHANNELS + c;
}

/* --- convolutions of 3 x 3 with a padding of 1: 0: x or dx, 1: weights, 2: y or dy, 3: bias --- */
enum { X, W, Y, BIAS };
static const dm_conv conv = {sizeof(dm_conv), {1, 1}, {1, 1}, {1, 1}, 1, DM_SLICES, 0, 0, (dm_dtype)0};

static dm_status prepare_conv(tool_op *o, int result)
{
    const int64_t weights[4] = {CHANNELS, KERNEL, KERNEL, CHANNELS}, channels = CHANNELS;
    o->flops = 2.0 * KERNEL * KERNEL * CHANNELS * (double)samples_of(o) * SIDE * SIDE * CHANNELS;
    o->tolerance = o->dtype == DM_F64 ? 1e-9 : 1e-3;
    dm_status status = images(o, X, SIDE, result == X);
    status = TOOL_TRY(status, result == W ? tool_op_result(o, W, o->dtype, 4, weights)
                                          : tool_op_fill(o, W, o->dtype, 4, weights, -1, 1));
    status = TOOL_TRY(status, images(o, Y, SIDE, result == Y));
    return result == Y ? TOOL_TRY(status, tool_op_fill(o, BIAS, o->dtype, 1, &channels, -1, 1)) : status;
}

static dm_status prepare_forward(tool_op *o)
{
    return prepare_conv(o, Y);
}

static dm_status prepare_data(tool_op *o)
{
    return prepare_conv(o, X);
}

static dm_status prepare_weights(tool_op *o)
{
    return prepare_conv(o, W);
}

static dm_status call_forward(tool_op *o)
{
    return dm_conv_forward(o->s, &conv, o->a[X], o->a[W], o->a[BIAS], o->a[Y]);
}

static dm_status call_data(tool_op *o)
{
    return dm_conv_backward_data(o->s, &conv, o->a[Y], o->a[W], o->a[X]);
}

static dm_status call_weights(tool_op *o)
{
    return dm_conv_backward_weights(o->s, &conv, o->a[X], o->a[Y], 0, o->a[W], DM_NO_ARRAY);
}

#define ONE(value) tool_op_element(o, 4, value)
#define TWO(value) tool_op_element(o, 5, value)

static dm_status call_weights_by(tool_op *o)
{
    return dm_conv_backward_weights_by(o->s, &conv, o->a[X], o->a[Y], TWO(0), o->a[W], DM_NO_ARRAY);
}

/* Every product of an element of x, a weight and an element of y belongs to an element of the result. */
static void plain_conv(tool_op *o)
{
    const double *h[3] = {o->h[X], o->h[W], o->h[Y]};
    for (int64_t i = 0; i < o->count[Y]; i++) {
        const int64_t n = i / CHANNELS / SIDE / SIDE;
        const int k = (int)(i % CHANNELS), q = (int)(i / CHANNELS % SIDE),
                  p = (int)(i / CHANNELS / SIDE % SIDE);
        double sum = o->result == Y ? o->h[BIAS][k] : 0;
        for (int m = 0; m < KERNEL * KERNEL; m++) {
            const int row = p + m / KERNEL - 1, column = q + m % KERNEL - 1;
            for (int c = 0; c < CHANNELS && row >= 0 && row < SIDE && column >= 0 && column < SIDE; c++) {
                const int64_t x = at(n, SIDE, row, column, c), w = (k * KERNEL * KERNEL + m) * CHANNELS + c;
                if (o->result == Y) {
                    sum += h[X][x] * h[W][w];
                } else if (o->result == X) {
                    o->want[x] += h[W][w] * h[Y][i];
                } else {
                    o->want[w] += h[X][x] * h[Y][i];
                }
            }
        }
        if (o->result == Y) {
            o->want[i] = sum;
        }
    }
}

/* --- pooling of 2 x 2: 0: x, 1: y or dy, 2: dx --- */
static dm_status prepare_pool(tool_op *o)
{
    dm_status status = images(o, 0, SIDE, false);
    return TOOL_TRY(status, images(o, 1, SIDE / 2, true));
}

static dm_status prepare_pool_backward(tool_op *o)
{
    dm_status status = images(o, 0, SIDE, false);
    status = TOOL_TRY(status, images(o, 1, SIDE / 2, false));
    return TOOL_TRY(status, images(o, 2, SIDE, true));
}

static dm_status call_pool(tool_op *o)
{
    dm_pool pool = DM_POOL_INIT;
    pool.method = *(const int *)o->row->with;
    return dm_pool_forward(o->s, &pool, o->a[0], o->a[1], DM_NO_ARRAY);
}

/* The which of a forward pass: slot 3; slot 4: its y. */
static dm_status prepare_pool_which(tool_op *o)
{
    const int64_t shape[4] = {samples_of(o), SIDE / 2, SIDE / 2, CHANNELS};
    dm_pool pool = DM_POOL_INIT;
    dm_status status = tool_op_result(o, 3, DM_U8, 4, shape);
    status = TOOL_TRY(status, tool_op_result(o, 4, o->dtype, 4, shape));
    status = TOOL_TRY(status, prepare_pool_backward(o));
    status = TOOL_TRY(status, dm_pool_forward(o->s, &pool, o->a[0], o->a[4], o->a[3]));
    o->bytes = (double)o->count[2] * 1.25 * (double)dm_dtype_bytes(o->dtype) + (double)o->count[3];
    return status;
}

static dm_status call_pool_which(tool_op *o)
{
    dm_pool pool = DM_POOL_INIT;
    return dm_pool_backward_which(o->s, &pool, o->a[3], o->a[1], o->a[2]);
}

/* --- an element of each window, chosen by the numbers u of slot 3; 0: x, not negative, 1: y --- */
static dm_status prepare_pool_chosen(tool_op *o)
{
    const int64_t shape[4] = {samples_of(o), SIDE, SIDE, CHANNELS},
                  half[4] = {shape[0], SIDE / 2, SIDE / 2, CHANNELS};
    dm_status status = tool_op_fill(o, 0, o->dtype, 4, shape, 0, 1);
    status = TOOL_TRY(status, tool_op_fill(o, 3, DM_F32, 4, half, 0, 1));
    status = TOOL_TRY(status, images(o, 1, SIDE / 2, true));
    o->bytes = (double)(o->count[0] + o->count[1]) * (double)dm_dtype_bytes(o->dtype);
    return status;
}

static dm_status call_pool_chosen(tool_op *o)
{
    dm_pool pool = DM_POOL_INIT;
    pool.method = DM_POOL_STOCHASTIC;
    pool.seed = 3 + 11; /* as tool_op_fill of slot 3 */
    return dm_pool_forward(o->s, &pool, o->a[0], o->a[1], DM_NO_ARRAY);
}

/* Is each result the element at which the running sum reaches u times the sum, but for rounding? */
static bool check_pool_chosen(const tool_op *o, const double *got)
{
    bool right = true;
    for (int64_t i = 0; i < o->count[1] && right; i++) {
        const int64_t n = i / CHANNELS / (SIDE / 2) / (SIDE / 2);
        const int c = (int)(i % CHANNELS), q = (int)(i / CHANNELS % (SIDE / 2)),
                  p = (int)(i / CHANNELS / (SIDE / 2) % (SIDE / 2));
        double sum[5] = {0}, x[4];
        for (int m = 0; m < 4; m++) {
            x[m] = o->h[0][at(n, SIDE, 2 * p + m / 2, 2 * q + m % 2, c)];
            sum[m + 1] = sum[m] + x[m];
        }
        const double reach = o->h[3][i] * sum[4];
        right = false;
        for (int m = 0; m < 4; m++) {
            right = right || (got[i] == x[m] && sum[m] <= reach + 1e-5 && sum[m + 1] >= reach - 1e-5);
        }
    }
    return right;
}

static dm_status call_pool_backward(tool_op *o)
{
    dm_pool pool = DM_POOL_INIT;
    return dm_pool_backward(o->s, &pool, o->a[0], o->a[1], o->a[2]);
}

static void plain_pool(tool_op *o)
{
    for (int64_t i = 0; i < o->count[1]; i++) {
        const int64_t n = i / CHANNELS / (SIDE / 2) / (SIDE / 2);
        const int c = (int)(i % CHANNELS), q = (int)(i / CHANNELS % (SIDE / 2)),
                  p = (int)(i / CHANNELS / (SIDE / 2) % (SIDE / 2));
        int64_t largest = at(n, SIDE, 2 * p, 2 * q, c);
        double sum = 0;
        for (int m = 0; m < 4; m++) {
            const int64_t x = at(n, SIDE, 2 * p + m / 2, 2 * q + m % 2, c);
            sum += o->h[0][x];
            largest = o->h[0][x] > o->h[0][largest] ? x : largest;
        }
        if (o->result == 2) {
            o->want[largest] = o->h[1][i];
        } else {
            o->want[i] = *(const int *)o->row->with == DM_POOL_MAX ? o->h[0][largest] : sum / 4;
        }
    }
}

/* --- the sum of squares over the sum --- */
static dm_status prepare_pool_weighted(tool_op *o)
{
    const int64_t shape[4] = {samples_of(o), SIDE, SIDE, CHANNELS};
    dm_status status = tool_op_fill(o, 0, o->dtype, 4, shape, 0.1, 1);
    return TOOL_TRY(status, images(o, 1, SIDE / 2, true));
}

static void plain_pool_weighted(tool_op *o)
{
    for (int64_t i = 0; i < o->count[1]; i++) {
        const int64_t n = i / CHANNELS / (SIDE / 2) / (SIDE / 2);
        const int c = (int)(i % CHANNELS), q = (int)(i / CHANNELS % (SIDE / 2)),
                  p = (int)(i / CHANNELS / (SIDE / 2) % (SIDE / 2));
        double sum = 0, squares = 0;
        for (int m = 0; m < 4; m++) {
            const double x = o->h[0][at(n, SIDE, 2 * p + m / 2, 2 * q + m % 2, c)];
            sum += x;
            squares += x * x;
        }
        o->want[i] = squares / sum;
    }
}

/* --- local response normalisation across 5 channels: 0: x, 1: y or dx, 2: dy --- */
static dm_status prepare_lrn(tool_op *o)
{
    dm_status status = images(o, 0, SIDE, false);
    return TOOL_TRY(status, images(o, 1, SIDE, true));
}

static dm_status prepare_lrn_backward(tool_op *o)
{
    dm_status status = images(o, 0, SIDE, false);
    status = TOOL_TRY(status, images(o, 2, SIDE, false));
    return TOOL_TRY(status, images(o, 1, SIDE, true));
}

static dm_status call_lrn(tool_op *o)
{
    dm_lrn lrn = DM_LRN_INIT;
    return o->a[2].id ? dm_lrn_backward(o->s, &lrn, o->a[0], o->a[2], o->a[1])
                      : dm_lrn_forward(o->s, &lrn, o->a[0], o->a[1]);
}

/* The sum of v[c] over the window round c. */
static double around(const double *v, int c)
{
    double sum = 0;
    for (int k = DMI_MAX(c - WINDOW / 2, 0); k <= DMI_MIN(c + WINDOW / 2, CHANNELS - 1); k++) {
        sum += v[k];
    }
    return sum;
}

/* The channels of a pixel. dy: NULL: forward. */
static void plain_pixel(const double *x, const double *dy, double *out)
{
    double square[CHANNELS], s[CHANNELS], share[CHANNELS];
    for (int c = 0; c < CHANNELS; c++) {
        square[c] = x[c] * x[c];
    }
    for (int c = 0; c < CHANNELS; c++) {
        s[c] = 1 + around(square, c) / WINDOW;
        share[c] = dy ? dy[c] * x[c] * pow(s[c], -1.75) : 0;
    }
    for (int c = 0; c < CHANNELS; c++) {
        const double power = pow(s[c], -0.75);
        out[c] = dy ? dy[c] * power - 2 * 0.75 / WINDOW * x[c] * around(share, c) : x[c] * power;
    }
}

static void plain_lrn(tool_op *o)
{
    for (int64_t i = 0; i < o->count[0]; i += CHANNELS) {
        plain_pixel(o->h[0] + i, o->h[2] ? o->h[2] + i : NULL, o->want + i);
    }
}

/* --- the same with a pooling of 2 x 2 behind it: 0: x, 1: y or dx, 2: dy, 3: which, 4: its y --- */
static dm_status prepare_lrn_pool(tool_op *o)
{
    const int64_t shape[4] = {samples_of(o), SIDE / 2, SIDE / 2, CHANNELS};
    dm_status status = images(o, 0, SIDE, false);
    status = TOOL_TRY(status, tool_op_result(o, 3, DM_U8, 4, shape));
    return TOOL_TRY(status, images(o, 1, SIDE / 2, true));
}

static dm_status prepare_lrn_pool_backward(tool_op *o)
{
    const int64_t shape[4] = {samples_of(o), SIDE / 2, SIDE / 2, CHANNELS};
    dm_lrn lrn = DM_LRN_INIT;
    dm_pool pool = DM_POOL_INIT;
    dm_status status = images(o, 0, SIDE, false);
    status = TOOL_TRY(status, images(o, 2, SIDE / 2, false));
    status = TOOL_TRY(status, tool_op_result(o, 3, DM_U8, 4, shape));
    status = TOOL_TRY(status, tool_op_result(o, 4, o->dtype, 4, shape));
    status = TOOL_TRY(status, images(o, 1, SIDE, true));
    status = TOOL_TRY(status, dm_lrn_pool_forward(o->s, &lrn, &pool, o->a[0], o->a[4], o->a[3]));
    o->bytes = (double)(o->count[0] + o->count[1] + o->count[2]) * (double)dm_dtype_bytes(o->dtype) +
               (double)o->count[3];
    return status;
}

static dm_status call_lrn_pool(tool_op *o)
{
    dm_lrn lrn = DM_LRN_INIT;
    dm_pool pool = DM_POOL_INIT;
    return o->a[2].id ? dm_lrn_pool_backward(o->s, &lrn, &pool, o->a[0], o->a[3], o->a[2], o->a[1])
                      : dm_lrn_pool_forward(o->s, &lrn, &pool, o->a[0], o->a[1], o->a[3]);
}

/* A window's four pixels at a time. */
static void plain_lrn_pool(tool_op *o)
{
    const int64_t windows = samples_of(o) * (SIDE / 2) * (SIDE / 2);
    for (int64_t i = 0; i < windows; i++) {
        const int64_t n = i / (SIDE / 2) / (SIDE / 2);
        const int p = (int)(i / (SIDE / 2) % (SIDE / 2)), q = (int)(i % (SIDE / 2));
        double y[4][CHANNELS], dy[4][CHANNELS] = {{0}};
        for (int m = 0; m < 4; m++) {
            plain_pixel(o->h[0] + at(n, SIDE, 2 * p + m / 2, 2 * q + m % 2, 0), NULL, y[m]);
        }
        for (int c = 0; c < CHANNELS; c++) {
            int most = 0;
            for (int m = 1; m < 4; m++) {
                most = y[m][c] > y[most][c] ? m : most;
            }
            if (o->h[2]) {
                dy[most][c] = o->h[2][i * CHANNELS + c];
            } else {
                o->want[i * CHANNELS + c] = y[most][c];
            }
        }
        for (int m = 0; m < 4 && o->h[2]; m++) {
            const int64_t pixel = at(n, SIDE, 2 * p + m / 2, 2 * q + m % 2, 0);
            plain_pixel(o->h[0] + pixel, dy[m], o->want + pixel);
        }
    }
}

/* --- gradient descent: 0: gradient, 1: history, 2: weights --- */
static dm_status prepare_momentum(tool_op *o)
{
    dm_status status = tool_op_vector(o, 0, o->dtype, -1, 1);
    status = TOOL_TRY(status, tool_op_vector(o, 1, o->dtype, -1, 1));
    status = TOOL_TRY(status, tool_op_vector(o, 2, o->dtype, -1, 1));
    o->result = 2;
    o->bytes = 5 * (double)o->n * (double)dm_dtype_bytes(o->dtype);
    return status;
}

static dm_status call_momentum(tool_op *o)
{
    return dm_momentum_step(o->s, 1, 0.0005, 0, 0.9, dm_value(0.01), o->a[0], o->a[1], o->a[2]);
}

/* And 3: a copy of the weights. */
static dm_status prepare_momentum_rounded(tool_op *o)
{
    o->dtype = DM_F32; /* of weights that have a copy */
    o->tolerance = 2e-5;
    dm_status status = prepare_momentum(o);
    status = TOOL_TRY(status, tool_op_vector(o, 3, DM_BF16, -1, 1));
    o->bytes += 2 * (double)o->n;
    return status;
}

static dm_status call_momentum_rounded(tool_op *o)
{
    return dm_momentum_step_rounded(o->s, 1, 0.0005, 0, 0.9, dm_value(0.01), o->a[0], o->a[1], o->a[2],
                                    o->a[3]);
}

static void plain_momentum(tool_op *o)
{
    for (int64_t i = 0; i < o->n; i++) {
        o->want[i] = o->h[2][i] - (0.9 * o->h[1][i] + 0.01 * (o->h[0][i] + 0.0005 * o->h[2][i]));
    }
}

/* --- the same in windows of 5 x 5 pixels of a channel --- */
static dm_status call_lrn_within(tool_op *o)
{
    dm_lrn lrn = DM_LRN_INIT;
    lrn.within = 1;
    return o->a[2].id ? dm_lrn_backward(o->s, &lrn, o->a[0], o->a[2], o->a[1])
                      : dm_lrn_forward(o->s, &lrn, o->a[0], o->a[1]);
}

/* The sum of a plane over the window round a pixel. */
static double around_pixel(const double plane[SIDE * SIDE], int p, int q)
{
    double sum = 0;
    for (int i = DMI_MAX(p - WINDOW / 2, 0); i <= DMI_MIN(p + WINDOW / 2, SIDE - 1); i++) {
        for (int j = DMI_MAX(q - WINDOW / 2, 0); j <= DMI_MIN(q + WINDOW / 2, SIDE - 1); j++) {
            sum += plane[i * SIDE + j];
        }
    }
    return sum;
}

static void plain_lrn_within(tool_op *o)
{
    const double part = 1.0 / (WINDOW * WINDOW);
    for (int64_t plane = 0; plane < samples_of(o) * CHANNELS; plane++) {
        const int64_t first = plane / CHANNELS * SIDE * SIDE * CHANNELS + plane % CHANNELS;
        double square[SIDE * SIDE], s[SIDE * SIDE], share[SIDE * SIDE];
        for (int i = 0; i < SIDE * SIDE; i++) {
            const double x = o->h[0][first + i * CHANNELS];
            square[i] = x * x;
        }
        for (int i = 0; i < SIDE * SIDE; i++) {
            const int64_t k = first + i * CHANNELS;
            s[i] = 1 + part * around_pixel(square, i / SIDE, i % SIDE);
            share[i] = o->h[2] ? o->h[2][k] * o->h[0][k] * pow(s[i], -1.75) : 0;
        }
        for (int i = 0; i < SIDE * SIDE; i++) {
            const int64_t k = first + i * CHANNELS;
            const double x = o->h[0][k], power = pow(s[i], -0.75);
            o->want[k] =
                o->h[2] ? o->h[2][k] * power - 2 * 0.75 * part * x * around_pixel(share, i / SIDE, i % SIDE)
                        : x * power;
        }
    }
}

/* --- inner products of `side` samples: as convolutions --- */
static dm_status prepare_inner_of(tool_op *o, int result)
{
    const int64_t shape[2] = {o->side, o->side};
    dm_status status = DM_OK;
    o->flops = 2.0 * (double)o->side * (double)o->side * (double)o->side;
    o->tolerance = o->dtype == DM_F64 ? 1e-9 : 1e-3;
    for (int slot = X; slot <= Y; slot++) {
        status = TOOL_TRY(status, slot == result ? tool_op_result(o, slot, o->dtype, 2, shape)
                                                 : tool_op_matrix(o, slot, o->dtype, -1, 1));
    }
    return status;
}

static dm_status prepare_inner(tool_op *o)
{
    return prepare_inner_of(o, Y);
}

static dm_status prepare_inner_data(tool_op *o)
{
    return prepare_inner_of(o, X);
}

static dm_status prepare_inner_weights(tool_op *o)
{
    return prepare_inner_of(o, W);
}

static dm_status call_inner(tool_op *o)
{
    return o->result == Y ? dm_inner_forward(o->s, DM_SLICES, o->a[X], o->a[W], DM_NO_ARRAY, o->a[Y])
           : o->result == X
               ? dm_inner_backward_data(o->s, DM_SLICES, o->a[Y], o->a[W], o->a[X])
               : dm_inner_backward_weights(o->s, DM_SLICES, o->a[X], o->a[Y], 0, o->a[W], DM_NO_ARRAY);
}

static dm_status call_inner_by(tool_op *o)
{
    return dm_inner_backward_weights_by(o->s, DM_SLICES, o->a[X], o->a[Y], TWO(0), o->a[W], DM_NO_ARRAY);
}

static dm_status call_inner_with(tool_op *o)
{
    const dm_inner inner = DM_INNER_INIT;
    return dm_inner_backward_weights_with(o->s, &inner, o->a[X], o->a[Y], dm_value(0), o->a[W], DM_NO_ARRAY);
}

/* y[n, m] = sum of x[n, d] w[m, d] */
static void plain_inner(tool_op *o)
{
    const int64_t side = o->side;
    for (int64_t n = 0; n < side; n++) {
        for (int64_t m = 0; m < side; m++) {
            for (int64_t d = 0; d < side; d++) {
                const int64_t x = n * side + d, w = m * side + d, y = n * side + m;
                if (o->result == Y) {
                    o->want[y] += o->h[X][x] * o->h[W][w];
                } else if (o->result == X) {
                    o->want[x] += o->h[Y][y] * o->h[W][w];
                } else {
                    o->want[w] += o->h[X][x] * o->h[Y][y];
                }
            }
        }
    }
}

/* --- sums by channel: 0, 1: x, dy; 2: the sums; 3: dx --- */
static dm_status prepare_sums(tool_op *o)
{
    const int64_t channels = CHANNELS;
    dm_status status = images(o, 0, SIDE, false);
    status = TOOL_TRY(status, images(o, 1, SIDE, false));
    status = TOOL_TRY(status, tool_op_result(o, 2, o->dtype, 1, &channels));
    return status;
}

static dm_status prepare_relu_sums(tool_op *o)
{
    dm_status status = prepare_sums(o);
    return TOOL_TRY(status, images(o, 3, SIDE, true));
}

static dm_status call_sums(tool_op *o)
{
    return dm_channel_sums(o->s, DM_SLICES, 1, o->a[0], o->a[1], 0, o->a[2]);
}

static dm_status call_relu_sums(tool_op *o)
{
    return dm_relu_backward_sums(o->s, DM_SLICES, o->a[0], o->a[1], o->a[3], 0, o->a[2]);
}

static dm_status call_sums_by(tool_op *o)
{
    return dm_channel_sums_by(o->s, DM_SLICES, ONE(1), o->a[0], o->a[1], TWO(0), o->a[2]);
}

static dm_status call_relu_sums_by(tool_op *o)
{
    return dm_relu_backward_sums_by(o->s, DM_SLICES, o->a[0], o->a[1], o->a[3], TWO(0), o->a[2]);
}

static void plain_sums(tool_op *o)
{
    for (int64_t i = 0; i < o->count[0]; i++) {
        o->want[i % CHANNELS] += o->h[0][i] * o->h[1][i];
    }
}

static bool check_relu_sums(const tool_op *o, const double *got)
{
    double sum[CHANNELS] = {0}, made[CHANNELS];
    bool fine = dm_array_read_as(o->s, o->a[2], NULL, NULL, DM_F64, made, 0) == DM_OK;
    for (int64_t i = 0; i < o->count[0] && fine; i++) {
        const double dx = o->h[0][i] > 0 ? o->h[1][i] : 0;
        fine = got[i] == dx;
        sum[i % CHANNELS] += dx;
    }
    for (int c = 0; c < CHANNELS && fine; c++) {
        fine = fabs(made[c] - sum[c]) <= o->tolerance * fmax(1, fabs(sum[c]));
    }
    return fine;
}

/* --- windows of images of bytes, 20 x 20 pixels of 3 colours: 0: x, 1: places, 2: mean, 3: y --- */
static dm_status prepare_images(tool_op *o)
{
    const int64_t n = DMI_MAX(o->n / (SIDE * SIDE * COLOURS), 1), colours = COLOURS, places[2] = {n, 3};
    const int64_t whole[4] = {n, COLOURS, WHOLE_SIDE, WHOLE_SIDE}, windows[4] = {n, SIDE, SIDE, COLOURS};
    o->tolerance = o->dtype == DM_F64 ? 1e-9 : 1e-4;
    dm_status status = tool_op_fill(o, 0, DM_U8, 4, whole, 0, 256);
    status = TOOL_TRY(status, tool_op_fill(o, 1, DM_I32, 2, places, 0, WHOLE_SIDE - SIDE + 1));
    status = TOOL_TRY(status, tool_op_fill(o, 2, o->dtype, 1, &colours, 0, 255));
    return TOOL_TRY(status, tool_op_result(o, 3, o->dtype, 4, windows));
}

static dm_status call_images(tool_op *o)
{
    dm_images options = DM_IMAGES_INIT;
    options.scale = 0.25;
    return dm_images_forward(o->s, &options, o->a[0], o->a[1], o->a[2], o->a[3]);
}

static void plain_images(tool_op *o)
{
    for (int64_t i = 0; i < o->count[3]; i++) {
        const int64_t n = i / COLOURS / SIDE / SIDE, c = i % COLOURS, j = i / COLOURS % SIDE,
                      row = i / COLOURS / SIDE % SIDE;
        const double *place = o->h[1] + 3 * n;
        const int64_t column = place[2] != 0 ? SIDE - 1 - j : j;
        const int64_t x = ((n * COLOURS + c) * WHOLE_SIDE + (int64_t)place[0] + row) * WHOLE_SIDE +
                          (int64_t)place[1] + column;
        o->want[i] = 0.25 * (o->h[0][x] - o->h[2][c]);
    }
}

static const int largest = DM_POOL_MAX, average = DM_POOL_AVERAGE, weighted = DM_POOL_WEIGHTED;
const tool_op_row tool_ops_layers[] = {
    {"conv_forward", "layers", prepare_forward, call_forward, plain_conv, NULL, NULL},
    {"conv_backward_data", "layers", prepare_data, call_data, plain_conv, NULL, NULL},
    {"conv_backward_weights", "layers", prepare_weights, call_weights, plain_conv, NULL, NULL},
    {"pool_forward", "layers", prepare_pool, call_pool, plain_pool, NULL, &largest},
    {"pool_forward_average", "layers", prepare_pool, call_pool, plain_pool, NULL, &average},
    {"pool_forward_weighted", "layers", prepare_pool_weighted, call_pool, plain_pool_weighted, NULL, &weighted},
    {"pool_forward_stochastic", "layers", prepare_pool_chosen, call_pool_chosen, NULL, check_pool_chosen, NULL},
    {"pool_backward_which", "layers", prepare_pool_which, call_pool_which, plain_pool, NULL, &largest},
    {"pool_backward", "layers", prepare_pool_backward, call_pool_backward, plain_pool, NULL, &largest},
    {"lrn_forward", "layers", prepare_lrn, call_lrn, plain_lrn, NULL, NULL},
    {"lrn_backward", "layers", prepare_lrn_backward, call_lrn, plain_lrn, NULL, NULL},
    {"lrn_pool_forward", "layers", prepare_lrn_pool, call_lrn_pool, plain_lrn_pool, NULL, NULL},
    {"lrn_pool_backward", "layers", prepare_lrn_pool_backward, call_lrn_pool, plain_lrn_pool, NULL, NULL},
    {"momentum_step", "layers", prepare_momentum, call_momentum, plain_momentum, NULL, NULL},
    {"momentum_step_rounded", "layers", prepare_momentum_rounded, call_momentum_rounded, plain_momentum, NULL,
     NULL},
    {"lrn_forward_within", "layers", prepare_lrn, call_lrn_within, plain_lrn_within, NULL, NULL},
    {"lrn_backward_within", "layers", prepare_lrn_backward, call_lrn_within, plain_lrn_within, NULL, NULL},
    {"inner_backward_weights_by", "layers", prepare_inner_weights, call_inner_by, plain_inner, NULL, NULL},
    {"inner_backward_weights_with", "layers", prepare_inner_weights, call_inner_with, plain_inner, NULL, NULL},
    {"channel_sums_by", "layers", prepare_sums, call_sums_by, plain_sums, NULL, NULL},
    {"relu_backward_sums_by", "layers", prepare_relu_sums, call_relu_sums_by, NULL, check_relu_sums, NULL},
    {"conv_backward_weights_by", "layers", prepare_weights, call_weights_by, plain_conv, NULL, NULL},
    {"inner_forward", "layers", prepare_inner, call_inner, plain_inner, NULL, NULL},
    {"inner_backward_data", "layers", prepare_inner_data, call_inner, plain_inner, NULL, NULL},
    {"inner_backward_weights", "layers", prepare_inner_weights, call_inner, plain_inner, NULL, NULL},
    {"channel_sums", "layers", prepare_sums, call_sums, plain_sums, NULL, NULL},
    {"relu_backward_sums", "layers", prepare_relu_sums, call_relu_sums, NULL, check_relu_sums, NULL},
    {"images_forward", "layers", prepare_images, call_images, plain_images, NULL, NULL},
    {0},
};

/* Gamma and Poisson elements, for C and CUDA C++ alike, as random.h. Both reject: try t of element i takes
 * words of its own, those of Philox counter (i, stream, t), so an element depends on the seed and its index
 * alone, however many tries it takes. Only correctly rounded operations and explicit fma occur. */
#ifndef DMI_DISTRIBUTIONS_H
#define DMI_DISTRIBUTIONS_H

#include "kernels/random/fill.h"
#include "kernels/random/random.h"

#if defined(__CUDA_ARCH__)
#define DMI_FLOOR(a) floor(a)
#else
#define DMI_FLOOR(a) __builtin_floor(a)
#endif

#define DMI_STREAM_GAMMA 2u
#define DMI_STREAM_POISSON 3u
/* A try fails with a probability below 0.1 (Poisson of rate 10: 0.3); these are for parameters that are NaN. */
#define DMI_TRIES 64
#define DMI_LN2 0x1.62e42fefa39efp-1

DMI_RANDOM_FN dmi_words dmi_philox_try(uint64_t counter, uint32_t stream, uint32_t number, uint64_t seed)
{
    return dmi_philox_block((uint32_t)counter, (uint32_t)(counter >> 32), stream, number, (uint32_t)seed,
                            (uint32_t)(seed >> 32));
}
/* 52 bits, in (0, 1). */
DMI_RANDOM_FN double dmi_open_uniform(uint32_t lo, uint32_t hi)
{
    return DMI_MUL(DMI_MUL((double)hi, 0x1p20) + (double)(lo >> 12) + 0.5, 0x1p-52); /* all exact */
}

/* ln(1 + f), f in [sqrt(1/2) - 1, sqrt(2) - 1]: as in dmi_radius2_64 */
DMI_RANDOM_FN double dmi_log1p_near(double f)
{
    double s = DMI_DIV(f, 2 + f), z = DMI_MUL(s, s);
    double p = 0x1.0c04394f7e564p-3;
    p = DMI_FMA(p, z, 0x1.0fbe86d326548p-3);
    p = DMI_FMA(p, z, 0x1.3b1c35ea195d1p-3);
    p = DMI_FMA(p, z, 0x1.745cf901ea3e6p-3);
    p = DMI_FMA(p, z, 0x1.c71c72015f6a2p-3);
    p = DMI_FMA(p, z, 0x1.2492492476c92p-2);
    p = DMI_FMA(p, z, 0x1.9999999999a38p-2);
    p = DMI_FMA(p, z, 0x1.5555555555555p-1);
    return DMI_FMA(s, DMI_MUL(z, p), s + s);
}
/* ln x of a positive normal number */
DMI_RANDOM_FN double dmi_log_of(double x)
{
    uint64_t ix = dmi_bits_of(x) + (0x3ff0000000000000u - 0x3fe6a09e667f3bcdu);
    double k = (double)(int32_t)(ix >> 52) - 1023;
    double m = dmi_double_of((ix & 0x000fffffffffffffu) + 0x3fe6a09e667f3bcdu);
    return DMI_FMA(k, DMI_LN2, dmi_log1p_near(m - 1));
}
/* 2^k, k in [-1022, 1023] */
DMI_RANDOM_FN double dmi_power_of_2(int k)
{
    return dmi_double_of((uint64_t)(1023 + k) << 52);
}
/* e^x, x <= 0: Taylor's series to degree 13 of what ln 2 leaves; 0 below -745, 1 above 0. */
DMI_RANDOM_FN double dmi_exp_of(double x)
{
    if (!(x > -745)) {
        return 0;
    }
    x = x < 0 ? x : 0;
    double n = DMI_FLOOR(DMI_FMA(x, 0x1.71547652b82fep+0, 0.5)), y = 0x1.6124613a86d09p-33;
    double r = DMI_FMA(-n, 0x1.abc9e3b39803fp-56, DMI_FMA(-n, DMI_LN2, x));
    y = DMI_FMA(y, r, 0x1.1eed8eff8d898p-29);
    y = DMI_FMA(y, r, 0x1.ae64567f544e4p-26);
    y = DMI_FMA(y, r, 0x1.27e4fb7789f5cp-22);
    y = DMI_FMA(y, r, 0x1.71de3a556c734p-19);
    y = DMI_FMA(y, r, 0x1.a01a01a01a01ap-16);
    y = DMI_FMA(y, r, 0x1.a01a01a01a01ap-13);
    y = DMI_FMA(y, r, 0x1.6c16c16c16c17p-10);
    y = DMI_FMA(y, r, 0x1.1111111111111p-7);
    y = DMI_FMA(y, r, 0x1.5555555555555p-5);
    y = DMI_FMA(y, r, 0x1.5555555555555p-3);
    y = DMI_FMA(y, r, 0.5);
    y = DMI_FMA(DMI_MUL(r, r), y, r) + 1;
    int k = (int)n, half = k / 2;
    return DMI_MUL(DMI_MUL(y, dmi_power_of_2(half)), dmi_power_of_2(k - half));
}

/* The shape of a gamma distribution or a Poisson rate. One that an array holds may be anything: NaN where it is
 * none. */
DMI_RANDOM_FN double dmi_single_parameter(bool gamma, const dmi_fill_values *v)
{
    if (!v->element) {
        return v->p0;
    }
    double p = *v->element;
    bool taken = gamma ? p > 0 && p <= 0x1.fffffffffffffp1023 : p >= 0 && p <= 1e15;
    return taken ? p : dmi_double_of(0x7ff8000000000000u);
}

/* Gamma of a shape a > 0 and scale 1: G. Marsaglia & W. W. Tsang, "A simple method for generating gamma
 * variables", ACM TOMS 26 (2000). Below 1, that of a + 1 times u^(1/a). */
DMI_RANDOM_FN double dmi_gamma_at(double a, uint64_t index, uint64_t seed)
{
    double d = (a < 1 ? a + 1 : a) - 0x1.5555555555555p-2, c = DMI_DIV(1.0, DMI_SQRT(DMI_MUL(9.0, d)));
    for (uint32_t t = 0; t < DMI_TRIES; t++) {
        double x = dmi_normal64(dmi_philox_try(index, DMI_STREAM_GAMMA, 2 * t, seed)).c, v = DMI_FMA(c, x, 1.0);
        dmi_words w = dmi_philox_try(index, DMI_STREAM_GAMMA, 2 * t + 1, seed);
        if (!(v > 0)) {
            continue;
        }
        double u = dmi_open_uniform(w.w0, w.w1), xx = DMI_MUL(x, x);
        v = DMI_MUL(DMI_MUL(v, v), v);
        bool taken =
            u < DMI_FMA(DMI_MUL(xx, xx), -0.0331, 1.0); /* so it is also by the next test, which costs more */
        taken = taken || dmi_log_of(u) < DMI_FMA(d, 1 - v + dmi_log_of(v), DMI_MUL(0.5, xx));
        if (taken) {
            double small = a < 1 ? dmi_exp_of(DMI_DIV(dmi_log_of(dmi_open_uniform(w.w2, w.w3)), a)) : 1.0;
            return DMI_MUL(DMI_MUL(d, v), small);
        }
    }
    return d;
}

/* ln of rate^k e^-rate / k!, without the cancellation that a large rate brings: by Stirling's series from k =
 * 10 on. */
DMI_RANDOM_FN double dmi_log_poisson(double rate, double k)
{
    if (k < 10) {
        double factorial = 1;
        for (double i = 2; i <= k; i += 1) {
            factorial = DMI_MUL(factorial, i);
        }
        return DMI_FMA(k, dmi_log_of(rate), -rate) - dmi_log_of(factorial);
    }
    double away = k - rate, part = DMI_DIV(away, rate), one = DMI_DIV(1.0, k), square = DMI_MUL(one, one);
    double ratio = part > -0.25 && part < 0.25 ? dmi_log1p_near(part) : dmi_log_of(DMI_DIV(k, rate));
    double tail = DMI_FMA(square, -0x1.3813813813814p-11, 0x1.a01a01a01a01ap-11); /* -1/1680, 1/1260 */
    tail = DMI_FMA(square, tail, -0x1.6c16c16c16c17p-9);                          /* -1/360 */
    tail = DMI_MUL(one, DMI_FMA(square, tail, 0x1.5555555555555p-4));             /* 1/12 */
    return DMI_FMA(-k, ratio, away) - DMI_MUL(0.5, dmi_log_of(DMI_MUL(0x1.921fb54442d18p+2, k))) - tail;
}

/* Below a rate of 10 by inversion: a search from 0 on (L. Devroye, Non-Uniform Random Variate Generation, 1986,
 * X.3.3). Else PTRS (W. Hörmann, "The transformed rejection method for generating Poisson random variables",
 * Insurance: Mathematics and Economics 12, 1993). */
DMI_RANDOM_FN double dmi_poisson_at(double rate, uint64_t index, uint64_t seed)
{
    dmi_words w = dmi_philox_try(index, DMI_STREAM_POISSON, 0, seed);
    if (rate < 10) {
        double u = dmi_open_uniform(w.w0, w.w1), p = dmi_exp_of(-rate), sum = p, k = 0;
        while (u > sum && k < 100) {
            k += 1;
            p = DMI_MUL(p, DMI_DIV(rate, k));
            sum += p;
        }
        return k;
    }
    double b = DMI_FMA(2.53, DMI_SQRT(rate), 0.931), a = DMI_FMA(0.02483, b, -0.059);
    double inverse = 1.1239 + DMI_DIV(1.1328, b - 3.4), limit = 0.9277 - DMI_DIV(3.6224, b - 2);
    for (uint32_t t = 1; t <= DMI_TRIES; t++) {
        double u = dmi_open_uniform(w.w0, w.w1) - 0.5, v = dmi_open_uniform(w.w2, w.w3),
               us = 0.5 - (u < 0 ? -u : u);
        double k = DMI_FLOOR(DMI_FMA(DMI_DIV(DMI_MUL(2.0, a), us) + b, u, rate) + 0.43);
        if (us >= 0.07 && v <= limit) {
            return k;
        }
        bool possible = k >= 0 && !(us < 0.013 && v > us);
        double scaled = DMI_DIV(DMI_MUL(v, inverse), DMI_DIV(a, DMI_MUL(us, us)) + b);
        if (possible && dmi_log_of(scaled) <= dmi_log_poisson(rate, k)) {
            return k;
        }
        w = dmi_philox_try(index, DMI_STREAM_POISSON, t, seed);
    }
    return DMI_FLOOR(rate);
}

#endif

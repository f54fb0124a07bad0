/* Elementary functions of complex numbers, computed in f64: one text for CPUs, for GPUs, and for programs that
 * are compiled at run time, so it includes nothing. Who includes it has defined CX, the type of complex numbers;
 * CX_OF(re, im), CX_RE(z), CX_IM(z), CX_MUL(a, b), CX_DIV(a, b); and CX_FN, which stands before each function.
 *
 * Values at zeros of both signs, infinities and NaN are those of C99, annex G. Sources: Kahan, Branch cuts for
 * complex elementary functions (1987): square roots, tangents and inverse functions; Dekker (1971): log |z| near
 * 1 by sums that lose nothing. */

#define CX_LN2 0.69314718055994530942
#define CX_PI 3.14159265358979323846
#define CX_MOST 0x1.fffffffffffffp+1023

/* Infinite or NaN. */
CX_FN bool dmi_cx_odd(double x)
{
    return !(x - x == 0);
}
CX_FN bool dmi_cx_infinite(double x)
{
    return x > CX_MOST || x < -CX_MOST;
}

CX_FN CX dmi_cx_exp(CX z)
{
    double x = CX_RE(z), y = CX_IM(z);
    if (y == 0) {
        return CX_OF(exp(x), y);
    }
    if (dmi_cx_odd(y)) {
        return x < -CX_MOST ? CX_OF(0.0, copysign(0.0, y)) : CX_OF(x > CX_MOST ? x : y - y, y - y);
    }
    bool far = x > 709; /* e^x overflows, though a part may not */
    double e = exp(far ? x / 2 : x), last = far ? e : 1;
    return CX_OF(e * cos(y) * last, e * sin(y) * last);
}

CX_FN CX dmi_cx_expm1(CX z)
{
    double x = CX_RE(z), y = CX_IM(z);
    if (y == 0) {
        return CX_OF(expm1(x), y);
    }
    if (dmi_cx_odd(x) || dmi_cx_odd(y) || x > 40) {
        CX e = dmi_cx_exp(z);
        return CX_OF(CX_RE(e) - 1, CX_IM(e));
    }
    double half = sin(y / 2);
    return CX_OF(expm1(x) * cos(y) - 2 * half * half, exp(x) * sin(y));
}

CX_FN CX dmi_cx_sinh(CX z)
{
    double x = CX_RE(z), y = CX_IM(z);
    if (y == 0) {
        return CX_OF(sinh(x), y);
    }
    if (dmi_cx_odd(y)) {
        return CX_OF(x == 0 || dmi_cx_infinite(x) ? x : y - y, y - y);
    }
    if (fabs(x) > 709) {
        double e = exp(fabs(x) / 2);
        return CX_OF(copysign(0.5 * e, x) * cos(y) * e, 0.5 * e * sin(y) * e);
    }
    return CX_OF(sinh(x) * cos(y), cosh(x) * sin(y));
}

CX_FN CX dmi_cx_cosh(CX z)
{
    double x = CX_RE(z), y = CX_IM(z);
    if (y == 0) {
        return CX_OF(cosh(x), copysign(1.0, x) < 0 ? -y : y);
    }
    if (dmi_cx_odd(y)) {
        return CX_OF(dmi_cx_infinite(x) ? fabs(x) : y - y, x == 0 ? x : y - y);
    }
    if (fabs(x) > 709) {
        double e = exp(fabs(x) / 2);
        return CX_OF(0.5 * e * cos(y) * e, copysign(0.5 * e, x) * sin(y) * e);
    }
    return CX_OF(cosh(x) * cos(y), sinh(x) * sin(y));
}

CX_FN CX dmi_cx_tanh(CX z)
{
    double x = CX_RE(z), y = CX_IM(z);
    if (y == 0) {
        return CX_OF(tanh(x), y);
    }
    if (dmi_cx_odd(y)) {
        return dmi_cx_infinite(x) ? CX_OF(copysign(1.0, x), copysign(0.0, y))
                                  : CX_OF(x == 0 ? x : y - y, y - y);
    }
    if (fabs(x) > 22) {
        return CX_OF(copysign(1.0, x), 4 * sin(y) * cos(y) * exp(-2 * fabs(x)));
    }
    double t = tan(y), b = 1 + t * t, s = sinh(x), d = 1 + b * s * s;
    return CX_OF(b * sqrt(1 + s * s) * s / d, t / d);
}

/* A sum of two numbers, and what is rounded away, which is added to *lost. */
CX_FN double dmi_cx_sum(double a, double b, double *lost)
{
    double sum = a + b, part = sum - a;
    *lost += (a - (sum - part)) + (b - part);
    return sum;
}

/* a + b^2 + c^2, where all but the last digits may cancel. */
CX_FN double dmi_cx_squares(double a, double b, double c)
{
    double p = b * b, q = c * c, lost = fma(b, b, -p) + fma(c, c, -q);
    double sum = dmi_cx_sum(dmi_cx_sum(a, p, &lost), q, &lost);
    return sum + lost;
}

/* log |x + iy| */
CX_FN double dmi_cx_log_abs(double x, double y)
{
    double a = fabs(x), b = fabs(y), most = a > b ? a : b, least = a > b ? b : a;
    if (most > 1e300 || most < 1e-290) {
        double up = most < 1 ? 0x1p600 : 0x1p-600;
        return log(hypot(a * up, b * up)) - copysign(600 * CX_LN2, most < 1 ? 1.0 : -1.0);
    }
    if (most > 0.5 && most < 1.5) {
        double d = dmi_cx_squares(-1, most, least);
        if (d > -0.5) {
            return 0.5 * log1p(d);
        }
    }
    return log(hypot(a, b));
}

CX_FN CX dmi_cx_log(CX z)
{
    return CX_OF(dmi_cx_log_abs(CX_RE(z), CX_IM(z)), atan2(CX_IM(z), CX_RE(z)));
}
CX_FN CX dmi_cx_log2(CX z)
{
    CX l = dmi_cx_log(z);
    return CX_OF(CX_RE(l) * 1.44269504088896340736, CX_IM(l) * 1.44269504088896340736);
}
CX_FN CX dmi_cx_log10(CX z)
{
    CX l = dmi_cx_log(z);
    return CX_OF(CX_RE(l) * 0.43429448190325182765, CX_IM(l) * 0.43429448190325182765);
}

CX_FN CX dmi_cx_log1p(CX z)
{
    double x = CX_RE(z), y = CX_IM(z), d = fabs(x) < 3 && fabs(y) < 3 ? dmi_cx_squares(2 * x, x, y) : -1;
    return CX_OF(d > -0.5 ? 0.5 * log1p(d) : dmi_cx_log_abs(1 + x, y), atan2(y, 1 + x));
}

CX_FN CX dmi_cx_sqrt(CX z)
{
    double x = CX_RE(z), y = CX_IM(z), scale = 1;
    if (x == 0 && y == 0) {
        return CX_OF(0.0, y);
    }
    if (dmi_cx_infinite(y)) {
        return CX_OF(fabs(y), y);
    }
    if (dmi_cx_infinite(x)) {
        return x > 0 ? CX_OF(x, y != y ? y : copysign(0.0, y)) : CX_OF(fabs(y - y), copysign(x, y));
    }
    if (fabs(x) > 1e300 || fabs(y) > 1e300) {
        x *= 0.25, y *= 0.25, scale = 2;
    } else if (fabs(x) < 1e-290 && fabs(y) < 1e-290) {
        x *= 0x1p108, y *= 0x1p108, scale = 0x1p-54;
    }
    double t = sqrt((fabs(x) + hypot(x, y)) * 0.5), other = y / (2 * t);
    return x < 0 ? CX_OF(fabs(other) * scale, copysign(t, y) * scale) : CX_OF(t * scale, other * scale);
}

/* By products where the exponent is a small whole number and none overflows, else e^(w log z). */
CX_FN CX dmi_cx_pow(CX z, CX w)
{
    double u = CX_RE(w), v = CX_IM(w);
    if (u == 0 && v == 0) {
        return CX_OF(1.0, 0.0);
    }
    if (CX_RE(z) == 0 && CX_IM(z) == 0) { /* as NumPy and Python: e^(w log z) has the limit 0 or none */
        double value = u > 0 ? 0.0 : CX_RE(z) / CX_RE(z);
        return CX_OF(value, value);
    }
    if (v == 0 && fabs(u) <= 32 && u == floor(u)) {
        CX power = z, result = CX_OF(1.0, 0.0);
        bool any = false;
        for (int n = (int)fabs(u); n > 0; n >>= 1) {
            result = n & 1 ? (any ? CX_MUL(result, power) : power) : result;
            any = any || (n & 1);
            power = n > 1 ? CX_MUL(power, power) : power;
        }
        if (!dmi_cx_odd(CX_RE(result)) && !dmi_cx_odd(CX_IM(result))) {
            return u < 0 ? CX_DIV(CX_OF(1.0, 0.0), result) : result;
        }
    }
    CX l = dmi_cx_log(z);
    double r = CX_RE(l), i = CX_IM(l);
    return dmi_cx_exp(v == 0 ? CX_OF(u * r, u * i) : CX_OF(u * r - v * i, u * i + v * r));
}

/* sqrt(1 - z) and sqrt(1 + z) make the inverse functions: no sum of their parts cancels. */
CX_FN CX dmi_cx_asin(CX z)
{
    double x = CX_RE(z), y = CX_IM(z);
    if ((x == 0 && y != y) || (y == 0 && fabs(x) <= 1)) {
        return CX_OF(y != y ? x : asin(x), y);
    }
    if (fabs(x) > 1e150 || fabs(y) > 1e150) {
        return CX_OF(atan2(x, fabs(y)), copysign(dmi_cx_log_abs(x, y) + CX_LN2, y));
    }
    CX a = dmi_cx_sqrt(CX_OF(1 - x, -y)), b = dmi_cx_sqrt(CX_OF(1 + x, y));
    return CX_OF(atan2(x, CX_RE(a) * CX_RE(b) - CX_IM(a) * CX_IM(b)),
                 asinh(CX_RE(a) * CX_IM(b) - CX_IM(a) * CX_RE(b)));
}

CX_FN CX dmi_cx_acos(CX z)
{
    double x = CX_RE(z), y = CX_IM(z);
    if ((x == 0 && y != y) || (y == 0 && fabs(x) <= 1)) {
        return CX_OF(acos(x), -y);
    }
    if (fabs(x) > 1e150 || fabs(y) > 1e150) {
        return CX_OF(atan2(fabs(y), x), -copysign(dmi_cx_log_abs(x, y) + CX_LN2, y));
    }
    CX a = dmi_cx_sqrt(CX_OF(1 - x, -y)), b = dmi_cx_sqrt(CX_OF(1 + x, y));
    return CX_OF(2 * atan2(CX_RE(a), CX_RE(b)), asinh(CX_RE(b) * CX_IM(a) - CX_IM(b) * CX_RE(a)));
}

CX_FN CX dmi_cx_atanh(CX z)
{
    double x = CX_RE(z), y = CX_IM(z), a = fabs(x), m = 1 - a, re;
    if (x == 0) {
        return CX_OF(x, atan(y));
    }
    if (y == 0 && a <= 1) {
        return CX_OF(atanh(x), y);
    }
    if (dmi_cx_infinite(x) || dmi_cx_infinite(y)) {
        return CX_OF(copysign(0.0, x), y != y ? y : copysign(CX_PI / 2, y));
    }
    if (a > 1e150 || fabs(y) > 1e150) {
        double h = hypot(x, y);
        return CX_OF(x / h / h, h != h ? h : copysign(CX_PI / 2, y));
    }
    re = m == 0 && fabs(y) < 1e-150 ? 0.5 * (CX_LN2 - log(fabs(y))) : 0.25 * log1p(4 * a / (m * m + y * y));
    return CX_OF(copysign(re, x), 0.5 * atan2(2 * y, m * (1 + a) - y * y));
}

CX_FN CX dmi_cx_acosh(CX z)
{
    CX w = dmi_cx_acos(z);
    double r = CX_RE(w), i = CX_IM(w);
    return r != r ? CX_OF(fabs(i), r) : CX_OF(fabs(i), copysign(r, CX_IM(z)));
}

/* f(z) = -i g(iz): the function g of z turned by a right angle, turned back. */
#define CX_TURNED(f, g)                                                                                        \
    CX_FN CX dmi_cx_##f(CX z)                                                                                  \
    {                                                                                                          \
        CX w = dmi_cx_##g(CX_OF(-CX_IM(z), CX_RE(z)));                                                         \
        return CX_OF(CX_IM(w), -CX_RE(w));                                                                     \
    }
CX_TURNED(sin, sinh)
CX_TURNED(tan, tanh)
CX_TURNED(asinh, asin)
CX_TURNED(atan, atanh)
CX_FN CX dmi_cx_cos(CX z)
{
    return dmi_cx_cosh(CX_OF(-CX_IM(z), CX_RE(z)));
}

/* z / |z|, of 0 and of NaN itself. */
CX_FN CX dmi_cx_sign(CX z)
{
    double x = CX_RE(z), y = CX_IM(z), up = fabs(x) > 1 || fabs(y) > 1 ? 0x1p-100 : 0x1p100;
    if (x != x || y != y) {
        return CX_OF(x + y, x + y);
    }
    if (dmi_cx_infinite(x) || dmi_cx_infinite(y)) { /* in the direction of an axis; of two infinities NaN */
        double one = dmi_cx_infinite(x) ? copysign(1.0, x) : 0,
               other = dmi_cx_infinite(y) ? copysign(1.0, y) : 0;
        double nan = (x - x) + (y - y);
        return one * other != 0 ? CX_OF(nan, nan) : CX_OF(one, other);
    }
    double h = hypot(x * up, y * up);
    return h == 0 ? CX_OF(0.0, 0.0) : CX_OF(x * up / h, y * up / h);
}

#undef CX_TURNED
#undef CX_LN2
#undef CX_PI
#undef CX_MOST

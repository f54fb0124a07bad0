/* Complex numbers in elementwise rows on GPUs: the carriers c64 and c128, their arithmetic (that of
 * kernels/ewise/ewise_math_cpu.h), and conversions from and to memory. Also compiled at run time, behind box/convert.cuh. */

template <typename P> struct complex_number {
    P re, im;
    complex_number() = default;
    __device__ __forceinline__ complex_number(P real) : re(real), im(0) {}
    __device__ __forceinline__ complex_number(P real, P imaginary) : re(real), im(imaginary) {}
    __device__ __forceinline__ explicit operator bool() const { return re != 0 || im != 0; }
};
typedef complex_number<float> c64;
typedef complex_number<double> c128;

template <typename C> struct complex_carrier {
    static const bool value = false;
};
template <typename P> struct complex_carrier<complex_number<P>> {
    static const bool value = true;
    typedef P part;
};

/* --- arithmetic: no product that feeds a sum is contracted with it, for the build says so */
#define EW_COMPLEX(type, P)                                                                                    \
    static __device__ __forceinline__ type operator+(type a, type b) { return type(a.re + b.re, a.im + b.im); } \
    static __device__ __forceinline__ type operator-(type a, type b) { return type(a.re - b.re, a.im - b.im); } \
    static __device__ __forceinline__ type operator-(type a) { return type(-a.re, -a.im); }                    \
    static __device__ __forceinline__ type operator*(type a, type b)                                           \
    {                                                                                                          \
        return type(a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re);                                     \
    }                                                                                                          \
    /* Smith's: divides by the larger part first, so that nothing overflows on the way */                      \
    static __device__ __forceinline__ type operator/(type a, type b)                                           \
    {                                                                                                          \
        if (fabs(b.re) >= fabs(b.im)) {                                                                        \
            P t = b.re == 0 && b.im == 0 ? b.im : b.im / b.re, d = b.re + b.im * t;                            \
            return type((a.re + a.im * t) / d, (a.im - a.re * t) / d);                                         \
        }                                                                                                      \
        P t = b.re / b.im, d = b.re * t + b.im;                                                                \
        return type((a.re * t + a.im) / d, (a.im * t - a.re) / d);                                             \
    }                                                                                                          \
    static __device__ __forceinline__ bool operator==(type a, type b) { return a.re == b.re && a.im == b.im; } \
    static __device__ __forceinline__ bool operator!=(type a, type b) { return !(a == b); }
EW_COMPLEX(c64, float)
EW_COMPLEX(c128, double)
#undef EW_COMPLEX

/* --- the parts of a complex number as a value of any type: of real types its real part, of bool whether it is
 * not 0 */
template <typename T> struct made_of_parts {
    template <typename P> static __device__ __forceinline__ T of(P re, P) { return made<T>::of(re); }
};
template <> struct made_of_parts<bool8> {
    template <typename P> static __device__ __forceinline__ bool8 of(P re, P im)
    {
        return {(uint8_t)(re != 0 || im != 0)};
    }
};
#define EW_FROM_PARTS(type, P)                                                                                 \
    template <> struct made_of_parts<type> {                                                                   \
        template <typename F> static __device__ __forceinline__ type of(F re, F im)                            \
        {                                                                                                      \
            return {made<P>::of(re), made<P>::of(im)};                                                         \
        }                                                                                                      \
    };
EW_FROM_PARTS(dm_c64, float)
EW_FROM_PARTS(dm_c128, double)
EW_FROM_PARTS(c64, float)
EW_FROM_PARTS(c128, double)
#undef EW_FROM_PARTS

/* For complex_math.h, which comes next. */
#define CX c128
#define CX_OF(real, imaginary) c128(real, imaginary)
#define CX_RE(z) (z).re
#define CX_IM(z) (z).im
#define CX_MUL(a, b) ((a) * (b))
#define CX_DIV(a, b) ((a) / (b))
#define CX_FN static __device__ __noinline__

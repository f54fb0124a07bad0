/* Every elementwise row as a function of its operands, on values of a carrier: int, long, unsigned long, float, double,
 * c64, c128, and unsigned char for bool. */

/* The bit of a carrier in a row's domain. */
template <typename NUMBER> struct carrier_bit;
template <> struct carrier_bit<unsigned char> {
    static const unsigned value = 1u << DM_BOOL;
};
template <> struct carrier_bit<int> {
    static const unsigned value = 1u << DM_I32;
};
template <> struct carrier_bit<long> {
    static const unsigned value = 1u << DM_I64;
};
template <> struct carrier_bit<unsigned long> {
    static const unsigned value = 1u << DM_U64;
};
template <> struct carrier_bit<float> {
    static const unsigned value = 1u << DM_F32;
};
template <> struct carrier_bit<double> {
    static const unsigned value = 1u << DM_F64;
};

template <> struct carrier_bit<c64> {
    static const unsigned value = 1u << DM_C64;
};
template <> struct carrier_bit<c128> {
    static const unsigned value = 1u << DM_C128;
};

/* The result as a number of the carrier: comparisons give 0 or 1, PART rows of a complex number a real one. CHOOSE: A is
 * not 0. */
#define DMI_EW(name, form, domain, class, ...)                                                                 \
    template <typename NUMBER>                                                                                 \
    static __device__ __forceinline__ NUMBER row_##name(NUMBER A, NUMBER B, NUMBER C, NUMBER S, NUMBER T)      \
    {                                                                                                          \
        if constexpr ((DMI_DOMAIN_##domain & carrier_bit<NUMBER>::value) != 0) {                               \
            return (NUMBER)(__VA_ARGS__);                                                                      \
        }                                                                                                      \
        return (NUMBER)0;                                                                                      \
    }
#define DMI_EW_INNER DMI_EW
#include "kernels/ewise/ewise.def"
#undef DMI_EW
#undef DMI_EW_INNER

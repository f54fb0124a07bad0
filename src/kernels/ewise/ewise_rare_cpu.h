#include <string.h>

/* Rows whose vector code serves common operands only. Results of rare operands (of which a tile has none,
 * nearly always) are computed one by one. The file that includes this has made the rows. */

/* RARE and FAR: an expression of A and B that tells rare operands, and the function of these */
#define RARE_ANGLE (FN(fabs)(A) > TY(far_angle))
#define MEND(name, RARE, FAR)                                                                                  \
    DMI_BODY void mended_##name##_body PARAMETERS                                                              \
    {                                                                                                          \
        enum { TILE = 512 };                                                                                   \
        NUMBER a[TILE], b[TILE];                                                                               \
        for (int64_t first = 0; first < n; first += TILE) {                                                    \
            const int64_t count = n - first < TILE ? n - first : TILE;                                         \
            const NUMBER *x = (const NUMBER *)pa + first, *y = pb ? (const NUMBER *)pb + first : x;            \
            NUMBER *o = (NUMBER *)out + first, rare = 0;                                                       \
            for (int64_t i = 0; i < count; i++) {                                                              \
                const NUMBER A = x[i], B = y[i];                                                               \
                (void)B;                                                                                       \
                rare = (RARE) ? 1 : rare;                                                                      \
            }                                                                                                  \
            if (rare != 0) { /* out may be an operand */                                                       \
                memcpy(a, x, (size_t)count * sizeof *a);                                                       \
                memcpy(b, y, (size_t)count * sizeof *b);                                                       \
            }                                                                                                  \
            row_##name(o, x, y, pc, number_s, number_t, count);                                                \
            for (int64_t i = 0; rare != 0 && i < count; i++) {                                                 \
                const NUMBER A = a[i], B = b[i];                                                               \
                (void)B;                                                                                       \
                if (RARE) {                                                                                    \
                    o[i] = FAR;                                                                                \
                }                                                                                              \
            }                                                                                                  \
        }                                                                                                      \
    }                                                                                                          \
    COMPILED(static, mended_##name, PARAMETERS, ARGUMENTS)

MEND(sin, RARE_ANGLE, TY(far_sine)(A))
MEND(cos, RARE_ANGLE, TY(far_cosine)(A))
MEND(tan, RARE_ANGLE, TY(far_tangent)(A))
MEND(pow, !TY(is_near_power)(A, B), TY(far_power)(A, B))
MEND(atan2, !TY(is_near_angle)(A, B), TY(far_angle_of)(A, B))

/* What the table takes in place of the rows. */
#define MENDED_sin 0, mended_sin
#define MENDED_cos 0, mended_cos
#define MENDED_tan 0, mended_tan
#define MENDED_pow 0, mended_pow
#define MENDED_atan2 0, mended_atan2

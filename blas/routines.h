/* All routines, for the interface of the file that includes this. It defines
 *   NAME(name)       the name in this interface
 *   FIRST, ORDER     what comes before the arguments: as a parameter, and as an argument of a call
 *   BY_COLUMNS       of the request
 *   OPTION, INT      types of an option and of an integer; AT(i): the integer
 *   UPLO, SIDE, ...  an option as dmath's number
 *   FACTOR_t         the type of a factor of s, d, c or z; VALUE_t(f): its value
 *   INDEX            the type of an index, and INDEX_FIRST, that of the first element
 *   DOT_COMPLEX      the products of complex vectors, which end in another way
 * ROUTINE and FUNCTION expand NAME before they make a text of it. */
#define LEVEL_1(name, types, values, ...) ROUTINE(name, types, values, 0, (void)0, __VA_ARGS__)
#define LEVEL_1_THEN(end, name, types, values, ...) ROUTINE(name, types, values, 0, end, __VA_ARGS__)
#define RESULT(type, name, types, values, ...) FUNCTION(type, name, types, values, 0, __VA_ARGS__)
#define LEVEL_2 LEVEL_1
#define LEVEL_3(name, types, values, ...) ROUTINE(name, types, values, INFINITY, (void)0, __VA_ARGS__)
#define IN const void *
#define VECTOR void *
#define REAL_s float
#define REAL_d double
#define REAL(t, of) (REAL_##t)(of)

/* --- level 1 */
#define X_TYPES (INT n, VECTOR x, INT incx)
#define X_VALUES (n, x, incx)
#define X(t, op) .kind = DMB_##op, .dtype = TYPE_##t, .m = AT(n), .n = AT(n), .x = x, .incx = AT(incx)
#define XY_TYPES (INT n, VECTOR x, INT incx, VECTOR y, INT incy)
#define XY_VALUES (n, x, incx, y, incy)
#define XY(t, op) X(t, op), .y = y, .incy = AT(incy)

/* t: the type of the vector, real: of the result */
#define SUM(name, t, real, op)                                                                                 \
    RESULT(REAL_##real, NAME(name), X_TYPES, X_VALUES, REAL(real, r.found.re), X(t, op))
SUM(snrm2, s, s, NRM2)
SUM(dnrm2, d, d, NRM2)
SUM(scnrm2, c, s, NRM2)
SUM(dznrm2, z, d, NRM2)
SUM(sasum, s, s, ASUM)
SUM(dasum, d, d, ASUM)
SUM(scasum, c, s, ASUM)
SUM(dzasum, z, d, ASUM)

#define IAMAX(t)                                                                                               \
    RESULT(INDEX, NAME(i##t##amax), X_TYPES, X_VALUES, (INDEX)r.found.re + INDEX_FIRST, X(t, IAMAX))
IAMAX(s)
IAMAX(d)
IAMAX(c)
IAMAX(z)

#define DOT(name, t, real)                                                                                     \
    RESULT(REAL_##real, NAME(name), XY_TYPES, XY_VALUES, REAL(real, r.found.re), XY(t, DOT))
DOT(sdot, s, s)
DOT(ddot, d, d)
DOT(dsdot, s, d)
RESULT(float, NAME(sdsdot), (INT n, FACTOR_s b, VECTOR x, INT incx, VECTOR y, INT incy),
       (n, b, x, incx, y, incy), (float)(VALUE_s(b).re + r.found.re), XY(s, DOT))
DOT_COMPLEX(cdotu, c, float, DOT)
DOT_COMPLEX(cdotc, c, float, DOTC)
DOT_COMPLEX(zdotu, z, double, DOT)
DOT_COMPLEX(zdotc, z, double, DOTC)

#define TWO(t, name, op) LEVEL_1(NAME(t##name), XY_TYPES, XY_VALUES, XY(t, op))
TWO(s, copy, COPY)
TWO(d, copy, COPY)
TWO(c, copy, COPY)
TWO(z, copy, COPY)
TWO(s, swap, SWAP)
TWO(d, swap, SWAP)
TWO(c, swap, SWAP)
TWO(z, swap, SWAP)

/* f: the type of the factor, here and below */
#define SCAL(name, t, f)                                                                                       \
    LEVEL_1(NAME(name), (INT n, FACTOR_##f alpha, VECTOR x, INT incx), (n, alpha, x, incx), X(t, SCAL),        \
            .alpha = VALUE_##f(alpha))
SCAL(sscal, s, s)
SCAL(dscal, d, d)
SCAL(cscal, c, c)
SCAL(zscal, z, z)
SCAL(csscal, c, s)
SCAL(zdscal, z, d)

#define AXPY(t)                                                                                                \
    LEVEL_1(NAME(t##axpy), (INT n, FACTOR_##t alpha, VECTOR x, INT incx, VECTOR y, INT incy),                  \
            (n, alpha, x, incx, y, incy), XY(t, AXPY), .alpha = VALUE_##t(alpha))
AXPY(s)
AXPY(d)
AXPY(c)
AXPY(z)

#define ROT(name, t, f)                                                                                        \
    LEVEL_1(NAME(name), (INT n, VECTOR x, INT incx, VECTOR y, INT incy, FACTOR_##f c, FACTOR_##f s),           \
            (n, x, incx, y, incy, c, s), XY(t, ROT), .alpha = VALUE_##f(c), .beta = VALUE_##f(s))
ROT(srot, s, s)
ROT(drot, d, d)
ROT(csrot, c, s)
ROT(zdrot, z, d)

/* --- level 2 */
#define CALL(t, op) .kind = DMB_##op, .dtype = TYPE_##t, .by_columns = BY_COLUMNS

#define GEMV(t)                                                                                                \
    LEVEL_2(NAME(t##gemv),                                                                                     \
            (FIRST OPTION trans, INT m, INT n, FACTOR_##t alpha, IN a, INT lda, VECTOR x, INT incx,            \
             FACTOR_##t beta, VECTOR y, INT incy),                                                             \
            (ORDER trans, m, n, alpha, a, lda, x, incx, beta, y, incy), CALL(t, GEMV),                         \
            .trans = {TRANS(trans)}, .m = AT(m), .n = AT(n), .alpha = VALUE_##t(alpha), .a = a,                \
            .lda = AT(lda), .x = x, .incx = AT(incx), .beta = VALUE_##t(beta), .y = y, .incy = AT(incy))
GEMV(s)
GEMV(d)
GEMV(c)
GEMV(z)

#define GER(t, name, op)                                                                                       \
    LEVEL_2(NAME(t##name),                                                                                     \
            (FIRST INT m, INT n, FACTOR_##t alpha, VECTOR x, INT incx, VECTOR y, INT incy, void *a, INT lda),  \
            (ORDER m, n, alpha, x, incx, y, incy, a, lda), CALL(t, op), .m = AT(m), .n = AT(n),                \
            .alpha = VALUE_##t(alpha), .x = x, .incx = AT(incx), .y = y, .incy = AT(incy), .c = a,             \
            .ldc = AT(lda))
GER(s, ger, GER)
GER(d, ger, GER)
GER(c, geru, GER)
GER(z, geru, GER)
GER(c, gerc, GERC)
GER(z, gerc, GERC)

#define SYMV(t, name, op)                                                                                      \
    LEVEL_2(NAME(t##name),                                                                                     \
            (FIRST OPTION uplo, INT n, FACTOR_##t alpha, IN a, INT lda, VECTOR x, INT incx, FACTOR_##t beta,   \
             VECTOR y, INT incy),                                                                              \
            (ORDER uplo, n, alpha, a, lda, x, incx, beta, y, incy), CALL(t, op), .uplo = UPLO(uplo),           \
            .m = AT(n), .n = AT(n), .alpha = VALUE_##t(alpha), .a = a, .lda = AT(lda), .x = x,                 \
            .incx = AT(incx), .beta = VALUE_##t(beta), .y = y, .incy = AT(incy))
SYMV(s, symv, SYMV)
SYMV(d, symv, SYMV)
SYMV(c, hemv, HEMV)
SYMV(z, hemv, HEMV)

#define SYR(t, f, name, op)                                                                                    \
    LEVEL_2(NAME(t##name), (FIRST OPTION uplo, INT n, FACTOR_##f alpha, VECTOR x, INT incx, void *a, INT lda), \
            (ORDER uplo, n, alpha, x, incx, a, lda), CALL(t, op), .uplo = UPLO(uplo), .m = AT(n), .n = AT(n),  \
            .alpha = VALUE_##f(alpha), .x = x, .incx = AT(incx), .c = a, .ldc = AT(lda))
SYR(s, s, syr, SYR)
SYR(d, d, syr, SYR)
SYR(c, s, her, HER)
SYR(z, d, her, HER)

#define SYR2(t, name, op)                                                                                      \
    LEVEL_2(NAME(t##name),                                                                                     \
            (FIRST OPTION uplo, INT n, FACTOR_##t alpha, VECTOR x, INT incx, VECTOR y, INT incy, void *a,      \
             INT lda),                                                                                         \
            (ORDER uplo, n, alpha, x, incx, y, incy, a, lda), CALL(t, op), .uplo = UPLO(uplo), .m = AT(n),     \
            .n = AT(n), .alpha = VALUE_##t(alpha), .x = x, .incx = AT(incx), .y = y, .incy = AT(incy), .c = a, \
            .ldc = AT(lda))
SYR2(s, syr2, SYR2)
SYR2(d, syr2, SYR2)
SYR2(c, her2, HER2)
SYR2(z, her2, HER2)

#define TRMV(t, name, op)                                                                                      \
    LEVEL_2(NAME(t##name),                                                                                     \
            (FIRST OPTION uplo, OPTION trans, OPTION diag, INT n, IN a, INT lda, VECTOR x, INT incx),          \
            (ORDER uplo, trans, diag, n, a, lda, x, incx), CALL(t, op), .uplo = UPLO(uplo),                    \
            .trans = {TRANS(trans)}, .diag = DIAG(diag), .m = AT(n), .n = AT(n), .a = a, .lda = AT(lda),       \
            .x = x, .incx = AT(incx))
TRMV(s, trmv, TRMV)
TRMV(d, trmv, TRMV)
TRMV(c, trmv, TRMV)
TRMV(z, trmv, TRMV)
TRMV(s, trsv, TRSV)
TRMV(d, trsv, TRSV)
TRMV(c, trsv, TRSV)
TRMV(z, trsv, TRSV)

/* --- level 3 */
#define GEMM(t)                                                                                                \
    LEVEL_3(NAME(t##gemm),                                                                                     \
            (FIRST OPTION ta, OPTION tb, INT m, INT n, INT k, FACTOR_##t alpha, IN a, INT lda, IN b, INT ldb,  \
             FACTOR_##t beta, void *c, INT ldc),                                                               \
            (ORDER ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc), CALL(t, GEMM),                       \
            .trans = {TRANS(ta), TRANS(tb)}, .m = AT(m), .n = AT(n), .k = AT(k), .alpha = VALUE_##t(alpha),    \
            .a = a, .lda = AT(lda), .b = b, .ldb = AT(ldb), .beta = VALUE_##t(beta), .c = c, .ldc = AT(ldc))
GEMM(s)
GEMM(d)
GEMM(c)
GEMM(z)

#define SYMM(t, name, op)                                                                                      \
    LEVEL_3(NAME(t##name),                                                                                     \
            (FIRST OPTION side, OPTION uplo, INT m, INT n, FACTOR_##t alpha, IN a, INT lda, IN b, INT ldb,     \
             FACTOR_##t beta, void *c, INT ldc),                                                               \
            (ORDER side, uplo, m, n, alpha, a, lda, b, ldb, beta, c, ldc), CALL(t, op), .side = SIDE(side),    \
            .uplo = UPLO(uplo), .m = AT(m), .n = AT(n), .alpha = VALUE_##t(alpha), .a = a, .lda = AT(lda),     \
            .b = b, .ldb = AT(ldb), .beta = VALUE_##t(beta), .c = c, .ldc = AT(ldc))
SYMM(s, symm, SYMM)
SYMM(d, symm, SYMM)
SYMM(c, symm, SYMM)
SYMM(z, symm, SYMM)
SYMM(c, hemm, HEMM)
SYMM(z, hemm, HEMM)

#define SYRK(t, f, name, op)                                                                                   \
    LEVEL_3(NAME(t##name),                                                                                     \
            (FIRST OPTION uplo, OPTION trans, INT n, INT k, FACTOR_##f alpha, IN a, INT lda, FACTOR_##f beta,  \
             void *c, INT ldc),                                                                                \
            (ORDER uplo, trans, n, k, alpha, a, lda, beta, c, ldc), CALL(t, op), .uplo = UPLO(uplo),           \
            .trans = {TRANS(trans)}, .m = AT(n), .n = AT(n), .k = AT(k), .alpha = VALUE_##f(alpha), .a = a,    \
            .lda = AT(lda), .beta = VALUE_##f(beta), .c = c, .ldc = AT(ldc))
SYRK(s, s, syrk, SYRK)
SYRK(d, d, syrk, SYRK)
SYRK(c, c, syrk, SYRK)
SYRK(z, z, syrk, SYRK)
SYRK(c, s, herk, HERK)
SYRK(z, d, herk, HERK)

/* f: the type of beta */
#define SYR2K(t, f, name, op)                                                                                  \
    LEVEL_3(NAME(t##name),                                                                                     \
            (FIRST OPTION uplo, OPTION trans, INT n, INT k, FACTOR_##t alpha, IN a, INT lda, IN b, INT ldb,    \
             FACTOR_##f beta, void *c, INT ldc),                                                               \
            (ORDER uplo, trans, n, k, alpha, a, lda, b, ldb, beta, c, ldc), CALL(t, op), .uplo = UPLO(uplo),   \
            .trans = {TRANS(trans)}, .m = AT(n), .n = AT(n), .k = AT(k), .alpha = VALUE_##t(alpha), .a = a,    \
            .lda = AT(lda), .b = b, .ldb = AT(ldb), .beta = VALUE_##f(beta), .c = c, .ldc = AT(ldc))
SYR2K(s, s, syr2k, SYR2K)
SYR2K(d, d, syr2k, SYR2K)
SYR2K(c, c, syr2k, SYR2K)
SYR2K(z, z, syr2k, SYR2K)
SYR2K(c, s, her2k, HER2K)
SYR2K(z, d, her2k, HER2K)

#define TRMM(t, name, op)                                                                                      \
    LEVEL_3(NAME(t##name),                                                                                     \
            (FIRST OPTION side, OPTION uplo, OPTION trans, OPTION diag, INT m, INT n, FACTOR_##t alpha, IN a,  \
             INT lda, void *b, INT ldb),                                                                       \
            (ORDER side, uplo, trans, diag, m, n, alpha, a, lda, b, ldb), CALL(t, op), .side = SIDE(side),     \
            .uplo = UPLO(uplo), .trans = {TRANS(trans)}, .diag = DIAG(diag), .m = AT(m), .n = AT(n),           \
            .alpha = VALUE_##t(alpha), .a = a, .lda = AT(lda), .c = b, .ldc = AT(ldb))
TRMM(s, trmm, TRMM)
TRMM(d, trmm, TRMM)
TRMM(c, trmm, TRMM)
TRMM(z, trmm, TRMM)
TRMM(s, trsm, TRSM)
TRMM(d, trsm, TRSM)
TRMM(c, trsm, TRSM)
TRMM(z, trsm, TRSM)

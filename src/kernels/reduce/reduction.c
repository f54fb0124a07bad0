/* The table of reductions, and the types they take. */
#include "kernels/reduce/reduction.h"

#include "kernels/ewise/ewise.h"

#include <assert.h>
#include <string.h>

const dmi_reduction dmi_reductions[DMI_REDUCTIONS] = {
    {"sum", DMI_DOMAIN_ANY, DMI_STATE_SUM, DMI_RESULT_WIDE},
#define DMI_REDUCTION(name, domain, state, start, take, combine, result, finish)                               \
    {#name, DMI_DOMAIN_##domain, DMI_STATE_##state, DMI_RESULT_##result},
#include "kernels/reduce/reduce.def"
#undef DMI_REDUCTION
};

int dmi_reduction_find(const char *name, size_t length)
{
    for (int i = 0; i < DMI_REDUCTIONS; i++) {
        if (strlen(dmi_reductions[i].name) == length && memcmp(dmi_reductions[i].name, name, length) == 0) {
            return i;
        }
    }
    return -1;
}

int dmi_acc_of(dm_dtype dtype)
{
    if (dmi_dtype_is_float(dtype)) {
        return dtype == DM_F64 ? DMI_ACC_DD : DMI_ACC_F64;
    }
    if (dmi_dtype_is_complex(dtype)) {
        return dtype == DM_C128 ? DMI_ACC_C128 : DMI_ACC_C64;
    }
    return dtype == DM_U64 ? DMI_ACC_U64 : DMI_ACC_I64;
}

/* Kinds of other rows are numbered by the row and the type. */
enum { TYPES = 32 };
_Static_assert((int)DMI_DTYPE_END <= (int)TYPES, "a type does not fit into the number of an accumulator");

int dmi_acc_for(int reduction, dm_dtype dtype)
{
    unsigned domain = dmi_reductions[reduction].domain;
    if (reduction == DMI_REDUCTION_sum) {
        return dmi_acc_of(dtype);
    }
    if (domain == DMI_DOMAIN_LOGIC) {
        dtype = DM_BOOL;
    } else if (!(domain >> dmi_dtype_carrier(dtype) & 1) && (dtype == DM_BOOL || dmi_dtype_is_integer(dtype))) {
        dtype = DM_F64;
    } else if (dmi_reductions[reduction].result == DMI_RESULT_WIDE &&
               (dtype == DM_U8 || dtype == DM_U16 || dtype == DM_U32)) {
        dtype = DM_U64; /* not i64: a product beyond its range has no sign either */
    }
    return domain >> dmi_dtype_carrier(dtype) & 1 ? DMI_ACC_SUMS + reduction * TYPES + (int)dtype : -1;
}

int dmi_acc_row(int acc)
{
    return acc < DMI_ACC_SUMS ? DMI_REDUCTION_sum : (acc - DMI_ACC_SUMS) / TYPES;
}

dm_dtype dmi_acc_takes(int acc)
{
    static const dm_dtype of_sums[] = {
        [DMI_ACC_F64] = DM_F32, [DMI_ACC_DD] = DM_F64,  [DMI_ACC_I64] = DM_I64,
        [DMI_ACC_U64] = DM_I64, [DMI_ACC_C64] = DM_C64, [DMI_ACC_C128] = DM_C128};
    return acc < DMI_ACC_SUMS ? of_sums[acc] : (dm_dtype)((acc - DMI_ACC_SUMS) % TYPES);
}

static dm_dtype wide_of(dm_dtype dtype)
{
    return dmi_dtype_is_float(dtype)     ? DM_F64
           : dmi_dtype_is_complex(dtype) ? DM_C128
           : dtype == DM_U64             ? DM_U64
                                         : DM_I64;
}

dm_dtype dmi_acc_result(int acc)
{
    static const dm_dtype of_sums[] = {
        [DMI_ACC_F64] = DM_F64, [DMI_ACC_DD] = DM_F64,   [DMI_ACC_I64] = DM_I64,
        [DMI_ACC_U64] = DM_U64, [DMI_ACC_C64] = DM_C128, [DMI_ACC_C128] = DM_C128};
    if (acc < DMI_ACC_SUMS) {
        return of_sums[acc];
    }
    switch (dmi_reductions[dmi_acc_row(acc)].result) {
    case DMI_RESULT_SAME:
        return dmi_dtype_carrier(dmi_acc_takes(acc));
    case DMI_RESULT_WIDE:
        return wide_of(dmi_acc_takes(acc));
    case DMI_RESULT_WHOLE:
        return DM_I64;
    case DMI_RESULT_REAL:
        return DM_F64;
    default:
        assert(!"not a result");
        return 0;
    }
}

/* f8e4m3 lacks infinities, which the largest of no elements is. */
dm_dtype dmi_acc_number(int acc)
{
    switch (acc < DMI_ACC_SUMS ? DMI_STATE_SUM : dmi_reductions[dmi_acc_row(acc)].state) {
    case DMI_STATE_VALUE:
        return dmi_acc_takes(acc) == DM_F8E4M3 ? DM_F32 : dmi_acc_takes(acc);
    case DMI_STATE_WIDE:
        return wide_of(dmi_acc_takes(acc));
    case DMI_STATE_REAL:
        return DM_F64;
    case DMI_STATE_COUNT:
        return DM_I64;
    case DMI_STATE_SUM:
    case DMI_STATE_PLACE:
    case DMI_STATE_MOMENTS:
    case DMI_STATE_LOGSUM:
        return 0;
    default:
        assert(!"not a state");
        return 0;
    }
}

int64_t dmi_acc_bytes(int acc)
{
    static const int64_t of_sums[] = {[DMI_ACC_F64] = 8, [DMI_ACC_DD] = 16,  [DMI_ACC_I64] = 8,
                                      [DMI_ACC_U64] = 8, [DMI_ACC_C64] = 16, [DMI_ACC_C128] = 32};
    dm_dtype number = dmi_acc_number(acc);
    if (acc < DMI_ACC_SUMS) {
        return of_sums[acc];
    }
    return number                                                        ? dmi_dtype_bytes(number)
           : dmi_reductions[dmi_acc_row(acc)].state == DMI_STATE_MOMENTS ? 24
                                                                         : 16;
}

/* .npy headers that we write, NumPy reading them, and what NumPy writes now. */
#include "npy_cases.h"

static void random_shape(uint64_t *random, dm_dtype *dtype, int *ndim, int64_t *shape)
{
    static const dm_dtype all[] = {DM_F64, DM_F32, DM_F16, DM_BF16, DM_I64, DM_I32, DM_U8,   DM_BOOL,
                                   DM_I8,  DM_I16, DM_U16, DM_U32,  DM_U64, DM_C64, DM_C128, DM_F8E4M3};
    *random = *random * 6364136223846793005u + 1442695040888963407u;
    *dtype = all[(*random >> 33) % DMI_COUNT(all)];
    *ndim = (int)((*random >> 40) % (DM_MAX_DIMS + 1));
    for (int d = 0; d < DM_MAX_DIMS; d++) {
        *random = *random * 6364136223846793005u + 1442695040888963407u;
        shape[d] = d < *ndim ? (int64_t)((*random >> 33) % 5) : 0;
    }
}

static void test_format_parses(void **state)
{
    (void)state;
    uint64_t random = 1;
    for (int i = 0; i < 2000; i++) {
        dm_dtype dtype;
        int ndim;
        int64_t shape[DM_MAX_DIMS], need = 0, count = 1;
        char buf[512];
        dmi_npy_info info;
        random_shape(&random, &dtype, &ndim, shape);
        for (int d = 0; d < ndim; d++) {
            count *= shape[d];
        }
        memset(buf, 'Z', sizeof buf);
        int length = dmi_npy_format(dtype, ndim, shape, i % 2, buf);
        assert_true(length % 64 == 0 && length <= 512 && buf[length - 1] == '\n' && buf[6] == 1);
        int64_t file = length + count * dmi_dtype_bytes(dtype);
        assert_int_equal(dmi_npy_parse(buf, length, file, &info, &need), DM_OK);
        dmi_npy_info wanted = {dtype, false, i % 2, ndim, {0}, count, length};
        memcpy(wanted.shape, shape, sizeof wanted.shape);
        assert_same(&info, &wanted);
    }
    char buf[512]; /* the longest */
    int64_t huge[DM_MAX_DIMS];
    for (int d = 0; d < DM_MAX_DIMS; d++) {
        huge[d] = INT64_MAX;
    }
    assert_true(dmi_npy_format(DM_BF16, DM_MAX_DIMS, huge, false, buf) <= 512);
}

/* NumPy loads files with our headers and finds the type, shape, order and values that are listed beside. */
static void test_numpy_reads_ours(void **state)
{
    (void)state;
    if (!numpy_there()) {
        skip();
    }
    enum { FILES = 150 };
    char list[FILES * 120];
    int used = 0;
    uint64_t random = 7;
    for (int i = 0; i < FILES; i++) {
        dm_dtype dtype;
        int ndim;
        int64_t shape[DM_MAX_DIMS], count = 1;
        char buf[512 + 400000], name[40];
        random_shape(&random, &dtype, &ndim, shape);
        for (int d = 0; d < ndim; d++) {
            count *= shape[d];
            shape[d] = count > 40000 ? 0 : shape[d];
        }
        count = ndim ? 1 : count;
        for (int d = 0; d < ndim; d++) {
            count *= shape[d];
        }
        int length = dmi_npy_format(dtype, ndim, shape, i % 2, buf);
        int64_t bytes = count * dmi_dtype_bytes(dtype);
        for (int64_t k = 0; k < bytes; k++) {
            buf[length + k] = (char)(k % 61);
        }
        snprintf(name, sizeof name, "ours%d.npy", i);
        write_file(name, buf, (size_t)(length + bytes));
        used += snprintf(list + used, sizeof list - (size_t)used, "%s %d", dmi_dtype_name(dtype), i % 2);
        for (int d = 0; d < ndim; d++) {
            used += snprintf(list + used, sizeof list - (size_t)used, " %" PRId64, shape[d]);
        }
        used += snprintf(list + used, sizeof list - (size_t)used, "\n");
    }
    write_file("list", list, (size_t)used);
    python_agrees(
        "import numpy as np\n"
        "codes = dict(f64='<f8', f32='<f4', f16='<f2', bf16='V2', i64='<i8', i32='<i4', u8='u1', bool='?',\n"
        "             i8='i1', i16='<i2', u16='<u2', u32='<u4', u64='<u8', c64='<c8', c128='<c16', "
        "f8e4m3='V1')\n"
        "for i, line in enumerate(open('list')):\n"
        "    dtype, fortran, *shape = line.split()\n"
        "    shape, order = tuple(map(int, shape)), 'F' if fortran == '1' else 'C'\n"
        "    a = np.load('ours%d.npy' % i)\n"
        "    with open('ours%d.npy' % i, 'rb') as f:\n"
        "        version = np.lib.format.read_magic(f)\n"
        "        head = np.lib.format.read_array_header_1_0(f)\n"
        "    raw = a.tobytes(order)\n"
        "    good = bytes(k % 61 for k in range(len(raw)))\n"
        "    if (a.dtype != np.dtype(codes[dtype]) or a.shape != shape or version != (1, 0)\n"
        "            or head[1] != (order == 'F') or raw != good):\n"
        "        print(i, line, a.dtype, a.shape, head)\n");
}

static const char *const numpy_writer =
    "import numpy as np, itertools, warnings\n"
    "warnings.simplefilter('ignore')\n"
    "names = dict(f8='f64', f4='f32', f2='f16', i8='i64', i4='i32', u1='u8', b1='bool', i1='i8', i2='i16',\n"
    "             u2='u16', u4='u32', u8='u64', c8='c64', c16='c128')\n"
    "shapes = [(), (1,), (0,), (7,), (3, 4), (0, 5), (5, 0), (2, 3, 4), (1, 2, 1, 3, 1, 2, 1, 2), (1000, 3)]\n"
    "n = 0\n"
    "with open('theirs', 'w') as out:\n"
    "    every = itertools.product(names, '<>', shapes, 'CF', [(1, 0), (2, 0), (3, 0), None])\n"
    "    for code, mark, shape, order, version in list(every)[::3]:\n" /* a third, of each kind */
    "        a = np.zeros(shape, dtype=mark + code, order=order)\n"
    "        path = 'theirs%d.npy' % n\n"
    "        n += 1\n"
    "        with open(path, 'wb') as f:\n"
    "            np.lib.format.write_array(f, a, version)\n"
    "            offset = f.tell() - a.nbytes\n"
    "        fortran = not a.flags.c_contiguous and a.flags.f_contiguous\n"
    "        big = mark == '>' and code[1:] != '1'\n"
    "        print(names[code], int(big), int(fortran), offset, len(shape), *shape, file=out)\n";

static void test_numpy_writes(void **state)
{
    (void)state;
    if (!numpy_there()) {
        skip();
    }
    python_agrees(numpy_writer);
    FILE *list = fopen(in_folder("theirs"), "r");
    assert_non_null(list);
    char dtype[10];
    int big, fortran, n = 0;
    dmi_npy_info wanted = {0}, info;
    while (fscanf(list, "%9s %d %d %" SCNd64 " %d", dtype, &big, &fortran, &wanted.data_offset, &wanted.ndim) ==
           5) {
        wanted.count = 1;
        for (int d = 0; d < DM_MAX_DIMS; d++) {
            wanted.shape[d] = 0;
            assert_true(d >= wanted.ndim || fscanf(list, "%" SCNd64, &wanted.shape[d]) == 1);
            wanted.count *= d < wanted.ndim ? wanted.shape[d] : 1;
        }
        wanted.big_endian = big;
        wanted.fortran_order = fortran;
        assert_true(dmi_dtype_parse(dtype, &wanted.dtype));
        char name[40];
        snprintf(name, sizeof name, "theirs%d.npy", n++);
        assert_int_equal(dmi_npy_read_header(in_folder(name), &info), DM_OK);
        assert_same(&info, &wanted);
    }
    fclose(list);
    assert_int_equal(n, (14 * 2 * 10 * 2 * 4 + 2) / 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_format_parses),
        cmocka_unit_test(test_numpy_reads_ours),
        cmocka_unit_test(test_numpy_writes),
    };
    return cmocka_run_group_tests(tests, make_folder, drop_folder);
}

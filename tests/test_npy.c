/* .npy headers: what NumPy writes, every way to be wrong, mutated ones, and NumPy reading ours. */
#include "io/npy.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PYTHON "/usr/bin/python3"
enum { HEADER_MOST = (1 << 20) + 12 };

static char folder[] = "/tmp/dmath-npy-XXXXXX";

static bool numpy_there(void)
{
    return system(PYTHON " -c 'import numpy' >/dev/null 2>&1") == 0;
}

static const char *in_folder(const char *name)
{
    static char path[200];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static void write_file(const char *name, const void *bytes, size_t count)
{
    FILE *file = fopen(in_folder(name), "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, count, file), count);
    assert_int_equal(fclose(file), 0);
}

/* Runs a Python program in the folder; what it prints must be empty. */
static void python_agrees(const char *program)
{
    char command[300], printed[4000];
    write_file("program.py", program, strlen(program));
    snprintf(command, sizeof command, "cd %s && " PYTHON " program.py 2>&1", folder);
    FILE *pipe = popen(command, "r");
    assert_non_null(pipe);
    size_t got = fread(printed, 1, sizeof printed - 1, pipe);
    printed[got] = 0;
    int rc = pclose(pipe);
    if (got > 0 || rc != 0) {
        fail_msg("python (rc %d): %s", rc, printed);
    }
}

/* A file's beginning, made by hand: the header padded with nothing. */
typedef struct sample {
    char *bytes;
    int64_t count;
} sample;

static sample sample_of(int version, const char *dict, int64_t length, int64_t data)
{
    int prelude = version == 1 ? 10 : 12;
    sample made = {malloc((size_t)(prelude + length + data)), prelude + length + data};
    assert_non_null(made.bytes);
    memcpy(made.bytes, "\223NUMPY", 6);
    made.bytes[6] = (char)version;
    made.bytes[7] = 0;
    for (int i = 0; i < prelude - 8; i++) {
        made.bytes[8 + i] = (char)(length >> (8 * i) & 0xff);
    }
    memcpy(made.bytes + prelude, dict, (size_t)length);
    memset(made.bytes + prelude + length, 0, (size_t)data);
    return made;
}

static dm_status parse_dict(int version, const char *dict, int64_t data, dmi_npy_info *info)
{
    sample made = sample_of(version, dict, (int64_t)strlen(dict), data);
    int64_t need = -1;
    dm_status status = dmi_npy_parse(made.bytes, made.count, made.count, info, &need);
    assert_true(status != DM_OK || need == 0);
    assert_true(status != DM_OK || info->data_offset == made.count - data);
    free(made.bytes);
    return status;
}

/* --- files as NumPy 1.24 wrote them ------------------------------------------------------------------- */
#define RAW(text) text, sizeof(text) - 1
static const struct {
    const char *bytes;
    int64_t count;
    dmi_npy_info info;
} written[] = {
    {RAW("\223NUMPY\001\000v\000{'descr': '<i4', 'fortran_order': False, 'shape': (2, 3), }   "
         "                                                       \012\000\000\000\000\001\000\000"
         "\000\002\000\000\000\003\000\000\000\004\000\000\000\005\000\000\000"),
     {DM_I32, false, false, 2, {2, 3}, 6, 128}},
    {RAW("\223NUMPY\002\000t\000\000\000{'descr': '>f2', 'fortran_order': True, 'shape': (2, 3"
         "), }                                                         \012\000\000B\000<\000D"
         "\000@\000E\000"),
     {DM_F16, true, true, 2, {2, 3}, 6, 128}},
    {RAW("\223NUMPY\003\000t\000\000\000{'descr': '<f8', 'fortran_order': False, 'shape': (), "
         "}                                                            \012\000\000\000\000\000"
         "\000\370\077"),
     {DM_F64, false, false, 0, {0}, 1, 128}},
    {RAW("\223NUMPY\001\000v\000{'descr': '|u1', 'fortran_order': False, 'shape': (0, 5), }   "
         "                                                       \012"),
     {DM_U8, false, false, 2, {0, 5}, 0, 128}},
};

static void assert_same(const dmi_npy_info *a, const dmi_npy_info *b)
{
    assert_int_equal(a->dtype, b->dtype);
    assert_int_equal(a->big_endian, b->big_endian);
    assert_int_equal(a->fortran_order, b->fortran_order);
    assert_int_equal(a->ndim, b->ndim);
    assert_memory_equal(a->shape, b->shape, sizeof a->shape);
    assert_true(a->count == b->count && a->data_offset == b->data_offset);
}

/* Whole, and fed in pieces of every length: what is asked for is always more and in the end enough. */
static void test_literal_files(void **state)
{
    (void)state;
    for (int i = 0; i < DMI_COUNT(written); i++) {
        for (int64_t first = 0; first <= written[i].count; first++) {
            dmi_npy_info info;
            int64_t have = first, need = 0;
            for (int steps = 0;; steps++) {
                assert_true(steps < 4);
                char *copy = malloc((size_t)have + 1); /* its end is watched by the sanitizer */
                memcpy(copy + 1, written[i].bytes, (size_t)have);
                assert_int_equal(dmi_npy_parse(copy + 1, have, written[i].count, &info, &need), DM_OK);
                free(copy);
                if (need == 0) {
                    break;
                }
                assert_true(need > have && need <= 128 && info.data_offset == 0);
                have = need;
            }
            assert_same(&info, &written[i].info);
        }
        /* cut anywhere it is an error, never a read beyond the end */
        for (int64_t left = 0; left < written[i].count; left++) {
            dmi_npy_info info;
            int64_t need = 0;
            assert_int_equal(dmi_npy_parse(written[i].bytes, left, left, &info, &need), DM_ERR_FORMAT);
        }
    }
}

/* --- by hand: what is accepted ------------------------------------------------------------------------ */
static const struct {
    const char *descr;
    dm_dtype dtype;
    bool big;
} descrs[] = {{"<f8", DM_F64, 0},  {">f8", DM_F64, 1},  {"=f8", DM_F64, 0},  {"f8", DM_F64, 0},
              {"|f8", DM_F64, 0},  {"<f4", DM_F32, 0},  {">f4", DM_F32, 1},  {"=f4", DM_F32, 0},
              {"<f2", DM_F16, 0},  {">f2", DM_F16, 1},  {"<i8", DM_I64, 0},  {">i8", DM_I64, 1},
              {"<i4", DM_I32, 0},  {">i4", DM_I32, 1},  {"|u1", DM_U8, 0},   {">u1", DM_U8, 0},
              {"<u1", DM_U8, 0},   {"u1", DM_U8, 0},    {"<V2", DM_BF16, 0}, {"|V2", DM_BF16, 0},
              {">V2", DM_BF16, 1}, {"=V2", DM_BF16, 0}, {"V2", DM_BF16, 0},  {"bfloat16", DM_BF16, 0}};

static void test_descrs(void **state)
{
    (void)state;
    for (int i = 0; i < DMI_COUNT(descrs); i++) {
        for (int version = 1; version <= 3; version++) {
            char dict[200];
            dmi_npy_info info;
            snprintf(dict, sizeof dict, "{'descr': '%s', 'fortran_order': True, 'shape': (7,), }\n",
                     descrs[i].descr);
            assert_int_equal(parse_dict(version, dict, 7 * dmi_dtype_bytes(descrs[i].dtype), &info), DM_OK);
            assert_int_equal(info.dtype, descrs[i].dtype);
            assert_int_equal(info.big_endian, descrs[i].big);
            assert_true(info.fortran_order && info.ndim == 1 && info.shape[0] == 7 && info.count == 7);
        }
    }
}

static const struct {
    const char *dict;
    int ndim;
    int64_t count;
} styles[] = {
    {"{'shape':(2,3),'fortran_order':False,'descr':'|u1'}", 2, 6},
    {"{\"shape\": (2, 3,), \"fortran_order\": False, \"descr\": \"|u1\"}", 2, 6},
    {"  {  'descr'  :  '|u1'  ,'shape' : ( 2 , 3 ) , 'fortran_order' :\tTrue\t}  \n\n", 2, 6},
    {"\n{'descr':\n'|u1',\r\n'shape':(\n2,\n),\f'fortran_order':True,}", 1, 2},
    {"{'descr': '''|u1''', 'shape': (), 'fortran_order': \"\"\"no\"\"\"}", -1, 0},
    {"{'''descr''': \"\"\"|u1\"\"\", 'shape': (), 'fortran_order': False}", 0, 1},
    {"{u'descr': u'|u1', r'shape': (0x10, 0o17, 0b11, 1_000), 'fortran_order': False}", 4, 720000},
    {"{'descr': '|u1', 'shape': (+3, 00, -0), 'fortran_order': False}", 3, 0},
    {"{'descr': '|u1', # type\n 'shape': (3,), # }\n 'fortran_order': False} # end", 1, 3},
    {"{'descr': '|u1', 'shape': (1, 1, 1, 1, 1, 1, 1, 2), 'fortran_order': False}", 8, 2},
    {"{'descr': '|u1', 'shape': (0, 9223372036854775807), 'fortran_order': False}", 2, 0},
};

static void test_styles(void **state)
{
    (void)state;
    for (int i = 0; i < DMI_COUNT(styles); i++) {
        dmi_npy_info info;
        dm_status status = parse_dict(2, styles[i].dict, styles[i].count, &info);
        if (styles[i].ndim < 0) {
            assert_int_equal(status, DM_ERR_FORMAT);
            continue;
        }
        if (status != DM_OK) {
            fail_msg("%s: %s", styles[i].dict, dmi_error_text());
        }
        assert_int_equal(info.ndim, styles[i].ndim);
        assert_true(info.count == styles[i].count);
    }
    dmi_npy_info info; /* the L of Python 2, in the versions it wrote */
    assert_int_equal(parse_dict(1, "{'descr':'|u1','shape':(2L,3L),'fortran_order':False}", 6, &info), DM_OK);
    assert_int_equal(parse_dict(3, "{'descr':'|u1','shape':(2L,3L),'fortran_order':False}", 6, &info),
                     DM_ERR_FORMAT);
}

/* --- what is refused, and with which words ------------------------------------------------------------ */
#define HEAD "{'fortran_order': False, 'descr': '<f4', 'shape': "
static const struct {
    const char *dict, *words;
} bad_dicts[] = {
    {"", "ends where a dictionary"},
    {"[1, 2]", "a dictionary should be"},
    {"('descr', '<f4')", "a dictionary"},
    {"{", "a key"},
    {"{}", "lacks the key 'descr'"},
    {"{'descr': '<f4', 'shape': (0,)}", "lacks the key 'fortran_order'"},
    {"{'descr': '<f4', 'fortran_order': False}", "lacks the key 'shape'"},
    {HEAD "(0,), 'shape': (0,)}", "'shape' twice"},
    {HEAD "(0,), 'extra': 1}", "unknown key 'extra'"},
    {HEAD "(0,), 'ex\033\377': 1}", "unknown key 'ex\\x1b\\xff'"},
    {"{descr: '<f4'}", "a key in quotes"},
    {"{'descr' '<f4'}", "a colon"},
    {"{'descr': '<f4' 'shape': ()}", "a comma"},
    {"{'descr': '<f4',, 'shape': ()}", "a key"},
    {"{,'descr': '<f4'}", "a key"},
    {"{'descr': '<f4", "descr '<f4 is not supported"},
    {"{'descr': ", "ends where descr"},
    {"{'descr': '<c16'}", "'<c16' is not supported"},
    {"{'descr': '<i2'}", "'<i2' is not supported"},
    {"{'descr': '<u8'}", "'<u8' is not supported"},
    {"{'descr': '|b1'}", "'|b1' is not supported"},
    {"{'descr': '|O'}", "'|O' is not supported"},
    {"{'descr': '<U5'}", "'<U5' is not supported"},
    {"{'descr': '|V4'}", "'|V4' is not supported"},
    {"{'descr': ''}", "'' is not supported"},
    {"{'descr': '<<f8'}", "'<<f8' is not supported"},
    {"{'descr': '!f8'}", "'!f8' is not supported"},
    {"{'descr': [('x', '<f4')]}", "[('x', '<f4')]} is not supported"},
    {"{'descr': 8}", "8} is not supported"},
    {"{'fortran_order': 1}", "fortran_order, True or False"},
    {"{'fortran_order': 'True'}", "fortran_order, True or False"},
    {"{'fortran_order': true}", "fortran_order, True or False"},
    {"{'fortran_order': Falsely}", "fortran_order, True or False"},
    {HEAD "(1)}", "not a tuple"},
    {HEAD "[1, 2]}", "a tuple"},
    {HEAD "3}", "a tuple"},
    {HEAD "None}", "a tuple"},
    {HEAD "(,)}", "a whole number"},
    {HEAD "(1,,2)}", "a whole number"},
    {HEAD "(1 2)}", "a comma"},
    {HEAD "(1, 2}", "a comma"},
    {HEAD "(1, 2", "a comma"},
    {HEAD "(1, ", "a whole number"},
    {HEAD "(1.0,)}", "a whole number"},
    {HEAD "(1e3,)}", "a whole number"},
    {HEAD "(07,)}", "a whole number"},
    {HEAD "(1__0,)}", "a whole number"},
    {HEAD "(1_,)}", "a whole number"},
    {HEAD "(_1,)}", "a whole number"},
    {HEAD "(0x,)}", "a whole number"},
    {HEAD "(0b2,)}", "a whole number"},
    {HEAD "(True,)}", "a whole number"},
    {HEAD "('1',)}", "a whole number"},
    {HEAD "(--1,)}", "a whole number"},
    {HEAD "(0, -1)}", "extent 1 of the shape is negative: -1"},
    {HEAD "(-99999999999999999999,)}", "extent 0 of the shape is negative"},
    {HEAD "(9223372036854775808,)}", "extent 0 of the shape is over 2^63 - 1"},
    {HEAD "(0xffffffffffffffff,)}", "over 2^63 - 1"},
    {HEAD "(184467440737095516160,)}", "over 2^63 - 1"}, /* 10 * 2^64 */
    {HEAD "(9223372036854775807,)}", "more than 2^63 - 1 bytes"},
    {HEAD "(4294967296, 536870912)}", "more than 2^63 - 1 bytes"},
    {HEAD "(4294967296, 4294967296, 0)}", "more than 2^63 - 1 bytes"},
    {HEAD "(1, 1, 1, 1, 1, 1, 1, 1, 1)}", "more than 8 dimensions"},
    {HEAD "(5, 7)}", "35 elements of f32 take 140 bytes, 0 follow"},
    {HEAD "(2305843009213693951,)}", "take 9223372036854775804 bytes, 0 follow"},
    {HEAD "(0,)} x", "the end of the header"},
    {HEAD "(0,)}}", "the end of the header"},
    {HEAD "(0,)};", "the end of the header"},
};

static void expect_words(dm_status status, const char *what, const char *words)
{
    if (status != DM_ERR_FORMAT || !strstr(dmi_error_text(), words)) {
        fail_msg("%s gives %s: %s (wanted: %s)", what, dmi_status_name(status), dmi_error_text(), words);
    }
}

static void test_bad_dicts(void **state)
{
    (void)state;
    for (int i = 0; i < DMI_COUNT(bad_dicts); i++) {
        dmi_npy_info info = {.ndim = 77};
        for (int version = 1; version <= 3; version++) {
            dmi_fail(DM_OK, "%s", "");
            expect_words(parse_dict(version, bad_dicts[i].dict, 0, &info), bad_dicts[i].dict,
                         bad_dicts[i].words);
            assert_int_equal(info.ndim, 77);
        }
    }
}

static dm_status parse_raw(const char *bytes, int64_t count, int64_t file_bytes)
{
    dmi_npy_info info;
    int64_t need = 0;
    char *copy = malloc((size_t)count + 1);
    memcpy(copy + 1, bytes, (size_t)count);
    dm_status status = dmi_npy_parse(copy + 1, count, file_bytes, &info, &need);
    free(copy);
    return status;
}

static void test_bad_framing(void **state)
{
    (void)state;
    expect_words(parse_raw("PK\003\004zip file", 12, 12), "zip", "does not begin");
    expect_words(parse_raw("x", 1, 1), "one byte", "does not begin");
    expect_words(parse_raw("", 0, 0), "nothing", "cut short");
    expect_words(parse_raw("\223NUMPY", 6, 6), "magic alone", "cut short");
    expect_words(parse_raw("\223NUMPZ\001\000v\000", 10, 500), "magic", "does not begin");
    expect_words(parse_raw("\223NUMPY\004\000v\000\000\000", 12, 500), "version", "4.0 is unknown");
    expect_words(parse_raw("\223NUMPY\000\000v\000\000\000", 12, 500), "version", "0.0 is unknown");
    expect_words(parse_raw("\223NUMPY\001\001v\000\000\000", 12, 500), "version", "1.1 is unknown");
    expect_words(parse_raw("\223NUMPY\001\000v\000", 10, 127), "length",
                 "takes 128 bytes, the file has only 127");
    expect_words(parse_raw("\223NUMPY\002\000\001\000\020\000", 12, 1 << 22), "size", "1048577 bytes, at most");
    expect_words(parse_raw("\223NUMPY\003\000\377\377\377\377", 12, INT64_MAX), "size", "4294967295 bytes");

    dmi_npy_info info;
    int64_t need = 0; /* the largest header is asked for */
    assert_int_equal(dmi_npy_parse("\223NUMPY\002\000\000\000\020\000", 12, 1 << 22, &info, &need), DM_OK);
    assert_true(need == HEADER_MOST && info.data_offset == 0);
}

/* --- headers we write --------------------------------------------------------------------------------- */
static void random_shape(uint64_t *random, dm_dtype *dtype, int *ndim, int64_t *shape)
{
    static const dm_dtype all[] = {DM_F64, DM_F32, DM_F16, DM_BF16, DM_I64, DM_I32, DM_U8};
    *random = *random * 6364136223846793005u + 1442695040888963407u;
    *dtype = all[(*random >> 33) % 7];
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
    python_agrees("import numpy as np\n"
                  "codes = dict(f64='<f8', f32='<f4', f16='<f2', bf16='V2', i64='<i8', i32='<i4', u8='u1')\n"
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

/* --- files NumPy writes now --------------------------------------------------------------------------- */
static const char *const numpy_writer =
    "import numpy as np, itertools, warnings\n"
    "warnings.simplefilter('ignore')\n"
    "names = dict(f8='f64', f4='f32', f2='f16', i8='i64', i4='i32', u1='u8')\n"
    "shapes = [(), (1,), (0,), (7,), (3, 4), (0, 5), (5, 0), (2, 3, 4), (1, 2, 1, 3, 1, 2, 1, 2), (1000, 3)]\n"
    "n = 0\n"
    "with open('theirs', 'w') as out:\n"
    "    for code, mark, shape, order, version in itertools.product(\n"
    "            names, '<>', shapes, 'CF', [(1, 0), (2, 0), (3, 0), None]):\n"
    "        a = np.zeros(shape, dtype=mark + code, order=order)\n"
    "        path = 'theirs%d.npy' % n\n"
    "        n += 1\n"
    "        with open(path, 'wb') as f:\n"
    "            np.lib.format.write_array(f, a, version)\n"
    "            offset = f.tell() - a.nbytes\n"
    "        fortran = not a.flags.c_contiguous and a.flags.f_contiguous\n"
    "        big = mark == '>' and code != 'u1'\n"
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
    assert_int_equal(n, 6 * 2 * 10 * 2 * 4);
}

/* --- files on disk ------------------------------------------------------------------------------------ */
static void expect_file(const char *path, dm_status wanted, const char *words)
{
    dmi_npy_info info = {.ndim = 55};
    dm_status status = dmi_npy_read_header(path, &info);
    if (status != wanted || !strstr(dmi_error_text(), words) || !strstr(dmi_error_text(), path)) {
        fail_msg("%s gives %s: %s", path, dmi_status_name(status), dmi_error_text());
    }
    assert_int_equal(info.ndim, 55);
}

static void test_read_header(void **state)
{
    (void)state;
    for (int i = 0; i < DMI_COUNT(written); i++) {
        dmi_npy_info info;
        write_file("one.npy", written[i].bytes, (size_t)written[i].count);
        assert_int_equal(dmi_npy_read_header(in_folder("one.npy"), &info), DM_OK);
        assert_same(&info, &written[i].info);
    }
    /* a header longer than the first piece that is read */
    static char dict[1 << 20];
    memset(dict, ' ', sizeof dict);
    const char *text = "{'descr': '<f8', 'fortran_order': False, 'shape': (2, 2)}";
    memcpy(dict + sizeof dict - 100, text, strlen(text));
    sample made = sample_of(2, dict, sizeof dict, 32);
    dmi_npy_info info;
    write_file("long.npy", made.bytes, (size_t)made.count);
    assert_int_equal(dmi_npy_read_header(in_folder("long.npy"), &info), DM_OK);
    assert_true(info.data_offset == HEADER_MOST && info.count == 4);
    write_file("long.npy", made.bytes, (size_t)made.count - 33);
    expect_file(in_folder("long.npy"), DM_ERR_FORMAT, "cut short");
    free(made.bytes);

    write_file("short.npy", written[0].bytes, (size_t)written[0].count - 1);
    expect_file(in_folder("short.npy"), DM_ERR_FORMAT, "6 elements of i32 take 24 bytes, 23 follow");
    write_file("empty.npy", "", 0);
    expect_file(in_folder("empty.npy"), DM_ERR_FORMAT, "cut short");
    expect_file(in_folder("nowhere.npy"), DM_ERR_IO, "No such file");
    expect_file(folder, DM_ERR_IO, "not a regular file");
    assert_int_equal(mkfifo(in_folder("pipe"), 0600), 0);
    expect_file(in_folder("pipe"), DM_ERR_IO, "not a regular file");
}

/* --- mutations ---------------------------------------------------------------------------------------- */
static uint64_t next(uint64_t *random, uint64_t below)
{
    *random = *random * 6364136223846793005u + 1442695040888963407u;
    return (*random >> 33) % below;
}

static const char *const seeds[] = {
    "{'descr': '<f8', 'fortran_order': False, 'shape': (3, 4), }      \n",
    "{'descr': '>f2', 'fortran_order': True, 'shape': (0x10, 1_0, 0), }\n",
    "{\"shape\": (), \"descr\": \"\"\"|u1\"\"\", # c\n \"fortran_order\": False}",
    "{'descr': '<V2', 'fortran_order': True, 'shape': (1,2,3,4,5,6,7,8)}",
    "{'shape': (9223372036854775807, -1), 'fortran_order': False, 'descr': 'bfloat16'}",
};
static const char *const pieces[] = {"'",  "\"", "'''", "(",  ")",  "{",     "}",       ",",    ":",    "-",
                                     "0x", "1_", "99",  "\\", "\n", "#",     "True",    "L",    " ",    "\t",
                                     "V2", "|",  "<i4", ">",  "=",  "shape", "'descr'", "(0,)", "\377", "e3"};

static int64_t mutate(uint64_t *random, char *text, int64_t length, int64_t room)
{
    for (int64_t edits = 1 + (int64_t)next(random, 4); edits > 0; edits--) {
        int64_t at = (int64_t)next(random, (uint64_t)length + 1);
        const char *piece = pieces[next(random, DMI_COUNT(pieces))];
        int64_t add = (int64_t)strlen(piece), cut = (int64_t)next(random, 4);
        switch (next(random, 4)) {
        case 0: /* another byte */
            if (at < length) {
                text[at] = (char)next(random, next(random, 3) ? 128 : 256);
            }
            break;
        case 1: /* a piece put in */
            if (length + add <= room) {
                memmove(text + at + add, text + at, (size_t)(length - at));
                memcpy(text + at, piece, (size_t)add);
                length += add;
            }
            break;
        case 2: /* a few bytes out */
            cut = DMI_MIN(cut, length - at);
            memmove(text + at, text + at + cut, (size_t)(length - at - cut));
            length -= cut;
            break;
        default: /* the end off, seldom */
            length = next(random, 4) ? length : at;
        }
    }
    return length;
}

static void check_accepted(const dmi_npy_info *info, int64_t have, int64_t file_bytes, int64_t need)
{
    if (need != 0) {
        assert_true(info->data_offset == 0 && need > have && need <= HEADER_MOST && need <= file_bytes);
        return;
    }
    assert_true(dmi_dtype_bytes(info->dtype) > 0);
    assert_in_range(info->ndim, 0, DM_MAX_DIMS);
    __extension__ __int128 bytes = dmi_dtype_bytes(info->dtype);
    for (int d = 0; d < DM_MAX_DIMS; d++) {
        assert_true(d < info->ndim ? info->shape[d] >= 0 : info->shape[d] == 0);
        bytes = d < info->ndim ? bytes * info->shape[d] : bytes;
        assert_true(bytes <= INT64_MAX);
    }
    assert_true(bytes == info->count * dmi_dtype_bytes(info->dtype));
    assert_true(info->data_offset >= 10 && info->data_offset <= have);
    assert_true(info->data_offset + bytes <= file_bytes);
}

/* What we make of it beside it, for NumPy to judge: whatever we accept it reads the same way
 * (but for blanks after the dictionary, which Python minds at the start of a line). */
static void record(FILE *file, const char *bytes, int64_t count, const dmi_npy_info *info)
{
    uint32_t length = (uint32_t)count;
    fwrite(&length, 4, 1, file);
    fwrite(bytes, 1, length, file);
    int64_t meaning[12] = {info->ndim, info->fortran_order, info->big_endian, info->dtype};
    memcpy(meaning + 4, info->shape, sizeof info->shape);
    fwrite(meaning, 8, 12, file);
}

static const char *const judge =
    "import numpy as np, io, struct, warnings\n"
    "warnings.simplefilter('ignore')\n"
    "codes = {1: 'f8', 2: 'f4', 3: 'f2', 4: 'V2', 5: 'i8', 6: 'i4', 7: 'u1'}\n"
    "data, at, n = open('accepted', 'rb').read(), 0, 0\n"
    "read = getattr(np.lib.format, '_read_array_header', None)\n"
    "while read and at < len(data):\n"
    "    count, = struct.unpack_from('<I', data, at)\n"
    "    header, at = data[at + 4:at + 4 + count], at + 4 + count\n"
    "    ndim, fortran, big, dtype, *shape = struct.unpack_from('<12q', data, at)\n"
    "    at += 96\n"
    "    header = header.rstrip(b' \\t\\n\\r\\f').ljust(count)\n"
    "    f = io.BytesIO(header.replace(b\"bfloat16'\", b\"V2'      \").replace(b'bfloat16\"', b'V2\"      "
    "'))\n"
    "    try:\n"
    "        got = read(f, np.lib.format.read_magic(f))\n"
    "    except Exception as e:\n"
    "        got = repr(e)\n"
    "    want = (tuple(shape[:ndim]), bool(fortran), np.dtype('<>'[big] + codes[dtype]))\n"
    "    if got != want:\n"
    "        print(header, got, want)\n";

static void test_mutations(void **state)
{
    (void)state;
    uint64_t random = 2024;
    int64_t accepted = 0;
    FILE *file = fopen(in_folder("accepted"), "wb");
    assert_non_null(file);
    for (int i = 0; i < 200000; i++) {
        char text[600];
        const char *seed = seeds[next(&random, DMI_COUNT(seeds))];
        memcpy(text, seed, strlen(seed));
        int64_t length = mutate(&random, text, (int64_t)strlen(seed), sizeof text);
        sample made = sample_of(1 + (int)next(&random, 3), text, length, 0);
        while (next(&random, 8) == 0) { /* the framing too */
            made.bytes[next(&random, 10)] = (char)next(&random, 256);
        }
        int64_t have = next(&random, 8) ? made.count : (int64_t)next(&random, (uint64_t)made.count + 1);
        int64_t beyond = (int64_t)next(&random, 400000), need = 0;
        char *exact = malloc((size_t)DMI_MAX(have, 1));
        memcpy(exact, made.bytes, (size_t)have);
        dmi_npy_info info;
        dm_status status = dmi_npy_parse(exact, have, made.count + beyond, &info, &need);
        assert_true(status == DM_OK || (status == DM_ERR_FORMAT && dmi_error_text()[0]));
        if (status == DM_OK) {
            check_accepted(&info, have, made.count + beyond, need);
            accepted += need == 0;
        }
        if (status == DM_OK && need == 0 && accepted < 20000) {
            record(file, exact, have, &info);
        }
        free(exact);
        free(made.bytes);
    }
    assert_int_equal(fclose(file), 0);
    assert_true(accepted > 5000); /* else the mutations are too wild to mean much */
    if (numpy_there()) {
        python_agrees(judge);
    }
}

static int make_folder(void **state)
{
    (void)state;
    return mkdtemp(folder) ? 0 : -1;
}

static int drop_folder(void **state)
{
    (void)state;
    char command[100];
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    return system(command);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_literal_files),    cmocka_unit_test(test_descrs),
        cmocka_unit_test(test_styles),           cmocka_unit_test(test_bad_dicts),
        cmocka_unit_test(test_bad_framing),      cmocka_unit_test(test_format_parses),
        cmocka_unit_test(test_numpy_reads_ours), cmocka_unit_test(test_numpy_writes),
        cmocka_unit_test(test_read_header),      cmocka_unit_test(test_mutations),
    };
    return cmocka_run_group_tests(tests, make_folder, drop_folder);
}

/* The source of elementwise programs and the boxes that their kernels get, without a GPU: the C++ compiler
 * compiles the source for the host, with stand-ins for what CUDA has, and threads run one after another, or,
 * where they meet at barriers, as threads of the host. Against the CPU's kernel. */
#include "map_cases.h"

#ifdef DMATH_WITH_CUDA
int main(void)
{
    return 0; /* tests/cuda/test_cuda_map_compiled.c has the real thing */
}
#else
/* Of the CUDA backend, which this build has not. */
#include "kernels/box/geometry_cuda.c"
#include "kernels/ewise/map_compiled_cuda.c"
#include "kernels/ewise/map_places_cuda.c"

#include <dlfcn.h>
#include <unistd.h>

enum { PLAIN, TILES };
typedef void host_run(int groups, unsigned blocks, const void *args);
static host_run *current[2]; /* of a plain source, and of one for tiles; NULL: there is none */

bool dmi_cuda_map_kernels(dmi_queue *q, const dmi_map *d, bool tiles, int64_t bytes, dmi_map_kernels *out)
{
    static int name[2][2];
    (void)q, (void)d, (void)bytes;
    *out = (dmi_map_kernels){&name[tiles][0], &name[tiles][1]};
    return current[tiles] != NULL;
}

static int64_t launches[2][2]; /* [tiles][groups] */

void dmi_cuda_map_launch(dmi_queue *q, void *kernel, unsigned blocks, void *args)
{
    dmi_map_kernels plain, tiles;
    (void)dmi_cuda_map_kernels(q, NULL, false, 0, &plain);
    (void)dmi_cuda_map_kernels(q, NULL, true, 0, &tiles);
    bool is_tiles = kernel == tiles.groups || kernel == tiles.items,
         is_groups = kernel == plain.groups || kernel == tiles.groups;
    launches[is_tiles][is_groups]++;
    current[is_tiles](is_groups, blocks, args);
}

/* Conversions of f16 are instructions of a GPU: cases have none. */
static const char before[] =
    "#include <math.h>\n#include <pthread.h>\n#include <stdint.h>\n#include <string.h>\n#include "
    "<thread>\n#include <vector>\n"
    "#define __shared__ static\n#define __syncthreads() (void)pthread_barrier_wait(&barrier)\n"
    "static pthread_barrier_t barrier;\n"
    "#define __device__\n#define __global__\n#define __forceinline__ inline\n#define __noinline__\n"
    "#define __launch_bounds__(n)\n#define __grid_constant__\n#define asm(...)\n"
    "static thread_local struct { unsigned x; } blockIdx, threadIdx;\n"
    "template <typename T, typename F> static T bits(F v) { T r; memcpy(&r, &v, sizeof r); return r; }\n"
    "#define __double_as_longlong(v) bits<long long>((double)(v))\n"
    "#define __longlong_as_double(v) bits<double>((long long)(v))\n"
    "#define __float_as_uint(v) bits<unsigned>((float)(v))\n#define __float_as_int(v) bits<int>((float)(v))\n"
    "#define __uint_as_float(v) bits<float>((unsigned)(v))\n"
    "#define __double2hiint(v) ((int)(__double_as_longlong(v) >> 32))\n"
    "#define __double2loint(v) ((int)__double_as_longlong(v))\n"
    "#define __hiloint2double(h, l) __longlong_as_double((unsigned long long)(unsigned)(h) << 32 | "
    "(unsigned)(l))\n"
    "template <typename T> static T clamped(double v, double low, double high, T least, T most)\n"
    "{ return v <= low ? least : v >= high ? most : (T)v; }\n"
    "#define __double2ll_rz(v) clamped<long long>(v, -0x1p63, 0x1p63, INT64_MIN, INT64_MAX)\n"
    "#define __double2ull_rz(v) clamped<unsigned long long>(v, 0, 0x1p64, 0, UINT64_MAX)\n"
    "#define __double2int_rz(v) clamped<int>(v, -0x1p31, 0x1p31, INT32_MIN, INT32_MAX)\n"
    "#define __double2uint_rz(v) clamped<unsigned>(v, 0, 0x1p32, 0, UINT32_MAX)\n"
    "#define __float2ll_rz __double2ll_rz\n#define __float2int_rz __double2int_rz\n"
    "#define __double2float_rn(v) ((float)(v))\n#define __frcp_rn(v) (1.0f / (v))\n#define __fma_rn fma\n"
    "static double __dadd_rn(double a, double b) { return a + b; }\n"
    "static double __dsub_rn(double a, double b) { return a - b; }\n"
    "static double __dmul_rn(double a, double b) { return a * b; }\n"
    "static float __fadd_rn(float a, float b) { return a + b; }\n"
    "static float __fsub_rn(float a, float b) { return a - b; }\n"
    "static float __fmul_rn(float a, float b) { return a * b; }\n"
    "#define __fmaf_rn fmaf\n#define __int_as_float(v) bits<float>((int)(v))\n";
static const char after_plain[] =
    "extern \"C\" void host_run(int groups, unsigned blocks, const dmi_map_args *p)\n"
    "{ for (blockIdx.x = 0; blockIdx.x < blocks; blockIdx.x++)\n"
    "  for (threadIdx.x = 0; threadIdx.x < 256; threadIdx.x++)\n"
    "  { if (groups) dmath_map_groups(*p); else dmath_map_items(*p); } }\n";
static const char after_tiles[] =
    "extern \"C\" void host_run(int groups, unsigned blocks, const dmi_tile_args *p)\n"
    "{ std::vector<std::thread> all;\n"
    "  pthread_barrier_init(&barrier, NULL, 256);\n"
    "  for (unsigned thread = 0; thread < 256; thread++)\n"
    "    all.emplace_back([=] { threadIdx.x = thread;\n"
    "      for (unsigned block = 0; block < blocks; block++) {\n"
    "        blockIdx.x = block;\n"
    "        if (groups) dmath_tiles_of_groups(*p); else dmath_tiles_of_items(*p);\n"
    "        __syncthreads(); } });\n"
    "  for (std::thread &t : all) t.join();\n"
    "  pthread_barrier_destroy(&barrier); }\n";

static bool is_half(int dtype)
{
    return dtype == DM_F16 || dtype == DM_F8E4M3 || dtype == DM_F8E5M2;
}

static bool suits(const dmi_map *d)
{
    bool fine = dmi_map_has_source(d);
    for (int s = 0; s < dmi_map_sides(&d->program); s++) {
        bool closed = s >= d->program.inputs && d->dtype[s] == DM_BF16; /* a result, by one instruction */
        fine = fine && !is_half((int)d->dtype[s]) && !closed;
    }
    for (int i = 0; i < d->program.steps; i++) {
        fine = fine && (d->program.step[i].row != DMI_EW_CAST || !is_half(d->program.step[i].via));
    }
    return fine;
}

/* NULL: there is no C++ compiler. */
static void *compile(const dmi_map *d, bool tiles, const char *folder)
{
    char path[200], command[700];
    const char *name = tiles ? "tiles" : "map"; /* a library that is open is found by its name */
    char *source = tiles ? dmi_map_tile_source(d) : dmi_map_source(d);
    assert_non_null(source);
    snprintf(path, sizeof path, "%s/map.cc", folder);
    FILE *to = fopen(path, "w");
    assert_non_null(to);
    fprintf(to, "%s%s%s", before, source, tiles ? after_tiles : after_plain);
    fclose(to);
    free(source);
    snprintf(command, sizeof command,
             "c++ -std=c++17 -w -O0 -ffp-contract=off -pthread -fPIC -shared -o %s/%s.so %s", folder, name,
             path);
    void *library = NULL;
    if (system("c++ --version >/dev/null 2>&1") == 0) {
        assert_int_equal(system(command), 0);
        snprintf(path, sizeof path, "%s/%s.so", folder, name);
        library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
        assert_non_null(library);
        unlink(path);
    }
    snprintf(path, sizeof path, "%s/map.cc", folder);
    unlink(path);
    return library;
}

/* Aligned, as memory of GPUs is. */
static void *copy_of(const void *data, int64_t bytes)
{
    void *p = NULL;
    assert_int_equal(posix_memalign(&p, 256, (size_t)bytes + 1), 0);
    memcpy(p, data, (size_t)bytes);
    return p;
}

static void run_box(rng *r, map_case *c)
{
    int out = c->d.program.inputs;
    int sides = dmi_map_sides(&c->d.program);
    void *at[DMI_MAP_SIDES], *other[DMI_MAP_SIDES];
    dmi_kernel_call call = {.desc = &c->d, .number = c->m.number, .numbers = c->m.numbers};
    for (int k = 0; k < c->d.ndim; k++) {
        if (c->d.extent[k] == 0) {
            return;
        }
    }
    for (int s = 0; s < sides; s++) {
        at[s] = c->span[s] < 0 ? NULL : random_array(r, c->d.dtype[s], c->span[s]);
        other[s] = at[s] ? copy_of(at[s], c->span[s] * width_of(c->d.dtype[s])) : NULL;
    }
    at[0] = at[0] ? at[0] : at[out];
    other[0] = other[0] ? other[0] : other[out];
    memcpy(call.at, other, sizeof other);
    assert_true(dmi_cuda_map_compiled(&call, &c->d));
    dmi_run_map(dmi_backend_cpu(), NULL, &c->d, c->m.number, c->m.numbers, at);
    for (int s = out; s < sides; s++) {
        check_parts("compiled for the host", c->d.dtype[s], other[s], at[s], c->span[s]);
    }
    for (int s = out > 0 && c->span[0] < 0; s < sides; s++) {
        free(at[s]);
        free(other[s]);
    }
}

static void dense_box(map_case *c, int64_t n, int64_t rows, int first)
{
    int out = c->d.program.inputs;
    memset(c->d.stride, 0, sizeof c->d.stride);
    memset(c->d.offset, 0, sizeof c->d.offset);
    c->d.ndim = 2;
    c->d.extent[0] = rows;
    c->d.extent[1] = n;
    for (int s = 0; s < dmi_map_sides(&c->d.program);
         s++) { /* the inputs in turn, from `first` on: a matrix, a row to every row, one of each row */
        int form = s >= out ? 0 : (s + first) % 3;
        c->d.stride[s][0] = form == 1 ? 0 : form == 2 ? 1 : n;
        c->d.stride[s][1] = form == 2 ? 0 : 1;
        c->span[s] = n * rows;
    }
}

static void test_programs(void **state)
{
    (void)state;
    const char *cases = getenv("DMATH_TEST_CASES");
    int rounds = cases ? (int)(12 * atof(cases)) : 12;
    char folder[] = "/tmp/dmath-map-XXXXXX";
    rng r = {31};
    assert_non_null(mkdtemp(folder));
    for (int round = 0; round < rounds; round++) {
        map_case c;
        do {
            map_case_random(&r, &c, (int)rng_in(&r, 1, 3), false);
            if (round % 3 > 0) { /* tiles have one result */
                map_keep(&r, &c);
            }
        } while (!suits(&c.d) || c.d.program.inputs == 0);
        void *library[2];
        const bool with_tiles = round % 3 == 0; /* their barriers take long here */
        current[TILES] = NULL;
        for (int tiles = 0; tiles < 1 + with_tiles; tiles++) {
            library[tiles] = compile(&c.d, tiles, folder);
            if (!library[tiles]) {
                rmdir(folder);
                skip();
            }
            *(void **)&current[tiles] = dlsym(library[tiles], "host_run");
            assert_non_null(current[tiles]);
        }
        for (int box = 0; box < 40; box++) {
            int ndim = (int)rng_in(&r, 0, 4);
            map_box(&r, &c, ndim, ndim <= 1 ? 3000 : ndim == 2 ? 70 : 9, box % 3 == 0);
            run_box(&r, &c);
            c.m.number[box % 3] = dmi_number_of((double)rng_in(&r, -3, 9));
        }
        for (int box = 0; box < 10; box++) {
            dense_box(&c, 16 * rng_in(&r, 1, 100) + (box == 3 ? 5 : 0), rng_in(&r, 1, 20), box);
            run_box(&r, &c);
        }
        for (int box = 0; box < 4 && with_tiles; box++) {
            map_turned_box(&r, &c, box % 2);
            run_box(&r, &c);
        }
        dlclose(library[PLAIN]);
        if (with_tiles) {
            dlclose(library[TILES]);
        }
    }
    rmdir(folder);
    for (int kind = 0; kind < 4; kind++) {
        assert_true(launches[kind / 2][kind % 2] > 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_programs)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
#endif

/* libhdf5: the one place that calls it. */
#include "data/hdf5.h"

#ifdef NN_HAVE_HDF5
#include <errno.h>
#include <hdf5.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of the library, and of these: */
static bool begun, any_broken;

struct nn_hdf5 {
    char *path;
    dm_file *made; /* a new file; NULL of one that is read */
    hid_t file;
    bool broken; /* something could not be written */
};

/* The library ends itself when the program does. Where a disk was full it cannot (1.10.8 reads freed memory),
 * so it must not. */
static void end_library(void)
{
    if (!any_broken) {
        H5close();
    }
}

static void enter(void)
{
    pthread_mutex_lock(&lock);
    if (!begun) { /* fails where the program has used the library before */
        begun = true;
        if (H5dont_atexit() >= 0) {
            (void)atexit(end_library);
        }
    }
    H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
}

static void leave(void)
{
    pthread_mutex_unlock(&lock);
}

static dm_status h5_failed(nn_hdf5 *f, const char *name, const char *what)
{
    f->broken = f->made != NULL;
    return dm_error_set(f->made ? DM_ERR_IO : DM_ERR_FORMAT, "%s: '%s' %s", f->path, name, what);
}

static void free_file(nn_hdf5 *f)
{
    dm_file_drop(f->made);
    free(f->path);
    free(f);
}

static dm_status new_file(const char *path, nn_hdf5 **out)
{
    nn_hdf5 *f = calloc(1, sizeof *f);
    if (!f || !(f->path = strdup(path))) {
        free(f);
        return dm_error_no_memory("an HDF5 file", sizeof *f + strlen(path) + 1);
    }
    *out = f;
    return DM_OK;
}

dm_status nn_hdf5_open(const char *path, nn_hdf5 **out)
{
    nn_hdf5 *f = NULL;
    dm_status status = new_file(path, &f);
    if (status != DM_OK) {
        return status;
    }
    if (access(path, R_OK) != 0) {
        status = dm_error_set(DM_ERR_IO, "%s: cannot be read: %s", path, strerror(errno));
    } else {
        enter();
        f->file = H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT);
        leave();
        status = f->file < 0 ? dm_error_set(DM_ERR_FORMAT, "%s: is no HDF5 file", path) : DM_OK;
    }
    if (status != DM_OK) {
        free_file(f);
        return status;
    }
    *out = f;
    return DM_OK;
}

dm_status nn_hdf5_create(const char *path, nn_hdf5 **out)
{
    nn_hdf5 *f = NULL;
    dm_status status = new_file(path, &f);
    if (status != DM_OK) {
        return status;
    }
    status = nn_file_begin(path, &f->made);
    if (status == DM_OK) {
        enter();
        f->file = H5Fcreate(dm_file_path(f->made), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
        leave();
        status = f->file < 0 ? dm_error_set(DM_ERR_IO, "%s: cannot be written", path) : DM_OK;
    }
    if (status != DM_OK) {
        free_file(f);
        return status;
    }
    *out = f;
    return DM_OK;
}

dm_status nn_hdf5_close(nn_hdf5 *f, dm_status status)
{
    if (!f) {
        return status;
    }
    enter();
    bool well = !f->broken && (!f->made || H5Fflush(f->file, H5F_SCOPE_GLOBAL) >= 0);
    if (well || !f->made) {
        well = H5Fclose(f->file) >= 0 && well;
    }
    any_broken = any_broken || (f->made && !well); /* then the library keeps it */
    leave();
    if (f->made && status == DM_OK && !well) {
        status = dm_error_set(DM_ERR_IO, "%s: cannot be written", f->path);
    } else if (f->made && status == DM_OK) {
        status = nn_file_finish(f->path, f->made);
        f->made = NULL;
    }
    free_file(f);
    return status;
}

const char *nn_hdf5_path(const nn_hdf5 *f)
{
    return f->path;
}

/* --- reading */
bool nn_hdf5_has(nn_hdf5 *f, const char *name)
{
    char part[512];
    bool there = strlen(name) < sizeof part;
    enter();
    for (const char *at = name; there && at;
         at = strchr(at + 1, '/')) { /* the library asks for each group of a path */
        const char *end = strchr(at + 1, '/');
        snprintf(part, sizeof part, "%.*s", (int)(end ? end - name : (ptrdiff_t)strlen(name)), name);
        there = H5Lexists(f->file, part, H5P_DEFAULT) > 0;
    }
    leave();
    return there;
}

typedef struct names {
    char *text;
    size_t length;
} names;

static herr_t add_array(hid_t group, const char *name, const H5L_info_t *info, void *context)
{
    names *n = context;
    const size_t more = strlen(name) + 1;
    (void)info;
    const hid_t object = H5Oopen(group, name, H5P_DEFAULT);
    const bool array = object >= 0 && H5Iget_type(object) == H5I_DATASET;
    if (object >= 0) {
        H5Oclose(object);
    }
    char *text = array ? realloc(n->text, n->length + more + 1) : n->text;
    if (!text) {
        return -1;
    }
    n->text = text;
    if (array) {
        memcpy(text + n->length, name, more);
        n->length += more;
        text[n->length] = 0;
    }
    return 0;
}

dm_status nn_hdf5_arrays(nn_hdf5 *f, const char *group, char **out)
{
    names n = {calloc(1, 1), 0};
    if (!n.text) {
        return dm_error_no_memory("names", 1);
    }
    enter();
    const bool well =
        H5Lvisit_by_name(f->file, group, H5_INDEX_NAME, H5_ITER_INC, add_array, &n, H5P_DEFAULT) >= 0;
    leave();
    if (!well) {
        free(n.text);
        return h5_failed(f, group, "cannot be listed");
    }
    *out = n.text;
    return DM_OK;
}

typedef struct opened {
    hid_t set, space, type;
} opened;

static void close_set(opened o)
{
    if (o.type >= 0) {
        H5Tclose(o.type);
    }
    if (o.space >= 0) {
        H5Sclose(o.space);
    }
    if (o.set >= 0) {
        H5Dclose(o.set);
    }
}

static opened open_set(const nn_hdf5 *f, const char *name)
{
    opened o = {H5Dopen2(f->file, name, H5P_DEFAULT), -1, -1};
    if (o.set >= 0) {
        o.space = H5Dget_space(o.set);
        o.type = H5Dget_type(o.set);
    }
    return o;
}

static bool is_number(opened o)
{
    H5T_class_t class = o.type >= 0 ? H5Tget_class(o.type) : H5T_NO_CLASS;
    return o.space >= 0 && (class == H5T_FLOAT || class == H5T_INTEGER);
}

dm_status nn_hdf5_shape(nn_hdf5 *f, const char *name, int *ndim, int64_t shape[DM_MAX_DIMS])
{
    hsize_t dims[H5S_MAX_RANK];
    enter();
    opened o = open_set(f, name);
    const bool there = o.set >= 0;
    int n = is_number(o) ? H5Sget_simple_extent_ndims(o.space) : -1;
    n = n >= 0 && n <= DM_MAX_DIMS ? H5Sget_simple_extent_dims(o.space, dims, NULL) : -1;
    close_set(o);
    leave();
    for (int d = 0; d < n; d++) {
        if (dims[d] > (hsize_t)1 << 40) {
            n = -1;
            break;
        }
        shape[d] = (int64_t)dims[d];
    }
    *ndim = n;
    return n >= 0 ? DM_OK
                  : h5_failed(f, name, there ? "is no array of numbers in at most 8 dims" : "is not there");
}

static dm_status read_as(nn_hdf5 *f, const char *name, hid_t type, int64_t count, void *out)
{
    enter();
    opened o = open_set(f, name);
    bool fits = is_number(o) && H5Sget_simple_extent_npoints(o.space) == count;
    bool well = fits && H5Dread(o.set, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, out) >= 0;
    close_set(o);
    leave();
    return well   ? DM_OK
           : fits ? h5_failed(f, name, "cannot be read")
                  : h5_failed(f, name, "is not there, is no array of numbers, or has another shape");
}

dm_status nn_hdf5_read(nn_hdf5 *f, const char *name, int64_t count, float *out)
{
    return read_as(f, name, H5T_NATIVE_FLOAT, count, out);
}

dm_status nn_hdf5_read_row(nn_hdf5 *f, const char *name, int ndim, const int64_t *shape, int64_t row,
                           float *out)
{
    hsize_t dims[DM_MAX_DIMS] = {1}, start[DM_MAX_DIMS] = {(hsize_t)row};
    for (int d = 1; d < ndim; d++) {
        dims[d] = (hsize_t)shape[d];
    }
    enter();
    opened o = open_set(f, name);
    hid_t part = H5Screate_simple(ndim, dims, NULL);
    bool well = is_number(o) && H5Sget_simple_extent_ndims(o.space) == ndim &&
                H5Sselect_hyperslab(o.space, H5S_SELECT_SET, start, NULL, dims, NULL) >= 0 &&
                H5Dread(o.set, H5T_NATIVE_FLOAT, part, o.space, H5P_DEFAULT, out) >= 0;
    H5Sclose(part);
    close_set(o);
    leave();
    return well ? DM_OK : h5_failed(f, name, "cannot be read");
}

dm_status nn_hdf5_read_int(nn_hdf5 *f, const char *name, int64_t *out)
{
    return read_as(f, name, H5T_NATIVE_INT64, 1, out);
}

dm_status nn_hdf5_read_text(nn_hdf5 *f, const char *name, char *out, size_t room)
{
    enter();
    opened o = open_set(f, name);
    bool fits = o.type >= 0 && H5Tget_class(o.type) == H5T_STRING && H5Tis_variable_str(o.type) == 0 &&
                H5Tget_size(o.type) < room && H5Sget_simple_extent_npoints(o.space) == 1;
    bool well = fits && H5Dread(o.set, o.type, H5S_ALL, H5S_ALL, H5P_DEFAULT, out) >= 0;
    if (well) {
        out[H5Tget_size(o.type)] = 0;
    }
    close_set(o);
    leave();
    return well ? DM_OK : h5_failed(f, name, "is no text");
}

/* --- writing */
static hid_t new_set(const nn_hdf5 *f, const char *name, hid_t type, hid_t space, hid_t creation)
{
    hid_t links = H5Pcreate(H5P_LINK_CREATE);
    H5Pset_create_intermediate_group(links, 1);
    hid_t set = H5Dcreate2(f->file, name, type, space, links, creation, H5P_DEFAULT);
    H5Pclose(links);
    return set;
}

static dm_status write_as(nn_hdf5 *f, const char *name, hid_t type, int ndim, const int64_t *shape,
                          const void *data)
{
    hsize_t dims[DM_MAX_DIMS + 1] = {0};
    for (int d = 0; d < ndim; d++) {
        dims[d] = (hsize_t)shape[d];
    }
    enter();
    hid_t space = ndim ? H5Screate_simple(ndim, dims, NULL) : H5Screate(H5S_SCALAR);
    hid_t set = new_set(f, name, type, space, H5P_DEFAULT);
    bool well = set >= 0 && H5Dwrite(set, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, data) >= 0;
    well = set >= 0 && H5Dclose(set) >= 0 && well;
    H5Sclose(space);
    leave();
    return well ? DM_OK : h5_failed(f, name, "cannot be written");
}

dm_status nn_hdf5_write(nn_hdf5 *f, const char *name, int ndim, const int64_t *shape, const float *data)
{
    return write_as(f, name, H5T_NATIVE_FLOAT, ndim, shape, data);
}

dm_status nn_hdf5_write_int(nn_hdf5 *f, const char *name, int64_t value)
{
    return write_as(f, name, H5T_NATIVE_INT64, 1, (int64_t[]){1}, &value);
}

dm_status nn_hdf5_write_text(nn_hdf5 *f, const char *name, const char *text)
{
    enter();
    hid_t type = H5Tcopy(H5T_C_S1);
    H5Tset_size(type, strlen(text) + 1);
    leave();
    dm_status status = write_as(f, name, type, 0, NULL, text);
    enter();
    H5Tclose(type);
    leave();
    return status;
}

/* A set that grows along dim 0, in chunks of the first rows. */
static hid_t growing_set(const nn_hdf5 *f, const char *name, int ndim, const hsize_t *dims)
{
    hsize_t none[DM_MAX_DIMS + 1], most[DM_MAX_DIMS + 1];
    memcpy(none, dims, (size_t)ndim * sizeof *none);
    memcpy(most, dims, (size_t)ndim * sizeof *most);
    none[0] = 0;
    most[0] = H5S_UNLIMITED;
    hid_t space = H5Screate_simple(ndim, none, most), creation = H5Pcreate(H5P_DATASET_CREATE);
    H5Pset_chunk(creation, ndim, dims);
    hid_t set = new_set(f, name, H5T_NATIVE_FLOAT, space, creation);
    H5Pclose(creation);
    H5Sclose(space);
    return set;
}

static bool append(const nn_hdf5 *f, bool there, const char *name, int ndim, const hsize_t *dims,
                   const float *data)
{
    hsize_t size[DM_MAX_DIMS + 1] = {0}, start[DM_MAX_DIMS + 1] = {0};
    hid_t set = there ? H5Dopen2(f->file, name, H5P_DEFAULT) : growing_set(f, name, ndim, dims);
    hid_t space = set >= 0 ? H5Dget_space(set) : -1;
    bool well = space >= 0 && H5Sget_simple_extent_dims(space, size, NULL) == ndim;
    start[0] = size[0];
    size[0] += dims[0];
    well = well && H5Dset_extent(set, size) >= 0;
    hid_t whole = well ? H5Dget_space(set) : -1, part = H5Screate_simple(ndim, dims, NULL);
    well = well && H5Sselect_hyperslab(whole, H5S_SELECT_SET, start, NULL, dims, NULL) >= 0;
    well = well && H5Dwrite(set, H5T_NATIVE_FLOAT, part, whole, H5P_DEFAULT, data) >= 0;
    const hid_t spaces[] = {space, whole, part};
    for (int i = 0; i < NN_COUNT(spaces); i++) {
        if (spaces[i] >= 0) {
            H5Sclose(spaces[i]);
        }
    }
    return set >= 0 && H5Dclose(set) >= 0 && well;
}

dm_status nn_hdf5_append(nn_hdf5 *f, const char *name, int ndim, const int64_t *shape, const float *data)
{
    hsize_t dims[DM_MAX_DIMS + 1] = {1};
    bool there = nn_hdf5_has(f, name);
    for (int d = 0; d < ndim; d++) {
        dims[d] = (hsize_t)shape[d];
    }
    enter();
    bool well = append(f, there, name, ndim ? ndim : 1, dims, data);
    leave();
    return well ? DM_OK : h5_failed(f, name, "cannot be written");
}

#else

static dm_status missing(const char *path)
{
    return dm_error_set(DM_ERR_UNSUPPORTED,
                        "%s: dmath was built without HDF5: install libhdf5-dev and build it again", path);
}

dm_status nn_hdf5_open(const char *path, nn_hdf5 **out)
{
    (void)out;
    return missing(path);
}

dm_status nn_hdf5_create(const char *path, nn_hdf5 **out)
{
    (void)out;
    return missing(path);
}

dm_status nn_hdf5_close(nn_hdf5 *file, dm_status status)
{
    (void)file;
    return status;
}

const char *nn_hdf5_path(const nn_hdf5 *file)
{
    (void)file;
    return "";
}

bool nn_hdf5_has(nn_hdf5 *file, const char *name)
{
    (void)file, (void)name;
    return false;
}

dm_status nn_hdf5_arrays(nn_hdf5 *file, const char *group, char **names)
{
    (void)file, (void)names;
    return missing(group);
}

dm_status nn_hdf5_shape(nn_hdf5 *file, const char *name, int *ndim, int64_t shape[DM_MAX_DIMS])
{
    (void)file, (void)ndim, (void)shape;
    return missing(name);
}

dm_status nn_hdf5_read(nn_hdf5 *file, const char *name, int64_t count, float *out)
{
    (void)file, (void)count, (void)out;
    return missing(name);
}

dm_status nn_hdf5_read_row(nn_hdf5 *file, const char *name, int ndim, const int64_t *shape, int64_t row,
                           float *out)
{
    (void)file, (void)ndim, (void)shape, (void)row, (void)out;
    return missing(name);
}

dm_status nn_hdf5_read_int(nn_hdf5 *file, const char *name, int64_t *out)
{
    (void)file, (void)out;
    return missing(name);
}

dm_status nn_hdf5_read_text(nn_hdf5 *file, const char *name, char *out, size_t room)
{
    (void)file, (void)out, (void)room;
    return missing(name);
}

dm_status nn_hdf5_write(nn_hdf5 *file, const char *name, int ndim, const int64_t *shape, const float *data)
{
    (void)file, (void)ndim, (void)shape, (void)data;
    return missing(name);
}

dm_status nn_hdf5_write_int(nn_hdf5 *file, const char *name, int64_t value)
{
    (void)file, (void)value;
    return missing(name);
}

dm_status nn_hdf5_write_text(nn_hdf5 *file, const char *name, const char *text)
{
    (void)file, (void)text;
    return missing(name);
}

dm_status nn_hdf5_append(nn_hdf5 *file, const char *name, int ndim, const int64_t *shape, const float *data)
{
    (void)file, (void)ndim, (void)shape, (void)data;
    return missing(name);
}
#endif

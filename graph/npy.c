/* .npy files. Invariant: no length that a file states is used before it was held against the bytes
 * that are there; a file under its final name is complete. */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/text.h"
#include "graph/file.h"
#include "graph/npy.h"
#include "ops/cast.h"

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "the elements are read and written as they are, which wants a little-endian machine"
#endif

#define MAGIC_BYTES 6
static const unsigned char magic[MAGIC_BYTES] = {0x93, 'N', 'U', 'M', 'P', 'Y'};

struct npy_dtype {
    const char *descr;
    enum troupe_dtype dtype;
};
static const struct npy_dtype npy_dtypes[] = {
    {"<f2", TROUPE_FLOAT16}, {"<f4", TROUPE_FLOAT32}, {"<f8", TROUPE_FLOAT64},
    {"<i4", TROUPE_INT32},   {"<i8", TROUPE_INT64},   {"|u1", TROUPE_UINT8},
    {"|b1", TROUPE_BOOL},    {"<u1", TROUPE_UINT8},   {"<b1", TROUPE_BOOL},
};
#define NPY_DTYPE_COUNT (sizeof(npy_dtypes) / sizeof(npy_dtypes[0]))

/* What the header says. */
struct npy_header {
    char descr[16];
    bool fortran, has_descr, has_order, has_shape;
    int rank;
    int64_t dims[TROUPE_RANK_MAX];
};

/* A walk over the header's text, a Python dict of literals. */
struct scan {
    const char *at, *end;
};

static void scan_space(struct scan *scan)
{
    while (scan->at < scan->end && (*scan->at == ' ' || *scan->at == '\n' || *scan->at == '\t'))
        scan->at++;
}

static bool scan_char(struct scan *scan, char want)
{
    scan_space(scan);
    if (scan->at == scan->end || *scan->at != want)
        return false;
    scan->at++;
    return true;
}

static bool scan_string(struct scan *scan, char *out, size_t size)
{
    char quote;
    size_t length = 0;

    scan_space(scan);
    if (scan->at == scan->end || (*scan->at != '\'' && *scan->at != '"'))
        return false;
    quote = *scan->at++;
    while (scan->at < scan->end && *scan->at != quote) {
        if (length + 1 >= size || *scan->at < ' ' || *scan->at > '~')
            return false;
        out[length++] = *scan->at++;
    }
    out[length] = '\0';
    return scan_char(scan, quote);
}

static bool scan_word(struct scan *scan, const char *word)
{
    size_t length = strlen(word);

    scan_space(scan);
    if ((size_t)(scan->end - scan->at) < length || memcmp(scan->at, word, length) != 0)
        return false;
    scan->at += length;
    return true;
}

static bool scan_size(struct scan *scan, int64_t *out)
{
    int64_t value = 0;
    bool any = false;

    scan_space(scan);
    for (; scan->at < scan->end && *scan->at >= '0' && *scan->at <= '9'; scan->at++) {
        if (value > (INT64_MAX - 9) / 10)
            return false;
        value = value * 10 + (*scan->at - '0');
        any = true;
    }
    (void)scan_char(scan, 'L'); /* Python 2's long */
    *out = value;
    return any;
}

static bool scan_shape(struct scan *scan, struct npy_header *header)
{
    if (!scan_char(scan, '('))
        return false;
    while (!scan_char(scan, ')')) {
        if (header->rank == TROUPE_RANK_MAX || !scan_size(scan, &header->dims[header->rank]))
            return false;
        header->rank++;
        if (!scan_char(scan, ',')) {
            if (!scan_char(scan, ')'))
                return false;
            break;
        }
    }
    header->has_shape = true;
    return true;
}

static bool scan_entry(struct scan *scan, struct npy_header *header)
{
    char key[24];

    if (!scan_string(scan, key, sizeof(key)) || !scan_char(scan, ':'))
        return false;
    if (strcmp(key, "descr") == 0 && !header->has_descr) {
        header->has_descr = true;
        return scan_string(scan, header->descr, sizeof(header->descr));
    }
    if (strcmp(key, "fortran_order") == 0 && !header->has_order) {
        header->has_order = true;
        header->fortran = scan_word(scan, "True");
        return header->fortran || scan_word(scan, "False");
    }
    return strcmp(key, "shape") == 0 && !header->has_shape && scan_shape(scan, header);
}

static bool scan_header(struct scan *scan, struct npy_header *header)
{
    if (!scan_char(scan, '{'))
        return false;
    while (!scan_char(scan, '}')) {
        if (!scan_entry(scan, header))
            return false;
        if (!scan_char(scan, ',') && !scan_char(scan, '}'))
            return false;
        if (scan->at[-1] == '}')
            break;
    }
    scan_space(scan);
    return scan->at == scan->end && header->has_descr && header->has_order && header->has_shape;
}

/* Finds the header's text; `*data` is where the elements begin. */
static enum troupe_status find_header(const unsigned char *bytes, size_t length, const char *name,
                                      struct scan *scan, size_t *data)
{
    size_t header, start;

    if (length < MAGIC_BYTES || memcmp(bytes, magic, MAGIC_BYTES) != 0)
        return troupe_status_fail(TROUPE_INVALID_ARGUMENT,
                                  "%s: no .npy file: it does not begin with \"\\x93NUMPY\"", name);
    if (length < MAGIC_BYTES + 4)
        return troupe_status_fail(TROUPE_DATA_LOSS, "%s: ends inside its header", name);
    if (bytes[6] < 1 || bytes[6] > 3)
        return troupe_status_fail(TROUPE_INVALID_ARGUMENT,
                                  "%s: .npy version %d.%d; wants 1, 2 or 3", name, bytes[6],
                                  bytes[7]);
    start = bytes[6] == 1 ? 10 : 12;
    if (length < start)
        return troupe_status_fail(TROUPE_DATA_LOSS, "%s: ends inside its header", name);
    header = (size_t)bytes[8] | (size_t)bytes[9] << 8;
    if (bytes[6] > 1)
        header |= (size_t)bytes[10] << 16 | (size_t)bytes[11] << 24;
    if (header > length - start)
        return troupe_status_fail(TROUPE_DATA_LOSS, "%s: wants %zu bytes of header, has %zu", name,
                                  header, length - start);
    scan->at = (const char *)bytes + start;
    scan->end = scan->at + header;
    *data = start + header;
    return TROUPE_OK;
}

static enum troupe_status header_dtype(const struct npy_header *header, const char *name,
                                       enum troupe_dtype *out)
{
    for (size_t i = 0; i < NPY_DTYPE_COUNT; i++) {
        if (strcmp(npy_dtypes[i].descr, header->descr) == 0) {
            *out = npy_dtypes[i].dtype;
            return TROUPE_OK;
        }
    }
    if (header->descr[0] == '>')
        return troupe_status_fail(TROUPE_INVALID_ARGUMENT,
                                  "%s: dtype \"%s\" is big-endian; save it as \"<%s\"", name,
                                  header->descr, header->descr + 1);
    return troupe_status_fail(TROUPE_INVALID_ARGUMENT,
                              "%s: dtype \"%s\"; wants float16, float32, float64, int32, int64, "
                              "uint8 or bool",
                              name, header->descr);
}

/* From the first index running fastest to the last one doing so. */
static void copy_fortran(const struct npy_header *header, size_t size, const unsigned char *from,
                         unsigned char *to, int64_t elements)
{
    int64_t index[TROUPE_RANK_MAX] = {0};

    for (int64_t i = 0; i < elements; i++) {
        int64_t offset = 0;

        for (int axis = header->rank - 1; axis >= 0; axis--)
            offset = offset * header->dims[axis] + index[axis];
        memcpy(to + (size_t)i * size, from + (size_t)offset * size, size);
        for (int axis = header->rank - 1; axis >= 0 && ++index[axis] == header->dims[axis]; axis--)
            index[axis] = 0;
    }
}

static enum troupe_status make_tensor(const struct npy_header *header, enum troupe_dtype dtype,
                                      const unsigned char *data, const char *name,
                                      struct troupe_tensor **out)
{
    struct troupe_tensor *tensor;
    enum troupe_status status = troupe_tensor_create(dtype, header->rank, header->dims, &tensor);
    unsigned char *to;

    if (status != TROUPE_OK)
        return troupe_status_prefix(status, "%s: ", name);
    to = troupe_tensor_data_mutable(tensor);
    if (header->fortran && header->rank > 1)
        copy_fortran(header, troupe_dtype_size(dtype), data, to, troupe_tensor_elements(tensor));
    else if (troupe_tensor_bytes(tensor) > 0)
        memcpy(to, data, troupe_tensor_bytes(tensor));
    /* A bool is 0 or 1 for every kernel, whatever byte the file has. */
    for (int64_t i = 0; dtype == TROUPE_BOOL && i < troupe_tensor_elements(tensor); i++)
        to[i] = to[i] != 0;
    *out = tensor;
    return TROUPE_OK;
}

enum troupe_status troupe_npy_parse(const void *bytes, size_t length, const char *name,
                                    struct troupe_tensor **out)
{
    struct npy_header header = {0};
    enum troupe_dtype dtype = TROUPE_DTYPE_INVALID;
    enum troupe_status status;
    struct scan scan = {NULL, NULL};
    size_t data = 0, want;

    status = find_header(bytes, length, name, &scan, &data);
    if (status != TROUPE_OK)
        return status;
    if (!scan_header(&scan, &header))
        return troupe_status_fail(TROUPE_INVALID_ARGUMENT,
                                  "%s: the header wants 'descr' of a plain dtype, 'fortran_order' "
                                  "and a 'shape' of at most %d sizes, and nothing else",
                                  name, TROUPE_RANK_MAX);
    status = header_dtype(&header, name, &dtype);
    if (status != TROUPE_OK)
        return status;
    want = troupe_dtype_size(dtype);
    for (int i = 0; i < header.rank; i++) {
        if (__builtin_mul_overflow(want, (size_t)header.dims[i], &want) || want > INT64_MAX)
            return troupe_status_fail(TROUPE_DATA_LOSS,
                                      "%s: the header's shape is larger than any file", name);
    }
    if (want != length - data)
        return troupe_status_fail(TROUPE_DATA_LOSS, "%s: wants %zu bytes of data, has %zu", name,
                                  want, length - data);
    return make_tensor(&header, dtype, (const unsigned char *)bytes + data, name, out);
}

enum troupe_status troupe_npy_read(const char *path, struct troupe_tensor **out)
{
    enum troupe_status status;
    size_t length;
    char *bytes;

    status = troupe_file_read(path, &bytes, &length);
    if (status != TROUPE_OK)
        return status;
    status = troupe_npy_parse(bytes, length, path, out);
    free(bytes);
    return status;
}

static enum troupe_status system_failure(const char *path)
{
    int error = errno;

    return troupe_status_fail(error == ENOSPC || error == EDQUOT ? TROUPE_RESOURCE_EXHAUSTED
                                                                 : TROUPE_UNAVAILABLE,
                              "%s: %s", path, strerror(error));
}

/* The header, padded so that the data begins at a multiple of 64 bytes. */
static void add_header(struct troupe_text *text, const char *descr,
                       const struct troupe_tensor *tensor)
{
    struct troupe_text dict;
    unsigned char prefix[10] = {0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0};
    int rank = troupe_tensor_rank(tensor);

    troupe_text_init(&dict);
    troupe_text_addf(&dict, "{'descr': '%s', 'fortran_order': False, 'shape': (", descr);
    for (int i = 0; i < rank; i++)
        troupe_text_addf(&dict, "%lld%s", (long long)troupe_tensor_dims(tensor)[i],
                         i + 1 < rank ? ", "
                         : rank == 1  ? ","
                                      : "");
    troupe_text_add(&dict, "), }");
    while (!dict.failed && (dict.length + 1 + sizeof(prefix)) % 64 != 0)
        troupe_text_add(&dict, " ");
    troupe_text_add(&dict, "\n");
    prefix[8] = (unsigned char)(dict.length & 0xff);
    prefix[9] = (unsigned char)(dict.length >> 8 & 0xff);
    troupe_text_add_bytes(text, (const char *)prefix, sizeof(prefix));
    troupe_text_add_bytes(text, dict.data != NULL ? dict.data : "", dict.length);
    text->failed |= dict.failed;
    troupe_text_fini(&dict);
}

static bool write_all(int file, const void *bytes, size_t count)
{
    const char *from = bytes;

    while (count > 0) {
        ssize_t written = write(file, from, count);

        if (written < 0 && errno == EINTR)
            continue;
        if (written < 0)
            return false;
        from += written;
        count -= (size_t)written;
    }
    return true;
}

/* Writes to `name`, a new file or one that is not regular; errors are told of `path`. */
static enum troupe_status write_file(const char *name, const char *path, int flags,
                                     const struct troupe_text *header, const void *data,
                                     size_t bytes)
{
    enum troupe_status status = TROUPE_OK;
    int file = open(name, O_WRONLY | O_CLOEXEC | flags, 0666);

    if (file < 0)
        return system_failure(path);
    if (!write_all(file, header->data, header->length) || !write_all(file, data, bytes))
        status = system_failure(path);
    if (close(file) != 0 && status == TROUPE_OK)
        status = system_failure(path);
    return status;
}

static enum troupe_status write_and_rename(const char *path, const struct troupe_text *header,
                                           const void *data, size_t bytes)
{
    struct stat existing;
    enum troupe_status status;
    char *name;

    if (stat(path, &existing) == 0 && !S_ISREG(existing.st_mode))
        return write_file(path, path, 0, header, data, bytes);
    name = troupe_asprintf("%s.%ld.part", path, (long)getpid());
    if (name == NULL)
        return TROUPE_RESOURCE_EXHAUSTED;
    status = write_file(name, path, O_CREAT | O_TRUNC, header, data, bytes);
    if (status == TROUPE_OK && rename(name, path) != 0)
        status = system_failure(path);
    if (status != TROUPE_OK)
        (void)unlink(name);
    free(name);
    return status;
}

/* bfloat16 as float32, in new memory. */
static float *widen(const struct troupe_tensor *tensor)
{
    const uint16_t *from = troupe_tensor_data(tensor);
    size_t count = (size_t)troupe_tensor_elements(tensor);
    float *wide = troupe_calloc(count + 1, sizeof(*wide));

    for (size_t i = 0; wide != NULL && i < count; i++)
        wide[i] = troupe_bfloat16_to_float(from[i]);
    return wide;
}

enum troupe_status troupe_npy_write(const char *path, const struct troupe_tensor *tensor)
{
    enum troupe_dtype dtype = troupe_tensor_dtype(tensor);
    const void *data = troupe_tensor_data(tensor);
    size_t bytes = troupe_tensor_bytes(tensor), row = 0;
    struct troupe_text header;
    enum troupe_status status;
    float *wide = NULL;

    if (dtype == TROUPE_BFLOAT16) {
        wide = widen(tensor);
        if (wide == NULL)
            return TROUPE_RESOURCE_EXHAUSTED;
        dtype = TROUPE_FLOAT32;
        data = wide;
        bytes *= 2;
    }
    while (row < NPY_DTYPE_COUNT && npy_dtypes[row].dtype != dtype)
        row++;
    if (row == NPY_DTYPE_COUNT)
        return troupe_status_fail(TROUPE_INVALID_ARGUMENT,
                                  "%s: a .npy file holds numbers and bools, not %s", path,
                                  troupe_dtype_name(dtype));
    troupe_text_init(&header);
    add_header(&header, npy_dtypes[row].descr, tensor);
    status =
        header.failed ? TROUPE_RESOURCE_EXHAUSTED : write_and_rename(path, &header, data, bytes);
    troupe_text_fini(&header);
    free(wide);
    return status;
}

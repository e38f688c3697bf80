/* .npy files: what NumPy writes is read, what is written NumPy reads (its exact bytes), and no
 * damaged file gets through. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "graph/npy.h"

/* The bytes of a file with the given header text and data. */
static size_t npy_make(unsigned char *out, int version, const char *header, const void *data,
                       size_t bytes)
{
    size_t length = strlen(header), at = 0;

    memcpy(out, "\x93NUMPY", 6);
    out[6] = (unsigned char)version;
    out[7] = 0;
    out[8] = (unsigned char)(length & 0xff);
    out[9] = (unsigned char)(length >> 8);
    at = 10;
    if (version > 1) {
        out[10] = out[11] = 0;
        at = 12;
    }
    memcpy(out + at, header, length);
    memcpy(out + at + length, data, bytes);
    return at + length + bytes;
}

static void expect_failure(int version, const char *header, size_t bytes, enum troupe_status status,
                           const char *message)
{
    static const unsigned char zeros[512];
    unsigned char file[1024];
    size_t length = npy_make(file, version, header, zeros, bytes);
    struct troupe_tensor *tensor = NULL;

    cr_assert_eq(troupe_npy_parse(file, length, "x.npy", &tensor), status, "%s", header);
    cr_assert_null(tensor);
    cr_assert_str_eq(troupe_status_message(), message);
}

Test(npy, reads_every_version)
{
    const float data[6] = {1, 2, 3, 4, 5, 6};
    unsigned char file[256];

    for (int version = 1; version <= 3; version++) {
        size_t length =
            npy_make(file, version, "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }\n",
                     data, sizeof(data));
        struct troupe_tensor *tensor;

        cr_assert_eq(troupe_npy_parse(file, length, "x.npy", &tensor), TROUPE_OK, "%s",
                     troupe_status_message());
        cr_assert_eq(troupe_tensor_dtype(tensor), TROUPE_FLOAT32);
        cr_assert_eq(troupe_tensor_rank(tensor), 2);
        cr_assert_eq(troupe_tensor_dims(tensor)[1], 3);
        cr_assert_arr_eq(troupe_tensor_data(tensor), data, sizeof(data));
        troupe_tensor_unref(tensor);
    }
}

Test(npy, reads_a_scalar_and_an_empty_one)
{
    const int64_t data = -7;
    unsigned char file[256];
    size_t length = npy_make(file, 1, "{'shape': (), 'descr': '<i8', 'fortran_order': False}\n",
                             &data, sizeof(data));
    struct troupe_tensor *tensor;

    cr_assert_eq(troupe_npy_parse(file, length, "x.npy", &tensor), TROUPE_OK, "%s",
                 troupe_status_message());
    cr_assert_eq(troupe_tensor_rank(tensor), 0);
    cr_assert_eq(*(const int64_t *)troupe_tensor_data(tensor), -7);
    troupe_tensor_unref(tensor);
    length = npy_make(file, 1, "{'descr': '<f8', 'fortran_order': True, 'shape': (0, 4)}", "", 0);
    cr_assert_eq(troupe_npy_parse(file, length, "x.npy", &tensor), TROUPE_OK);
    cr_assert_eq(troupe_tensor_elements(tensor), 0);
    cr_assert_eq(troupe_tensor_dims(tensor)[1], 4);
    troupe_tensor_unref(tensor);
}

Test(npy, turns_fortran_order)
{
    /* [[1, 2, 3], [4, 5, 6]] with its columns one after the other. */
    const int32_t data[6] = {1, 4, 2, 5, 3, 6}, want[6] = {1, 2, 3, 4, 5, 6};
    unsigned char file[256];
    size_t length = npy_make(file, 1, "{'descr': '<i4', 'fortran_order': True, 'shape': (2, 3)}",
                             data, sizeof(data));
    struct troupe_tensor *tensor;

    cr_assert_eq(troupe_npy_parse(file, length, "x.npy", &tensor), TROUPE_OK);
    cr_assert_arr_eq(troupe_tensor_data(tensor), want, sizeof(want));
    troupe_tensor_unref(tensor);
}

Test(npy, refuses_what_is_damaged)
{
    const char *header = "{'descr': '<f4', 'fortran_order': False, 'shape': (10, 10)}";
    struct troupe_tensor *tensor = NULL;

    expect_failure(1, header, 396, TROUPE_DATA_LOSS, "x.npy: wants 400 bytes of data, has 396");
    expect_failure(2, header, 404, TROUPE_DATA_LOSS, "x.npy: wants 400 bytes of data, has 404");
    expect_failure(4, header, 400, TROUPE_INVALID_ARGUMENT,
                   "x.npy: .npy version 4.0; wants 1, 2 "
                   "or 3");
    expect_failure(1, "{'descr': '>f4', 'fortran_order': False, 'shape': (1,)}", 4,
                   TROUPE_INVALID_ARGUMENT,
                   "x.npy: dtype \">f4\" is big-endian; save it as \"<f4\"");
    expect_failure(1, "{'descr': '<U5', 'fortran_order': False, 'shape': (1,)}", 20,
                   TROUPE_INVALID_ARGUMENT,
                   "x.npy: dtype \"<U5\"; wants float16, float32, float64, int32, int64, uint8 or "
                   "bool");
    expect_failure(1, "{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296, 4294967296)}",
                   0, TROUPE_DATA_LOSS, "x.npy: the header's shape is larger than any file");
    expect_failure(1, "{'descr': '<f4', 'shape': (1,)}", 4, TROUPE_INVALID_ARGUMENT,
                   "x.npy: the header wants 'descr' of a plain dtype, 'fortran_order' and a "
                   "'shape' of at most 8 sizes, and nothing else");
    cr_assert_eq(troupe_npy_parse("\x93NUMPY\1\0\xff\xff{}", 12, "x.npy", &tensor),
                 TROUPE_DATA_LOSS);
    cr_assert_str_eq(troupe_status_message(), "x.npy: wants 65535 bytes of header, has 2");
    cr_assert_eq(troupe_npy_parse("PK\3\4", 4, "x.npz", &tensor), TROUPE_INVALID_ARGUMENT);
    cr_assert_str_eq(troupe_status_message(),
                     "x.npz: no .npy file: it does not begin with \"\\x93NUMPY\"");
    cr_assert_eq(troupe_npy_parse("\x93NUMPY\1", 7, "x.npy", &tensor), TROUPE_DATA_LOSS);
    cr_assert_str_eq(troupe_status_message(), "x.npy: ends inside its header");
}

/* Every proper prefix of a file is an error, never a tensor. */
Test(npy, refuses_every_truncation)
{
    const float data[4] = {1, 2, 3, 4};
    unsigned char file[256];
    size_t length = npy_make(file, 1, "{'descr': '<f4', 'fortran_order': False, 'shape': (4,)}",
                             data, sizeof(data));
    struct troupe_tensor *tensor = NULL;

    for (size_t cut = 0; cut < length; cut++)
        cr_assert_neq(troupe_npy_parse(file, cut, "x.npy", &tensor), TROUPE_OK, "%zu", cut);
}

Test(npy, writes_what_numpy_writes)
{
    /* numpy.save of numpy.arange(3, dtype=numpy.float32). */
    static const char header[] = "{'descr': '<f4', 'fortran_order': False, 'shape': (3,), }";
    const float data[3] = {0, 1, 2};
    const int64_t dims[1] = {3};
    char path[] = "/tmp/troupe-npy-XXXXXX", bytes[256];
    struct troupe_tensor *tensor, *again;
    FILE *file;
    int temporary = mkstemp(path);

    cr_assert_geq(temporary, 0);
    close(temporary);
    cr_assert_eq(troupe_tensor_from_data(TROUPE_FLOAT32, 1, dims, data, &tensor), TROUPE_OK);
    cr_assert_eq(troupe_npy_write(path, tensor), TROUPE_OK, "%s", troupe_status_message());
    file = fopen(path, "rb");
    cr_assert_not_null(file);
    cr_assert_eq(fread(bytes, 1, sizeof(bytes), file), 128 + sizeof(data));
    fclose(file);
    cr_assert_arr_eq(bytes, "\x93NUMPY\1\0\x76\0", 10);
    cr_assert_arr_eq(bytes + 10, header, sizeof(header) - 1);
    cr_assert_eq(bytes[127], '\n');
    cr_assert_arr_eq(bytes + 128, data, sizeof(data));
    cr_assert_eq(troupe_npy_read(path, &again), TROUPE_OK);
    cr_assert_arr_eq(troupe_tensor_data(again), data, sizeof(data));
    troupe_tensor_unref(again);
    troupe_tensor_unref(tensor);
    unlink(path);
}

Test(npy, tells_of_a_full_disk_and_a_missing_file)
{
    const float data = 1;
    struct troupe_tensor *tensor, *none = NULL;

    cr_assert_eq(troupe_tensor_from_data(TROUPE_FLOAT32, 0, NULL, &data, &tensor), TROUPE_OK);
    cr_assert_eq(troupe_npy_write("/dev/full", tensor), TROUPE_RESOURCE_EXHAUSTED);
    cr_assert_str_eq(troupe_status_message(), "/dev/full: No space left on device");
    cr_assert_eq(troupe_npy_write("/nowhere/y.npy", tensor), TROUPE_UNAVAILABLE);
    cr_assert_str_eq(troupe_status_message(), "/nowhere/y.npy: No such file or directory");
    troupe_tensor_unref(tensor);
    cr_assert_neq(troupe_npy_read("/nowhere/x.npy", &none), TROUPE_OK);
    cr_assert_str_eq(troupe_status_message(), "/nowhere/x.npy: No such file or directory");
}

/* NumPy's .npy files.
 * Source: numpy.lib.format, "The .npy format", versions 1.0 to 3.0. */
#ifndef TROUPE_GRAPH_NPY_H
#define TROUPE_GRAPH_NPY_H

#include <stddef.h>

#include "troupe/tensor.h"

/* Reads a file of float16, float32, float64, int32, int64, uint8 or bool elements, little-endian;
 * Fortran order is turned into C order. The caller owns `*out`. INVALID_ARGUMENT: no .npy file, or
 * one of another dtype; DATA_LOSS: "x.npy: wants 400 bytes of data, has 396"; and the statuses of
 * troupe_file_read. Blocks on the file. */
TROUPE_MUST_USE enum troupe_status troupe_npy_read(const char *path, struct troupe_tensor **out);

/* As troupe_npy_read, from bytes; `name` is for messages. */
TROUPE_MUST_USE enum troupe_status troupe_npy_parse(const void *bytes, size_t length,
                                                    const char *name, struct troupe_tensor **out);

/* Writes a tensor in C order as version 1.0; bfloat16, which NumPy lacks, as float32. The file
 * appears under its name when it is complete (what is no regular file, such as /dev/stdout, is
 * written in place). INVALID_ARGUMENT: strings; RESOURCE_EXHAUSTED: "y.npy: No space left on
 * device"; UNAVAILABLE: another reason of the system's. Blocks on the file. */
TROUPE_MUST_USE enum troupe_status troupe_npy_write(const char *path,
                                                    const struct troupe_tensor *tensor);

#endif

/* Files in the idx format of MNIST, plain or gzip.
 * Source: LeCun, Cortes, Burges, "The MNIST database", section "File formats". */
#ifndef TROUPE_OPS_KERNELS_IDX_FILE_H
#define TROUPE_OPS_KERNELS_IDX_FILE_H

#include <stddef.h>
#include <stdint.h>

#include "troupe/attributes.h"
#include "troupe/status.h"

#define TROUPE_IDX_RANK_MAX 4

struct troupe_idx_file {
    int rank;
    int64_t dims[TROUPE_IDX_RANK_MAX];
    unsigned char *data; /* bytes, row-major; free() */
    size_t bytes;
};

/* Reads a whole file of unsigned bytes with `rank` dimensions. NOT_FOUND; DATA_LOSS for a file that
 * is cut short, too long, or no idx file: the message says what is there and what is right. */
TROUPE_MUST_USE enum troupe_status troupe_idx_file_read(const char *path, int rank,
                                                        struct troupe_idx_file *out);
void troupe_idx_file_fini(struct troupe_idx_file *file);

#endif

/* Any bytes are an idx file that is whole or an error, never a crash. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "ops/kernels/idx_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char path[64];
    int file = memfd_create("idx", 0);

    if (file < 0 || write(file, data, size) != (ssize_t)size)
        abort();
    snprintf(path, sizeof(path), "/proc/self/fd/%d", file);
    for (int rank = 1; rank <= TROUPE_IDX_RANK_MAX; rank++) {
        struct troupe_idx_file idx;
        if (troupe_idx_file_read(path, rank, &idx) != TROUPE_OK)
            continue;
        if (idx.rank != rank || idx.bytes == 0 || idx.data == NULL)
            abort();
        troupe_idx_file_fini(&idx);
    }
    close(file);
    return 0;
}

/* Reading files. */
#include "graph/file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

static enum troupe_status status_of_errno(int error)
{
    if (error == ENOENT || error == ENOTDIR)
        return TROUPE_NOT_FOUND;
    return error == EACCES ? TROUPE_PERMISSION_DENIED : TROUPE_UNAVAILABLE;
}

enum troupe_status troupe_file_read(const char *path, char **out, size_t *length)
{
    FILE *file = fopen(path, "rb");
    if (!file)
        return troupe_status_fail(status_of_errno(errno), "%s: %s", path, strerror(errno));
    size_t used = 0, capacity = 1 << 16;
    char *data = troupe_calloc(1, capacity);
    enum troupe_status status = data ? TROUPE_OK : TROUPE_RESOURCE_EXHAUSTED;
    while (status == TROUPE_OK) {
        size_t got = fread(data + used, 1, capacity - 1 - used, file);
        used += got;
        if (got == 0)
            break;
        if (used + 1 < capacity)
            continue;
        char *grown = troupe_reallocarray(data, 2, capacity);
        if (!grown) {
            status = TROUPE_RESOURCE_EXHAUSTED;
            break;
        }
        data = grown;
        capacity *= 2;
    }
    if (status == TROUPE_OK && ferror(file))
        status = troupe_status_fail(status_of_errno(errno), "%s: %s", path, strerror(errno));
    fclose(file);
    if (status != TROUPE_OK) {
        free(data);
        return status;
    }
    data[used] = 0;
    *out = data;
    *length = used;
    return TROUPE_OK;
}

/* Whole files as text. */
#ifndef TROUPE_GRAPH_FILE_H
#define TROUPE_GRAPH_FILE_H

#include <stddef.h>

#include "troupe/attributes.h"
#include "troupe/status.h"

/* Reads a file into new memory with a zero byte after it; free() frees. NOT_FOUND,
 * PERMISSION_DENIED or UNAVAILABLE name the file and the system's reason. */
TROUPE_MUST_USE enum troupe_status troupe_file_read(const char *path, char **out, size_t *length);

#endif

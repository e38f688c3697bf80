/* The errors of one file, collected so that one run shows all of them. */
#ifndef TROUPE_GRAPH_DIAGNOSTICS_H
#define TROUPE_GRAPH_DIAGNOSTICS_H

#include <stddef.h>

#include "troupe/attributes.h"
#include "troupe/status.h"

struct troupe_diagnostic {
    int line, column; /* 0: of the whole file */
    char *message;    /* with its place before it */
};

struct troupe_diagnostics {
    struct troupe_diagnostic *items;
    size_t count, capacity;
};

void troupe_diagnostics_init(struct troupe_diagnostics *diagnostics);
void troupe_diagnostics_fini(struct troupe_diagnostics *diagnostics);
/* Adds "PATH:LINE:COLUMN: TEXT" (without column or line where they are 0). */
void troupe_diagnostics_add(struct troupe_diagnostics *diagnostics, const char *path, int line,
                            int column, const char *format, ...) TROUPE_PRINTF(5, 6);
/* Sorts by place; returns INVALID_ARGUMENT and sets the thread's message to all of them, one a
 * line, when there is any; TROUPE_OK when there is none. */
TROUPE_MUST_USE enum troupe_status troupe_diagnostics_close(struct troupe_diagnostics *diagnostics);

#endif

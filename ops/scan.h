/* A scanner over one schema string, private to this folder. */
#ifndef TROUPE_OPS_SCAN_H
#define TROUPE_OPS_SCAN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "ops/attr.h"

struct troupe_scan {
    const char *text; /* all of it, for messages */
    const char *at;
    struct troupe_arena *arena; /* of the names */
};

/* Each skips blanks first. `take` consumes `mark` when it is next, and tells whether. */
bool troupe_scan_take(struct troupe_scan *scan, const char *mark);
bool troupe_scan_at_end(struct troupe_scan *scan);
/* INVALID_ARGUMENT: `"a: Q": wants ... at "Q"`. */
enum troupe_status troupe_scan_wants(struct troupe_scan *scan, const char *what);

/* A name of letters, digits and _; a text between single quotes; numbers. */
TROUPE_MUST_USE enum troupe_status troupe_scan_name(struct troupe_scan *scan, const char **out);
TROUPE_MUST_USE enum troupe_status troupe_scan_quoted(struct troupe_scan *scan, const char **out);
TROUPE_MUST_USE enum troupe_status troupe_scan_int(struct troupe_scan *scan, int64_t *out);

/* A value of a kind: 'text', 3, -1.5, true, float32, [1,?] or ?, and lists of these in []. */
TROUPE_MUST_USE enum troupe_status
troupe_scan_value(struct troupe_scan *scan, enum troupe_attr_kind kind, struct troupe_attr *out);

#endif

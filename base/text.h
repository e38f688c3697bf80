/* Growing text, and the nearest of several names. */
#ifndef TROUPE_BASE_TEXT_H
#define TROUPE_BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>

#include "troupe/attributes.h"

/* `data` always ends in a zero byte once anything was added. After a failed allocation
 * `failed` is set and later additions do nothing: check once, at the end. */
struct troupe_text {
    char *data;
    size_t length, capacity;
    bool failed;
};

void troupe_text_init(struct troupe_text *text);
void troupe_text_fini(struct troupe_text *text);
void troupe_text_add(struct troupe_text *text, const char *string);
void troupe_text_add_bytes(struct troupe_text *text, const char *bytes, size_t count);
void troupe_text_addf(struct troupe_text *text, const char *format, ...) TROUPE_PRINTF(2, 3);
/* Takes the string out ("" when nothing was added); free() frees it. NULL when `failed`. */
TROUPE_MUST_USE char *troupe_text_take(struct troupe_text *text);

/* The candidate nearest to `name` by edit distance, upper and lower case counted half; NULL
 * when none is within a third of its length (at least 2). */
const char *troupe_text_nearest(const char *name, const char *const *candidates, size_t count);

#endif

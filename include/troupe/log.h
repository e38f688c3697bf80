/* Where the library's own messages go. */
#ifndef TROUPE_LOG_H
#define TROUPE_LOG_H

#include "troupe/attributes.h"
#include "troupe/status.h"

enum troupe_log_level {
    TROUPE_LOG_ERROR = 0,
    TROUPE_LOG_WARNING,
    TROUPE_LOG_INFO,
    TROUPE_LOG_DEBUG,
    TROUPE_LOG_LEVEL_COUNT
};

/* Receives one message without a newline. Borrows `message` for the call. May be called from
 * any thread, several at once; must not call back into the library. */
typedef void troupe_log_fn(void *context, enum troupe_log_level level, const char *message);

/* Sets the receiver (NULL: lines on standard error, "troupe: warning: ...") and the highest
 * level that reaches it; the start is standard error and WARNING. Shares `context` until the
 * next call. Call it before other threads use the library. */
TROUPE_API void troupe_log_set(enum troupe_log_level level, troupe_log_fn *receive, void *context);

/* Sends one printf-formatted message when `level` is enabled. Any thread. */
TROUPE_API void troupe_log(enum troupe_log_level level, const char *format, ...)
    TROUPE_PRINTF(2, 3);

/* Reads "error", "warning", "info" or "debug" into `level_out`. INVALID_ARGUMENT for another
 * name, with the list of right ones. */
TROUPE_API TROUPE_MUST_USE enum troupe_status
troupe_log_level_parse(const char *name, enum troupe_log_level *level_out);

#endif

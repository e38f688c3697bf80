/* The library's log. Invariant: the receiver changes only before other threads log, so that
 * logging reads it without a lock. */
#include <stdio.h>
#include <string.h>

#include "troupe/log.h"

static const char *const level_names[TROUPE_LOG_LEVEL_COUNT] = {
    [TROUPE_LOG_ERROR] = "error",
    [TROUPE_LOG_WARNING] = "warning",
    [TROUPE_LOG_INFO] = "info",
    [TROUPE_LOG_DEBUG] = "debug",
};

static void write_stderr(void *context, enum troupe_log_level level, const char *message)
{
    (void)context;
    /* One call, so that lines of several threads do not mix. */
    fprintf(stderr, "troupe: %s: %s\n", level_names[level], message);
}

static struct {
    enum troupe_log_level level;
    troupe_log_fn *receive;
    void *context;
} sink = {TROUPE_LOG_WARNING, write_stderr, NULL};

void troupe_log_set(enum troupe_log_level level, troupe_log_fn *receive, void *context)
{
    sink.level = level;
    sink.receive = receive ? receive : write_stderr;
    sink.context = context;
}

void troupe_log(enum troupe_log_level level, const char *format, ...)
{
    if ((unsigned)level > (unsigned)sink.level)
        return;
    char text[TROUPE_MESSAGE_MAX];
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    if (length >= 0)
        sink.receive(sink.context, level, text);
}

enum troupe_status troupe_log_level_parse(const char *name, enum troupe_log_level *level_out)
{
    for (int level = 0; level < TROUPE_LOG_LEVEL_COUNT; level++) {
        if (strcmp(name, level_names[level]) == 0) {
            *level_out = (enum troupe_log_level)level;
            return TROUPE_OK;
        }
    }
    return troupe_status_fail(TROUPE_INVALID_ARGUMENT,
                              "log level \"%s\": wants error, warning, info or debug", name);
}

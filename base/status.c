/* The message of a thread's last failure. Invariant: the text is always zero-terminated, and
 * formatting goes through a copy, so that a message may quote the one before it. */
#include <stdio.h>
#include <string.h>

#include "troupe/status.h"

static _Thread_local char message[TROUPE_MESSAGE_MAX];

static const char *const names[TROUPE_STATUS_COUNT] = {
    [TROUPE_OK] = "OK",
    [TROUPE_CANCELLED] = "CANCELLED",
    [TROUPE_UNKNOWN] = "UNKNOWN",
    [TROUPE_INVALID_ARGUMENT] = "INVALID_ARGUMENT",
    [TROUPE_DEADLINE_EXCEEDED] = "DEADLINE_EXCEEDED",
    [TROUPE_NOT_FOUND] = "NOT_FOUND",
    [TROUPE_ALREADY_EXISTS] = "ALREADY_EXISTS",
    [TROUPE_PERMISSION_DENIED] = "PERMISSION_DENIED",
    [TROUPE_RESOURCE_EXHAUSTED] = "RESOURCE_EXHAUSTED",
    [TROUPE_FAILED_PRECONDITION] = "FAILED_PRECONDITION",
    [TROUPE_ABORTED] = "ABORTED",
    [TROUPE_OUT_OF_RANGE] = "OUT_OF_RANGE",
    [TROUPE_UNIMPLEMENTED] = "UNIMPLEMENTED",
    [TROUPE_INTERNAL] = "INTERNAL",
    [TROUPE_UNAVAILABLE] = "UNAVAILABLE",
    [TROUPE_DATA_LOSS] = "DATA_LOSS",
};

const char *troupe_status_name(enum troupe_status status)
{
    return (unsigned)status < TROUPE_STATUS_COUNT ? names[status] : "?";
}

const char *troupe_status_message(void)
{
    return message;
}

enum troupe_status troupe_status_vfail(enum troupe_status status, const char *format,
                                       va_list arguments)
{
    char text[TROUPE_MESSAGE_MAX];
    if (vsnprintf(text, sizeof(text), format, arguments) < 0)
        text[0] = '\0';
    memcpy(message, text, strlen(text) + 1);
    return status;
}

enum troupe_status troupe_status_fail(enum troupe_status status, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    troupe_status_vfail(status, format, arguments);
    va_end(arguments);
    return status;
}

enum troupe_status troupe_status_prefix(enum troupe_status status, const char *format, ...)
{
    char text[TROUPE_MESSAGE_MAX];
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    if (length < 0)
        return status;
    size_t used = (size_t)length < sizeof(text) ? (size_t)length : sizeof(text) - 1;
    size_t kept = strnlen(message, sizeof(text) - 1 - used);
    memcpy(text + used, message, kept);
    text[used + kept] = '\0';
    memcpy(message, text, used + kept + 1);
    return status;
}

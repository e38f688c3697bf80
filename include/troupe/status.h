/* Status codes and the message that goes with one.
 *
 * The codes are TensorFlow's. A function that fails returns one of them and leaves, for the
 * calling thread, a message that names the place and what would have been right. */
#ifndef TROUPE_STATUS_H
#define TROUPE_STATUS_H

#include <stdarg.h>
#include <stddef.h>

#include "troupe/attributes.h"

enum troupe_status {
    TROUPE_OK = 0,
    TROUPE_CANCELLED, /* the caller or a signal asked for the end */
    TROUPE_UNKNOWN,
    TROUPE_INVALID_ARGUMENT, /* wrong usage, a bad graph, a wrong shape */
    TROUPE_DEADLINE_EXCEEDED,
    TROUPE_NOT_FOUND,
    TROUPE_ALREADY_EXISTS,
    TROUPE_PERMISSION_DENIED,
    TROUPE_RESOURCE_EXHAUSTED,  /* memory, disk, tags */
    TROUPE_FAILED_PRECONDITION, /* an uninitialised variable, a failed Assert */
    TROUPE_ABORTED,             /* another rank or an earlier error ended this */
    TROUPE_OUT_OF_RANGE,        /* a source reached the end of its sequence */
    TROUPE_UNIMPLEMENTED,
    TROUPE_INTERNAL,    /* a defect of Troupe */
    TROUPE_UNAVAILABLE, /* the environment: MPI, a device, the file system */
    TROUPE_DATA_LOSS,   /* a truncated or corrupt file or message */
    TROUPE_STATUS_COUNT
};

/* The longest message kept, with its terminating zero, in bytes. */
#define TROUPE_MESSAGE_MAX 4096

/* The code's name, such as "INVALID_ARGUMENT"; "?" for a number that is no code. The string
 * is static. Any thread; never blocks. */
TROUPE_API const char *troupe_status_name(enum troupe_status status);

/* The message of the last failure in the calling thread, "" before the first. The string
 * belongs to the library and stays until the thread's next failing call. */
TROUPE_API const char *troupe_status_message(void);

/* Sets the calling thread's message from a printf format and returns `status`, so that a
 * caller writes `return troupe_status_fail(TROUPE_NOT_FOUND, "no node \"%s\"", name)`.
 * Borrows the arguments. The message is cut at TROUPE_MESSAGE_MAX - 1 bytes. */
TROUPE_API enum troupe_status troupe_status_fail(enum troupe_status status, const char *format, ...)
    TROUPE_PRINTF(2, 3);

/* As troupe_status_fail, from a va_list. */
TROUPE_API enum troupe_status troupe_status_vfail(enum troupe_status status, const char *format,
                                                  va_list arguments) TROUPE_PRINTF(2, 0);

/* Puts a printf text before the calling thread's message ("node \"y\" (MatMul): " ...) and
 * returns `status`. */
TROUPE_API enum troupe_status troupe_status_prefix(enum troupe_status status, const char *format,
                                                   ...) TROUPE_PRINTF(2, 3);

#endif

/* Collected errors. Invariant: items[0 .. count) hold a message each; an error that could not be
 * kept for want of memory still counts through `count` of the ones before it, since the thread's
 * message then says so. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "graph/diagnostics.h"

void troupe_diagnostics_init(struct troupe_diagnostics *diagnostics)
{
    *diagnostics = (struct troupe_diagnostics){0};
}

void troupe_diagnostics_fini(struct troupe_diagnostics *diagnostics)
{
    for (size_t i = 0; i < diagnostics->count; i++)
        free(diagnostics->items[i].message);
    free(diagnostics->items);
    *diagnostics = (struct troupe_diagnostics){0};
}

static bool diagnostics_reserve(struct troupe_diagnostics *diagnostics)
{
    size_t capacity = diagnostics->capacity == 0 ? 8 : diagnostics->capacity * 2;
    struct troupe_diagnostic *items;

    if (diagnostics->count < diagnostics->capacity)
        return true;
    items = troupe_reallocarray(diagnostics->items, capacity, sizeof(*items));
    if (items == NULL)
        return false;
    diagnostics->items = items;
    diagnostics->capacity = capacity;
    return true;
}

void troupe_diagnostics_add(struct troupe_diagnostics *diagnostics, const char *path, int line,
                            int column, const char *format, ...)
{
    struct troupe_text text;
    char *message = NULL;
    va_list arguments;

    troupe_text_init(&text);
    if (path != NULL && line > 0 && column > 0)
        troupe_text_addf(&text, "%s:%d:%d: ", path, line, column);
    else if (path != NULL && line > 0)
        troupe_text_addf(&text, "%s:%d: ", path, line);
    else if (path != NULL)
        troupe_text_addf(&text, "%s: ", path);
    va_start(arguments, format);
    if (vasprintf(&message, format, arguments) < 0)
        message = NULL;
    va_end(arguments);
    troupe_text_add(&text, message != NULL ? message : "(no memory for the message)");
    free(message);

    if (diagnostics_reserve(diagnostics)) {
        message = troupe_text_take(&text);
        if (message != NULL)
            diagnostics->items[diagnostics->count++] =
                (struct troupe_diagnostic){line, column, message};
    }
    troupe_text_fini(&text);
}

/* By place; errors of one place stay in the order of their text, so that the result does not
 * depend on qsort. */
static int diagnostic_compare(const void *a, const void *b)
{
    const struct troupe_diagnostic *left = a, *right = b;

    if (left->line != right->line)
        return left->line < right->line ? -1 : 1;
    if (left->column != right->column)
        return left->column < right->column ? -1 : 1;
    return strcmp(left->message, right->message);
}

enum troupe_status troupe_diagnostics_close(struct troupe_diagnostics *diagnostics)
{
    struct troupe_text text;

    if (diagnostics->count == 0)
        return TROUPE_OK;
    qsort(diagnostics->items, diagnostics->count, sizeof(*diagnostics->items), diagnostic_compare);
    troupe_text_init(&text);
    for (size_t i = 0; i < diagnostics->count; i++) {
        if (text.length + strlen(diagnostics->items[i].message) + 40 > TROUPE_MESSAGE_MAX) {
            troupe_text_addf(&text, "%s... and %zu more", i == 0 ? "" : "\n",
                             diagnostics->count - i);
            break;
        }
        troupe_text_addf(&text, "%s%s", i == 0 ? "" : "\n", diagnostics->items[i].message);
    }
    (void)troupe_status_fail(TROUPE_INVALID_ARGUMENT, "%s",
                             text.data != NULL ? text.data : "no memory for the messages");
    troupe_text_fini(&text);
    return TROUPE_INVALID_ARGUMENT;
}

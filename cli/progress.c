/* Where a loop stands: step, values, examples per second, time left, on standard error.
 *
 * Invariant: on a terminal there is at most one unfinished line, and it is the last. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "cli/cli.h"

#define LINE_MAX_BYTES   512
#define IN_PLACE_SECONDS 0.1 /* between two states of the line in place */
#define PLAIN_SECONDS    2.0 /* between two plain lines of a loop without `every` */

double troupe_seconds(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

bool troupe_is_number(enum troupe_dtype dtype)
{
    return dtype == TROUPE_FLOAT32 || dtype == TROUPE_FLOAT64 || dtype == TROUPE_INT32 ||
           dtype == TROUPE_INT64 || dtype == TROUPE_UINT8 || dtype == TROUPE_BOOL;
}

double troupe_tensor_number(const struct troupe_tensor *tensor, int64_t index)
{
    const void *data = troupe_tensor_data(tensor);

    switch (troupe_tensor_dtype(tensor)) {
    case TROUPE_FLOAT32:
        return (double)((const float *)data)[index];
    case TROUPE_FLOAT64:
        return ((const double *)data)[index];
    case TROUPE_INT32:
        return (double)((const int32_t *)data)[index];
    case TROUPE_INT64:
        return (double)((const int64_t *)data)[index];
    case TROUPE_UINT8:
        return (double)((const uint8_t *)data)[index];
    case TROUPE_BOOL:
        return ((const uint8_t *)data)[index] != 0 ? 1.0 : 0.0;
    default:
        return (double)NAN;
    }
}

void troupe_progress_start(struct troupe_progress *progress, enum troupe_progress_mode mode,
                           const struct troupe_loop *loop, int64_t total)
{
    *progress = (struct troupe_progress){
        .mode = mode,
        .in_place = mode == TROUPE_PROGRESS_ALWAYS ||
                    (mode == TROUPE_PROGRESS_AUTO && isatty(STDERR_FILENO)),
        .loop = loop,
        .total = total,
        .start = troupe_seconds(),
    };
    progress->shown = progress->start;
}

/* True when step `done` has a line. */
static bool is_due(const struct troupe_progress *progress, int64_t done, double now)
{
    if (progress->mode == TROUPE_PROGRESS_NEVER)
        return false;
    if (done == progress->total)
        return true;
    if (progress->in_place)
        return now - progress->shown >= IN_PLACE_SECONDS;
    if (progress->loop->every > 0)
        return done % progress->loop->every == 0;
    return now - progress->shown >= PLAIN_SECONDS;
}

/* Appends printf text at *used, as far as there is room. */
static void add(char *line, size_t *used, const char *format, ...) TROUPE_PRINTF(3, 4);
static void add(char *line, size_t *used, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    int length = vsnprintf(line + *used, LINE_MAX_BYTES - *used, format, arguments);
    va_end(arguments);
    *used += length < 0 ? 0 : (size_t)length;
    if (*used >= LINE_MAX_BYTES)
        *used = LINE_MAX_BYTES - 1;
}

static void add_values(const struct troupe_progress *progress, struct troupe_tensor *const *values,
                       char *line, size_t *used)
{
    for (int i = 0; i < progress->loop->show_count; i++) {
        const struct troupe_tensor *value = values[i];
        if (troupe_tensor_elements(value) == 1 && troupe_is_number(troupe_tensor_dtype(value)))
            add(line, used, "  %s %.4g", progress->loop->show[i].name,
                troupe_tensor_number(value, 0));
    }
}

static size_t make_line(const struct troupe_progress *progress, int64_t done, double elapsed,
                        struct troupe_tensor *const *values, char *line)
{
    size_t used = 0;

    line[0] = '\0';
    add(line, &used, "%s  step %lld", progress->loop->name, (long long)done);
    if (progress->total > 0)
        add(line, &used, "/%lld", (long long)progress->total);
    add_values(progress, values, line, &used);
    if (elapsed > 0 && progress->loop->examples > 0)
        add(line, &used, "  %.0f examples/s",
            (double)progress->loop->examples * (double)done / elapsed);
    if (progress->total > done) {
        long long left = (long long)(elapsed / (double)done * (double)(progress->total - done));
        add(line, &used, "  %lld:%02lld left", left / 60, left % 60);
    }
    return used;
}

void troupe_progress_step(struct troupe_progress *progress, int64_t done,
                          struct troupe_tensor *const *values)
{
    char line[LINE_MAX_BYTES];
    struct winsize window;
    double now = troupe_seconds();

    if (!is_due(progress, done, now))
        return;
    progress->shown = now;
    size_t length = make_line(progress, done, now - progress->start, values, line);
    if (!progress->in_place) {
        fprintf(stderr, "%s\n", line);
        return;
    }
    /* A line that wraps could not be rewritten. */
    if (ioctl(STDERR_FILENO, TIOCGWINSZ, &window) == 0 && window.ws_col > 1 &&
        length >= window.ws_col)
        line[window.ws_col - 1] = '\0';
    fprintf(stderr, "\r%s\033[K", line);
    fflush(stderr);
}

void troupe_progress_end(struct troupe_progress *progress)
{
    if (progress->in_place && progress->shown > progress->start)
        fputc('\n', stderr);
}

/* A device: where actors of one worker pool run, and where tensors live. */
#ifndef TROUPE_DEVICES_DEVICE_H
#define TROUPE_DEVICES_DEVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "troupe/attributes.h"
#include "troupe/status.h"

/* Splits a loop over a device's workers. The coordinator fills it in from the scheduler. */
struct troupe_parallel {
    int width; /* workers that may take part, at least 1 */
    /* Required. Runs body(context, begin, end) over disjoint ranges that cover [0, total), each
     * at least `grain` long but for the last, and returns when all are done. The ranges depend
     * on total, grain and width alone. NULL `run` means: call the body once. */
    void (*run)(struct troupe_parallel *self, int64_t total, int64_t grain,
                void (*body)(void *context, int64_t begin, int64_t end), void *context);
};

/* As self->run; a NULL `parallel`, a width of 1, or total <= grain calls the body once. */
void troupe_parallel_for(struct troupe_parallel *parallel, int64_t total, int64_t grain,
                         void (*body)(void *context, int64_t begin, int64_t end), void *context);

/* A device by name: "/job:ps/task:1/device:CPU:0", any part of which may be left out, or
 * "CPU:0". A part left out is -1 or "". */
#define TROUPE_DEVICE_NAME_MAX 64
struct troupe_device_spec {
    char job[TROUPE_DEVICE_NAME_MAX];
    int task;
    char type[16]; /* "CPU" */
    int index;
};

/* Reads a device name. INVALID_ARGUMENT: `device "/jib:ps": wants /job:NAME/task:N/device:TYPE:N,
 * each part optional`. "" gives a spec that fits any device. */
TROUPE_MUST_USE enum troupe_status troupe_device_spec_parse(const char *name,
                                                            struct troupe_device_spec *out);
/* Writes the name with every known part. */
const char *troupe_device_spec_print(const struct troupe_device_spec *spec, char *out, size_t size);
/* True when every part that `want` states agrees with `have`. */
bool troupe_device_spec_fits(const struct troupe_device_spec *want,
                             const struct troupe_device_spec *have);
/* The parts of both. INVALID_ARGUMENT, without a message, when they contradict each other. */
TROUPE_MUST_USE enum troupe_status troupe_device_spec_merge(const struct troupe_device_spec *a,
                                                            const struct troupe_device_spec *b,
                                                            struct troupe_device_spec *out);

#endif

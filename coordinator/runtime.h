/* What the coordinator keeps of a runtime. */
#ifndef TROUPE_COORDINATOR_RUNTIME_H
#define TROUPE_COORDINATOR_RUNTIME_H

#include <stdbool.h>

#include "scheduler/scheduler.h"
#include "transport/transport.h"
#include "troupe/runtime.h"

struct troupe_session;

struct troupe_runtime {
    struct troupe_transport *transport;
    struct troupe_pool *pool;
    bool owns_mpi;
    int next_tag;                   /* tags are handed out densely, the same on every rank */
    struct troupe_session *session; /* the open one: it receives the messages */
};

/* A runtime on a transport, which it takes on success; workers as in the options. For tests, where
 * the ranks are threads of one process on local transports. */
TROUPE_MUST_USE enum troupe_status troupe_runtime_wrap(struct troupe_transport *transport,
                                                       int workers, struct troupe_runtime **out);

/* Says that a message is awaited, so that idle workers keep polling; and that it came. */
void troupe_runtime_await(struct troupe_runtime *runtime);
void troupe_runtime_unawait(struct troupe_runtime *runtime);

/* Takes `count` consecutive tags. RESOURCE_EXHAUSTED names the limit. */
TROUPE_MUST_USE enum troupe_status troupe_runtime_take_tags(struct troupe_runtime *runtime,
                                                            int count, int *first);

#endif

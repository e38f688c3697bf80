/* What the coordinator keeps of a runtime. */
#ifndef TROUPE_COORDINATOR_RUNTIME_H
#define TROUPE_COORDINATOR_RUNTIME_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "coordinator/accelerator.h"
#include "scheduler/scheduler.h"
#include "transport/transport.h"
#include "troupe/runtime.h"

struct troupe_session;

/* A received message that waits to be looked at. */
struct troupe_letter {
    struct troupe_letter *next;
    int from;
    uint32_t kind;
    size_t bytes;
    unsigned char data[];
};

struct troupe_runtime {
    struct troupe_transport *transport;
    struct troupe_pool *pool;
    struct troupe_accelerators accelerators;
    bool owns_mpi;
    int next_tag;    /* tags are handed out densely, the same on every rank */
    uint64_t runs;   /* so far, over all sessions, the same on every rank */
    uint64_t rounds; /* of the watch, over all sessions; rank 0 */

    /* Letters, in the order in which they came, also before a session is open. `lock` guards them
     * and `session`, which stays while it is held. */
    pthread_mutex_t lock;
    struct troupe_letter *first, *last;
    struct troupe_session *session; /* the open one, NULL */
    _Atomic(int) letter_came;       /* a driver's done flag */
};

/* A runtime on a transport, which it takes on success; workers as in the options. For tests, where
 * the ranks are threads of one process on local transports. */
TROUPE_MUST_USE enum troupe_status troupe_runtime_wrap(struct troupe_transport *transport,
                                                       int workers, struct troupe_runtime **out);

/* The transport's message handler (mail.c); its context is the runtime. */
void troupe_runtime_receive(void *context, int from, uint32_t kind, const void *data, size_t bytes);
void troupe_runtime_drop_letters(struct troupe_runtime *runtime);

/* Says that a message is awaited, so that idle workers keep polling; and that it came. */
void troupe_runtime_await(struct troupe_runtime *runtime);
void troupe_runtime_unawait(struct troupe_runtime *runtime);

/* Takes `count` consecutive tags. RESOURCE_EXHAUSTED names the limit. */
TROUPE_MUST_USE enum troupe_status troupe_runtime_take_tags(struct troupe_runtime *runtime,
                                                            int count, int *first);

#endif

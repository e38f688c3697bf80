/* A session's parts, private to coordinator/. */
#ifndef TROUPE_COORDINATOR_SESSION_H
#define TROUPE_COORDINATOR_SESSION_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/hash.h"
#include "coordinator/runtime.h"
#include "graph/graph.h"
#include "ops/kernel.h"
#include "troupe/log.h"
#include "troupe/session.h"

struct troupe_plan;
struct troupe_request;
struct troupe_watch;

/* Kinds of messages between ranks (transport/transport.h). */
enum troupe_session_message {
    TROUPE_MESSAGE_GRAPH = 1, /* 0 -> all: the graph's text and options */
    TROUPE_MESSAGE_OUTCOME,   /* all -> 0: how this rank did: subject, status, message */
    TROUPE_MESSAGE_VERDICT,   /* 0 -> all: status, message */
    TROUPE_MESSAGE_HASHES,    /* all -> 0: a plan's node hashes */
    TROUPE_MESSAGE_RUN,       /* 0 -> serving ranks: what to run */
    TROUPE_MESSAGE_FAILED,    /* any -> all: an iteration failed here */
    TROUPE_MESSAGE_REPORT,    /* all -> 0: how far this rank is, at the end or after a failure */
    TROUPE_MESSAGE_END,       /* 0 -> all: after a failure, how many iterations all ranks admit */
    TROUPE_MESSAGE_FINAL,     /* 0 -> all: all ranks are done, and the root cause */
    TROUPE_MESSAGE_CLOSE,     /* 0 -> serving ranks */
    TROUPE_MESSAGE_PROBE,     /* 0 -> all: asks for a census (census.h) */
    TROUPE_MESSAGE_CENSUS     /* all -> 0 */
};

/* State by the name of the node that owns it. */
struct troupe_session_resource {
    char *name;
    struct troupe_resource *resource;
};

/* Somebody who waits for any of several runs. */
struct troupe_any_waiter {
    struct troupe_any_waiter *next;
    _Atomic(int) is_woken; /* a driver's flag: a run is over */
};

struct troupe_session {
    struct troupe_runtime *runtime;
    struct troupe_graph *graph;
    char *strategy;
    int window;
    bool collective; /* every rank calls run: no RUN messages */
    uint64_t step;   /* steps run since the session opened; rank 0 announces it with each run */

    /* Held while a run is started, so that all ranks start the same ones in the same order: guards
     * plans and resources. Never taken with another lock held. */
    pthread_mutex_t order;
    /* Guards the list of runs and `step`; taken after the runtime's lock, before a request's. */
    pthread_mutex_t lock;
    struct troupe_request *requests; /* in progress */
    struct troupe_any_waiter *waiters;
    uint64_t started; /* the number of the newest run that began here */
    bool is_closing;
    _Atomic(int) visitors; /* threads that use the session through a request */

    struct troupe_session_resource *resources;
    int resource_count, resource_capacity;
    struct troupe_name_map resource_of; /* by name, an index into `resources` */

    struct troupe_plan **plans;
    int plan_count, plan_capacity;

    struct troupe_loop *loops;
    int loop_count;

    struct troupe_watch *watch; /* watch.h */
    _Atomic(int) stop_requested;
};

/* Sends a message with the contents of `text` to one rank, or to every other rank. */
TROUPE_MUST_USE enum troupe_status troupe_session_send(struct troupe_session *session, int to,
                                                       uint32_t kind,
                                                       const struct troupe_text *text);
TROUPE_MUST_USE enum troupe_status troupe_session_send_all(struct troupe_session *session,
                                                           uint32_t kind,
                                                           const struct troupe_text *text);

/* Takes the first letter of `kind` (0: of any kind); NULL when there is none. A letter that comes
 * later sets runtime->letter_came. */
struct troupe_letter *troupe_session_take(struct troupe_session *session, uint32_t kind);
/* Takes the first letter of `kind` (0: of any kind), driving the pool until one comes. free() frees
 * it. */
TROUPE_MUST_USE enum troupe_status troupe_session_await(struct troupe_session *session,
                                                        uint32_t kind, struct troupe_letter **out);

/* Collective: every rank says how it did, and every rank returns the first failure (of the lowest
 * rank that rank 0 heard of) with its message, or TROUPE_OK when there was none. `subject` stands
 * for what is agreed on: ranks that come with different ones fail. */
TROUPE_MUST_USE enum troupe_status
troupe_session_agree(struct troupe_session *session, enum troupe_status status, uint64_t subject);

/* The state of a node that owns some, made when it is first asked for. */
TROUPE_MUST_USE enum troupe_status troupe_session_resource(struct troupe_session *session, int node,
                                                           struct troupe_resource **out);

/* run.c and watch.c: letters that concern runs in progress, handled as they come (from progress,
 * the runtime's lock held). True when the letter was one. */
bool troupe_run_receive(struct troupe_session *session, uint32_t kind, const void *data,
                        size_t bytes);
bool troupe_watch_receive(struct troupe_session *session, int from, uint32_t kind, const void *data,
                          size_t bytes);

/* loops.c */
TROUPE_MUST_USE enum troupe_status troupe_session_make_loops(struct troupe_session *session);
void troupe_session_free_loops(struct troupe_session *session);
/* The node that runs all initialisers, when there are any. */
#define TROUPE_INIT_NODE "init/variables"

/* prepare.c: `train`, strategy, initialisers, inference and placement of a loaded graph: all that
 * comes between loading and plans. `strategy` NULL: the file's. `devices` as of troupe_place. *used
 * is the strategy's name (static or of the graph). */
TROUPE_MUST_USE enum troupe_status troupe_graph_prepare(struct troupe_graph *graph,
                                                        const char *strategy, int ranks,
                                                        const struct troupe_device_table *devices,
                                                        const char **used);

#endif

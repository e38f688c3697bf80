/* A session: one loaded graph on the ranks of a runtime, with its state.
 *
 * Every rank opens the session. Then either rank 0 runs and the others serve (coordinated), or
 * every rank calls troupe_session_run with the same names (collective). */
#ifndef TROUPE_SESSION_H
#define TROUPE_SESSION_H

#include <stdbool.h>
#include <stdint.h>

#include "troupe/attributes.h"
#include "troupe/runtime.h"
#include "troupe/status.h"
#include "troupe/tensor.h"

struct troupe_session;

struct troupe_session_options {
    uint64_t seed;        /* of random numbers; the graph file's own `seed` when 0 */
    int window;           /* iterations in flight; 0: 2 */
    const char *strategy; /* NULL: what the graph file says; "none": as it is; "data-parallel" */
    /* Milliseconds without a completed firing after which a run is ended as stalled; 0: 60,000;
     * below 0: never. */
    int64_t watchdog_ms;
    /* Says that runs in progress get what they wait for in queues from one another, or never: no
     * run that starts later brings it. Such a deadlock is then told after some tenths of a second,
     * as one of messages always is; else it is the watchdog's. */
    bool self_contained;
};

/* Loads the graph (rank 0 reads the file and sends it to the others), applies `train` and the
 * strategy, infers, places. `options` and `path` count on rank 0; others may pass NULL. On
 * failure every rank returns the same status, and the message lists every error of the file, one
 * a line. INVALID_ARGUMENT: a bad graph; UNAVAILABLE or NOT_FOUND: the file. Collective; blocks. */
TROUPE_API TROUPE_MUST_USE enum troupe_status
troupe_session_open(struct troupe_runtime *runtime, const char *path,
                    const struct troupe_session_options *options, struct troupe_session **out);

/* Ends the session; on rank 0 it also ends the others' troupe_session_serve. Runs in progress are
 * cancelled and waited for, a minute at most: when a kernel does not return for that long, the
 * session's memory stays. Not from inside an actor, where it does nothing but to log an error.
 * NULL does nothing. Collective; blocks. */
TROUPE_API void troupe_session_close(struct troupe_session *session);

/* Takes part in what rank 0 runs until rank 0 closes the session. Returns TROUPE_OK then; failed
 * steps are rank 0's to report. Not on rank 0. Blocks. */
TROUPE_API TROUPE_MUST_USE enum troupe_status troupe_session_serve(struct troupe_session *session);

/* Receives the fetched values of one step, in order of steps, on rank 0: borrows them. Called from
 * a worker; a run from it is FAILED_PRECONDITION. */
typedef void troupe_step_fn(void *context, int64_t step, struct troupe_tensor *const *fetched);

struct troupe_run {
    const char *const *feeds;                 /* "name" or "name:port" */
    struct troupe_tensor *const *feed_values; /* used on rank 0 */
    int feed_count;
    const char *const *fetches; /* "name" or "name:port"; fetched on rank 0 */
    int fetch_count;
    const char *const *targets; /* nodes that are run and not fetched */
    int target_count;
    int64_t steps;           /* at least 1; 0: until a source reaches the end of its sequence */
    troupe_step_fn *on_step; /* or NULL */
    void *on_step_context;
    int64_t timeout_ms; /* after which the run ends with DEADLINE_EXCEEDED; 0: never */
    /* The number of its first step, from which random numbers are counted; 0: on from the last step
     * of the runs before. */
    int64_t first_step;
    /* A bool scalar: the run ends with the first step in which it is true, and with the steps that
     * are in flight by then on any rank (on one rank with a window of 1: none). NULL: none. */
    const char *until;
    /* How many steps a read of a variable may be behind: step s + 1 + staleness sees at least what
     * step s wrote. 0: every step sees what the one before wrote. */
    int staleness;
};

/* Runs steps of the part of the graph that the feeds, fetches and targets select; the steps of
 * one call overlap as far as the state allows. On success, on rank 0, `fetched` holds the
 * last step's values, each a reference of the caller's, in the order of `fetches`, and
 * *steps_done (NULL: not wanted) the number of steps. On failure the status and message are the
 * root cause, the same on every rank, and *steps_done the steps before it. Blocks. In coordinated
 * use rank 0 calls it; in collective use every rank does, with the same names and steps: ranks that
 * differ all get INVALID_ARGUMENT, and so does every rank when a value that rank 0 feeds is wrong.
 *
 * Several threads may run at once, the same part of the graph or others: each update of a variable
 * is atomic, and a read sees none in part. In collective use the ranks must start their runs in the
 * same order. CANCELLED: troupe_session_stop, _cancel or _close. DEADLINE_EXCEEDED: `timeout_ms`
 * has passed, on any rank; or nothing has happened for as long as the watchdog waits.
 * FAILED_PRECONDITION: nothing can happen any more (a deadlock); from inside an actor of the
 * session; or while it closes. The message of a stall or a deadlock says what waits for what, on
 * which rank.
 */
TROUPE_API TROUPE_MUST_USE enum troupe_status troupe_session_run(struct troupe_session *session,
                                                                 const struct troupe_run *run,
                                                                 struct troupe_tensor **fetched,
                                                                 int64_t *steps_done);

/* A run that was started and goes on beside its caller. */
struct troupe_request;

/* Starts a run, as troupe_session_run does, and returns: its steps go on in the workers' threads
 * (with a single worker: while some thread waits in the library). What `run` points to is copied,
 * but for on_step_context, which must stay until the run is over. Any thread; in collective use
 * every rank, in the same order. Blocks until the ranks have agreed on it. */
TROUPE_API TROUPE_MUST_USE enum troupe_status troupe_session_start(struct troupe_session *session,
                                                                   const struct troupe_run *run,
                                                                   struct troupe_request **out);
/* Waits until the run is over; its status, `fetched` and *steps_done are as of troupe_session_run.
 * May be called again, from any thread, also after the session was closed, but not from inside an
 * actor of the session (FAILED_PRECONDITION). */
TROUPE_API TROUPE_MUST_USE enum troupe_status troupe_request_wait(struct troupe_request *request,
                                                                  struct troupe_tensor **fetched,
                                                                  int64_t *steps_done);
/* Waits until one of the runs, all of one session, is over: *index says which, the first of
 * several. FAILED_PRECONDITION as above. Any thread. */
TROUPE_API TROUPE_MUST_USE enum troupe_status
troupe_request_wait_any(struct troupe_request *const *requests, int count, int *index);
/* True when the run is over, so that a wait would not take long. Any thread; never blocks. */
TROUPE_API bool troupe_request_test(const struct troupe_request *request);
/* Ends the run after the steps in flight, which is no failure. Any thread, also in on_step. */
TROUPE_API void troupe_request_stop(struct troupe_request *request);
/* Ends the run at once, with CANCELLED, on every rank: what has not fired yet fires no more, and
 * what waits in a queue is released. Steps in flight are lost. Any thread, also in on_step; never
 * blocks. */
TROUPE_API void troupe_request_cancel(struct troupe_request *request);
/* Gives the request back, over or not: a run in progress goes on. NULL does nothing. */
TROUPE_API void troupe_request_free(struct troupe_request *request);

/* Asks the runs in progress, or the next one, to end after the steps in flight, or, when these take
 * longer than a second, at once: they return CANCELLED, and later runs go on as usual. Any thread;
 * also from a signal handler. */
TROUPE_API void troupe_session_stop(struct troupe_session *session);
/* As troupe_request_cancel for every run in progress. Any thread; not from a signal handler. */
TROUPE_API void troupe_session_cancel(struct troupe_session *session);

/* In collective use: says that no rank serves. To be called on every rank after open. */
TROUPE_API void troupe_session_set_collective(struct troupe_session *session);

/* The placeholder's or any node's output: dtype, rank (-1: unknown) and dims (-1: unknown) as
 * inferred; dims has room for TROUPE_RANK_MAX. NOT_FOUND with a suggestion. */
TROUPE_API TROUPE_MUST_USE enum troupe_status
troupe_session_value(const struct troupe_session *session, const char *name,
                     enum troupe_dtype *dtype_out, int *rank_out, int64_t *dims_out);

/* The loops of the graph's `loop` section in the order in which they run; one "train" loop is made
 * up for a graph that has `train` and no `loop`. Strings belong to the session. */
struct troupe_loop_value {
    const char *name;  /* in results and progress */
    const char *value; /* what to fetch */
};
struct troupe_loop {
    const char *name;
    const char
        *with; /* the loop that it starts together with; NULL: it starts after those before */
    const char *const *run; /* targets */
    int run_count;
    int64_t steps;      /* 0: until the end of a sequence */
    const char *until;  /* as in struct troupe_run */
    int64_t timeout_ms; /* 0: none */
    int staleness;
    int64_t every;    /* a progress line every so many steps; 0: by time */
    int64_t examples; /* in a step over all replicas; 0: not known */
    const struct troupe_loop_value *show;
    int show_count;
    const struct troupe_loop_value *mean;
    int mean_count;
};
TROUPE_API int troupe_session_loop_count(const struct troupe_session *session);
TROUPE_API const struct troupe_loop *troupe_session_loop(const struct troupe_session *session,
                                                         int index);
/* The loop as a run to start, without fetches. Borrows from the loop. */
TROUPE_API struct troupe_run troupe_loop_run(const struct troupe_loop *loop);
/* The strategy in force: "none" or its name. */
TROUPE_API const char *troupe_session_strategy(const struct troupe_session *session);
/* The seed in force: the options', or the graph file's. */
TROUPE_API uint64_t troupe_session_seed(const struct troupe_session *session);

/* Checks a graph file without running it: loads, applies `train` and `strategy` (NULL: the file's)
 * for `ranks` ranks, infers, places. Every error is in the message, one a line. */
TROUPE_API TROUPE_MUST_USE enum troupe_status
troupe_graph_check(const char *path, const char *strategy, int ranks, int *nodes_out);

/* The plan of a whole graph for `ranks` ranks as "text", "json" or "dot" (one cluster per device;
 * Send/Recv pairs shown). free() frees *out. */
TROUPE_API TROUPE_MUST_USE enum troupe_status troupe_graph_show(const char *path,
                                                                const char *strategy, int ranks,
                                                                const char *format, char **out);

/* The op registry, or one op (NULL: all), as "text", "json" or "md". free() frees *out. */
TROUPE_API TROUPE_MUST_USE enum troupe_status troupe_ops_describe(const char *name,
                                                                  const char *format, char **out);

/* A tensor from a JSON literal (dtype INVALID: float32 or int32 by what is there), from a .npy
 * file, into JSON text (free() frees; a list of tensors as a list of them, null for one that is not
 * set; INVALID_ARGUMENT for a resource and for a string that is not UTF-8), and into a .npy file,
 * written whole or not at all. */
TROUPE_API TROUPE_MUST_USE enum troupe_status
troupe_tensor_parse(const char *json, enum troupe_dtype dtype, struct troupe_tensor **out);
TROUPE_API TROUPE_MUST_USE enum troupe_status troupe_tensor_load(const char *path,
                                                                 struct troupe_tensor **out);
TROUPE_API TROUPE_MUST_USE enum troupe_status
troupe_tensor_print(const struct troupe_tensor *tensor, char **out);
TROUPE_API TROUPE_MUST_USE enum troupe_status troupe_tensor_save(const struct troupe_tensor *tensor,
                                                                 const char *path);

#endif

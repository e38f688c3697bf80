/* How all ranks run steps of a plan, and end together. Private to coordinator/.
 *
 * Several runs are in progress at once, each with a number that is the same on every rank and that
 * its messages carry. Every rank admits the same iterations and needs nobody until the end: a rank
 * that has completed them says so (REPORT, complete), and when all have, rank 0 says that the run
 * is over (FINAL).
 *
 * A rank whose iteration fails tells all (FAILED) and stops admitting; whoever hears it does the
 * same and reports how far it has admitted (REPORT, held). Iterations after the failed one fire
 * dead. Rank 0 takes the largest, and every rank admits that many (END), so that no message stays
 * without its partner; then ranks report that they are complete, as above. The failure of the
 * earliest iteration, on the lowest rank, is the root cause everywhere.
 *
 * An end that somebody asks for, and an interruption (cancellation, a deadline, a stall), go the
 * same way, as failures that come after all iterations. An interrupted run drains: everything that
 * has not fired yet fires dead, on all ranks, and what waits in a queue is released. */
#ifndef TROUPE_COORDINATOR_RUN_H
#define TROUPE_COORDINATOR_RUN_H

#include <stdint.h>

#include "coordinator/plan.h"

/* A failed iteration, as ranks tell each other. */
struct troupe_run_failure {
    bool is_set;
    uint64_t iteration;
    int rank;
    enum troupe_status status; /* OK: an end that was asked for */
    char *message;             /* owned */
};
/* The iteration of an interruption, and of an end that was asked for: what fails goes before the
 * first, and that before the second. */
#define TROUPE_ITERATION_INTERRUPTED (UINT64_MAX - 2)
#define TROUPE_ITERATION_ENDED       (UINT64_MAX - 1)

/* A run in progress, and its result afterwards. */
struct troupe_request {
    _Atomic(int) references; /* the caller's, the session's, and those of who looks at it */
    uint64_t number;
    struct troupe_request *next; /* in the session's list, under the session's lock */
    struct troupe_runtime *runtime;
    struct troupe_plan *plan;
    int64_t steps;                /* 0: until a source ends */
    uint64_t first, goal;         /* iterations of the stage: the first, and the end of the last */
    int64_t timeout_ms;           /* 0: none */
    uint64_t deadline_ns;         /* 0: none */
    struct troupe_tensor **feeds; /* references */
    int feed_count;

    _Atomic(uint64_t) completed; /* iterations of the stage on this rank */
    _Atomic(uint64_t) mark;      /* the next one of them that is to be noticed */
    _Atomic(bool) drains;        /* interrupted; written under the lock */
    _Atomic(int) is_over;        /* a driver's flag: nothing is left to do but to settle */
    _Atomic(bool) is_taken;      /* somebody settles it */
    _Atomic(int) is_settled;     /* a driver's flag */

    pthread_mutex_t lock;
    struct troupe_session *session;    /* NULL when settled */
    struct troupe_run_failure failure; /* the earliest known */
    uint64_t live;                     /* iterations that were complete when that came; rank 0: the
                                        * fewest of any rank */
    bool is_held, is_complete;         /* what this rank has reported */
    bool has_end, is_final;
    uint64_t end;                       /* rank 0, until has_end: the largest reported */
    int held_reports, complete_reports; /* rank 0 */
    int duties;                         /* see troupe_request_take_duty */
    bool must_admit;                    /* to be done when the lock is given back */

    /* Of the watch's thread alone. */
    uint64_t seen_completed, seen_activity, seen_ns; /* what this rank had done, and when */
    uint64_t global_activity, global_ns;             /* rank 0: the same of all ranks */
    uint64_t stop_ns;                                /* when it was first asked to stop */

    /* The result, when settled. */
    enum troupe_status status;
    char *message;
    int64_t steps_done;
    struct troupe_tensor **fetched; /* NULL where there is none */
    int fetch_count;
    bool has_until;                  /* the last of them is not the caller's */
    struct troupe_tensor *tensors[]; /* the feeds, and what was fetched */
};

/* Reads what a message says of a failure into `known` when it is earlier. DATA_LOSS, and `known` as
 * it was, for a message that is cut short or has a status or rank that does not exist. */
TROUPE_MUST_USE enum troupe_status troupe_run_failure_read(const void *data, size_t bytes,
                                                           const struct troupe_session *session,
                                                           struct troupe_run_failure *known);
void troupe_run_failure_put(struct troupe_text *out, const struct troupe_run_failure *failure);
/* Takes over a failure when it is earlier than the known one. */
void troupe_run_failure_merge(struct troupe_run_failure *known, uint64_t iteration, int rank,
                              enum troupe_status status, const char *message);

/* The stage's hook: an iteration is complete on this rank; here a requested stop takes effect. The
 * context is the plan, as below. */
void troupe_run_completed(void *context, uint64_t iteration);
/* The stage's hook: a firing of this rank failed. The actor's context is its part. */
void troupe_run_failed(void *context, uint64_t iteration, void *actor_context,
                       enum troupe_status status, const char *message);

/* What is announced of a run beside its names. */
struct troupe_run_order {
    uint64_t number;
    int instance; /* which of the plans with its signature */
    uint64_t first_step;
};

/* Begins a run on this rank; the order lock is held. On success the session holds one reference and
 * the caller another. */
TROUPE_MUST_USE enum troupe_status troupe_request_begin(struct troupe_plan *plan,
                                                        const struct troupe_run *run,
                                                        const struct troupe_run_order *order,
                                                        struct troupe_request **out);
/* Ends admission; what is in flight completes. `status` is the run's when nothing fails before. */
void troupe_request_end(struct troupe_request *request, enum troupe_status status,
                        const char *message);
/* Ends the run at once, on every rank. Not from a stage's hook. */
void troupe_request_interrupt(struct troupe_request *request, enum troupe_status status,
                              const char *message);
/* Says that the run has something left to do beside its firings, and that it is done: the run does
 * not end before. Any thread, while the run is not over. */
void troupe_request_take_duty(struct troupe_request *request);
void troupe_request_drop_duty(struct troupe_request *request);
/* Ends the firings of a run that has failed, or was interrupted, which wait for others: the watch
 * calls it again and again. */
void troupe_request_release(struct troupe_request *request);
/* Drives until the run is over, or until the deadline (0: none); then its result is in place, and
 * the session has let go of it. DEADLINE_EXCEEDED: it is not over. */
TROUPE_MUST_USE enum troupe_status troupe_request_settle(struct troupe_request *request,
                                                         uint64_t deadline_ns);
void troupe_request_ref(struct troupe_request *request);
void troupe_request_unref(struct troupe_request *request);

/* request.c. Settles every run of the session that is over. */
void troupe_session_settle(struct troupe_session *session);
/* A reference to each run in progress, `*count` of them; free() frees the array. */
TROUPE_MUST_USE enum troupe_status
troupe_session_requests(struct troupe_session *session, struct troupe_request ***out, int *count);
/* True in a task of the session's workers: an actor must not wait for them. */
bool troupe_session_is_inside(const struct troupe_session *session);
/* Cancels the runs in progress and waits for them and for those who wait for them. Afterwards no
 * run starts. DEADLINE_EXCEEDED: something is still running. */
TROUPE_MUST_USE enum troupe_status troupe_session_finish(struct troupe_session *session);
/* Starts a run that rank 0 announced. */
TROUPE_MUST_USE enum troupe_status troupe_session_follow(struct troupe_session *session,
                                                         const struct troupe_letter *letter);

#endif

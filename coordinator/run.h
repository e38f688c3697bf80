/* How all ranks run steps of a plan, and end together. Private to coordinator/.
 *
 * Every rank admits the same iterations and needs nobody until the end. A rank whose iteration
 * fails tells all (FAILED) and stops admitting; whoever hears it does the same. Iterations after
 * the failed one fire dead. Each rank reports how far it has admitted (REPORT); rank 0 takes the
 * largest, and every rank admits that many (FINAL), so that no message stays without its partner.
 * The failure of the earliest iteration, on the lowest rank, is the root cause everywhere. */
#ifndef TROUPE_COORDINATOR_RUN_H
#define TROUPE_COORDINATOR_RUN_H

#include <stdint.h>

#include "coordinator/plan.h"

/* A failed iteration, as ranks tell each other. */
struct troupe_run_failure {
    bool is_set;
    uint64_t iteration;
    int rank;
    enum troupe_status status;
    char *message; /* owned */
};

/* One per session, from run to run. `lock` guards all of it but is_final. */
struct troupe_run_state {
    pthread_mutex_t lock;
    bool is_active;
    uint64_t number; /* of the run, the same on every rank: messages carry it */
    struct troupe_plan *plan;
    struct troupe_run_failure failure; /* the earliest known */
    bool reported;
    int reports;  /* rank 0 */
    uint64_t end; /* rank 0: the largest reported */
    _Atomic(int) is_final;
};

/* Reads what a message says of a failure into `known` when it is earlier. DATA_LOSS, and `known` as
 * it was, for a message that is cut short or has a status or rank that does not exist. */
TROUPE_MUST_USE enum troupe_status troupe_run_failure_read(const void *data, size_t bytes,
                                                           const struct troupe_session *session,
                                                           struct troupe_run_failure *known);

TROUPE_MUST_USE enum troupe_status troupe_run_state_create(struct troupe_run_state **out);
void troupe_run_state_destroy(struct troupe_run_state *state);

/* The stage's hook: an iteration is complete on this rank; here a requested stop takes effect. */
void troupe_run_completed(void *context, uint64_t iteration);

/* The stage's hook: a firing of this rank failed. The context is the plan, the actor's context its
 * part. */
void troupe_run_failed(void *context, uint64_t iteration, void *actor_context,
                       enum troupe_status status, const char *message);

/* Runs a plan's steps on this rank, and takes part in ending them. */
TROUPE_MUST_USE enum troupe_status troupe_run_execute(struct troupe_plan *plan,
                                                      const struct troupe_run *run,
                                                      struct troupe_tensor **fetched,
                                                      int64_t *steps_done);

#endif

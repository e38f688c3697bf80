/* What rank 0 asks of all ranks when a run does not get on. Private to coordinator/. */
#ifndef TROUPE_COORDINATOR_CENSUS_H
#define TROUPE_COORDINATOR_CENSUS_H

#include "coordinator/run.h"

/* The iteration of a begun message that stands for all before the run's `completed`. */
#define TROUPE_CENSUS_ALL_BEFORE UINT64_MAX

/* A message between ranks, by its tag, that this rank has begun to send: its actor has fired, or is
 * deferred. A part of a collective counts as one. */
struct troupe_census_begun {
    uint64_t tag, iteration;
};
/* A message that this rank waits for: it is on its way when `wanted` other ranks have begun it. */
struct troupe_census_wait {
    uint64_t tag, iteration, wanted;
};

struct troupe_census_run {
    uint64_t number;
    uint64_t activity;            /* changes when a firing completes */
    uint64_t completed, admitted; /* iterations of its stage */
    uint64_t phase; /* 0: it goes on; 1: it has failed or is to end, and ranks stop; 2: the common
                     * end is known */
    /* With details only; what is begun is in order of tags and iterations: */
    struct troupe_census_begun *begun;
    struct troupe_census_wait *waits;
    int begun_count, begun_capacity, wait_count, wait_capacity;
};

struct troupe_census {
    uint64_t round;
    bool has_details;
    bool is_idle;     /* all workers sleep, and somebody would wake them for a message */
    bool has_outside; /* something waits for what is not the session's to bring */
    struct troupe_census_run *runs;
    int run_count;
    char *causes,
        *waits; /* with details: what has begun and does not complete; who waits for what */
};

/* Takes the census of this rank. `is_self_contained` as in the session's options. */
TROUPE_MUST_USE enum troupe_status troupe_census_take(struct troupe_session *session,
                                                      bool with_details, bool is_self_contained,
                                                      struct troupe_census *out);
void troupe_census_fini(struct troupe_census *census);

void troupe_census_put(struct troupe_text *out, const struct troupe_census *census);
/* DATA_LOSS; then `out` is empty. */
TROUPE_MUST_USE enum troupe_status troupe_census_read(const void *data, size_t bytes,
                                                      struct troupe_census *out);

/* What all ranks' runs have done, as one number: of one run, or of all (number 0). */
uint64_t troupe_census_activity(const struct troupe_census *censuses, int ranks, uint64_t number);
/* Whether all of them are idle and wait for nothing from outside. */
bool troupe_census_is_quiet(const struct troupe_census *censuses, int ranks);
/* Of quiet censuses with details: whether nothing is on its way either, and every run has something
 * in flight that will not complete. */
bool troupe_census_is_deadlock(const struct troupe_census *censuses, int ranks);

#endif

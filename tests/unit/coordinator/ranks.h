/* Ranks as threads of one process, on local transports. */
#ifndef TROUPE_TESTS_RANKS_H
#define TROUPE_TESTS_RANKS_H

#include "coordinator/session.h"

#define RANKS_MAX 8

/* What rank 0 opens its session with; `strategy` is an argument of ranks_run. */
extern struct troupe_session_options ranks_options;

/* What one rank does: every rank gets its open session; `opened` is how opening went. */
typedef void rank_fn(int rank, struct troupe_session *session, enum troupe_status opened);

/* Opens the graph text on `ranks` ranks with `workers` workers each, calls `body` on every rank,
 * and closes. Ranks other than 0 serve when `body` has returned, unless they run collectively. */
void ranks_run(int ranks, int workers, const char *graph, const char *strategy, bool collective,
               rank_fn *body);

/* Ends the program with a message when `condition` is false. */
void check(bool condition, const char *text, const char *file, int line);
#define CHECK(condition) check(condition, #condition, __FILE__, __LINE__)

#endif

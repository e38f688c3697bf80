/* Failures as ranks tell each other. Invariant: a known failure only ever moves to an earlier
 * iteration or, within one, to a lower rank. */
#include <stdlib.h>

#include "base/memory.h"
#include "coordinator/run.h"
#include "coordinator/wire.h"

void troupe_run_failure_merge(struct troupe_run_failure *known, uint64_t iteration, int rank,
                              enum troupe_status status, const char *message)
{
    if (known->is_set &&
        (known->iteration < iteration || (known->iteration == iteration && known->rank <= rank)))
        return;
    free(known->message);
    known->is_set = true;
    known->iteration = iteration;
    known->rank = rank;
    known->status = status;
    known->message = troupe_strdup(message);
}

void troupe_run_failure_put(struct troupe_text *out, const struct troupe_run_failure *failure)
{
    troupe_wire_put_u64(out, failure->is_set);
    if (!failure->is_set)
        return;
    troupe_wire_put_u64(out, failure->iteration);
    troupe_wire_put_u64(out, (uint64_t)failure->rank);
    troupe_wire_put_u64(out, (uint64_t)failure->status);
    troupe_wire_put_string(out, failure->message ? failure->message : "");
}

enum troupe_status troupe_run_failure_read(const void *data, size_t bytes,
                                           const struct troupe_session *session,
                                           struct troupe_run_failure *known)
{
    struct troupe_wire_reader reader;
    troupe_wire_reader_init(&reader, data, bytes);
    if (!troupe_wire_get_u64(&reader))
        return troupe_wire_close(&reader, "failure");
    uint64_t iteration = troupe_wire_get_u64(&reader), rank = troupe_wire_get_u64(&reader);
    uint64_t code = troupe_wire_get_u64(&reader);
    char *message = troupe_wire_get_string(&reader);
    enum troupe_status status = troupe_wire_close(&reader, "failure");
    if (status == TROUPE_OK && !message)
        status = TROUPE_RESOURCE_EXHAUSTED;
    if (status == TROUPE_OK &&
        (code >= TROUPE_STATUS_COUNT || rank >= (uint64_t)session->runtime->transport->size ||
         iteration > TROUPE_ITERATION_ENDED))
        status =
            troupe_status_fail(TROUPE_DATA_LOSS, "message \"failure\" has status %llu of rank %llu",
                               (unsigned long long)code, (unsigned long long)rank);
    if (status == TROUPE_OK)
        troupe_run_failure_merge(known, iteration, (int)rank, (enum troupe_status)code, message);
    free(message);
    return status;
}

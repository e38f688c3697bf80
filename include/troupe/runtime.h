/* A runtime: the workers of this process and its connection to the other ranks. */
#ifndef TROUPE_RUNTIME_H
#define TROUPE_RUNTIME_H

#include <stdbool.h>

#include "troupe/attributes.h"
#include "troupe/status.h"

struct troupe_runtime;

struct troupe_runtime_options {
    /* An MPI_Comm behind a pointer, which is duplicated; NULL: this process alone. MPI must be
     * initialised by the caller, who also finalises it after troupe_runtime_destroy. */
    const void *communicator;
    int workers; /* 0: the process's CPUs divided among the ranks of the host */
};

/* Collective over the communicator. INVALID_ARGUMENT; UNAVAILABLE when MPI fails. */
TROUPE_API TROUPE_MUST_USE enum troupe_status
troupe_runtime_create(const struct troupe_runtime_options *options, struct troupe_runtime **out);

/* For a command: initialises MPI when a launcher (mpirun) started the process and uses
 * MPI_COMM_WORLD, else runs alone; troupe_runtime_destroy then finalises MPI. */
TROUPE_API TROUPE_MUST_USE enum troupe_status
troupe_runtime_launch(int *argc, char ***argv, int workers, struct troupe_runtime **out);

/* Adds simulated accelerators SIM:0, SIM:1, ... to this process, once and before a session is
 * opened; the same on every rank. `spec` is the number of devices and what is not usual of each:
 * "2,latency=10us,bandwidth=1GB/s,delays=7,memory=64MB" (a copy takes `latency` and its bytes over
 * `bandwidth`; `delays` is a seed of random delays; usually copies take no time, there are no
 * delays, and 256 MiB of memory). INVALID_ARGUMENT; FAILED_PRECONDITION; UNAVAILABLE,
 * RESOURCE_EXHAUSTED: this process alone cannot have them. */
TROUPE_API TROUPE_MUST_USE enum troupe_status troupe_runtime_add_sim(struct troupe_runtime *runtime,
                                                                     const char *spec);

/* Collective. Sessions must be closed before. NULL does nothing. */
TROUPE_API void troupe_runtime_destroy(struct troupe_runtime *runtime);

/* This process's rank (from 0), the number of ranks, and this process's workers. Any thread. */
TROUPE_API int troupe_runtime_rank(const struct troupe_runtime *runtime);
TROUPE_API int troupe_runtime_size(const struct troupe_runtime *runtime);
TROUPE_API int troupe_runtime_workers(const struct troupe_runtime *runtime);

/* Ends every rank of the job with this exit status; does not return when there are others.
 * For a failure that only this rank knows of. Any thread. */
TROUPE_API void troupe_runtime_abort(struct troupe_runtime *runtime, int exit_status);

/* One line a fact, for people: version, MPI and its thread level, BLAS, workers, what the build
 * has. free() frees; NULL without memory. */
TROUPE_API char *troupe_runtime_describe(const struct troupe_runtime *runtime);

#endif

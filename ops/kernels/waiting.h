/* Firings that wait for state to change: lists of them, and how a kernel's are found again when a
 * run ends. Private to ops/. */
#ifndef TROUPE_OPS_KERNELS_WAITING_H
#define TROUPE_OPS_KERNELS_WAITING_H

#include "ops/kernel.h"

/* Ends what a kernel's firings from iteration `first` on wait for in the state, as ABORTED. */
typedef void troupe_waiting_release_fn(struct troupe_payload *state,
                                       const struct troupe_kernel *kernel, uint64_t first);

/* The hooks of a row whose kernel may wait, and what that calls before it does: keeps the state,
 * which is counted, for `release`. */
TROUPE_MUST_USE enum troupe_status troupe_waiting_init(struct troupe_kernel *kernel);
void troupe_waiting_fini(struct troupe_kernel *kernel);
void troupe_waiting_release(struct troupe_kernel *kernel, uint64_t first);
void troupe_waiting_enter(struct troupe_kernel *kernel, struct troupe_payload *state,
                          troupe_waiting_release_fn *release);

/* Makes the scalar handle that is output 0; takes a reference. */
TROUPE_MUST_USE enum troupe_status troupe_call_handle(struct troupe_kernel_call *call,
                                                      struct troupe_payload *state);
/* What handle input 0 names. */
struct troupe_payload *troupe_call_state(const struct troupe_kernel_call *call);

/* State of a session: a resource that keeps a counted object; takes the object's reference. NULL
 * without memory. */
struct troupe_resource *troupe_counted_resource(struct troupe_payload *state);
struct troupe_payload *troupe_counted_state(struct troupe_resource *resource);

/* The kernel of a node that owns such a resource: its handle. */
troupe_compute_fn troupe_kernel_state_handle;

/* A firing in a list, the oldest first. */
struct troupe_waiter {
    struct troupe_waiter *next;
    struct troupe_deferred deferred;
    int64_t wanted;
};
struct troupe_waiters {
    struct troupe_waiter *first, **end;
};
void troupe_waiters_init(struct troupe_waiters *waiters);
void troupe_waiters_append(struct troupe_waiters *waiters, struct troupe_waiter *waiter);
/* The oldest, out of the list; NULL. */
struct troupe_waiter *troupe_waiters_take(struct troupe_waiters *waiters);
/* Moves those of a kernel from iteration `first` on to `out`. */
void troupe_waiters_split(struct troupe_waiters *waiters, const struct troupe_kernel *kernel,
                          uint64_t first, struct troupe_waiters *out);
/* Ends all, as ABORTED, and frees them. No lock is held. */
void troupe_waiters_abort(struct troupe_waiters *waiters);

#endif

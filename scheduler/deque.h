/* A worker's own queue of tasks: its owner pushes and takes at one end, thieves steal at the
 * other.
 * Source: Chase and Lev, "Dynamic circular work-stealing deque" (2005), with the orders of Le,
 * Pop, Cohen and Zappa Nardelli (2013), fences replaced by sequentially consistent accesses. */
#ifndef TROUPE_SCHEDULER_DEQUE_H
#define TROUPE_SCHEDULER_DEQUE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "troupe/attributes.h"
#include "troupe/status.h"

struct troupe_task;
struct troupe_deque_ring;

struct troupe_deque {
    _Alignas(64) _Atomic(int64_t) top; /* thieves advance it */
    _Alignas(64) _Atomic(int64_t) bottom;
    _Atomic(struct troupe_deque_ring *) ring;
    bool shared; /* false: no thief exists, and no access needs an order */
};

TROUPE_MUST_USE enum troupe_status troupe_deque_init(struct troupe_deque *deque, bool shared);
void troupe_deque_fini(struct troupe_deque *deque);

/* Owner only. Push grows the ring when it is full and returns false without memory for that. Its
 * last step is a sequentially consistent store when the deque is shared, with which all `count`
 * tasks appear. Take moves the newest tasks to `tasks`, oldest first, and returns their number: one
 * of a deque that is not long, at most TROUPE_DEQUE_BATCH of a long one, 0 when it is empty. */
#define TROUPE_DEQUE_BATCH 16
#define TROUPE_DEQUE_LONG  64
TROUPE_MUST_USE bool troupe_deque_push(struct troupe_deque *deque, struct troupe_task *const *tasks,
                                       int count);
int troupe_deque_take(struct troupe_deque *deque, struct troupe_task **tasks);

/* Owner only: the oldest task, NULL when there is none or a thief was faster. */
struct troupe_task *troupe_deque_take_oldest(struct troupe_deque *deque);

/* Any thread: moves the oldest half, at most TROUPE_DEQUE_BATCH, to `tasks`, oldest first. Returns
 * their number, 0 when there is none or another thief was faster. */
int troupe_deque_steal(struct troupe_deque *deque, struct troupe_task **tasks);

/* Any thread; sequentially consistent. */
bool troupe_deque_is_empty(struct troupe_deque *deque);

#endif

/* Numbers as tokens, and behaviours that several tests use. */
#ifndef TROUPE_TESTS_ACTORS_SUPPORT_H
#define TROUPE_TESTS_ACTORS_SUPPORT_H

#include <stdatomic.h>
#include <stdint.h>

#include "actors/actors.h"

/* A deadline that only a hang reaches, from now. */
uint64_t soon(void);

/* Payloads that exist: 0 when none leaked. */
extern _Atomic(int) support_live;

struct troupe_payload *number_create(int64_t value);
int64_t number_value(const struct troupe_payload *payload); /* NULL: 0 */

/* What an actor of these tests does: sums its inputs and `add`, logs, sends the sum on output
 * 0; fails in iteration `fail_at`. */
struct adder {
    const char *name;
    int64_t add;
    int64_t fail_at; /* -1: never */
    int inputs;      /* set by add_adder */
    _Atomic(int) calls;
    _Atomic(int64_t) last;
    int64_t values[256]; /* by iteration */
};
enum troupe_status adder_behave(void *context, struct troupe_firing *firing);

/* Each aborts the test when the engine refuses. */
struct troupe_pool *pool_of(int workers);
struct troupe_stage *stage_of(int window);
int add_adder(struct troupe_stage *stage, struct adder *adder, int inputs, int outputs);
int add_actor(struct troupe_stage *stage, const struct troupe_actor_spec *spec);
void join(struct troupe_stage *stage, int from, int from_port, int to, int to_port, int distance);
void cast(struct troupe_stage *stage, struct troupe_pool *pool);
/* Destroys both and checks that no payload is left. */
void finish(struct troupe_stage *stage, struct troupe_pool *pool);

#endif

/* The engine without tensors: actors, edges, iterations, on a pool of workers.
 *
 * Describe a static graph of actors (troupe_stage_*), cast it, and run iterations of it. Every
 * actor fires once per iteration when all its inputs for that iteration are there. Tokens are
 * reference-counted payloads (troupe/payload.h), NULL for a plain signal. */
#ifndef TROUPE_ACTOR_H
#define TROUPE_ACTOR_H

#include <stdbool.h>
#include <stdint.h>

#include "troupe/attributes.h"
#include "troupe/payload.h"
#include "troupe/status.h"

struct troupe_pool;
struct troupe_stage; /* a graph of actors: first described, then cast */
struct troupe_firing;

/* A pool of `workers` workers (0: the process's CPUs): workers - 1 threads, and whoever waits in
 * troupe_stage_wait. */
TROUPE_API TROUPE_MUST_USE enum troupe_status troupe_pool_start(int workers,
                                                                struct troupe_pool **out);
TROUPE_API void troupe_pool_stop(struct troupe_pool *pool);

/* What an actor does in one firing. inputs[i] are borrowed: a token is released after the call.
 * The behaviour sets outputs[o] (they start as NULL), each with one reference that it gives
 * away. Returns
 *   TROUPE_OK         outputs are sent;
 *   any failure       the iteration's root cause is recorded with the thread's message, and
 *                     every output is sent as dead;
 * or calls troupe_firing_defer first and returns TROUPE_OK: then the outputs are sent, and the
 * inputs released, when somebody calls troupe_firing_complete. A behaviour never blocks.
 * A failure returned after troupe_firing_defer ends the firing: then nobody may complete it.
 * It is not called when an input is dead (unless the actor takes dead tokens): its outputs are
 * dead then. Nor is it called any more in an iteration that has failed. A plain signal is dead when
 * the behaviour was not called or failed, or when the actor has outputs and all are dead. */
typedef enum troupe_status troupe_behaviour_fn(void *context, struct troupe_firing *firing);

/* Of a firing, valid until it completes. The iteration is counted since the cast, inside a frame
 * since the frame's actor fired. */
TROUPE_API uint64_t troupe_firing_iteration(const struct troupe_firing *firing);
TROUPE_API struct troupe_payload *const *troupe_firing_inputs(const struct troupe_firing *firing);
TROUPE_API struct troupe_payload **troupe_firing_outputs(struct troupe_firing *firing);
/* Moves input `port` out of the firing, with its reference: for sending it on, or for writing into
 * it when it is the only one. The input reads NULL from then on. Inside the behaviour. */
TROUPE_API struct troupe_payload *troupe_firing_take_input(struct troupe_firing *firing, int port);
/* True when an input is dead or the iteration has failed (only seen by actors that take dead
 * tokens). */
TROUPE_API bool troupe_firing_is_dead(const struct troupe_firing *firing);
/* The actor's context. */
TROUPE_API void *troupe_firing_context(const struct troupe_firing *firing);
/* Keeps the firing open after the behaviour returns; call it inside the behaviour, before
 * anything that may complete the firing. Returns a handle for complete. */
TROUPE_API struct troupe_firing *troupe_firing_defer(struct troupe_firing *firing);
/* Ends a deferred firing: moves output_count tokens from `outputs`, or records a failure
 * (`message` is copied; `outputs` is not looked at). `outputs` NULL: what the behaviour left in
 * troupe_firing_outputs. Any thread, once. */
TROUPE_API void troupe_firing_complete(struct troupe_firing *deferred, enum troupe_status status,
                                       const char *message, struct troupe_payload **outputs);

struct troupe_actor_spec {
    const char *name; /* for messages; copied */
    int input_count, output_count;
    troupe_behaviour_fn *behave;
    void *context;    /* shared until the stage is destroyed */
    bool takes_dead;  /* behave is called for dead inputs too (a Send passes deadness on) */
    int64_t priority; /* of two ready actors the higher goes first; 0 by default */
};

/* `window` is how many iterations may be in flight (1 or more). */
TROUPE_API TROUPE_MUST_USE enum troupe_status troupe_stage_create(int window,
                                                                  struct troupe_stage **out);
/* Waits for nothing: no iteration may be running. NULL does nothing. */
TROUPE_API void troupe_stage_destroy(struct troupe_stage *stage);
/* Adds an actor and returns its number in *out. */
TROUPE_API TROUPE_MUST_USE enum troupe_status
troupe_stage_add(struct troupe_stage *stage, const struct troupe_actor_spec *spec, int *out);
/* An edge from output `from_port` (-1: a plain signal when the actor has fired) to input
 * `to_port` (-1: a signal only). The token of iteration i arrives in iteration i + distance; the
 * first `distance` iterations get NULL (a plain signal). A signal over an edge of distance 0
 * carries deadness; one over a longer distance never does. Each input port has exactly one edge. */
TROUPE_API TROUPE_MUST_USE enum troupe_status troupe_stage_connect(struct troupe_stage *stage,
                                                                   int from, int from_port, int to,
                                                                   int to_port, int distance);
/* Frames: a stage that runs inside another one, once for every firing of one of its actors: the
 * body of a loop, or of a function that may call itself.
 *
 * The body is a stage with arguments and results. The actor that stands for it in the parent has
 * an input for each argument and an output for each result; its firing runs iteration 0 of the
 * body, then one more whenever troupe_firing_continue is called in the newest, with at most
 * `window` in flight, and completes with the body's last iteration. Several firings (of parallel
 * iterations of the parent, or of a function that calls itself) run at once, each with mailboxes
 * of its own; they are kept for later ones. Frames within frames may be TROUPE_FRAME_MAX_DEPTH
 * deep: RESOURCE_EXHAUSTED. A failure inside fails the iterations around it. */
#define TROUPE_FRAME_MAX_DEPTH 10000
TROUPE_API TROUPE_MUST_USE enum troupe_status troupe_stage_create_frame(int window,
                                                                        int argument_count,
                                                                        int result_count,
                                                                        struct troupe_stage **out);
/* An actor of `parent` that runs `body`, which must be cast before it fires, onto the same pool,
 * and outlive the parent. `body` may be `parent` itself, or one around it. */
struct troupe_frame_spec {
    const char *name; /* copied */
    struct troupe_stage *body;
    void *context;    /* told to the stage's hooks when the frame itself fails */
    int64_t priority; /* as of other actors */
    /* -1: the body runs when no argument is dead. Else an argument that decides alone: unless it is
     * dead the body runs, with every actor dead when another argument is, or when the iteration has
     * failed. So parts of one frame in several processes run or do not run together, and what they
     * send each other pairs up. */
    int ticket;
};
TROUPE_API TROUPE_MUST_USE enum troupe_status
troupe_stage_add_frame(struct troupe_stage *parent, const struct troupe_frame_spec *spec, int *out);
/* An actor of a frame whose output 0 is an argument, the same in every iteration. */
TROUPE_API TROUPE_MUST_USE enum troupe_status
troupe_stage_add_argument(struct troupe_stage *frame, const char *name, int argument, int *out);
/* An actor of a frame whose input 0 becomes a result: the newest that is not dead, dead without
 * one. */
TROUPE_API TROUPE_MUST_USE enum troupe_status
troupe_stage_add_result(struct troupe_stage *frame, const char *name, int result, int *out);
/* An edge of distance 1 in a frame whose first token is an argument: a loop's variable. */
TROUPE_API TROUPE_MUST_USE enum troupe_status troupe_stage_connect_loop(struct troupe_stage *frame,
                                                                        int from, int from_port,
                                                                        int to, int to_port,
                                                                        int argument);
/* Inside a behaviour of a frame's newest iteration: there will be another one. */
TROUPE_API void troupe_firing_continue(struct troupe_firing *firing);
/* The root stage's iteration that a firing belongs to; what tells it from all other firings of its
 * actor in that iteration (0 in the root stage), the same in every run; and a number below the
 * product of the windows around it that no other firing of its actor in flight has (not inside a
 * function that calls itself). */
TROUPE_API uint64_t troupe_firing_step(const struct troupe_firing *firing);
TROUPE_API uint64_t troupe_firing_path(const struct troupe_firing *firing);
TROUPE_API uint64_t troupe_firing_slot(const struct troupe_firing *firing);

/* Lays the actors and mailboxes out in one arena. After it the stage takes no more actors.
 * INVALID_ARGUMENT: an input without an edge, a cycle of distance 0 (its actors are named). */
TROUPE_API TROUPE_MUST_USE enum troupe_status troupe_stage_cast(struct troupe_stage *stage,
                                                                struct troupe_pool *pool);

/* Starts iterations up to (not including) `end`, counted since the cast; returns at once.
 * Iterations beyond the window are admitted as earlier ones complete. `end` only grows. */
TROUPE_API void troupe_stage_admit(struct troupe_stage *stage, uint64_t end);
/* Drives the pool until every admitted iteration is complete, or until `deadline_ns`
 * (CLOCK_MONOTONIC nanoseconds, 0: none): DEADLINE_EXCEEDED. Returns the status, and sets the
 * thread's message, of the root cause of the earliest failed iteration since the last wait. */
TROUPE_API TROUPE_MUST_USE enum troupe_status troupe_stage_wait(struct troupe_stage *stage,
                                                                uint64_t deadline_ns);
/* Iterations completed (all before it are) and iterations admitted so far. Any thread. */
TROUPE_API uint64_t troupe_stage_completed(const struct troupe_stage *stage);
TROUPE_API uint64_t troupe_stage_admitted(const struct troupe_stage *stage);

#endif

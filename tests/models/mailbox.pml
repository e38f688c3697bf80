/* The mailbox protocol of actors/fire.c and run.c: every actor fires once in each iteration, with the
 * tokens of that iteration, and no token is written over another.
 *
 * The stage: S -> B -> C, S -> D, B -> D, and edges of distance 1 from S to C and from C to B. S is
 * started by the admission; C and D are sinks. S and D have a cell for each iteration in flight; B and C,
 * which edges with a distance lead to, have four, as the layout gives them. A token is the number of
 * the iteration that sent it, plus one. Workers take firings in any order; each access to shared memory
 * is a step, and what the lock of the stage guards is under it here as well.
 *
 * Arrivals are acq_rel in the code and the rest is published by them, so that the sequentially
 * consistent executions explored here are those that matter; that the orders suffice is left to
 * ThreadSanitizer. */
#define WORKERS 3
#define WINDOW 2
#define ITERATIONS 5

mtype = { S, B, C, D }; /* 4 to 1 */

#define FAR_CELLS 4
#ifdef MUTATE_FEW_CELLS
#define CELLS(actor) WINDOW
#else
#define CELLS(actor) ((actor) == B || (actor) == C -> FAR_CELLS : WINDOW)
#endif
#define CELL(actor, iteration) (((actor) - 1) * FAR_CELLS + (iteration) % CELLS(actor))
#define NEED(actor) ((actor) == S -> 1 : 2)

byte missing[4 * FAR_CELLS], tokens[8 * FAR_CELLS], output[4 * FAR_CELLS];
#define TOKEN(cell, port) tokens[2 * (cell) + (port)]

byte fired[5]; /* how many iterations of each actor */
byte sinks_left[WINDOW];
bool finished[WINDOW];
byte admitted, completed;
bool lock, advancing;

chan ready = [8] of { mtype, byte };

/* ---- Sending ---- */

inline arrive(actor, iteration, port, token)
{
    c = CELL(actor, iteration);
    d_step { assert(TOKEN(c, port) == 0); TOKEN(c, port) = token };
#ifdef MUTATE_COUNT_APART
    m = missing[c];
    missing[c] = m - 1;
#else
    d_step { m = missing[c]; missing[c] = m - 1 };
#endif
    assert(m > 0);
    if
    :: m == 1 -> ready!actor, iteration
    :: else
    fi;
    d_step { c = 0; m = 0 }
}

/* ---- Iterations ---- */

inline advance()
{
    if
    :: advancing
    :: else ->
        advancing = true;
        do
        :: completed < admitted && finished[completed % WINDOW] ->
            finished[completed % WINDOW] = false;
            /* The hook runs without the lock. */
            lock = false;
            atomic { !lock -> lock = true }
            completed++
#ifdef MUTATE_WIDE_WINDOW
        :: !(completed < admitted && finished[completed % WINDOW]) && admitted < ITERATIONS &&
           admitted - completed < WINDOW + 1 ->
#else
        :: !(completed < admitted && finished[completed % WINDOW]) && admitted < ITERATIONS &&
           admitted - completed < WINDOW ->
#endif
            sinks_left[admitted % WINDOW] = 2;
            admitted++;
            ready!S, admitted - 1
        :: else -> break
        od;
        advancing = false
    fi
}

inline iteration_finish(iteration)
{
    atomic { !lock -> lock = true }
    finished[iteration % WINDOW] = true;
    advance();
    lock = false
}

/* ---- Firing ---- */

inline check_inputs(c)
{
    if
    :: actor == B -> assert(TOKEN(c, 0) == it + 1 && TOKEN(c, 1) == it)
    :: actor == C -> assert(TOKEN(c, 0) == it + 1 && TOKEN(c, 1) == it)
    :: actor == D -> assert(TOKEN(c, 0) == it + 1 && TOKEN(c, 1) == it + 1)
    :: else
    fi
}

inline rearm()
{
    missing[CELL(actor, it)] = NEED(actor)
}

/* Edges with a distance first; in the last iteration they lead nowhere, since none follows. */
inline send_far()
{
    if
    :: actor == S && it + 1 < ITERATIONS -> arrive(C, it + 1, 1, output[CELL(S, it)])
    :: actor == C && it + 1 < ITERATIONS -> arrive(B, it + 1, 1, output[CELL(C, it)])
    :: else
    fi
}

inline send_near()
{
    if
    :: actor == S ->
        arrive(D, it, 0, output[CELL(S, it)]);
        arrive(B, it, 0, output[CELL(S, it)])
    :: actor == B ->
        arrive(D, it, 1, output[CELL(B, it)]);
        arrive(C, it, 0, output[CELL(B, it)])
    :: else
    fi
}

inline count_sink()
{
    if
    :: actor == C || actor == D ->
        d_step { m = sinks_left[it % WINDOW]; sinks_left[it % WINDOW] = m - 1 };
        assert(m > 0);
        if
        :: m == 1 -> iteration_finish(it)
        :: else
        fi;
        m = 0
    :: else
    fi
}

active [WORKERS] proctype worker()
{
    mtype actor;
    byte it, c, m;
end_idle:
    do
    :: ready?actor, it ->
        /* An actor's iterations may fire out of order, but not one of them twice. */
        d_step { c = CELL(actor, it); check_inputs(c); fired[actor]++; output[c] = it + 1 };
        d_step { TOKEN(c, 0) = 0; TOKEN(c, 1) = 0; c = 0 };
#ifndef MUTATE_REARM_LATE
        rearm();
#endif
#ifdef MUTATE_FAR_LAST
        send_near();
        send_far();
#else
        send_far();
        send_near();
#endif
        count_sink();
#ifdef MUTATE_REARM_LATE
        rearm();
#endif
        d_step { actor = 0; it = 0 }
    od
}

/* Cells as the cast leaves them: nothing comes over a distance into the first iteration. */
active proctype watch()
{
    byte i;
    d_step {
        lock = true;
        do
        :: i < FAR_CELLS ->
            missing[CELL(S, 0) + i] = NEED(S);
            missing[CELL(B, 0) + i] = NEED(B);
            missing[CELL(C, 0) + i] = NEED(C);
            missing[CELL(D, 0) + i] = NEED(D);
            i++
        :: else -> break
        od;
        missing[CELL(B, 0)] = 1;
        missing[CELL(C, 0)] = 1;
        i = 0
    }
    advance();
    lock = false;
    timeout ->
    assert(completed == ITERATIONS && admitted == ITERATIONS);
    assert(fired[S] == ITERATIONS && fired[B] == ITERATIONS);
    assert(fired[C] == ITERATIONS && fired[D] == ITERATIONS)
}

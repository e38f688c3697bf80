/* The parking protocol of scheduler/pool.c and park.c: no task is left to sleepers.
 *
 * Worker 0 is a driver, which leaves when it is told that the work is done; the other one stays. A thread
 * outside the pool injects tasks, and a task may push another one onto its worker's deque. A task may
 * also never end: then the others must be run by whoever is left. Deques are counted, since any task is
 * as good as another here (deque.pml looks into them), and a thief steals one task at a time. The futex is a
 * wait for `signal`, which is looked at once more at its entry.
 *
 * All of this is seq_cst in the code, but for `signal`, whose clearing is ordered by the idle bit after
 * it, and whose setting is released and acquired: what Spin explores is what can happen. */
#define WORKERS 2
#define OTHER(worker) (1 - (worker))
#define INJECTED 2 /* by the thread outside */
#define PUSHED 1   /* by tasks */

byte queued[WORKERS + 1]; /* the deques, and behind them the injected tasks */
byte idle;                /* bits */
bit sig[WORKERS];
byte searching, pushed;
bool done, left;
bool parked[WORKERS], stuck[WORKERS];

#define BIT(worker) (1 << (worker))
#define LOWEST(bits) ((bits) & 1 -> 0 : 1)

/* ---- Waking (park.c) ---- */

/* The lowest idle bit first; when another waker was faster, the next that is there. */
inline wake_one()
{
    bits = idle;
    do
    :: bits == 0 -> break
    :: else ->
        d_step {
            k = LOWEST(bits);
            bits = idle;
            idle = idle & ~BIT(k)
        };
        if
        :: bits & BIT(k) -> sig[k] = 1; break
        :: else -> bits = bits & ~BIT(k)
        fi
    od;
    bits = 0;
    k = 0
}

inline call_worker()
{
    if
    :: searching == 0 -> wake_one()
    :: else
    fi
}

/* One queue after the other. */
inline look_for_work()
{
    work = false;
    k = 0;
    do
    :: k <= WORKERS && queued[(k + WORKERS) % (WORKERS + 1)] > 0 -> work = true; break
    :: k <= WORKERS && queued[(k + WORKERS) % (WORKERS + 1)] == 0 -> k++
    :: k > WORKERS -> break
    od;
    k = 0
}

/* A worker that parks counts as searching until its bit is set. */
inline park(me)
{
#ifndef MUTATE_CLEAR_SIGNAL_LATE
    sig[me] = 0;
#endif
#ifdef MUTATE_LOOK_BEFORE_BIT
    look_for_work();
#endif
    idle = idle | BIT(me);
#ifdef MUTATE_CLEAR_SIGNAL_LATE
    sig[me] = 0;
#endif
    searching--;
#ifndef MUTATE_LOOK_BEFORE_BIT
    look_for_work();
#endif
#ifdef MUTATE_NO_SECOND_LOOK
    work = false;
#endif
    if
    :: work || (me == 0 && done)
    :: else ->
        parked[me] = true;
end_futex:
        d_step { sig[me] == 1 -> parked[me] = false }
    fi;
    idle = idle & ~BIT(me);
    work = false;
    searching++
}

/* ---- Workers (pool.c) ---- */

/* The own deque, the injected tasks, the others' deques. A look without an order may miss what is there,
 * and a thief may lose against another one. */
inline find(me)
{
    if
    :: d_step { queued[me] > 0 -> queued[me]--; found = true }
    :: d_step { queued[me] == 0 && queued[WORKERS] > 0 -> queued[WORKERS]--; found = true }
    :: d_step { queued[me] == 0 && queued[OTHER(me)] > 0 -> queued[OTHER(me)]--; found = true }
    :: queued[me] == 0
    fi
}

inline stop_searching()
{
    d_step { work = (searching == 1); searching-- };
#ifdef MUTATE_LAST_SEARCHER_SILENT
    work = false;
#endif
    if
    :: work ->
        look_for_work();
        if
        :: work -> wake_one()
        :: else
        fi
    :: else
    fi;
    work = false
}

inline search_on(me)
{
    searching++;
    do
    :: me == 0 && done -> break
    :: else ->
        find(me);
        if
        :: found -> break
        :: else
        fi;
        park(me) /* to spin a while before is to search once more */
    od;
    stop_searching()
}

inline execute(me)
{
    found = false;
    if
    :: atomic { pushed < PUSHED -> pushed++; queued[me]++ }
        call_worker()
    :: skip
    fi;
    if
    :: stuck[me] = true;
end_stuck:
        false /* a task that never ends */
    :: skip
    fi
}

proctype worker(byte me)
{
    byte k, bits;
    bool found, work;
end_idle:
    do
    :: me == 0 && done -> break
    :: else ->
        find(me);
        if
        :: found
        :: else -> search_on(me)
        fi;
        if
        :: found -> execute(me)
        :: else -> break
        fi
    od;
    look_for_work();
    if
    :: work -> wake_one()
    :: else
    fi;
    left = true
}

proctype outside()
{
    byte n, k, bits;
    do
    :: n < INJECTED ->
        atomic { queued[WORKERS]++; n++ }
#ifndef MUTATE_PUSH_SILENTLY
        call_worker()
#endif
    :: else -> break
    od
}

/* Ends the driver's wait at any time (troupe_pool_wake, to which all that are parked listen). */
proctype ender()
{
    byte k, bits;
    done = true;
    d_step { bits = idle; idle = 0 };
    do
    :: bits == 0 -> break
    :: else -> d_step { k = LOWEST(bits); bits = bits & ~BIT(k); sig[k] = 1; k = 0 }
    od
}

/* Nobody can go on: then no task waits while a worker sleeps, and the driver has left. */
proctype watch()
{
    timeout ->
    assert(left || stuck[0]);
    assert(queued[0] + queued[1] + queued[WORKERS] == 0 || !(parked[0] || parked[1]))
}

init
{
    atomic { run worker(0); run worker(1); run outside(); run ender(); run watch() }
}

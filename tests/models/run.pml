/* How ranks end a run together (coordinator/run.h and run.c): every rank ends at the same iteration, with
 * the same root cause, and no rank waits for an iteration that another one never starts.
 *
 * Rank r takes a token from rank r - 1 in each iteration. Iterations fire in any order that the tokens
 * allow, and any of them may fail on any rank, an earlier one also after a later one. Messages
 * between two ranks keep their order, those of different ranks do not. A rank handles a message in one
 * step, as under the lock of its run. */
#define RANKS 3
#define STEPS 3
#define WINDOW 2
#define FAILURES 2

mtype = { FAILED, HELD, COMPLETE, END, FINAL }; /* HELD and COMPLETE are the two kinds of REPORT */

/* Kind, an end, and a cause: a failure as iteration * RANKS + rank, so that the earlier one, and of two
 * in one iteration the one of the lower rank, is the smaller number. */
chan wire[RANKS * RANKS] = [6] of { mtype, byte, byte };
#define WIRE(from, to) wire[(from) * RANKS + (to)]
#define CAUSE(iteration, rank) ((iteration) * RANKS + (rank))
#define NO_CAUSE CAUSE(STEPS, 0)

byte goal[RANKS];  /* what this rank admits */
byte admitted[RANKS];
bit fired[RANKS * STEPS];
byte cause[RANKS]; /* the earliest known to this rank */
bool held[RANKS], complete[RANKS], has_end[RANKS], final[RANKS];
byte held_reports, complete_reports, largest; /* of rank 0 */
byte failures, earliest = NO_CAUSE;

#define FIRED(rank, iteration) fired[(rank) * STEPS + (iteration)]
#define ALL_FIRED(rank) \
    (admitted[rank] == goal[rank] && (goal[rank] < 1 || FIRED(rank, 0)) && \
     (goal[rank] < 2 || FIRED(rank, 1)) && (goal[rank] < 3 || FIRED(rank, 2)))

/* ---- What is under the lock of a rank's run; `me` is the rank ---- */

inline send_all(kind, what, why)
{
    to = 0;
    do
    :: to < RANKS && to != me -> WIRE(me, to)!kind, what, why; to++
    :: to == me -> to++
    :: else -> break
    od;
    to = 0
}

inline merge(why)
{
#ifdef MUTATE_FIRST_HEARD
    if
    :: cause[me] == NO_CAUSE -> cause[me] = why
    :: else
    fi
#else
    if
    :: why < cause[me] -> cause[me] = why
    :: else
    fi
#endif
}

inline raise_goal(what)
{
    goal[me] = (what > goal[me] -> what : goal[me])
}

inline set_end(what)
{
    has_end[me] = true;
    complete[me] = false;
    raise_goal(what)
}

inline set_final(what)
{
    final[me] = true;
    raise_goal(what)
}

/* Rank 0. Complete reports from before the end count no more: what was not known then may fail. */
inline take_report(is_complete, what)
{
#ifdef MUTATE_LAST_REPORT_COUNTS
    largest = what;
#else
    largest = (!has_end[0] && what > largest -> what : largest);
#endif
    if
    :: is_complete -> complete_reports++
    :: else -> held_reports++
    fi;
    if
    :: !is_complete && held_reports == RANKS ->
#ifdef MUTATE_FINAL_AT_ONCE /* an iteration in flight may still fail, and be an earlier one */
        send_all(FINAL, largest, cause[0]);
        set_final(largest)
#else
        send_all(END, largest, cause[0]);
#ifndef MUTATE_OLD_REPORTS_COUNT
        complete_reports = 0;
#endif
        set_end(largest)
#endif
    :: is_complete && complete_reports == RANKS && (cause[0] == NO_CAUSE || has_end[0]) ->
        send_all(FINAL, largest, cause[0]);
        set_final(largest)
    :: else
    fi
}

inline report(is_complete)
{
    if
    :: is_complete -> complete[me] = true
    :: else -> held[me] = true
    fi;
    if
    :: me == 0 -> take_report(is_complete, admitted[0])
    :: else ->
        if
        :: is_complete -> WIRE(me, 0)!COMPLETE, admitted[me], cause[me]
        :: else -> WIRE(me, 0)!HELD, admitted[me], cause[me]
        fi
    fi
}

inline stop()
{
    if
    :: !held[me] && !final[me] ->
        goal[me] = admitted[me];
        report(false)
    :: else
    fi
}

/* ---- A rank ---- */

/* After a failed iteration later ones fire dead, and fail no more. */
inline fire(iteration)
{
    atomic {
        iteration < admitted[me] && !FIRED(me, iteration) &&
            (me == 0 || FIRED((me + RANKS - 1) % RANKS, iteration)) ->
        if
        :: failures < FAILURES && CAUSE(iteration, 0) <= cause[me] ->
            failures++;
            earliest = (CAUSE(iteration, me) < earliest -> CAUSE(iteration, me) : earliest);
            merge(CAUSE(iteration, me));
            send_all(FAILED, 0, cause[me]);
            stop()
        :: true
        fi;
        FIRED(me, iteration) = 1
    }
}

/* What comes after FINAL is too late. */
inline receive(from)
{
    atomic {
        WIRE(from, me)?kind(what, why) ->
        if
        :: final[me]
        :: !final[me] && kind == FINAL ->
            cause[me] = why;
            set_final(what)
        :: !final[me] && kind != FINAL ->
            merge(why);
            if
            :: cause[me] < NO_CAUSE -> stop()
            :: else
            fi;
            if
            :: kind == HELD -> take_report(false, what)
            :: kind == COMPLETE -> take_report(true, what)
            :: kind == END -> set_end(what)
            :: kind == FAILED
            fi
        fi;
        kind = 0;
        what = 0;
        why = 0
    }
}

proctype rank(byte me)
{
    mtype kind;
    byte to, what, why;
end_over:
    do
    :: atomic {
            admitted[me] < goal[me] &&
                (admitted[me] < WINDOW || FIRED(me, (admitted[me] + STEPS - WINDOW) % STEPS)) ->
            admitted[me]++
        }
    :: fire(0)
    :: fire(1)
    :: fire(2)
    :: receive(0)
    :: receive(1)
    :: receive(2)
    :: atomic {
            ALL_FIRED(me) && !complete[me] && !final[me] && (!held[me] || has_end[me]) ->
            report(true)
        }
    od
}

/* Nobody can go on. */
proctype watch()
{
    timeout ->
    assert(final[0] && final[1] && final[2]);
    assert(ALL_FIRED(0) && ALL_FIRED(1) && ALL_FIRED(2));
    assert(goal[0] == goal[1] && goal[1] == goal[2]);
    assert(cause[0] == earliest && cause[1] == earliest && cause[2] == earliest)
}

init
{
    byte r;
    atomic {
        do
        :: r < RANKS -> goal[r] = STEPS; cause[r] = NO_CAUSE; r++
        :: else -> break
        od;
        run rank(0);
        run rank(1);
        run rank(2);
        run watch()
    }
}

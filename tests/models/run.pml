/* How ranks end a run together (coordinator/run.h and run.c): every rank ends at the same iteration, with
 * the same root cause, and no rank waits for an iteration that another one never starts.
 *
 * Rank r takes a token from rank r - 1 in each iteration. Any iteration may fail on any rank, also an
 * earlier one after a later one. Messages between two ranks keep their order, those of different
 * ranks do not. A rank handles a message in one step, as under the lock of its run. */
#define RANKS 3
#define STEPS 2
#define WINDOW 2
#define FAILURES 2
#define NONE 9 /* no failure: later than any */

mtype = { FAILED, REPORT, FINAL };

/* To rank `to` from rank `from`: kind, an end, and a failure as iteration * RANKS + rank, so that the
 * earlier one, and of two in an iteration the one of the lower rank, is the smaller number. */
chan wire[RANKS * RANKS] = [6] of { mtype, byte, byte };
#define WIRE(from, to) wire[(from) * RANKS + (to)]
#define CAUSE(iteration, rank) ((iteration) * RANKS + (rank))
#define NO_CAUSE (NONE * RANKS)

byte end[RANKS];       /* what this rank admits */
byte admitted[RANKS];
bit complete[RANKS * STEPS];
byte cause[RANKS];     /* known to this rank */
bool reported[RANKS], final[RANKS], over[RANKS];
byte reports, largest; /* rank 0 */
byte failures;

/* ---- What is under the lock of a rank's run ---- */

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

inline take_report(what)
{
    reports++;
#ifdef MUTATE_LAST_REPORT_COUNTS
    largest = what;
#else
    largest = (what > largest -> what : largest);
#endif
    if
    :: reports == RANKS ->
        send_all(FINAL, largest, cause[0]);
        end[0] = (largest > end[0] -> largest : end[0]);
        final[0] = true
    :: else
    fi
}

inline report()
{
    reported[me] = true;
    if
    :: me == 0 -> take_report(admitted[0])
    :: else -> WIRE(me, 0)!REPORT, admitted[me], cause[me]
    fi
}

inline stop()
{
    if
    :: !reported[me] ->
#ifndef MUTATE_ADMIT_ON
        end[me] = admitted[me];
#endif
        report()
    :: else
    fi
}

/* ---- A rank ---- */

#define DONE(rank, iteration) complete[(rank) * STEPS + (iteration)]
#define ALL_DONE(rank) \
    (admitted[rank] == end[rank] && (end[rank] < 1 || DONE(rank, 0)) && (end[rank] < 2 || DONE(rank, 1)))

/* Fires an iteration whose token is there; after a failed one it fires dead, and fails no more. */
inline fire(iteration)
{
    atomic {
        iteration < admitted[me] && !DONE(me, iteration) && (me == 0 || DONE(me - 1, iteration)) ->
        if
        :: failures < FAILURES && iteration <= cause[me] / RANKS ->
            failures++;
            merge(CAUSE(iteration, me));
            send_all(FAILED, 0, cause[me]);
            stop()
        :: true
        fi;
        DONE(me, iteration) = 1
    }
}

/* A message to a rank whose run is over is dropped. */
inline receive(from)
{
    atomic {
        nempty(WIRE(from, me)) ->
        if
        :: WIRE(from, me)?FAILED(what, why) ->
            if
            :: !over[me] -> merge(why); stop()
            :: else
            fi
        :: WIRE(from, me)?REPORT(what, why) ->
            merge(why);
            if
            :: cause[me] < NO_CAUSE -> stop()
            :: else
            fi;
            take_report(what)
        :: WIRE(from, me)?FINAL(what, why) ->
            merge(why);
            end[me] = (what > end[me] -> what : end[me]);
            final[me] = true
        fi;
        what = 0;
        why = 0
    }
}

proctype rank(byte me)
{
    byte to, what, why;
end_over:
    do
    :: atomic { admitted[me] < end[me] && (admitted[me] < WINDOW || DONE(me, admitted[me] - WINDOW)) ->
            admitted[me]++ }
    :: fire(0)
    :: fire(1)
    :: receive(0)
    :: receive(1)
    :: receive(2)
    :: atomic { ALL_DONE(me) && !reported[me] -> report() }
    :: atomic { ALL_DONE(me) && final[me] && !over[me] -> over[me] = true }
    od
}

proctype watch()
{
    timeout ->
    assert(over[0] && over[1] && over[2]);
    assert(end[0] == end[1] && end[1] == end[2]);
    assert(cause[0] == cause[1] && cause[1] == cause[2])
}

init
{
    byte r;
    atomic {
        do
        :: r < RANKS -> end[r] = STEPS; cause[r] = NO_CAUSE; r++
        :: else -> break
        od;
        run rank(0);
        run rank(1);
        run rank(2);
        run watch()
    }
}

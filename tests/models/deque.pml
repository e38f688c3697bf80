/* The work-stealing deque of scheduler/deque.c: every task that was pushed is taken or stolen once.
 *
 * One owner pushes tasks, one or two at a time, and takes them, two at a time from a long deque;
 * thieves steal up to half, one after the other. The ring of two slots is outgrown. Each access to
 * shared memory is a step of its own.
 *
 * Spin explores sequentially consistent executions. That covers `top` and `bottom` where both sides
 * look at both (take, steal), which the code accesses with seq_cst; it does not cover the weaker
 * orders elsewhere: that a slot's contents are seen by whoever sees `bottom` or the ring (release and
 * acquire) is left to ThreadSanitizer and to the comments there. */
#define TASKS 4
#define THIEVES 2
#define BATCH 2
#define LONG 3

#define CAPACITY(ring) (2 << (ring))
#define SLOT(ring, index) (CAPACITY(ring) - 2 + (index) % CAPACITY(ring))

byte items[6]; /* of rings of 2 and 4 slots, one behind the other */
byte top, bottom, ring;
byte pushed, gone;
bit had[TASKS + 1];
bool ended;

inline get(task)
{
    assert(task > 0 && had[task] == 0);
    had[task] = 1;
    gone++
}

/* ---- The owner ---- */

inline push(count)
{
    t = top;
    do
    :: b - t > CAPACITY(ring) - count ->
        i = t;
#ifdef MUTATE_GROW_FORGETS
        i = i + 1;
#endif
        do
        :: i < b -> items[SLOT(ring + 1, i)] = items[SLOT(ring, i)]; i++
        :: else -> break
        od;
        ring++
    :: else -> break
    od;
    i = 0;
    do
    :: i < count -> items[SLOT(ring, b + i)] = pushed + 1; pushed++; i++
    :: else -> break
    od;
    b = b + count;
    bottom = b
}

/* Once a task is out of the thieves' reach, the order in which it is read makes no difference. */
inline own(from, count)
{
    d_step {
        i = 0;
        do
        :: i < count -> get(items[SLOT(ring, from + i)]); i++
        :: else -> break
        od;
        i = 0
    }
}

inline take_last()
{
    task = items[SLOT(ring, t)];
#ifdef MUTATE_LAST_WITHOUT_EXCHANGE
    d_step { get(task); top = t + 1 };
#else
    d_step {
        if
        :: top == t -> top = t + 1; get(task)
        :: else
        fi
    };
#endif
    task = 0;
    b = t + 1;
    bottom = b
}

inline take()
{
    t = top;
    if
    :: b <= t
    :: else ->
        count = (b - t >= LONG -> BATCH : 1);
        do
        ::
#ifdef MUTATE_LOOK_BEFORE_CLAIM
            t = top;
            bottom = b - count;
#else
            bottom = b - count;
            t = top;
#endif
            if
            :: t < b - count ->
                b = b - count;
                own(b, count);
                break
            :: else
            fi;
            if
            :: count > 1 -> count = 1
            :: else ->
                if
                :: t == b - 1 -> take_last()
                :: else -> bottom = b
                fi;
                break
            fi
        od
    fi;
    count = 0;
    t = 0
}

active proctype owner()
{
    byte b, t, i, count, task;
    do
    :: pushed < TASKS -> push(1)
    :: pushed + 1 < TASKS -> push(2)
    :: take()
    :: pushed == TASKS && b <= top -> break
    od;
    ended = true
}

/* ---- Thieves ---- */

inline look()
{
#ifdef MUTATE_BOTTOM_BEFORE_TOP
    b = bottom;
    t = top
#else
    t = top;
    b = bottom
#endif
}

inline steal_one()
{
    r = ring;
#ifdef MUTATE_READ_AFTER_CLAIM
    d_step { won = (top == t); if :: won -> top = t + 1 :: else fi };
    task = items[SLOT(r, t)];
    if :: won -> get(task) :: else fi;
#else
    task = items[SLOT(r, t)];
    d_step { won = (top == t); if :: won -> top = t + 1; get(task) :: else fi };
#endif
    task = 0;
    r = 0
}

active [THIEVES] proctype thief()
{
    byte t, b, r, task, half, count;
    bool won;
    do
    :: ended -> break
    :: look();
        half = (t < b -> (b - t + 1) / 2 : 0);
        count = 0;
        do
        :: count < half && count < BATCH && t < b ->
            steal_one();
            if
            :: won -> won = false; count++; look()
            :: else -> break
            fi
        :: else -> break
        od;
        t = 0;
        d_step { b = 0; half = 0; count = 0 }
    od
}

active proctype end()
{
    timeout -> assert(gone == TASKS && pushed == TASKS)
}

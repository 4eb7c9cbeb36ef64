/* ring.pml - how the two sides of a connection over rings sleep and wake, for spin.
 *
 * A peer publishes messages in one ring, frees room in the other and then ends the
 * connection. On this side a thread reads, sleeping in a futex or until a bell rings, hands
 * the rest to the loop thread at any message, and the loop thread also waits for room. All
 * sleeps are without a limit here, so that a wake-up that is lost is a deadlock, which spin
 * reports as an invalid end state. Memory is ordered as the fences say: without one, a
 * store and the load behind it happen in either order.
 *
 * Each of these must make spin find an error (ring_model.py): NO_WRITER_FENCE,
 * NO_READER_FENCE, NO_SECOND_LOOK, LOOP_TAKES_BELLS (also a sleeper's), NO_RECHECK (a
 * sleeper keeps the loop's bells to itself), LOOK_FIRST (the loop takes bells away after it
 * has looked). */
#define MESSAGES 2
#define SOCKET 1 /* bells that it has room for; others are left out */
#define FUTEX 1
#define BELL 2

/* Shared memory. */
byte head;              /* messages written to us */
byte reader_sleeps;     /* we do: FUTEX, BELL */
bool stuffed = true;       /* the ring to the peer */
byte writer_sleeps;     /* we do */

/* The socket, as its owner sees it. */
byte bells;
bool edge;              /* epoll has not told it yet */
bool hup;

/* Private. */
byte tail, seen;
bool lock, sleeper, hears, wants_room, posted, ended, futex_waits;
bool thread_done, thread_left, wrote;

/* ---- the peer ---- */

inline wake(word, how)
{
    d_step { how = word; word = 0 }
    if
    :: how & FUTEX -> futex_waits = false
    :: else
    fi;
    d_step {
        if
        :: (how & BELL) && bells < SOCKET -> bells++; edge = true
        :: else
        fi;
        how = 0
    }
}

/* `store`, and then a load of `word` that says whether to wake. */
#ifdef NO_WRITER_FENCE
#define STORE_THEN_WAKE(store, word)                                                               \
    if                                                                                             \
    :: store; sleeps = word                                                                        \
    :: sleeps = word; store                                                                        \
    fi;                                                                                            \
    if                                                                                             \
    :: sleeps -> wake(word, how)                                                                   \
    :: else                                                                                        \
    fi
#else
#define STORE_THEN_WAKE(store, word)                                                               \
    store;                                                                                         \
    sleeps = word;                                                                                 \
    if                                                                                             \
    :: sleeps -> wake(word, how)                                                                   \
    :: else                                                                                        \
    fi
#endif

active proctype peer_writes()
{
    byte how, sleeps, i;

    do
    :: i < MESSAGES -> i++; STORE_THEN_WAKE(head++, reader_sleeps)
    :: else -> break
    od
}

active proctype peer_reads()
{
    byte how, sleeps;

    STORE_THEN_WAKE(stuffed = false, writer_sleeps)
}

/* ---- this side ---- */

/* A bit in `word`, and then a look: `there` is whether there is no need to sleep. */
#ifdef NO_READER_FENCE
#define SLEEP_THEN_LOOK(word, bit, look)                                                           \
    if                                                                                             \
    :: word = word | bit; there = (look)                                                           \
    :: there = (look); word = word | bit                                                           \
    fi
#elif defined(NO_SECOND_LOOK)
#define SLEEP_THEN_LOOK(word, bit, look)                                                           \
    word = word | bit;                                                                             \
    there = false
#else
#define SLEEP_THEN_LOOK(word, bit, look)                                                           \
    word = word | bit;                                                                             \
    there = (look)
#endif

inline take_bells_as_sleeper(sleeps)
{
    atomic { !lock -> lock = true }
    sleeper = sleeps;
    d_step { rang = bells > 0; bells = 0 }
    lock = false;
    if
#ifndef NO_RECHECK
    :: rang && (hears || wants_room) -> posted = true
#endif
    :: else
    fi;
    rang = false
}

inline sleep_in_futex()
{
    SLEEP_THEN_LOOK(reader_sleeps, FUTEX, head != tail || ended);
    value = reader_sleeps;
    if
    :: there || !(value & FUTEX)
    :: else ->
        atomic {
            if
            :: reader_sleeps == value -> futex_waits = true
            :: else
            fi
        }
        !futex_waits
    fi;
    value = 0;
    reader_sleeps = reader_sleeps & BELL
}

inline sleep_until_bell()
{
    take_bells_as_sleeper(true);
    SLEEP_THEN_LOOK(reader_sleeps, BELL, head != tail || ended);
    if
    :: there
    :: else -> bells > 0 || hup
    fi;
    take_bells_as_sleeper(false);
    if
    :: !hears -> reader_sleeps = reader_sleeps & FUTEX
    :: else
    fi
}

active proctype thread()
{
    byte value;
    bool there, rang;

    do
    :: head != tail -> d_step { tail++; seen = tail }
    :: head == tail && ended -> break
    :: head == tail && !ended -> sleep_in_futex()
    :: head == tail && !ended -> sleep_until_bell()
    :: true -> /* the role is free, and the loop reads from here on */
        thread_done = true;
        hears = true;
        seen = tail;
        SLEEP_THEN_LOOK(reader_sleeps, BELL, head != seen || ended);
        if
        :: there -> posted = true
        :: else
        fi;
        break
    od;
    thread_left = true
}

/* A thread that writes, and leaves what does not fit to the loop. */
active proctype writer()
{
    bool there;

    wants_room = true;
    SLEEP_THEN_LOOK(writer_sleeps, BELL, !stuffed || ended);
    if
    :: there ->
        writer_sleeps = 0;
        wants_room = false;
        wrote = true
    :: else
    fi
}

inline news()
{
    if
    :: wants_room && (!(writer_sleeps & BELL) || ended) -> wants_room = false; wrote = true
    :: else
    fi;
    if
    :: hears && thread_done ->
        do
        :: head != tail -> d_step { tail++; seen = tail }
        :: else -> SLEEP_THEN_LOOK(reader_sleeps, BELL, head != tail);
            if
            :: there
            :: else -> break
            fi
        od
    :: else
    fi
}

inline take_bells_as_loop()
{
    atomic { !lock -> lock = true }
    if
#ifndef LOOP_TAKES_BELLS
    :: sleeper
#endif
    :: else -> bells = 0
    fi;
    lock = false
}

active proctype loop()
{
    bool there;

end:
    do
    :: atomic { edge -> edge = false } /* epoll looks itself once more before it tells */
        if
        :: hup -> ended = true; reader_sleeps = reader_sleeps & BELL; futex_waits = false; news()
        :: bells > 0 && !hup ->
#ifdef LOOK_FIRST
            news();
            take_bells_as_loop()
#else
            take_bells_as_loop();
            news()
#endif
        :: bells == 0 && !hup
        fi
    :: atomic { posted -> posted = false }
        news()
    od
}

/* All that was written is read and what wanted room has it, before the end is needed to wake
 * anybody; then the end wakes the thread. */
active proctype rest()
{
    tail == MESSAGES && wrote;
    hup = true;
    edge = true;
    thread_left
}

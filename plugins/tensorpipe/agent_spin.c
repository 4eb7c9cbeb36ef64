/* agent_spin.c - when the loop thread reads without being told to. */
#include "agent.h"
#include "pipe.h"

#define SPIN_ROUNDS 32  /* then the epoll set and the timers have their turn */
#define OTHERS_EVERY 8  /* rounds in which not only the last active pipe is read */
#define BUSY_YIELD_MS 5 /* busy: nap while a caller of this agent spins */
#define MISSES_MAX 3    /* in a row before spinning is left off for a while */
#define BACKOFF_MIN 16  /* waits without spinning, doubled each time ... */
#define BACKOFF_MAX 512 /* ... up to this */

bool spin_wanted(struct spin *s)
{
    if (!s->skip)
        return true;
    s->skip--;
    return false;
}

void spin_ended(struct spin *s, bool paid_off)
{
    if (paid_off) {
        s->misses = s->backoff = 0;
        return;
    }
    if (++s->misses < MISSES_MAX)
        return;
    s->backoff = s->backoff ? 2 * s->backoff : BACKOFF_MIN;
    if (s->backoff > BACKOFF_MAX)
        s->backoff = BACKOFF_MAX;
    s->skip = s->backoff;
}

static unsigned place_of(const struct agent *a, const struct pipe *p)
{
    unsigned i = 0;

    while (i < a->n_hot && a->hot[i] != p)
        i++;
    return i;
}

void agent_hot(struct agent *a, struct pipe *p)
{
    unsigned i;

    a->active = true;
    if (a->progress == PROGRESS_SLEEP || (a->n_hot && a->hot[0] == p))
        return;
    i = place_of(a, p);
    if (i == a->n_hot) {
        pipe_ref(p);
        if (a->n_hot == AGENT_HOT)
            pipe_unref(a->hot[--i]);
        else
            a->n_hot++;
    }
    for (; i > 0; i--)
        a->hot[i] = a->hot[i - 1];
    a->hot[0] = p;
}

void agent_cool(struct agent *a, struct pipe *p)
{
    unsigned i = place_of(a, p);

    if (i == a->n_hot)
        return;
    for (a->n_hot--; i < a->n_hot; i++)
        a->hot[i] = a->hot[i + 1];
    pipe_unref(p);
}

static bool may_read(struct pipe *p)
{
    /* What the host does not accept stays where it is until it says so. */
    return pipe_state(p) == PIPE_ESTABLISHED && (p->outgoing ? role_free(p) : !p->read.unparsed);
}

/* True when something was read. */
static bool try_pipe(struct pipe *p)
{
    enum read_result r;

    if (!may_read(p))
        return false;
    if (!p->outgoing)
        return pipe_read(p, false) == READ_SOME;
    if (!role_try(p))
        return false;
    r = pipe_read(p, false);
    role_leave(p);
    return r == READ_SOME;
}

/* There is none when callers read all that was active lately. */
static bool any_to_read(struct agent *a)
{
    for (unsigned i = 0; i < a->n_hot; i++)
        if (may_read(a->hot[i]))
            return true;
    return false;
}

/* Reads the hot pipes in turn. True when something came. */
static bool rounds(struct agent *a)
{
    bool came = false;

    for (unsigned round = 1; round <= SPIN_ROUNDS; round++) {
        unsigned n = round % OTHERS_EVERY == 0 ? a->n_hot : 1;

        for (unsigned i = 0; i < n && i < a->n_hot; i++) {
            if (try_pipe(a->hot[i])) {
                came = true;
                if (i)
                    agent_hot(a, a->hot[i]);
            }
        }
        if (atomic_load(&a->reactor.waiting) || atomic_load(&a->reactor.stop))
            break;
    }
    return came;
}

static int spin_busy(struct agent *a)
{
    unsigned polls = atomic_load_explicit(&a->polls, memory_order_relaxed);
    bool callers = polls != a->polls_seen || atomic_load(&a->spinners) > 0;

    a->polls_seen = polls;
    /* A caller that spins on a machine with few CPUs would lose its own to
     * us. Naps end with events, and by themselves to look again. */
    if (callers && !a->many_cpus)
        return BUSY_YIELD_MS;
    rounds(a);
    return 0;
}

static int spin_adaptive(struct agent *a)
{
    uint64_t until;

    if (!a->active || a->one_cpu)
        return -1;
    a->active = false;
    if (atomic_load(&a->spinners) > 0 && !a->many_cpus)
        return -1;
    if (!spin_wanted(&a->spin))
        return -1;
    until = now_ns() + SPIN_NS;
    do {
        if (rounds(a)) {
            spin_ended(&a->spin, true);
            a->active = true;
            return 0;
        }
        if (atomic_load(&a->reactor.waiting)) {
            a->active = true;
            return 0;
        }
    } while (now_ns() < until);
    spin_ended(&a->spin, false);
    return -1;
}

int agent_spin(void *arg)
{
    struct agent *a = arg;

    if (!any_to_read(a))
        return -1;
    return a->progress == PROGRESS_BUSY ? spin_busy(a) : spin_adaptive(a);
}

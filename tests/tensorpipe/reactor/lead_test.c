/* SPDX-License-Identifier: Apache-2.0 */
/* lead_test.c - a thread of the user that reads instead of the agent's thread. */
#include "node.h"
#include "reactor/reactor.h"

#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#define FOREVER_NS UINT64_MAX

/* Worker 1's guest: keeps a request, leaves, answers it, and returns. */
struct guest {
    struct node *n;
    pthread_t thread;
    struct tenrec_msg *taken; /* the guest's */
    _Atomic uint32_t over;    /* it has taken one */
    atomic_uint answered;     /* by the guest */
    atomic_uint others;       /* requests that came on other threads, and were answered there */
    atomic_bool holds;        /* keeps the next that it takes until let_go */
    atomic_bool let_go, stop;
};

static _Thread_local struct guest *here; /* this thread leads for */

static void on_request(struct node *n, tenrec_peer from, struct tenrec_msg *msg)
{
    struct guest *g = n->arg;

    if (here == g && !g->taken) {
        g->taken = msg;
        atomic_store(&g->over, 1);
        return;
    }
    atomic_fetch_add(&g->others, 1);
    echo_request(n, from, msg);
}

static const _Atomic uint32_t never;

static struct tenrec_wait wait_of(const _Atomic uint32_t *done, uint64_t for_ns)
{
    return (struct tenrec_wait){ .size = sizeof(struct tenrec_wait),
                                 .wake_fd = -1,
                                 .deadline_ns = for_ns == FOREVER_NS ? 0 : clock_ns() + for_ns,
                                 .done = (const uint32_t *)done };
}

static tenrec_status lead(struct node *n, const struct tenrec_wait *w)
{
    return n->agent.ops->lead(&n->agent, w);
}

static void *guest_main(void *arg)
{
    struct guest *g = arg;
    const struct tenrec_wait w = wait_of(&g->over, FOREVER_NS);

    do {
        here = g;
        lead(g->n, &w);
        here = NULL;
        if (!g->taken) { /* refused: another leads just now, or the agent was shut down */
            nap();
            continue;
        }
        if (atomic_exchange(&g->holds, false))
            assert_becomes(atomic_load(&g->let_go));
        /* Before the answer: its receiver may check. */
        atomic_fetch_add(&g->answered, 1);
        echo_request(g->n, 0, g->taken);
        g->taken = NULL;
        atomic_store(&g->over, 0);
    } while (!atomic_load(&g->stop));
    return NULL;
}

static void until_guest_leads(struct node *n, const struct guest *g)
{
    uint64_t until = clock_ns() + NODE_LIMIT_NS;

    for (unsigned before = atomic_load(&g->answered); atomic_load(&g->answered) == before;) {
        assert_true(clock_ns() < until);
        assert_ping(n, 1);
    }
}

/* A guest that has led and come back. */
static void open_guest(struct node *n, struct guest *g)
{
    *g = (struct guest){ .n = &n[1] };
    group_open(n, 2, "adaptive");
    n[1].arg = g;
    n[1].on_request = on_request;
    assert_int_equal(pthread_create(&g->thread, NULL, guest_main, g), 0);
    until_guest_leads(n, g);
}

static void close_guest(struct node *n, struct guest *g)
{
    node_shutdown(&n[1]);
    atomic_store(&g->stop, true);
    pthread_join(g->thread, NULL);
    group_close(n, 2);
}

TEST(lead_runs_messages_on_the_leading_thread)
{
    struct node n[2];
    struct guest g;
    unsigned others;

    open_guest(n, &g);
    others = atomic_load(&g.others);
    for (int i = 0; i < 500; i++)
        assert_ping(n, 1);
    /* A few may find it on its way back. */
    assert_true(atomic_load(&g.answered) >= 2);
    assert_true(atomic_load(&g.answered) + atomic_load(&g.others) - others >= 500);
    close_guest(n, &g);
}

TEST(lead_goes_to_the_agents_own_thread_while_the_guest_is_away)
{
    struct call held = { .wake_fd = -1 };
    struct node n[2];
    struct guest g;
    unsigned others;

    open_guest(n, &g);
    atomic_store(&g.holds, true);
    while (atomic_load(&g.holds)) { /* until the guest holds the lead */
        others = atomic_load(&g.others);
        held = (struct call){ .wake_fd = -1 };
        call_start(n, &held, 1, request("held"));
        assert_becomes(!atomic_load(&g.holds) || atomic_load(&g.others) > others);
        if (atomic_load(&g.holds)) {
            assert_becomes(atomic_load(&held.done));
            call_finish(&held);
        }
    }
    others = atomic_load(&g.others);
    for (int i = 0; i < 20; i++)
        assert_ping(n, 1);
    assert_int_equal(atomic_load(&g.others), others + 20);
    assert_false(atomic_load(&held.done));
    atomic_store(&g.let_go, true);
    assert_becomes(atomic_load(&held.done));
    assert_int_equal(held.status, TENREC_OK);
    call_finish(&held);
    until_guest_leads(n, &g);
    close_guest(n, &g);
}

TEST(lead_belongs_to_one_thread_at_a_time)
{
    const struct tenrec_wait w = wait_of(&never, FOREVER_NS);
    const struct tenrec_wait late = {
        .size = sizeof late, .wake_fd = -1, .deadline_ns = 1, .done = (const uint32_t *)&never
    };
    struct node n[2];
    struct guest g;

    open_guest(n, &g);
    /* It comes back at once: it leads, or waits for that. */
    assert_becomes(lead(&n[1], &late) == TENREC_EUNSUPPORTED);
    node_shutdown(&n[0]);
    assert_int_equal(lead(&n[0], &w), TENREC_EUNSUPPORTED);
    close_guest(n, &g);
}

static uint64_t cpu_ns(clockid_t clock)
{
    struct timespec ts;

    assert_int_equal(clock_gettime(clock, &ts), 0);
    return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* Less than half of a processor is used. A thread that spins has it all. */
static bool is_idle(clockid_t clock)
{
    uint64_t began = clock_ns(), used = cpu_ns(clock);

    nap();
    return 2 * (cpu_ns(clock) - used) < clock_ns() - began;
}

TEST(lead_spins_for_a_while_and_then_sleeps)
{
    struct node n[2];
    struct guest g;
    clockid_t cpu;

    open_guest(n, &g);
    assert_int_equal(pthread_getcpuclockid(g.thread, &cpu), 0);
    for (int i = 0; i < 3; i++) {
        assert_becomes(is_idle(cpu) && is_idle(cpu) && is_idle(cpu));
        until_guest_leads(n, &g);
    }
    close_guest(n, &g);
}

TEST(lead_ends_at_its_deadline)
{
    const struct tenrec_wait w = wait_of(&never, 20000000u);
    struct node n[2];

    group_open(n, 2, "adaptive");
    assert_int_equal(lead(&n[1], &w), TENREC_OK);
    assert_true(clock_ns() >= w.deadline_ns);
    assert_ping(n, 1);
    group_close(n, 2);
}

struct flag {
    _Atomic uint32_t set;
    int fd;
};

static void *set_flag(void *arg)
{
    struct flag *f = arg;
    const uint64_t one = 1;

    nap();
    atomic_store(&f->set, 1);
    assert_int_equal(write(f->fd, &one, sizeof one), sizeof one);
    return NULL;
}

TEST(lead_ends_when_woken)
{
    struct flag f = { .fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK) };
    struct tenrec_wait w = wait_of(&f.set, FOREVER_NS);
    pthread_t thread;
    struct node n[2];

    assert_true(f.fd >= 0);
    w.wake_fd = f.fd;
    group_open(n, 2, "adaptive");
    for (int i = 0; i < 3; i++) {
        atomic_store(&f.set, 0);
        assert_int_equal(pthread_create(&thread, NULL, set_flag, &f), 0);
        assert_int_equal(lead(&n[1], &w), TENREC_OK);
        pthread_join(thread, NULL);
    }
    close(f.fd);
    group_close(n, 2);
}

TEST(lead_is_refused_where_the_loop_spins)
{
    const struct tenrec_wait w = wait_of(&never, FOREVER_NS);
    struct node n[2];

    group_open(n, 2, "busy");
    assert_int_equal(lead(&n[1], &w), TENREC_EUNSUPPORTED);
    group_close(n, 2);
}

/* ---- many at once -------------------------------------------------------------------------- */

struct pinger {
    struct node *n;
    pthread_t thread;
};

static void *ping_on(void *arg)
{
    struct pinger *p = arg;

    for (int i = 0; i < 300; i++)
        assert_ping(p->n, 1);
    return NULL;
}

TEST(lead_loses_nothing_between_the_two_threads)
{
    struct node n[2];
    struct guest g;
    struct pinger p[3];

    open_guest(n, &g);
    for (int i = 0; i < 3; i++) {
        p[i].n = n;
        assert_int_equal(pthread_create(&p[i].thread, NULL, ping_on, &p[i]), 0);
    }
    for (int i = 0; i < 3; i++)
        pthread_join(p[i].thread, NULL);
    assert_true(atomic_load(&g.answered) + atomic_load(&g.others) >= 900);
    close_guest(n, &g);
}

/* ---- the loop alone ------------------------------------------------------------------------ */

struct clockwork {
    struct reactor r;
    struct reactor_task arm, post;
    struct reactor_timer timer;
    pthread_t guest;
    _Atomic uint32_t armed, ran;
    atomic_bool fired, on_guest;
};

#define OF(type, member, p) ((struct type *)(void *)((char *)(p)-offsetof(struct type, member)))

static void on_timer(struct reactor_timer *t)
{
    struct clockwork *c = OF(clockwork, timer, t);

    atomic_store(&c->on_guest, pthread_equal(pthread_self(), c->guest));
    atomic_store(&c->fired, true);
}

static void arm_timer(struct reactor_task *t)
{
    struct clockwork *c = OF(clockwork, arm, t);

    reactor_arm(&c->r, &c->timer, clock_ns() + 30000000u);
    atomic_store(&c->armed, 1);
}

static void run_post(struct reactor_task *t)
{
    struct clockwork *c = OF(clockwork, post, t);

    atomic_store(&c->on_guest, pthread_equal(pthread_self(), c->guest));
    atomic_store(&c->ran, 1);
}

TEST(lead_timers_and_tasks_run_while_no_thread_leads)
{
    static struct clockwork c = { .timer.fire = on_timer,
                                  .arm.run = arm_timer,
                                  .post.run = run_post };
    const struct tenrec_wait w = wait_of(&c.armed, FOREVER_NS);
    tenrec_error err;

    c.guest = pthread_self();
    assert_int_equal(reactor_init(&c.r, &err), TENREC_OK);
    assert_int_equal(reactor_start(&c.r, &err), TENREC_OK);
    for (int i = 0; i < 3; i++) {
        atomic_store(&c.armed, 0);
        atomic_store(&c.fired, false);
        atomic_store(&c.ran, 0);
        reactor_post(&c.r, &c.arm);
        assert_int_equal(reactor_lead(&c.r, &w), TENREC_OK);
        assert_true(atomic_load(&c.armed));
        assert_becomes(atomic_load(&c.fired));
        assert_false(atomic_load(&c.on_guest));
        /* Only a message may have woken the loop since, so this must. */
        reactor_post(&c.r, &c.post);
        assert_becomes(atomic_load(&c.ran));
        assert_false(atomic_load(&c.on_guest));
    }
    reactor_stop(&c.r);
    reactor_finish(&c.r);
}

#define SHORT_NS 80000u /* longer than a thread takes to wake: the loop's own would have */
#define SHORT_TRIES 100

/* Else the two threads would take turns with each message of a caller that is quick. */
TEST(lead_waits_for_a_guest_that_returns_soon)
{
    static struct clockwork c = { .timer.fire = on_timer,
                                  .arm.run = arm_timer,
                                  .post.run = run_post };
    const struct tenrec_wait first = wait_of(&c.armed, FOREVER_NS);
    const struct tenrec_wait again = wait_of(&c.ran, FOREVER_NS);
    int on_guest = 0;
    tenrec_error err;

    c.guest = pthread_self();
    assert_int_equal(reactor_init(&c.r, &err), TENREC_OK);
    assert_int_equal(reactor_start(&c.r, &err), TENREC_OK);
    for (int i = 0; i < SHORT_TRIES; i++) {
        uint64_t left;

        atomic_store(&c.armed, 0);
        atomic_store(&c.ran, 0);
        reactor_post(&c.r, &c.arm);
        assert_int_equal(reactor_lead(&c.r, &first), TENREC_OK);
        left = clock_ns();
        reactor_post(&c.r, &c.post);
        while (clock_ns() < left + SHORT_NS)
            ;
        reactor_lead(&c.r, &again);
        assert_becomes(atomic_load(&c.ran));
        on_guest += atomic_load(&c.on_guest);
    }
    assert_true(on_guest >= SHORT_TRIES * 3 / 4);
    reactor_stop(&c.r);
    reactor_finish(&c.r);
}

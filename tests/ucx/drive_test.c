/* SPDX-License-Identifier: Apache-2.0 */
/* drive_test.c - threads that poll or lead in place of the agent's own.
 *
 *     drive_test CONFIG */
#include "../testing.h"
#include "conformance/world.h"

#include "core/base/clock.h"

#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

static const char *config_path;
static struct world w;
static struct side *a, *b;
static struct tally t;

/* A thread that leads at worker a. */
struct leader {
    pthread_t thread;
    struct tenrec_wait wait;
    _Atomic uint32_t done;
    atomic_int fd, status; /* status: -1 while it leads */
};

static void set_up(void)
{
    world_open(&w, NULL, config_path, 2, NULL);
    a = &w.worker[0];
    b = &w.worker[1];
}

static void tear_down(void)
{
    world_close(&w);
}

static void *lead(void *arg)
{
    struct leader *l = arg;
    tenrec_status st;

    do /* the test may be trying at this moment */
        st = chain_lead(a->chain, &l->wait);
    while (st == TENREC_EUNSUPPORTED && !atomic_load(&l->done));
    atomic_store(&l->status, (int)st);
    return NULL;
}

static void leader_start(struct leader *l)
{
    const int fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);

    *l = (struct leader){ .wait = { .size = sizeof l->wait, .wake_fd = fd, .done = NULL } };
    l->wait.done = (const uint32_t *)&l->done;
    atomic_store(&l->fd, fd);
    atomic_store(&l->status, -1);
    assert_int_equal(pthread_create(&l->thread, NULL, lead, l), 0);
}

static void leader_release(struct leader *l)
{
    atomic_store(&l->done, 1);
    eventfd_write(atomic_load(&l->fd), 1);
}

/* Returns what lead returned. */
static int leader_join(struct leader *l)
{
    pthread_join(l->thread, NULL);
    close(atomic_load(&l->fd));
    return atomic_load(&l->status);
}

/* The answer to a second thread while the first leads. */
static tenrec_status try_to_lead(void)
{
    static const uint32_t done = 1;
    struct tenrec_wait wait = { .size = sizeof wait, .wake_fd = -1, .done = &done };

    return chain_lead(a->chain, &wait);
}

/* Until the leader leads, which a second one sees. */
static void leader_start_and_see(struct leader *l)
{
    leader_start(l);
    assert_becomes(try_to_lead() == TENREC_EUNSUPPORTED);
}

TEST_WITH(ucx_drive_has_one_guest_at_a_time, set_up, tear_down)
{
    struct leader l;

    leader_start_and_see(&l);
    assert_int_equal(atomic_load(&l.status), -1);
    leader_release(&l);
    assert_int_equal(leader_join(&l), TENREC_OK);
    assert_int_equal(try_to_lead(), TENREC_OK);
}

TEST_WITH(ucx_drive_serves_peers_while_a_guest_leads_and_after, set_up, tear_down)
{
    struct leader l;

    leader_start_and_see(&l);
    send_ping(b, a->id, 1, &t);
    assert_becomes(side_count(a) == 1);
    leader_release(&l);
    assert_int_equal(leader_join(&l), TENREC_OK);
    send_ping(b, a->id, 2, &t);
    assert_becomes(side_count(a) == 2);
}

TEST_WITH(ucx_drive_carries_sends_of_other_threads_while_a_guest_leads, set_up, tear_down)
{
    struct leader l;

    leader_start_and_see(&l);
    for (int i = 1; i <= 5; i++) {
        send_ping(a, b->id, i, &t);
        assert_becomes(side_count(b) == (size_t)i);
    }
    leader_release(&l);
    assert_int_equal(leader_join(&l), TENREC_OK);
}

TEST_WITH(ucx_drive_of_a_guest_ends_at_its_deadline, set_up, tear_down)
{
    static const uint32_t done;
    const uint64_t begin = clock_now_ns();
    struct tenrec_wait wait = {
        .size = sizeof wait, .wake_fd = -1, .done = &done, .deadline_ns = clock_deadline_ms(50)
    };

    assert_int_equal(chain_lead(a->chain, &wait), TENREC_OK);
    assert_true(clock_now_ns() - begin >= 50 * UINT64_C(1000000));
}

TEST_WITH(ucx_drive_of_a_guest_ends_when_the_agent_shuts_down, set_up, tear_down)
{
    struct leader l;

    leader_start_and_see(&l);
    chain_shutdown(a->chain);
    assert_int_equal(leader_join(&l), TENREC_OK);
    assert_int_equal(try_to_lead(), TENREC_EUNSUPPORTED);
}

TEST_WITH(ucx_drive_poll_without_a_connection_is_unsupported, set_up, tear_down)
{
    static const uint32_t done;
    struct tenrec_wait wait = { .size = sizeof wait, .wake_fd = -1, .done = &done };

    assert_int_equal(chain_poll(a->chain, b->id, &wait), TENREC_EUNSUPPORTED);
    assert_int_equal(chain_poll(a->chain, 77, &wait), TENREC_EUNSUPPORTED);
}

/* ---- all at once ------------------------------------------------------------------------ */

enum { PER_THREAD = 300 };

static void *ping_often(void *arg)
{
    struct side *from = arg;

    for (int i = 0; i < PER_THREAD; i++)
        send_ping(from, (from == a ? b : a)->id, i, &t);
    return NULL;
}

static atomic_bool stop;

/* Leads and polls for moments, in turn. */
static void *guest_often(void *arg)
{
    static const uint32_t done;
    struct side *at = arg;

    for (int i = 0; !atomic_load(&stop); i++) {
        struct tenrec_wait wait = { .size = sizeof wait,
                                    .wake_fd = -1,
                                    .done = &done,
                                    .deadline_ns = clock_now_ns() + 200000 };
        if (i % 2)
            chain_poll(at->chain, (at == a ? b : a)->id, &wait);
        else
            chain_lead(at->chain, &wait);
    }
    return NULL;
}

TEST_WITH(ucx_drive_loses_nothing_when_threads_send_poll_and_lead, set_up, tear_down)
{
    void *(*const run[])(void *) = { ping_often, ping_often, guest_often, guest_often };
    pthread_t thread[8];
    int before;

    atomic_store(&stop, false);
    before = atomic_load(&t.ok);
    for (int i = 0; i < 8; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, run[i / 2], i % 2 ? b : a), 0);
    for (int i = 0; i < 4; i++)
        pthread_join(thread[i], NULL);
    assert_becomes(atomic_load(&t.ok) - before == 4 * PER_THREAD);
    assert_becomes(side_count(a) == 2 * PER_THREAD && side_count(b) == 2 * PER_THREAD);
    atomic_store(&stop, true);
    for (int i = 4; i < 8; i++)
        pthread_join(thread[i], NULL);
    send_ping(a, b->id, 1, &t); /* and the own threads serve again */
    assert_becomes(side_count(b) == 2 * PER_THREAD + 1);
}

int main(int argc, char **argv)
{
    if (argc < 2)
        return 2;
    config_path = argv[1];
    return testing_run(NULL, NULL);
}

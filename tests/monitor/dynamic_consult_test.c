/* SPDX-License-Identifier: Apache-2.0 */
/* dynamic_consult_test.c - two others are asked about a member that does not answer, on the backend
 * named in argv. */
#include "../support/functions.h"
#include "../support/party.h"
#include "../testing.h"
#include "core/base/clock.h"
#include "rpc/future/worker.h"
#include "rpc/monitor/monitor_inside.h"
#include "rpc/worker/worker.h"

#include <pthread.h>
#include <stdatomic.h>

static void begin(void)
{
    party_begin();
}

/* worker0 follows worker1 and worker2; what it asks worker2 does not arrive. */
static atomic_bool cut_off;
static atomic_uint consulted;

void __real_monitor_probe(struct monitor *m, tenrec_peer id, int64_t incarnation);
void __wrap_monitor_probe(struct monitor *m, tenrec_peer id, int64_t incarnation);
void __wrap_monitor_probe(struct monitor *m, tenrec_peer id, int64_t incarnation)
{
    if (!atomic_load(&cut_off) || m->w->self.id != 0 || id != 2)
        __real_monitor_probe(m, id, incarnation);
}

void __real_monitor_consult(struct monitor *m, tenrec_peer id, int64_t incarnation);
void __wrap_monitor_consult(struct monitor *m, tenrec_peer id, int64_t incarnation);
void __wrap_monitor_consult(struct monitor *m, tenrec_peer id, int64_t incarnation)
{
    if (m->w->self.id == 0 && id == 2)
        atomic_fetch_add(&consulted, 1);
    __real_monitor_consult(m, id, incarnation);
}

TEST_WITH(dynamic_member_that_only_one_other_cannot_reach_stays, begin, NULL)
{
    /* The two others have an interval to answer, also on a loaded machine. */
    static const char *const quick[] = { "worker.heartbeat_misses=2", "worker.heartbeat=400ms",
                                         NULL };
    enum { MEMBERS = 6 };
    struct tenrec_worker *w[MEMBERS];
    tenrec_error err;

    for (int i = 0; i < MEMBERS; i++) {
        w[i] = party_worker(i, NULL, i == 0 ? quick : NULL, functions_register);
        assert_status(tenrec_init_rpc(w[i], &err), &err);
    }
    atomic_store(&consulted, 0);
    atomic_store(&cut_off, true);
    assert_becomes(atomic_load(&consulted) >= 3);
    atomic_store(&cut_off, false);
    for (int i = 0; i < MEMBERS; i++)
        party_await(w[i], MEMBERS);
    functions_must_call_add(w[0], "worker2");
    for (int i = 0; i < MEMBERS; i++)
        party_leave(w[i]);
}

/* The thread that would answer later has ended: an answer after the end of the connections is none.
 */
TEST_WITH(dynamic_worker_that_stops_answers_at_once_about_a_third, begin, NULL)
{
    struct tenrec_worker *a = party_join(0, NULL, functions_register);
    struct tenrec_worker *b = party_join(1, NULL, functions_register);
    struct tenrec_worker *c = party_join(2, NULL, functions_register);
    struct monitor *m = group_of(a)->monitor;
    const int64_t of_c = (int64_t)peers_incarnation(&a->peers, 2);
    int64_t first;
    bool waits = true;

    monitor_stop(b);
    pthread_mutex_lock(&m->lock);
    first = m->n_sent;
    pthread_mutex_unlock(&m->lock);
    monitor_consult(m, 2, of_c); /* the members behind it are a and b */
    for (const uint64_t until_ns = clock_deadline_ms(CLUSTER_LONG_MS); waits;) {
        pthread_mutex_lock(&m->lock);
        waits = monitor_probes_wait(m, first);
        if (waits && !monitor_wait(m, until_ns))
            fail_msg("no answer");
        pthread_mutex_unlock(&m->lock);
    }
    chain_shutdown(b->chain);
    party_clear_away(b);
    party_leave(c);
    party_leave(a);
}

int main(int argc, char **argv)
{
    if (argc > 1)
        cluster_use(argv[1]);
    return testing_run(NULL, NULL);
}

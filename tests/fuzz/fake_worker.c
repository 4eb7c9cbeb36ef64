/* SPDX-License-Identifier: Apache-2.0 */
#include "fake_worker.h"
#include "fuzz.h"

#include "core/base/loop.h"
#include "core/config/config.h"
#include "core/config/settings.h"
#include "core/tensor/tensor.h"
#include "libtenrec/services.h"
#include "rpc/call/call.h"
#include "rpc/call/calls.h"
#include "rpc/gather/gather.h"
#include "rpc/rref/rref.h"
#include "rpc/rref/rref_context.h"
#include "rpc/worker/worker.h"

#include <errno.h>
#include <stdio.h>

struct fake_worker fake;

/* ---- what lies below a worker ---- */

int __wrap_clock_gettime(clockid_t id, struct timespec *ret);
int __wrap_clock_gettime(clockid_t id, struct timespec *ret)
{
    (void)id;
    fake.now_ns += 1000;
    *ret = (struct timespec){ .tv_sec = (time_t)(fake.now_ns / 1000000000u),
                              .tv_nsec = (long)(fake.now_ns % 1000000000u) };
    return 0;
}

void __wrap_loop_timer_arm(struct loop_timer *t, uint64_t deadline_ns);
void __wrap_loop_timer_arm(struct loop_timer *t, uint64_t deadline_ns)
{
    (void)t;
    fuzz_expect(deadline_ns > 0);
}

void __wrap_chain_send(struct chain *c, tenrec_peer to, struct tenrec_msg *msg,
                       struct tenrec_done done);
void __wrap_chain_send(struct chain *c, tenrec_peer to, struct tenrec_msg *msg,
                       struct tenrec_done done)
{
    tenrec_error why;

    (void)c, (void)to;
    fake.n_messages++;
    fuzz_touch(msg->payload, (size_t)msg->payload_len);
    for (uint32_t i = 0; i < msg->n_tensors; i++)
        fuzz_touch(tenrec_msg_tensor(msg, i)->data, (size_t)tenrec_msg_tensor(msg, i)->bytes);
    if (msg->type & TENREC_MSG_REQUEST_BIT)
        fake.sent_id[fake.n_sent++ % FAKE_KEPT] = msg->id;
    msg->release(msg);
    tenrec_fail_errno(&why, TENREC_ECONNECT, ECONNREFUSED, "cannot connect");
    if (done.fn)
        done.fn(done.arg, fake.fails ? &why : NULL);
}

static void fake_send(struct tenrec_agent *self, tenrec_peer to, struct tenrec_msg *msg,
                      struct tenrec_done done)
{
    (void)self;
    __wrap_chain_send(NULL, to, msg, done);
}

static const struct chain_port fake_port = { .send = fake_send };
static const struct config_settings fake_settings;
static const struct config_observe fake_observe = { .metrics = "", .traces = "" };
static struct loop_timer fake_deadlines = { .armed_ns = UINT64_MAX };

/* ---- the worker ---- */

static void worker_expect(tenrec_status st)
{
    fuzz_expect(st == TENREC_OK);
}

static void fake_monitor_make(struct monitor *m)
{
    *m = (struct monitor){ .w = &fake.worker, .incarnation = FAKE_LIFE, .view = { .version = 2 } };
    m->beats.rules = (struct heartbeat_rules){ UINT64_C(1000000000), 2 };
    pthread_mutex_init(&m->lock, NULL);
    pthread_cond_init(&m->work, NULL);
    pthread_cond_init(&m->changed, NULL);
    for (tenrec_peer i = 0; i < FAKE_MEMBERS; i++) {
        char name[16];
        const struct membership_view_entry e = { i, FAKE_LIFE + i, name };

        snprintf(name, sizeof name, "worker%d", i);
        worker_expect(membership_view_add(&m->view, &e, NULL));
    }
    worker_expect(heartbeats_follow(&m->beats, &m->view, 0, fake.now_ns, NULL));
}

static void fake_monitor_drop(struct monitor *m)
{
    monitor_messages_end(m);
    heartbeats_finish(&m->beats);
    membership_view_finish(&m->view);
    pthread_cond_destroy(&m->changed);
    pthread_mutex_destroy(&m->lock);
}

static void references_make(struct tenrec_worker *w)
{
    static const struct tenrec_member member[FAKE_MEMBERS] = { { .id = 0, .name = "worker0" },
                                                               { .id = 1, .name = "worker1" },
                                                               { .id = 2, .name = "worker2" } };
    const struct rref_setup s = { .worker = w,
                                  .member = member,
                                  .n = FAKE_MEMBERS,
                                  .room = FAKE_MEMBERS,
                                  .session = 1,
                                  .gap_ms = 1000 };

    worker_expect(rref_context_new(&s, &rrefs_of(w)->context, NULL));
}

void fake_worker_make(bool dynamic)
{
    struct tenrec_worker *w = &fake.worker;

    memset(&fake, 0, sizeof fake);
    fake.now_ns = 1000000000u;
    *w = (struct tenrec_worker){ .self = { .name = "worker0" }, .calls = &fake.calls };
    userloop_init(&w->userloop);
    calls_init(w->calls);
    w->calls->timeout_ms = 1000;
    w->calls->port = &fake_port;
    w->calls->deadlines = &fake_deadlines;
    fuzz_expect(services_size(worker_services) <= sizeof fake.states);
    services_assign(w, worker_services, fake.states);
    worker_expect(
        services_init(w, &(struct service_config){ NULL, &fake_settings, &fake_observe }, NULL));
    pthread_mutex_init(&w->lock, NULL);
    pthread_cond_init(&w->changed, NULL);
    functions_finish(&w->calls->functions); /* of the services: they need a chain */
    functions_init(&w->calls->functions);
    disconnects_reset(&group_of(w)->disconnects, FAKE_MEMBERS);
    worker_expect(contacts_reset(&w->contacts, dynamic ? 0 : FAKE_MEMBERS, NULL));
    worker_expect(peers_init(&w->peers, FAKE_MEMBERS, 0, NULL));
    w->peers.lives = dynamic;
    for (tenrec_peer i = 0; i < FAKE_MEMBERS; i++) {
        char name[16];

        snprintf(name, sizeof name, "worker%d", i);
        worker_expect(peers_add(&w->peers, i, FAKE_LIFE + (uint64_t)i, name, NULL));
    }
    references_make(w);
    if (dynamic)
        fake_monitor_make(group_of(w)->monitor = &fake.monitor);
    atomic_store(&w->state, WORKER_RUNNING);
}

void fake_worker_end(void)
{
    struct tenrec_worker *w = &fake.worker;
    tenrec_error why;

    tenrec_fail(&why, TENREC_ECANCELED, "the worker was shut down");
    atomic_store(&w->state, WORKER_STOPPING);
    call_fail_peer(w, -1, &why);
    gather_fail_all(w, &why);
    rrefs_stop(w);
    while (fake.n_refs)
        tenrec_rref_drop(fake.ref[--fake.n_refs]);
    while (fake.n_futures) {
        fuzz_expect(tenrec_future_done(fake.future[--fake.n_futures]));
        tenrec_future_drop(fake.future[fake.n_futures]);
    }
    if (group_of(w)->monitor)
        fake_monitor_drop(group_of(w)->monitor);
    rref_context_drop(rref_context_of(w));
    services_finish(w);
    calls_finish(w->calls);
    peers_finish(&w->peers);
    contacts_finish(&w->contacts);
    pthread_cond_destroy(&w->changed);
    pthread_mutex_destroy(&w->lock);
}

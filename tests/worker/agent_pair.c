/* SPDX-License-Identifier: Apache-2.0 */
#include "agent_pair.h"

#include <stdlib.h>
#include <tenrec/config.h>

const char *agent_pair_backend;
struct pair *pair;

static const char text[] =
    "worker: { num_worker_threads: 3, rpc_timeout: 7s }\n"
    "backend: inproc\n"
    "backends:\n"
    "  inproc: { plugin: inproc }\n"
    "  tcp: { plugin: tensorpipe, options: { transports: [uv], channels: [basic] } }\n"
    "  shm: { plugin: tensorpipe, options: { transports: [shm, uv], channels: [cma, basic] } }\n"
    "  faulty: { plugin: faulty, wraps: tcp, options: { messages_to_fail: [PYTHON_CALL], "
    "num_fail_sends: 1 } }\n";

static void on_deliver(void *arg, tenrec_peer from, struct tenrec_msg *msg)
{
    struct end *e = arg;
    struct tenrec_msg *old;

    pthread_mutex_lock(&e->lock);
    old = e->last;
    e->last = msg;
    e->from = from;
    pthread_mutex_unlock(&e->lock);
    if (old)
        old->release(old);
    atomic_fetch_add(&e->got, 1);
}

static void on_lost(void *arg, tenrec_peer peer, const tenrec_error *why)
{
    (void)peer, (void)why;
    atomic_fetch_add(&((struct end *)arg)->lost, 1);
}

static bool on_accepts(void *arg)
{
    return !atomic_load(&((struct end *)arg)->deaf);
}

static void on_wake(void *arg)
{
    atomic_fetch_add(&((struct end *)arg)->woken, 1);
}

static tenrec_status on_place(void *arg, tenrec_peer from, struct tenrec_msg *msg,
                              tenrec_error *err)
{
    struct end *e = arg;

    (void)from;
    atomic_fetch_add(&e->placed, 1);
    if (atomic_load(&e->full))
        return tenrec_fail(err, TENREC_ENOMEM, "no room for tensors");
    if (!e->memory)
        return tenrec_msg_place(msg, err);
    for (uint32_t i = 0; i < msg->n_tensors; i++) {
        tenrec_msg_tensor(msg, i)->device = (struct tenrec_device){ TENREC_CPU, 0 };
        tenrec_msg_tensor(msg, i)->data = e->memory;
    }
    return TENREC_OK;
}

static void *on_payload(void *arg, uint64_t bytes, void **ret_data)
{
    struct end *e = arg;
    struct agent_payload *p = e->keeps ? malloc(sizeof *p + (size_t)bytes) : NULL;

    if (!p)
        return NULL;
    p->dropped = &e->dropped;
    *ret_data = p->byte;
    return p;
}

static void on_payload_drop(void *owner)
{
    atomic_fetch_add(((struct agent_payload *)owner)->dropped, 1);
    free(owner);
}

static void on_done(void *arg, const tenrec_error *err)
{
    struct end *e = arg;

    if (err) {
        pthread_mutex_lock(&e->lock);
        e->why = *err;
        pthread_mutex_unlock(&e->lock);
        atomic_fetch_add(&e->failed, 1);
    }
    atomic_fetch_add(&e->told, 1);
}

void agent_pair_make(void)
{
    struct pair *p = calloc(1, sizeof *p);
    struct tenrec_config *config;
    tenrec_error err;

    assert_non_null(p);
    assert_status(tenrec_config_parse(text, NULL, &config, &err), &err);
    assert_status(tenrec_config_set(config, "backend", agent_pair_backend, &err), &err);
    assert_status(tenrec_chain_options_new(config, &p->options, &err), &err);
    tenrec_config_drop(config);
    for (int i = 0; i < 2; i++) {
        struct end *e = &p->end[i];
        const struct tenrec_chain_user user = { .size = sizeof user,
                                                .deliver = on_deliver,
                                                .peer_lost = on_lost,
                                                .place = on_place,
                                                .accepts = on_accepts,
                                                .wake = on_wake,
                                                .payload_new = on_payload,
                                                .payload_drop = on_payload_drop,
                                                .arg = e };
        pthread_mutex_init(&e->lock, NULL);
        p->member[i] = (struct tenrec_member){ .size = sizeof p->member[i],
                                               .id = i,
                                               .incarnation = 7 + (unsigned)i,
                                               .name = i ? "b" : "a" };
        assert_status(tenrec_chain_new(p->options, &user, &p->member[i], 2, &e->agent, &err), &err);
        p->member[i].address = tenrec_chain_address(e->agent);
    }
    for (int i = 0; i < 2; i++)
        assert_status(tenrec_chain_start(p->end[i].agent, p->member, 2, &err), &err);
    pair = p;
}

void agent_pair_drop(void)
{
    for (int i = 0; i < 2; i++) {
        tenrec_chain_drop(pair->end[i].agent);
        if (pair->end[i].last)
            pair->end[i].last->release(pair->end[i].last);
        free(pair->end[i].memory);
        pthread_mutex_destroy(&pair->end[i].lock);
    }
    tenrec_chain_options_drop(pair->options);
    free(pair);
}

void agent_pair_forget(struct end *e)
{
    struct tenrec_msg *last;

    pthread_mutex_lock(&e->lock);
    last = e->last;
    e->last = NULL;
    pthread_mutex_unlock(&e->lock);
    last->release(last);
}

void agent_pair_send(int from, struct tenrec_msg *msg)
{
    tenrec_chain_send(pair->end[from].agent, 1 - from, msg,
                      (struct tenrec_done){ on_done, &pair->end[from] });
}

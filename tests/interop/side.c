/* SPDX-License-Identifier: Apache-2.0 */
/* side.c - our side of the interoperation. */
#include "side.h"

#include "../support/message_hooks.h"
#include "core/backend/backend.h"
#include "core/base/loop.h"
#include "peer.h"

#include <stdlib.h>
#include <tenrec/agent.h>
#include <tenrec/config.h>

static void send_back(struct side *s, tenrec_peer from, struct tenrec_msg *msg)
{
    pthread_mutex_lock(&s->lock);
    s->last_type = msg->type;
    s->last_from = from;
    pthread_mutex_unlock(&s->lock);
    atomic_fetch_add(&s->requests, 1);

    if (s->on_request)
        s->on_request(msg);
    msg->type = TENREC_MSG_RET;
    for (uint32_t i = 0; i < msg->n_tensors; i++)
        tenrec_msg_tensor(msg, i)->target = (struct tenrec_device){ TENREC_CPU, 0 };
    chain_send(s->chain, from, msg, (struct tenrec_done){ 0 });
}

static void on_deliver(void *arg, tenrec_peer from, struct tenrec_msg *msg)
{
    struct side *s = arg;

    if (msg->type & TENREC_MSG_REQUEST_BIT) {
        send_back(s, from, msg);
        return;
    }
    pthread_mutex_lock(&s->lock);
    if (s->n_answers < SIDE_MAX)
        s->answers[s->n_answers++] = msg;
    else
        msg->release(msg);
    pthread_mutex_unlock(&s->lock);
}

static void on_lost(void *arg, tenrec_peer peer, const tenrec_error *why)
{
    struct side *s = arg;

    (void)peer;
    s->why = *why;
    atomic_fetch_add(&s->lost, 1);
}

static void on_done(void *arg, const tenrec_error *err)
{
    struct side *s = arg;

    if (err)
        s->why = *err;
    atomic_fetch_add(err ? &s->failed : &s->sent, 1);
}

void side_open(struct side *s, const char *config, const char *peer_address)
{
    const struct chain_identity id = { .me = 0, .world = 2, .incarnation = 7, .name = "worker0" };
    const struct chain_user user = {
        .deliver = on_deliver, .place = message_place_for, .peer_lost = on_lost, .arg = s
    };
    const struct chain_layer *layers;
    struct tenrec_config *tree;
    tenrec_error err;
    size_t n;

    memset(s, 0, sizeof *s);
    pthread_mutex_init(&s->lock, NULL);
    assert_status(tenrec_config_load(config, &tree, &err), &err);
    assert_status(chain_config_open(tree, &s->stack, &err), &err);
    tenrec_config_drop(tree);
    assert_status(loop_open(&s->loop, &err), &err);
    layers = chain_config_layers(s->stack, &n);
    assert_status(chain_open(layers, n, &id, s->loop, &user, &s->chain, &err), &err);

    snprintf(s->peer_address, sizeof s->peer_address, "uv://%s",
             peer_address ? peer_address : "127.0.0.1:1");
    s->members[0] =
        (struct tenrec_member){ sizeof s->members[0], 0, 7, "worker0", chain_address(s->chain) };
    s->members[1] = (struct tenrec_member){ sizeof s->members[1], SIDE_PEER, 8, "libtensorpipe",
                                            s->peer_address };
    assert_status(chain_start(s->chain, s->members, 2, &err), &err);
}

void side_close(struct side *s)
{
    chain_shutdown(s->chain);
    chain_close(s->chain);
    for (int i = 0; i < s->n_answers; i++)
        s->answers[i]->release(s->answers[i]);
    loop_close(s->loop);
    chain_config_close(s->stack);
    pthread_mutex_destroy(&s->lock);
}

struct wanted {
    const char *key;
    char *value;
};

static void find_info(void *arg, const char *key, const char *value)
{
    const struct wanted *w = arg;

    if (!*w->value && strstr(key, w->key))
        snprintf(w->value, SIDE_INFO, "%s", value);
}

void side_info(struct side *s, const char *key, char ret[SIDE_INFO])
{
    struct wanted w = { key, ret };

    *ret = '\0';
    chain_debug_info(s->chain, find_info, &w);
}

const char *side_address(struct side *s)
{
    const char *address = chain_address(s->chain);

    assert_memory_equal(address, "uv://", 5);
    return address + 5;
}

static void free_tensors(void *arg, struct tenrec_msg *msg)
{
    (void)arg;
    for (uint32_t i = 0; i < msg->n_tensors; i++)
        if (!tenrec_msg_tensor(msg, i)->same_storage)
            free(tenrec_msg_tensor(msg, i)->data);
}

struct tenrec_msg *side_request(int64_t id, unsigned long seed, size_t len, const uint64_t *tensors,
                                uint32_t n)
{
    struct tenrec_msg *msg = message_new(len, n);

    assert_non_null(msg);
    msg->type = TENREC_MSG_CALL;
    msg->id = id;
    peer_pattern(seed, msg->payload, len);
    for (uint32_t i = 0; i < n; i++) {
        struct tenrec_tensor_desc *t = tenrec_msg_tensor(msg, i);
        t->bytes = tensors[i];
        t->data = malloc(tensors[i] > 0 ? tensors[i] : 1);
        assert_non_null(t->data);
        peer_pattern(seed + i + 1, t->data, t->bytes);
        t->dtype = (struct tenrec_dtype){ TENREC_DTYPE_UINT, 8, 1 };
        t->device = t->target = (struct tenrec_device){ TENREC_CPU, 0 };
        t->ndim = 1;
        t->shape[0] = (int64_t)tensors[i];
        t->strides[0] = 1;
    }
    message_on_release(msg, free_tensors, NULL);
    return msg;
}

void side_send(struct side *s, struct tenrec_msg *msg)
{
    chain_send(s->chain, SIDE_PEER, msg, (struct tenrec_done){ on_done, s });
}

/* The place of the answer to `id`, or SIDE_MAX. */
static int find_answer(struct side *s, int64_t id)
{
    int found = SIDE_MAX;

    pthread_mutex_lock(&s->lock);
    for (int i = 0; i < s->n_answers && found == SIDE_MAX; i++)
        if (s->answers[i]->id == id)
            found = i;
    pthread_mutex_unlock(&s->lock);
    return found;
}

struct tenrec_msg *side_answer(struct side *s, int64_t id)
{
    struct tenrec_msg *msg;
    int i;

    assert_becomes(find_answer(s, id) < SIDE_MAX || atomic_load(&s->lost) ||
                   atomic_load(&s->failed));
    i = find_answer(s, id);
    if (i == SIDE_MAX)
        fail_msg("no answer: %s", s->why.text);
    /* Others only append behind it. */
    pthread_mutex_lock(&s->lock);
    msg = s->answers[i];
    s->answers[i] = s->answers[--s->n_answers];
    pthread_mutex_unlock(&s->lock);
    return msg;
}

void side_check_pattern(const void *data, unsigned long seed, size_t len)
{
    void *expected = malloc(len > 0 ? len : 1);

    assert_non_null(expected);
    peer_pattern(seed, expected, len);
    assert_true(len == 0 || memcmp(data, expected, len) == 0);
    free(expected);
}

void side_check(struct tenrec_msg *answer, unsigned long seed, size_t len, const uint64_t *tensors,
                uint32_t n)
{
    assert_int_equal(answer->type, TENREC_MSG_RET);
    assert_int_equal(answer->payload_len, len);
    side_check_pattern(answer->payload, seed, len);
    assert_int_equal(answer->n_tensors, n);
    for (uint32_t i = 0; i < n; i++) {
        const struct tenrec_tensor_desc *t = tenrec_msg_tensor(answer, i);
        assert_int_equal(t->bytes, tensors[i]);
        assert_int_equal(t->dtype.code, TENREC_DTYPE_UINT);
        assert_int_equal(t->ndim, 1);
        assert_int_equal(t->shape[0], tensors[i]);
        assert_int_equal(t->device.kind, TENREC_CPU);
        side_check_pattern(t->data, seed + i + 1, t->bytes);
    }
    answer->release(answer);
}

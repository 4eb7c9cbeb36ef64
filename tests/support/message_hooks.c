/* SPDX-License-Identifier: Apache-2.0 */
#include "message_hooks.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#define HOOKS_MAX 4096 /* not from malloc, which a test may make fail */

struct hook {
    struct hook *next;
    struct tenrec_msg *msg;
    void (*release)(struct tenrec_msg *msg); /* the message's own */
    void (*fn)(void *arg, struct tenrec_msg *msg);
    void *arg;
    void *storage; /* of the tensors */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards all below */
static struct hook pool[HOOKS_MAX];
static size_t n_used; /* of the pool, so far */
static struct hook *unused, *attached;

static void hook_release(struct tenrec_msg *msg)
{
    struct hook *h, **at, was;

    pthread_mutex_lock(&lock);
    for (at = &attached; (*at)->msg != msg; at = &(*at)->next)
        ;
    h = *at;
    *at = h->next;
    was = *h;
    h->next = unused;
    unused = h;
    pthread_mutex_unlock(&lock);
    msg->release = was.release;
    if (was.fn)
        was.fn(was.arg, msg);
    free(was.storage);
    msg->release(msg);
}

/* The caller holds the lock. */
static struct hook *hook_new(struct tenrec_msg *msg)
{
    struct hook *h = unused;

    if (h) {
        unused = h->next;
    } else if (n_used < HOOKS_MAX) {
        h = &pool[n_used++];
    } else {
        fprintf(stderr, "message_hooks: more than %d messages with hooks live at once\n",
                HOOKS_MAX);
        abort();
    }
    *h = (struct hook){ .next = attached, .msg = msg, .release = msg->release };
    attached = h;
    msg->release = hook_release;
    return h;
}

/* Returns the hook of `msg`, which belongs to the calling thread. */
static struct hook *hook_of(struct tenrec_msg *msg)
{
    struct hook *h;

    pthread_mutex_lock(&lock);
    for (h = attached; h && h->msg != msg; h = h->next)
        ;
    if (!h)
        h = hook_new(msg);
    pthread_mutex_unlock(&lock);
    return h;
}

void message_on_release(struct tenrec_msg *msg, void (*fn)(void *arg, struct tenrec_msg *msg),
                        void *arg)
{
    struct hook *h = hook_of(msg);

    h->fn = fn;
    h->arg = arg;
}

static uint64_t round_up(uint64_t bytes)
{
    return (bytes + 63) / 64 * 64;
}

tenrec_status message_place(struct tenrec_msg *msg, tenrec_error *err)
{
    struct hook *h = hook_of(msg);
    uint64_t total = 0;
    char *at;

    for (uint32_t i = 0; i < msg->n_tensors; i++) {
        uint64_t bytes = tenrec_msg_tensor(msg, i)->bytes;
        const uint64_t same = tenrec_msg_tensor(msg, i)->same_storage;

        if (same && same <= i)
            continue;
        if (bytes > SIZE_MAX / 2 - 64 || total > SIZE_MAX / 2 - 64 - bytes)
            return tenrec_fail(err, TENREC_ENOMEM, "no memory for tensors of more than %zu bytes",
                               SIZE_MAX / 2);
        total += round_up(bytes);
    }
    free(h->storage);
    h->storage = aligned_alloc(64, total ? total : 64);
    if (!h->storage)
        return tenrec_fail(err, TENREC_ENOMEM, "no memory for tensors of %llu bytes",
                           (unsigned long long)total);
    at = h->storage;
    for (uint32_t i = 0; i < msg->n_tensors; i++) {
        struct tenrec_tensor_desc *t = tenrec_msg_tensor(msg, i);
        t->device = (struct tenrec_device){ TENREC_CPU, 0 };
        if (t->same_storage && t->same_storage <= i) {
            t->data = tenrec_msg_tensor(msg, (uint32_t)t->same_storage - 1)->data;
            continue;
        }
        t->data = at;
        at += round_up(t->bytes);
    }
    return TENREC_OK;
}

tenrec_status message_place_for(void *arg, tenrec_peer from, struct tenrec_msg *msg,
                                tenrec_error *err)
{
    (void)arg, (void)from;
    return message_place(msg, err);
}

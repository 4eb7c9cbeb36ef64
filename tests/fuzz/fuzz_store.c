/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_store.c - what clients send to the TCP store's server.
 *
 * Input: pieces, each with a byte in front: its lowest two bits say which of
 * four connections sends it (or, with 0x80, closes), the rest how many bytes
 * follow. So that requests of several waiting connections meet. */
#include "amplification.h"

#include "group/store/store_session.h"

#include <stdlib.h>

#define N 4
#define STORE_BYTES ((size_t)1 << 20)

struct client {
    struct store_session *session;
    size_t answered; /* bytes; nothing is read from it beyond a limit */
    bool closed;
};

static void take(void *arg, const void *data, size_t len)
{
    struct client *c = arg;
    const volatile uint8_t *last = data;

    (void)last[len - 1]; /* all of it must be readable: the sanitizer looks */
    (void)last[0];
    c->answered += len;
}

static bool full(void *arg)
{
    return ((struct client *)arg)->answered > 1 << 20;
}

static void closed(void *arg, const char *why)
{
    if (((struct client *)arg)->closed || !why)
        abort(); /* completed twice, or without a reason */
    ((struct client *)arg)->closed = true;
}

static const struct store_session_ops ops = { take, full, closed };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    struct client client[N] = { 0 };
    struct store_hub hub;
    size_t at = 0;

    if (store_hub_init(&hub, STORE_BYTES) != TENREC_OK)
        return 0;
    fuzz_measure();
    while (at < len) {
        struct client *c = &client[data[at] & 3];
        size_t n = (data[at] & 0x7f) >> 2;
        bool leaves = data[at++] & 0x80;
        if (n > len - at)
            n = len - at;
        if (!c->session && !(c->session = store_session_new(&hub, &ops, c)))
            break;
        store_session_feed(c->session, data + at, n);
        at += n;
        if (leaves || c->closed) {
            store_session_drop(c->session);
            *c = (struct client){ 0 };
        }
    }
    for (size_t i = 0; i < N; i++)
        if (client[i].session && !client[i].closed) {
            client[i].answered = 0;
            store_session_resume(client[i].session);
        }
    for (size_t i = 0; i < N; i++)
        store_session_drop(client[i].session);
    /* However the requests meet, what they hold and the links that they walk follow their bytes. */
    fuzz_made.bytes = hub.table.bytes;
    fuzz_made.steps = hub.walked;
    fuzz_expect_made(len, (struct fuzz_bound){ 64, 4096 }, (struct fuzz_bound){ N, 0 });
    /* All that was charged for waits must have been given back. */
    if (hub.table.bytes > STORE_BYTES || hub.table.n_keys > hub.table.n_entries)
        abort();
    store_hub_finish(&hub);
    return 0;
}

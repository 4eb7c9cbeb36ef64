/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_shm.c - a peer that does what it likes with the memory that it shares
 * with a connection over shm, while that reads and writes.
 *
 * The input is a list of steps: a byte that says what, and its arguments. */
#include "fuzz.h"
#include "transport/tp_shm/shm_link.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum step { PUT, WRITTEN, TAKEN, REACTOR, HEADER, READ, WRITE, TEND, STEPS };

struct input {
    const uint8_t *at;
    size_t len;
};

static void expect(bool holds)
{
    if (!holds)
        abort();
}

static uint64_t take(struct input *in, size_t bytes)
{
    uint64_t v = 0;

    if (bytes > in->len)
        bytes = in->len;
    memcpy(&v, in->at, bytes);
    in->at += bytes;
    in->len -= bytes;
    return v;
}

/* Two links of one process, which the kernel need not hand over. */
static void open_pair(struct shm_link *ours, struct shm_link *peers)
{
    struct shm_hello hello[2];
    tenrec_error err;

    expect(shm_link_init(ours, &hello[0], &err) == TENREC_OK);
    expect(shm_link_init(peers, &hello[1], &err) == TENREC_OK);
    expect(shm_link_attach(ours, &hello[1], &err) == TENREC_OK);
    expect(shm_link_attach(peers, &hello[0], &err) == TENREC_OK);
    shm_hello_close(&hello[0]);
    shm_hello_close(&hello[1]);
}

/* Raw bytes where the peer's next frame belongs. */
static void put(struct shm_link *peer, struct input *in)
{
    size_t len = (size_t)take(in, 1);

    if (len > in->len)
        len = in->len;
    shm_ring_put(&peer->outbox, 0, in->at, len);
    shm_ring_advance(&peer->outbox, len);
    in->at += len;
    in->len -= len;
}

static void move(struct shm_ring *r, enum shm_role role, struct input *in)
{
    /* Mostly a little: far away is found out at once. */
    uint64_t by = take(in, 1) % 16 ? take(in, 2) : take(in, 8);

    atomic_fetch_add(&r->header->marker[role], by);
}

static void use(struct shm_link *l, enum step step, struct input *in)
{
    unsigned char *buf = malloc(70000);
    size_t first = (size_t)take(in, 1), second = (size_t)take(in, 2);
    const struct iovec iov[2] = { { buf, first }, { buf + 256, second } };
    ssize_t n;

    expect(buf != NULL);
    memset(buf, (int)first & 3, 70000);
    n = step == READ ? shm_link_read(l, iov, 2) : shm_link_write(l, iov, 2);
    expect(n == -EAGAIN || n == -EPROTO || (n == -EMSGSIZE && step == WRITE) ||
           (n > 0 && (size_t)n <= first + second));
    free(buf);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    struct input in = { data, len };
    struct shm_link ours, peer;

    open_pair(&ours, &peer);
    while (in.len) {
        enum step step = (enum step)(take(&in, 1) % STEPS);

        switch (step) {
        case PUT:
            put(&peer, &in);
            break;
        case WRITTEN:
            move(&peer.outbox, SHM_PRODUCER, &in);
            break;
        case TAKEN:
            move(&peer.inbox, SHM_CONSUMER, &in);
            break;
        case REACTOR:
            move(&peer.reactor, take(&in, 1) % 2 ? SHM_PRODUCER : SHM_CONSUMER, &in);
            break;
        case HEADER: /* is not looked at again */
            peer.outbox.header->size = take(&in, 8);
            peer.outbox.header->mask = take(&in, 8);
            break;
        case READ:
        case WRITE:
            use(&ours, step, &in);
            break;
        case TEND:
        case STEPS:
            shm_link_tend(&ours);
            break;
        }
    }
    shm_link_finish(&ours);
    shm_link_finish(&peer);
    return 0;
}

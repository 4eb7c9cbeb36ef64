/* SPDX-License-Identifier: Apache-2.0 */
/* libfabric.c - libfabric's reliable datagrams, each answered with one.
 *
 *     libfabric_peer latency|rate|bandwidth busy|sleep shm|tcp
 *
 * A bare message is less than a call, as with UCX. */
#include "../driver.h"

#include <errno.h>
#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#define BUFFERS 128u /* posted for small messages; more than are in flight */
#define NAME_MAX_BYTES 512
#define WAIT_MS 1000

struct fabric {
    struct trial *trial;
    struct fi_info *info;
    struct fid_fabric *fabric;
    struct fid_domain *domain;
    struct fid_ep *endpoint;
    struct fid_cq *sent_queue, *queue;
    struct fid_av *addresses;
    fi_addr_t peer;
    size_t under_way; /* sends without a completion yet */
    unsigned char (*small)[PAIR_SMALL];
    unsigned char *data; /* sent by the caller; the callee's receive buffer */
    struct fi_context2 context[BUFFERS + 1];
};

static void must(ssize_t e, const char *what)
{
    if (!e)
        return;
    fprintf(stderr, "bench: libfabric: %s: %s\n", what, fi_strerror((int)-e));
    _exit(1);
}

static void queue_failed(struct fid_cq *q)
{
    struct fi_cq_err_entry e = { 0 };

    fi_cq_readerr(q, &e, 0);
    must(-e.err, "completion");
}

static void see_sent(struct fabric *f)
{
    struct fi_cq_msg_entry e[8];
    ssize_t k = fi_cq_read(f->sent_queue, e, 8);

    if (k > 0)
        f->under_way -= (size_t)k;
    else if (k != -FI_EAGAIN)
        queue_failed(f->sent_queue);
}

/* Small messages are injected, without a completion. */
static void post(struct fabric *f, const void *p, size_t n)
{
    bool inject = n <= f->info->tx_attr->inject_size;
    ssize_t e;

    while ((e = inject ? fi_inject(f->endpoint, p, n, f->peer)
                       : fi_send(f->endpoint, p, n, NULL, f->peer, &f->context[BUFFERS])) ==
           -FI_EAGAIN) {
        see_sent(f);
        fi_cq_read(f->queue, NULL, 0);
    }
    must(e, "send");
    f->under_way += !inject;
}

static void await(struct fabric *f, void *p, size_t n, struct fi_context2 *context)
{
    ssize_t e;

    while ((e = fi_recv(f->endpoint, p, n, NULL, FI_ADDR_UNSPEC, context)) == -FI_EAGAIN)
        see_sent(f);
    must(e, "receive");
}

static void await_small(struct fabric *f, struct fi_context2 *context)
{
    await(f, f->small[context - f->context], PAIR_SMALL, context);
}

/* Waits for at least one message. */
static size_t take(struct fabric *f, struct fi_cq_msg_entry *ret, size_t room)
{
    for (;;) {
        ssize_t k;

        if (f->under_way)
            see_sent(f);
        k = fi_cq_read(f->queue, ret, room);
        if (k == -FI_EAGAIN && !f->trial->busy && !f->under_way)
            k = fi_cq_sread(f->queue, ret, room, NULL, WAIT_MS);
        if (k > 0)
            return (size_t)k;
        if (k != -FI_EAGAIN)
            queue_failed(f->queue);
        if (f->trial->busy)
            pair_relax();
    }
}

/* ---- both sides ------------------------------------------------------------------------ */

static struct fi_info *find(const struct trial *t)
{
    bool tcp = !strcmp(t->via, "tcp");
    struct fi_info *hints = fi_allocinfo(), *found;

    if (!hints)
        pair_die("fi_allocinfo");
    hints->caps = FI_MSG;
    hints->mode = FI_CONTEXT | FI_CONTEXT2;
    hints->ep_attr->type = FI_EP_RDM;
    hints->domain_attr->mr_mode = FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
    hints->domain_attr->threading = FI_THREAD_DOMAIN;
    hints->domain_attr->resource_mgmt = FI_RM_ENABLED;
    /* Before version 1.18 the tcp provider itself has no reliable datagrams. */
    hints->fabric_attr->prov_name = strdup(tcp ? "tcp;ofi_rxm" : "shm");
    must(fi_getinfo(FI_VERSION(1, 17), tcp ? "127.0.0.1" : NULL, NULL, tcp ? FI_SOURCE : 0, hints,
                    &found),
         "fi_getinfo");
    return found;
}

static void open_queue(struct fabric *f, struct fid_cq **ret, bool waits)
{
    struct fi_cq_attr a = { .format = FI_CQ_FORMAT_MSG,
                            .wait_obj = waits ? FI_WAIT_UNSPEC : FI_WAIT_NONE,
                            .size = 1024 };

    must(fi_cq_open(f->domain, &a, ret, NULL), "fi_cq_open");
}

/* The provider's own name for its memory is the number of the process, which finds what a
 * killed process of that number has left. */
static void name_memory(struct fabric *f)
{
    unsigned long long number;
    char name[NAME_MAX_BYTES];

    if (getrandom(&number, sizeof number, 0) != (ssize_t)sizeof number)
        pair_die("getrandom");
    snprintf(name, sizeof name, "fi_shm://tenrec-bench-%llx", number);
    must(fi_setname(&f->endpoint->fid, name, strlen(name) + 1), "fi_setname");
}

static void connect_to_other(struct fabric *f)
{
    char own[NAME_MAX_BYTES] = { 0 }, other[NAME_MAX_BYTES];
    size_t n = sizeof own;

    must(fi_getname(&f->endpoint->fid, own, &n), "fi_getname");
    driver_say(f->trial, own, sizeof own);
    driver_hear(f->trial, other, sizeof other);
    errno = EHOSTUNREACH;
    if (fi_av_insert(f->addresses, other, 1, &f->peer, 0, NULL) != 1)
        pair_die("libfabric: fi_av_insert");
}

static struct fabric *make(struct trial *t)
{
    struct fi_av_attr av = { .type = FI_AV_TABLE, .count = 4 };
    struct fabric *f = calloc(1, sizeof *f);

    if (!f)
        pair_die("calloc");
    f->trial = t;
    f->small = pair_memory(BUFFERS * PAIR_SMALL, false);
    f->data = pair_memory(t->size, false);
    f->info = find(t);
    must(fi_fabric(f->info->fabric_attr, &f->fabric, NULL), "fi_fabric");
    must(fi_domain(f->fabric, f->info, &f->domain, NULL), "fi_domain");
    open_queue(f, &f->queue, !t->busy);
    open_queue(f, &f->sent_queue, false);
    must(fi_av_open(f->domain, &av, &f->addresses, NULL), "fi_av_open");
    must(fi_endpoint(f->domain, f->info, &f->endpoint, NULL), "fi_endpoint");
    if (!strcmp(t->via, "shm"))
        name_memory(f);
    must(fi_ep_bind(f->endpoint, &f->addresses->fid, 0), "fi_ep_bind");
    must(fi_ep_bind(f->endpoint, &f->queue->fid, FI_RECV), "fi_ep_bind");
    must(fi_ep_bind(f->endpoint, &f->sent_queue->fid, FI_TRANSMIT), "fi_ep_bind");
    must(fi_enable(f->endpoint), "fi_enable");
    connect_to_other(f);
    return f;
}

/* The provider removes its memory from /dev/shm when the endpoint is closed. */
static void leave(struct fabric *f)
{
    while (f->under_way)
        see_sent(f);
    must(fi_close(&f->endpoint->fid), "fi_close");
}

static void post_small_buffers(struct fabric *f)
{
    for (size_t i = 0; i < BUFFERS; i++)
        await_small(f, &f->context[i]);
}

/* Answers until a message of one byte ends the run. */
static int serve(struct trial *t)
{
    struct fabric *f = make(t);
    bool large = t->size > PAIR_SMALL, first = true;
    struct fi_cq_msg_entry e[16];

    if (large)
        await(f, f->data, t->size, &f->context[0]);
    else
        post_small_buffers(f);
    pair_write(t->fd, "", 1);
    for (;;) {
        size_t n = take(f, e, sizeof e / sizeof e[0]);

        for (size_t i = 0; i < n; i++) {
            if (e[i].len == 1) {
                leave(f);
                return 0;
            }
            if (large && first)
                pair_expect(t->peer, f->data, t->size);
            first = false;
            if (large)
                await(f, f->data, t->size, &f->context[0]);
            else
                await_small(f, e[i].op_context);
            post(f, f->small[0], PAIR_SMALL);
        }
    }
}

static void start(struct trial *t)
{
    struct fabric *f = make(t);
    char ready;

    pair_fill(f->data, t->size);
    post_small_buffers(f);
    pair_read(t->fd, &ready, 1);
    t->state = f;
}

/* Reads the available answers, and posts their buffers again. */
static size_t take_answers(struct fabric *f)
{
    struct fi_cq_msg_entry e[16];
    size_t n = take(f, e, sizeof e / sizeof e[0]);

    for (size_t i = 0; i < n; i++)
        await_small(f, e[i].op_context);
    return n;
}

static void call(struct trial *t)
{
    struct fabric *f = t->state;

    post(f, f->data, t->size);
    take_answers(f);
}

static void flood(struct trial *t, size_t calls)
{
    struct fabric *f = t->state;
    size_t posted = 0;

    for (size_t got = 0; got < calls; got += take_answers(f))
        for (; posted < calls && posted - got < PAIR_INFLIGHT; posted++)
            post(f, f->data, t->size);
}

static void end(struct trial *t)
{
    post(t->state, "", 1);
    leave(t->state);
}

#define FABRIC_WAY(name)                                                                           \
    {                                                                                              \
        .peer = "libfabric", .via = name, .modes = "latency rate bandwidth",                       \
        .progress = "busy sleep", .serve = serve, .open = start, .call = call, .flood = flood,     \
        .close = end                                                                               \
    }

int main(int argc, char **argv)
{
    const struct way ways[] = { FABRIC_WAY("shm"), FABRIC_WAY("tcp") };

    return driver_main(argc, argv, ways, sizeof ways / sizeof ways[0]);
}

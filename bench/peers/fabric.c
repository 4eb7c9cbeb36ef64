/* SPDX-License-Identifier: Apache-2.0 */
/* fabric.c - libfabric's reads and writes of remote memory.
 *
 *     fabric_peer get|put busy shm|tcp
 *
 * A put ends when its bytes are visible at the callee. */
#include "../driver.h"

#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

struct remote {
    uint64_t at, key;
};

struct fabric {
    struct fi_info *info;
    struct fid_fabric *fabric;
    struct fid_domain *domain;
    struct fid_cq *done;
    struct fid_av *addresses;
    struct fid_ep *ep;
    struct fid_mr *memory;
    fi_addr_t peer;
    struct remote remote;
    unsigned char *data;
};

static void must(long rc, const char *what)
{
    if (rc >= 0)
        return;
    fprintf(stderr, "bench: fabric: %s: %s\n", what, fi_strerror((int)-rc));
    exit(1);
}

static struct fi_info *find(const char *via)
{
    const bool tcp = !strcmp(via, "tcp");
    struct fi_info *hints = fi_allocinfo(), *ret;

    hints->caps = FI_RMA;
    hints->ep_attr->type = FI_EP_RDM;
    hints->domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_ALLOCATED | FI_MR_PROV_KEY | FI_MR_VIRT_ADDR;
    hints->fabric_attr->prov_name = strdup(tcp ? "tcp;ofi_rxm" : "shm");
    must(fi_getinfo(FI_VERSION(1, 11), tcp ? "127.0.0.1" : NULL, NULL, tcp ? FI_SOURCE : 0, hints,
                    &ret),
         "fi_getinfo");
    fi_freeinfo(hints);
    return ret;
}

static void open_endpoint(struct fabric *f, const char *via)
{
    struct fi_cq_attr cq = { .format = FI_CQ_FORMAT_CONTEXT, .wait_obj = FI_WAIT_NONE };
    struct fi_av_attr av = { .type = FI_AV_TABLE };

    f->info = find(via);
    must(fi_fabric(f->info->fabric_attr, &f->fabric, NULL), "fi_fabric");
    must(fi_domain(f->fabric, f->info, &f->domain, NULL), "fi_domain");
    must(fi_cq_open(f->domain, &cq, &f->done, NULL), "fi_cq_open");
    must(fi_av_open(f->domain, &av, &f->addresses, NULL), "fi_av_open");
    must(fi_endpoint(f->domain, f->info, &f->ep, NULL), "fi_endpoint");
    must(fi_ep_bind(f->ep, &f->done->fid, FI_TRANSMIT | FI_RECV), "fi_ep_bind");
    must(fi_ep_bind(f->ep, &f->addresses->fid, 0), "fi_ep_bind");
    must(fi_enable(f->ep), "fi_enable");
}

static void exchange(struct fabric *f, const struct trial *t)
{
    const bool virtual = f->info->domain_attr->mr_mode & FI_MR_VIRT_ADDR;
    struct remote own = { virtual ? (uintptr_t)f->data : 0, fi_mr_key(f->memory) };
    unsigned char name[512], other[512];
    size_t n = sizeof name;

    must(fi_getname(&f->ep->fid, name, &n), "fi_getname");
    driver_say(t, name, n);
    driver_hear(t, other, sizeof other);
    driver_say(t, &own, sizeof own);
    driver_hear(t, &f->remote, sizeof f->remote);
    if (fi_av_insert(f->addresses, other, 1, &f->peer, 0, NULL) != 1)
        pair_die("fi_av_insert");
}

static struct fabric *make(struct trial *t, bool fills)
{
    struct fabric *f = calloc(1, sizeof *f);

    if (!f)
        pair_die("calloc");
    f->data = pair_memory(t->size, false);
    if (fills)
        pair_fill(f->data, t->size);
    open_endpoint(f, t->via);
    must(fi_mr_reg(f->domain, f->data, t->size,
                   FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE, 0, 1, 0, &f->memory,
                   NULL),
         "fi_mr_reg");
    exchange(f, t);
    return f;
}

/* Returns true if an operation has ended. */
static bool progress(struct fabric *f)
{
    struct fi_cq_entry e;
    const ssize_t n = fi_cq_read(f->done, &e, 1);

    if (n != -FI_EAGAIN)
        must(n, "fi_cq_read");
    return n > 0;
}

static void access_data(struct fabric *f, size_t n, bool puts)
{
    struct iovec local = { f->data, n };
    struct fi_rma_iov remote = { f->remote.at, n, f->remote.key };
    void *desc = fi_mr_desc(f->memory);
    struct fi_msg_rma m = { .msg_iov = &local,
                            .desc = &desc,
                            .iov_count = 1,
                            .addr = f->peer,
                            .rma_iov = &remote,
                            .rma_iov_count = 1 };
    ssize_t rc;

    while ((rc = puts ? fi_writemsg(f->ep, &m, FI_COMPLETION | FI_DELIVERY_COMPLETE)
                      : fi_readmsg(f->ep, &m, FI_COMPLETION)) == -FI_EAGAIN)
        progress(f);
    must(rc, "remote memory");
    while (!progress(f))
        pair_relax();
}

static int serve(struct trial *t)
{
    struct fabric *f = make(t, true);
    char byte;

    for (unsigned i = 0;; i++) {
        progress(f);
        if (i % 64 == 0 && recv(t->fd, &byte, 1, MSG_DONTWAIT) == 0)
            return 0;
        pair_relax();
    }
}

static void start(struct trial *t)
{
    const bool puts = !strcmp(t->mode, "put");
    struct fabric *f = make(t, puts);

    t->state = f;
    if (puts)
        access_data(f, t->size, true);
    memset(f->data, 0, t->size);
    access_data(f, t->size, false);
    pair_expect("fabric", f->data, t->size);
}

static void call(struct trial *t)
{
    access_data(t->state, t->size, !strcmp(t->mode, "put"));
}

static void end(struct trial *t)
{
    shutdown(t->fd, SHUT_WR);
}

#define FABRIC_WAY(name)                                                                           \
    {                                                                                              \
        .peer = "fabric", .via = name, .modes = "get put", .progress = "busy", .serve = serve,     \
        .open = start, .call = call, .close = end                                                  \
    }

int main(int argc, char **argv)
{
    const struct way ways[] = { FABRIC_WAY("shm"), FABRIC_WAY("tcp") };

    return driver_main(argc, argv, ways, sizeof ways / sizeof ways[0]);
}

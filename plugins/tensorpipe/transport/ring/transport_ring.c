/* SPDX-License-Identifier: Apache-2.0 */
/* transport_ring.c - the peers that can share rings, and how connections begin.
 *
 * A connection begins on a Unix socket, over which the caller sends the memory
 * (ring_setup.h). The domain holds all that must be equal for that to work: the
 * boot of the machine, the place of the socket, and the user with the namespace of his
 * number, for others are refused. The place is the network namespace, which abstract
 * names live in, or a folder that both have, whatever its path. */
#include "transport/ring/transport_ring.h"
#include "endpoint.h"
#include "transport/ring/ring.h"
#include "transport/ring/ring_medium.h"
#include "transport/transport_local.h"

#include <errno.h>
#include <unistd.h>

#define RETRY_NS 5000000u /* a listener that is behind with accepting */

static bool ring_domain_at(const char *address, char buf[TRANSPORT_DOMAIN_MAX])
{
    char boot[LOCALITY_PART_MAX], user[LOCALITY_PART_MAX];

    if (!locality_boot_id(boot) || !locality_namespace("user", user))
        return false;
    snprintf(buf, TRANSPORT_DOMAIN_MAX, "2:%s_%s_%s_%u", boot, address, user, (unsigned)geteuid());
    return true;
}

static bool ring_domain(const struct tp_options *o, char buf[TRANSPORT_DOMAIN_MAX])
{
    char net[LOCALITY_PART_MAX];

    (void)o;
    *buf = '\0';
    return locality_namespace("net", net) && ring_domain_at(net, buf);
}

/* ring_folder_listen reports a missing folder. */
static bool ring_dir_domain(const struct tp_options *o, char buf[TRANSPORT_DOMAIN_MAX])
{
    char folder[LOCALITY_PART_MAX];

    *buf = '\0';
    if (!*o->shm_dir)
        return false;
    if (!locality_file(o->shm_dir, folder))
        snprintf(folder, sizeof folder, "missing");
    return ring_domain_at(folder, buf);
}

static bool ring_viable(char why[], size_t cap)
{
    char domain[TRANSPORT_DOMAIN_MAX];

    if (!ring_domain(NULL, domain)) {
        snprintf(why, cap, "/proc does not show the boot id and the namespaces of this process");
        return false;
    }
    return local_memory_viable(ring_opening_most(), why, cap);
}

static struct conn *ring_admit(const struct transport *t, struct endpoint *ep, int fd,
                               const union transport_address *from)
{
    struct conn *c;
    pid_t pid;

    if (!local_peer_is_ours(ep, fd, &pid)) {
        endpoint_log(ep, TENREC_LOG_WARN,
                     "connection from process %d refused: it is another user's", (int)pid);
        close(fd);
        return NULL;
    }
    c = stream_ring_conn(ep, t, fd, from);
    if (!c)
        return NULL;
    c->pid = pid;
    if (ring_session_open(c, false))
        return c;
    conn_drop(c);
    return NULL;
}

static struct conn *ring_accept(struct endpoint *ep, int fd, const union transport_address *from)
{
    return ring_admit(&transport_ring, ep, fd, from);
}

static struct conn *ring_dir_accept(struct endpoint *ep, int fd,
                                    const union transport_address *from)
{
    return ring_admit(&transport_ring_dir, ep, fd, from);
}

static void ring_reach_again(struct reactor_timer *t)
{
    struct conn *c = CONTAINER(t, struct conn, timer);
    int e = local_reach(c, RETRY_NS);

    if (e != EAGAIN)
        stream_ring_reached(c, e);
}

/* Connecting never waits; but a listener's queue may be full. */
static int ring_dial(const struct transport *t, struct endpoint *ep,
                     const union transport_address *to, struct conn **ret)
{
    int e, fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    struct conn *c;

    if (fd < 0)
        return errno;
    c = stream_ring_conn(ep, t, fd, to);
    if (!c)
        return ENOMEM;
    stream_ring_calls(c);
    c->timer.fire = ring_reach_again;
    e = ring_session_open(c, true) ? local_reach(c, RETRY_NS) : ENOMEM;
    if (e && e != EAGAIN) {
        conn_drop(c);
        return e;
    }
    if (!e)
        stream_ring_reached(c, 0);
    *ret = c;
    return 0;
}

static int ring_connect(struct endpoint *ep, const union transport_address *to, struct conn **ret)
{
    return ring_dial(&transport_ring, ep, to, ret);
}

static int ring_dir_connect(struct endpoint *ep, const union transport_address *to,
                            struct conn **ret)
{
    union transport_address at;

    ring_folder_join(ep->options->shm_dir, to, &at);
    return ring_dial(&transport_ring_dir, ep, &at, ret);
}

const struct transport transport_ring = {
    .name = "tenrec_ring",
    .option = "shm",
    .viable = ring_viable,
    .domain = ring_domain,
    .listen = local_listen,
    .parse = local_parse,
    .accept = ring_accept,
    .connect = ring_connect,
};

const struct transport transport_ring_dir = {
    .name = "tenrec_ring_dir",
    .option = "shm",
    .fallback = true,
    .viable = ring_viable,
    .domain = ring_dir_domain,
    .listen = ring_folder_listen,
    .parse = ring_folder_parse,
    .accept = ring_dir_accept,
    .connect = ring_dir_connect,
};

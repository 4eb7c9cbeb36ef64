/* SPDX-License-Identifier: Apache-2.0 */
/* transport_shm.c - TensorPipe's shm transport: the reachable peers, and how to connect.
 *
 * A connection begins on a Unix socket with an abstract name, whose both ends
 * then exchange their rings (shm_handshake.h). */
#include "transport/tp_shm/transport_shm.h"
#include "endpoint.h"
#include "transport/conn.h"
#include "transport/locality.h"
#include "transport/tp_shm/shm_link.h"
#include "transport/tp_shm/stream_shm.h"
#include "transport/transport_local.h"

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#define RETRY_NS 1000000u

static bool shm_domain(const struct tp_options *o, char buf[TRANSPORT_DOMAIN_MAX])
{
    char boot[LOCALITY_PART_MAX], net[LOCALITY_PART_MAX];

    (void)o;
    *buf = '\0';
    if (!locality_boot_id(boot) || !locality_namespace("net", net))
        return false;
    snprintf(buf, TRANSPORT_DOMAIN_MAX, "shm:%s_%s", boot, net);
    return true;
}

static bool shm_viable(char why[], size_t cap)
{
    char domain[TRANSPORT_DOMAIN_MAX];

    if (!shm_domain(NULL, domain)) {
        snprintf(why, cap, "/proc does not tell the boot id and the network namespace");
        return false;
    }
    return local_memory_viable(SHM_INBOX_SIZE, why, cap);
}

/* Sends our rings to the peer that was reached; `e`: why it was not. */
static int shm_introduce(struct conn *c, int e)
{
    if (e == EPERM && c->pid)
        endpoint_log(
            c->ep, TENREC_LOG_WARN,
            "shm connection with process %d closed: it is another user's; with transports: [uv] "
            "it can be reached",
            (int)c->pid);
    return e ? e : stream_shm_reached(c);
}

static struct conn *shm_accept(struct endpoint *ep, int fd, const union transport_address *from)
{
    int e;
    struct conn *c = stream_shm_conn(ep, &transport_shm, fd, from, &e);

    if (c)
        e = shm_introduce(c, local_peer_is_ours(ep, fd, &c->pid) ? 0 : EPERM);
    if (!e)
        return c;
    if (e != EPERM)
        endpoint_log(ep, TENREC_LOG_WARN, "shm connection closed: %s", strerror(e));
    conn_drop(c);
    return NULL;
}

static void shm_reach_again(struct reactor_timer *t)
{
    struct conn *c = CONTAINER(t, struct conn, timer);
    int e = local_reach(c, RETRY_NS);

    if (e != EAGAIN)
        stream_shm_reached_late(c, e);
}

/* Connecting never waits; but a listener's queue may be full. What can fail does so before
 * connecting, as far as possible: libtensorpipe stops listening for good when a connection
 * ends before its hello. */
static int shm_connect(struct endpoint *ep, const union transport_address *to, struct conn **ret)
{
    int e, fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    struct conn *c;

    if (fd < 0)
        return errno;
    c = stream_shm_conn(ep, &transport_shm, fd, to, &e);
    if (!c)
        return e;
    c->timer.fire = shm_reach_again;
    e = local_reach(c, RETRY_NS);
    if (e != EAGAIN && (e = shm_introduce(c, e)) != 0) {
        conn_drop(c);
        return e;
    }
    *ret = c;
    return 0;
}

const struct transport transport_shm = {
    .name = "shm",
    .option = "shm",
    .plain = true,
    .max_frame = SHM_FRAME_MAX,
    .max_object = SHM_INBOX_SIZE,
    .advice = "this peer sends no wake-ups, so this worker polls every 0.05 to 1 ms while the peer "
              "is connected; transports: [uv] avoids that",
    .viable = shm_viable,
    .domain = shm_domain,
    .listen = local_listen,
    .parse = local_parse,
    .accept = shm_accept,
    .connect = shm_connect,
};

/* transport_shm.c - TensorPipe's shm transport: who can be reached by it, and how.
 *
 * A connection begins on a Unix socket with an abstract name, whose both ends
 * then exchange their rings (shm_handshake.h). */
#include "transport_shm.h"
#include "agent.h"
#include "carrier_shm.h"
#include "conn.h"
#include "domain.h"
#include "transport_local.h"

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

static bool shm_domain_of(char buf[TRANSPORT_DOMAIN_MAX])
{
    char boot[DOMAIN_PART_MAX], net[DOMAIN_PART_MAX];

    if (!domain_boot_id(boot) || !domain_namespace("net", net))
        return false;
    snprintf(buf, TRANSPORT_DOMAIN_MAX, "shm:%s_%s", boot, net);
    return true;
}

static void shm_domain(char buf[TRANSPORT_DOMAIN_MAX])
{
    shm_domain_of(buf);
}

static bool shm_viable(char why[], size_t cap)
{
    char domain[TRANSPORT_DOMAIN_MAX];
    int fd;

    if (!shm_domain_of(domain)) {
        snprintf(why, cap, "/proc does not tell the boot id and the network namespace");
        return false;
    }
    fd = memfd_create("tenrec_shm", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0) {
        snprintf(why, cap, "no shared memory: %s", strerror(errno));
        return false;
    }
    close(fd);
    return true;
}

/* Tells the peer of our rings. Drops the connection when that fails. */
static int introduce(struct agent *a, struct conn *c, struct shm_hello *hello)
{
    int pid = 0, e = 0;

    if (!shm_peer_is_trusted(c->source.fd, &pid)) {
        agent_log(a, TENREC_LOG_WARN,
                  "shm connection with process %d closed: it runs as another user; the option "
                  "transports: [uv] avoids shm",
                  pid);
        e = EPERM;
    }
    c->pid = pid;
    if (!e)
        e = shm_hello_send(c->source.fd, hello);
    shm_hello_close(hello);
    if (e)
        conn_drop(c);
    return e;
}

static struct conn *shm_accept(struct agent *a, int fd, const union transport_address *from)
{
    struct shm_hello hello;
    int e;
    struct conn *c = carrier_shm_conn(a, &transport_shm, fd, from, &hello, &e);

    if (!c)
        agent_log(a, TENREC_LOG_WARN, "shm connection closed: %s", strerror(e));
    return c && introduce(a, c, &hello) == 0 ? c : NULL;
}

/* Everything that can fail here is done before connecting: libtensorpipe stops
 * listening for good when a connection ends before its hello. */
static int shm_connect(struct agent *a, const union transport_address *to, struct conn **ret)
{
    int e, fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    struct shm_hello hello;
    struct conn *c;

    if (fd < 0)
        return errno;
    c = carrier_shm_conn(a, &transport_shm, fd, to, &hello, &e);
    if (!c)
        return e;
    e = local_connect(fd, to);
    if (e) {
        shm_hello_close(&hello);
        conn_drop(c);
        return e;
    }
    e = introduce(a, c, &hello);
    if (!e)
        *ret = c;
    return e;
}

const struct transport transport_shm = {
    .name = "shm",
    .option = "shm",
    .max_frame = SHM_FRAME_MAX,
    .max_object = SHM_INBOX_SIZE,
    .advice = "it wakes nobody, so this worker looks every 0.05 to 1 ms for what comes as long as "
              "that peer is connected; with transports: [uv] it need not",
    .viable = shm_viable,
    .domain = shm_domain,
    .listen = local_listen,
    .parse = local_parse,
    .accept = shm_accept,
    .connect = shm_connect,
};

/* SPDX-License-Identifier: Apache-2.0 */
#include "security/secret/secret_handover.h"

#include "core/base/clock.h"
#include "core/base/file.h"
#include "core/base/memory.h"
#include "security/secret/crypto.h"
#include "security/secret/secret.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

/* The bytes of both ways: the mark, then the secret. A program may have closed the inherited
 * descriptor and opened another file at its number. */
#define HANDOVER_MARK "TNRSEC1\n"
#define HANDOVER_MARK_LEN (sizeof HANDOVER_MARK - 1)
#define HANDOVER_MAX (HANDOVER_MARK_LEN + SECRET_MAX)
#define HANDOVER_SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL)

#define GIVER_BACKLOG 128
#define GIVER_AT_ONCE 64 /* answers of one call; the socket stays readable */
#define GIVER_RETRY_MS 5 /* between attempts to connect while its queue is full */

struct secret_giver {
    struct secret *secret;
    int fd;
    char name[SECRET_NAME_MAX];
};

/* Puts the mark and the secret into `ret`, to be wiped. Returns the length. */
static size_t handover_pack(const struct secret *s, uint8_t ret[HANDOVER_MAX])
{
    size_t len;
    const void *bytes = secret_bytes(s, &len);

    memcpy(ret, HANDOVER_MARK, HANDOVER_MARK_LEN);
    memcpy(ret + HANDOVER_MARK_LEN, bytes, len);
    return HANDOVER_MARK_LEN + len;
}

static tenrec_status handover_unpack(const uint8_t *data, size_t len, struct secret **ret,
                                     tenrec_error *err)
{
    if (len < HANDOVER_MARK_LEN + SECRET_MIN || len > HANDOVER_MAX ||
        memcmp(data, HANDOVER_MARK, HANDOVER_MARK_LEN) != 0)
        return tenrec_fail(err, TENREC_ECONFIG, "no secret of a launcher was found there");
    return secret_new(data + HANDOVER_MARK_LEN, len - HANDOVER_MARK_LEN, ret, err);
}

/* ---- the memory file ---- */

tenrec_status secret_memfd_new(const struct secret *s, int *ret_fd, tenrec_error *err)
{
    uint8_t data[HANDOVER_MAX];
    const size_t len = handover_pack(s, data);
    bool ok;
    int fd, why;

    if (memory_file_new("tenrec-secret", len, 0, &fd, err) != TENREC_OK) {
        crypto_wipe(data, sizeof data);
        tenrec_error_prefix(err, "no memory file for the group secret");
        return TENREC_EOS;
    }
    ok = write(fd, data, len) == (ssize_t)len && fchmod(fd, S_IRUSR) == 0 &&
         fcntl(fd, F_ADD_SEALS, HANDOVER_SEALS) == 0;
    why = errno;
    crypto_wipe(data, sizeof data);
    if (ok) {
        *ret_fd = fd;
        return TENREC_OK;
    }
    close(fd);
    return tenrec_fail_errno(err, TENREC_EOS, why, "cannot write the group secret to memory");
}

/* Only a memory file can have these seals, and no other process can change one that has. */
static tenrec_status memfd_read(int fd, struct secret **ret, tenrec_error *err)
{
    const int seals = fcntl(fd, F_GET_SEALS);
    uint8_t data[HANDOVER_MAX];
    struct stat found;
    tenrec_status st;
    ssize_t len;

    if (seals < 0 && errno == EBADF)
        return tenrec_fail(err, TENREC_ECONFIG, "descriptor %d is closed", fd);
    if (seals < 0 || (seals & HANDOVER_SEALS) != HANDOVER_SEALS || fstat(fd, &found) < 0 ||
        found.st_size > (off_t)sizeof data)
        return tenrec_fail(err, TENREC_ECONFIG, "descriptor %d is no sealed memory file", fd);
    len = pread(fd, data, sizeof data, 0);
    if (len < 0)
        return tenrec_fail_errno(err, TENREC_ECONFIG, errno, "cannot read descriptor %d", fd);
    st = handover_unpack(data, (size_t)len, ret, err);
    crypto_wipe(data, sizeof data);
    if (st == TENREC_OK)
        (void)fcntl(fd, F_SETFD, FD_CLOEXEC); /* programs that this one starts ask the launcher */
    return st;
}

/* ---- the socket ---- */

/* Returns the length of the address of `name` in the abstract namespace; 0: it is too long. */
static socklen_t giver_address(const char *name, struct sockaddr_un *ret)
{
    const size_t len = strlen(name);

    memset(ret, 0, sizeof *ret);
    ret->sun_family = AF_UNIX;
    if (len == 0 || len >= sizeof ret->sun_path)
        return 0;
    memcpy(ret->sun_path + 1, name, len);
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + len);
}

/* Any process may connect to an abstract name, and bind one that has become free. */
static bool giver_is_own_user(int fd)
{
    struct ucred peer;
    socklen_t len = sizeof peer;

    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) == 0 && len == sizeof peer &&
           own_user_is(peer.uid);
}

void secret_giver_derive(const char *host, uint16_t port, char ret[SECRET_NAME_MAX])
{
    const bool local = strcmp(host, "localhost") == 0;

    /* A long name of a host is cut: its launchers share the name of the socket. */
    snprintf(ret, SECRET_NAME_MAX, "tenrec/%u/%u/%.*s", (unsigned)geteuid(), (unsigned)port,
             SECRET_NAME_MAX - 40, local ? "127.0.0.1" : host);
}

static tenrec_status giver_draw_name(struct secret_giver *g, tenrec_error *err)
{
    uint8_t drawn[16];
    size_t used = (size_t)snprintf(g->name, sizeof g->name, "tenrec-");
    tenrec_status st = crypto_draw_public(drawn, sizeof drawn, err);

    for (size_t i = 0; i < sizeof drawn && st == TENREC_OK; i++)
        used += (size_t)snprintf(g->name + used, sizeof g->name - used, "%02x", drawn[i]);
    return st;
}

static tenrec_status giver_listen(struct secret_giver *g, tenrec_error *err)
{
    struct sockaddr_un address;
    const socklen_t len = giver_address(g->name, &address);

    g->fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (g->fd < 0 || bind(g->fd, (const struct sockaddr *)&address, len) < 0 ||
        listen(g->fd, GIVER_BACKLOG) < 0)
        return tenrec_fail_errno(err, errno == EADDRINUSE ? TENREC_EEXIST : TENREC_EOS, errno,
                                 "no socket to hand the group secret over by");
    return TENREC_OK;
}

tenrec_status secret_giver_open(struct secret *s, const char *name, struct secret_giver **ret,
                                tenrec_error *err)
{
    struct secret_giver *g = memory_new(1, sizeof *g);
    tenrec_status st = TENREC_OK;

    if (!g)
        return memory_fail(err);
    g->secret = secret_share(s);
    g->fd = -1;
    if (name)
        snprintf(g->name, sizeof g->name, "%s", name);
    else
        st = giver_draw_name(g, err);
    if (st == TENREC_OK)
        st = giver_listen(g, err);
    if (st == TENREC_OK)
        *ret = g;
    else
        secret_giver_close(g);
    return st;
}

void secret_giver_close(struct secret_giver *g)
{
    if (!g)
        return;
    if (g->fd >= 0)
        close(g->fd);
    secret_drop(g->secret);
    free(g);
}

int secret_giver_fd(const struct secret_giver *g)
{
    return g->fd;
}

const char *secret_giver_name(const struct secret_giver *g)
{
    return g->name;
}

void secret_giver_serve(struct secret_giver *g)
{
    uint8_t data[HANDOVER_MAX];
    const size_t len = handover_pack(g->secret, data);

    for (int i = 0; i < GIVER_AT_ONCE; i++) {
        const int fd = accept4(g->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd < 0 && (errno == EINTR || errno == ECONNABORTED))
            continue;
        if (fd < 0)
            break;
        /* The record waits in the socket for the asker after the close. */
        if (giver_is_own_user(fd))
            (void)send(fd, data, len, MSG_DONTWAIT | MSG_NOSIGNAL);
        close(fd);
    }
    crypto_wipe(data, sizeof data);
}

static tenrec_status asker_connect(int fd, const char *name, uint64_t deadline_ns,
                                   tenrec_error *err)
{
    struct sockaddr_un address;
    const socklen_t len = giver_address(name, &address);

    if (len == 0)
        return tenrec_fail(err, TENREC_ECONFIG, "'%s' is no name of a socket", name);
    while (connect(fd, (const struct sockaddr *)&address, len) < 0) {
        if (errno == EAGAIN && !clock_passed(deadline_ns)) {
            (void)poll(NULL, 0, GIVER_RETRY_MS); /* a full queue cannot be polled */
            continue;
        }
        if (errno == EAGAIN)
            return tenrec_fail(err, TENREC_ETIMEDOUT, "the launcher does not answer");
        if (errno == EINTR)
            continue;
        if (errno == ECONNREFUSED)
            return tenrec_fail(err, TENREC_ECONNECT,
                               "no launcher listens there: it has ended, or runs in another "
                               "network namespace");
        return tenrec_fail_errno(err, TENREC_ECONFIG, errno, "cannot connect to the launcher");
    }
    return TENREC_OK;
}

static tenrec_status asker_receive(int fd, uint64_t deadline_ns, struct secret **ret,
                                   tenrec_error *err)
{
    struct pollfd p = { .fd = fd, .events = POLLIN };
    uint8_t data[HANDOVER_MAX];
    tenrec_status st;
    ssize_t n;

    if (!giver_is_own_user(fd))
        return tenrec_fail(err, TENREC_ECONFIG, "a process of another user listens there");
    do {
        if (poll(&p, 1, clock_left_ms(deadline_ns)) == 0)
            return tenrec_fail(err, TENREC_ETIMEDOUT, "the launcher does not answer");
        n = recv(fd, data, sizeof data, MSG_DONTWAIT);
    } while (n < 0 && (errno == EAGAIN || errno == EINTR));
    if (n < 0 && errno != ECONNRESET)
        return tenrec_fail_errno(err, TENREC_ECONFIG, errno, "cannot hear the launcher");
    if (n <= 0)
        return tenrec_fail(err, TENREC_ECONFIG, "the launcher refuses, or has ended");
    st = handover_unpack(data, (size_t)n, ret, err);
    crypto_wipe(data, sizeof data);
    return st;
}

tenrec_status secret_ask(const char *name, uint32_t ms, struct secret **ret, tenrec_error *err)
{
    const uint64_t deadline_ns = clock_deadline_ms(ms);
    const int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    tenrec_status st;

    if (fd < 0)
        return tenrec_fail_errno(err, TENREC_ECONFIG, errno, "no socket to ask the launcher by");
    st = asker_connect(fd, name, deadline_ns, err);
    if (st == TENREC_OK)
        st = asker_receive(fd, deadline_ns, ret, err);
    close(fd);
    return st;
}

/* ---- what the environment announces ---- */

static tenrec_status inherit_descriptor(const char *text, struct secret **ret, tenrec_error *err)
{
    char *end;
    long fd;

    errno = 0;
    fd = strtol(text, &end, 10);
    if (*end || end == text || errno || fd < 0 || fd > 1 << 24)
        return tenrec_fail(err, TENREC_ECONFIG, "'%s' is no descriptor", text);
    return memfd_read((int)fd, ret, err);
}

tenrec_status secret_inherit(uint32_t ms, struct secret **ret, const char **ret_source,
                             tenrec_error *err)
{
    const char *const fd = secure_getenv(SECRET_FD_VARIABLE);
    const char *const name = secure_getenv(SECRET_SOCKET_VARIABLE);
    const char *const path = secure_getenv(SECRET_FILE_VARIABLE);
    const char *variable = NULL;
    tenrec_status st = TENREC_OK;

    *ret = NULL;
    *ret_source = "the launcher";
    if (fd && *fd) {
        variable = SECRET_FD_VARIABLE;
        st = inherit_descriptor(fd, ret, err);
    }
    if (!*ret && st != TENREC_ENOMEM && name && *name) {
        variable = SECRET_SOCKET_VARIABLE;
        st = secret_ask(name, ms, ret, err);
    }
    if (!*ret && st != TENREC_ENOMEM && path && *path) {
        variable = SECRET_FILE_VARIABLE;
        *ret_source = SECRET_FILE_VARIABLE;
        st = secret_read_file(path, ret, err);
    }
    if (st == TENREC_OK)
        return TENREC_OK;
    tenrec_error_prefix(err, "environment %s", variable);
    if (st != TENREC_ECONNECT)
        return st;
    if (err)
        err->code = TENREC_ECONFIG;
    return TENREC_ECONFIG;
}

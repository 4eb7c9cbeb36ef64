/* SPDX-License-Identifier: Apache-2.0 */
/* shm_handshake.c - tokens and descriptors over a Unix socket. */
#include "transport/tp_shm/shm_handshake.h"
#include "transport/fd_message.h"

#include <endian.h>
#include <errno.h>

_Static_assert(SHM_HELLO_FDS <= FD_MESSAGE_MAX, "a hello is one message");

int shm_hello_send(int fd, const struct shm_hello *hello)
{
    const uint32_t tokens[2] = { htole32(hello->inbox_token), htole32(hello->outbox_token) };

    return fd_message_send(fd, tokens, sizeof tokens, hello->fd, SHM_HELLO_FDS);
}

int shm_hello_receive(int fd, struct shm_hello *ret)
{
    uint32_t tokens[2];
    unsigned n_fds;
    bool is_cut;
    ssize_t n =
        fd_message_receive(fd, tokens, sizeof tokens, ret->fd, SHM_HELLO_FDS, &n_fds, &is_cut);

    if (n < 0)
        return (int)-n;
    if (n == (ssize_t)sizeof tokens && n_fds == SHM_HELLO_FDS && !is_cut) {
        ret->inbox_token = le32toh(tokens[0]);
        ret->outbox_token = le32toh(tokens[1]);
        return 0;
    }
    shm_files_close(ret->fd, n_fds < SHM_HELLO_FDS ? n_fds : SHM_HELLO_FDS);
    if (n == 0)
        return ECONNRESET;
    return is_cut || n_fds > SHM_HELLO_FDS ? EMFILE : EPROTO;
}

void shm_hello_close(struct shm_hello *hello)
{
    shm_files_close(hello->fd, SHM_HELLO_FDS);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* shm_handshake.c - tokens and descriptors over a Unix socket. */
#include "transport/tp_shm/shm_handshake.h"
#include "transport/fd_message.h"

#include <endian.h>
#include <errno.h>
#include <unistd.h>

#define FDS 4 /* headers and data of two rings */

_Static_assert(FDS <= FD_MESSAGE_MAX, "a hello is one message");

int shm_hello_send(int fd, const struct shm_hello *hello)
{
    const uint32_t tokens[2] = { htole32(hello->inbox_token), htole32(hello->outbox_token) };
    const int fds[FDS] = { hello->reactor[SHM_HEADER], hello->reactor[SHM_DATA],
                           hello->inbox[SHM_HEADER], hello->inbox[SHM_DATA] };

    return fd_message_send(fd, tokens, sizeof tokens, fds, FDS);
}

int shm_hello_receive(int fd, struct shm_hello *ret)
{
    uint32_t tokens[2];
    int fds[FDS];
    unsigned n_fds;
    bool is_cut;
    ssize_t n = fd_message_receive(fd, tokens, sizeof tokens, fds, FDS, &n_fds, &is_cut);

    if (n < 0)
        return (int)-n;
    if (n == (ssize_t)sizeof tokens && n_fds == FDS && !is_cut) {
        *ret = (struct shm_hello){ .inbox_token = le32toh(tokens[0]),
                                   .outbox_token = le32toh(tokens[1]),
                                   .reactor = { fds[0], fds[1] },
                                   .inbox = { fds[2], fds[3] } };
        return 0;
    }
    for (unsigned i = 0; i < n_fds && i < FDS; i++)
        close(fds[i]);
    if (n == 0)
        return ECONNRESET;
    return is_cut || n_fds > FDS ? EMFILE : EPROTO;
}

void shm_hello_close(struct shm_hello *hello)
{
    for (int i = 0; i < SHM_FILES; i++) {
        if (hello->reactor[i] >= 0)
            close(hello->reactor[i]);
        if (hello->inbox[i] >= 0)
            close(hello->inbox[i]);
        hello->reactor[i] = hello->inbox[i] = -1;
    }
}

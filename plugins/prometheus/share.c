/* SPDX-License-Identifier: Apache-2.0 */
#include "prometheus.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

tenrec_status share_listen(const struct sockaddr_un *at, int *ret, tenrec_error *err)
{
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    if (fd < 0)
        return tenrec_fail_errno(err, TENREC_EOS, errno, "cannot make a socket");
    unlink(at->sun_path); /* of a former process with our number */
    if (bind(fd, (const struct sockaddr *)at, sizeof *at) == 0 && listen(fd, 16) == 0) {
        *ret = fd;
        return TENREC_OK;
    }
    tenrec_fail_errno(err, TENREC_EOS, errno, "cannot listen at '%s'", at->sun_path);
    close(fd);
    return TENREC_EOS;
}

static bool is_own_user(int fd)
{
    struct ucred peer;
    socklen_t len = sizeof peer;

    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) == 0 && peer.uid == geteuid();
}

static void text_send(struct tenrec_observer *self, const struct text_options *o, int fd)
{
    char *text;
    size_t len, at = 0;
    tenrec_error err;

    if (text_make(self, o, &text, &len, &err) != TENREC_OK)
        return;
    while (at < len) {
        const ssize_t n = send(fd, text + at, len - at, MSG_NOSIGNAL);

        if (n <= 0 && errno != EINTR)
            break;
        at += n > 0 ? (size_t)n : 0;
    }
    free(text);
}

void share_answer(struct tenrec_observer *self, const struct text_options *o, int listener)
{
    const struct timeval second = { .tv_sec = 1 };
    const int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);

    if (fd < 0)
        return;
    if (is_own_user(fd) && setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &second, sizeof second) == 0)
        text_send(self, o, fd);
    close(fd);
}

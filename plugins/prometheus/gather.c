/* SPDX-License-Identifier: Apache-2.0 */
#include "prometheus.h"

#include "core/base/clock.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    NEIGHBOURS_MAX = 256, /* more are counted as missing */
    TEXT_MAX = 32 << 20,  /* bytes of one process */
    READ = 64 << 10,
};

/* A text that arrives. */
struct reading {
    int fd;
    char *data;
    size_t len, room;
};

struct readings {
    struct reading v[NEIGHBOURS_MAX];
    size_t n;
    unsigned missing;
    bool no_memory;
};

static void reading_begin(void *arg, const struct sockaddr_un *at)
{
    struct readings *all = arg;
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    if (fd >= 0 && all->n < NEIGHBOURS_MAX &&
        connect(fd, (const struct sockaddr *)at, sizeof *at) == 0) {
        all->v[all->n++] = (struct reading){ .fd = fd };
        return;
    }
    if (fd >= 0 && errno == ECONNREFUSED)
        unlink(at->sun_path); /* its process has ended */
    else if (errno != ENOENT)
        all->missing++;
    if (fd >= 0)
        close(fd);
}

/* Returns false when the reading has ended; `complete` if by the end of the text. */
static bool reading_go_on(struct readings *all, struct reading *r, bool *complete)
{
    ssize_t n;

    if (r->len + READ > r->room) {
        const size_t room = r->room ? 2 * r->room : 2 * (size_t)READ;
        char *data = room <= TEXT_MAX ? realloc(r->data, room) : NULL;

        if (!data) {
            all->no_memory = all->no_memory || room <= TEXT_MAX;
            return false;
        }
        r->data = data;
        r->room = room;
    }
    n = recv(r->fd, r->data + r->len, READ, 0);
    if (n < 0)
        return errno == EAGAIN || errno == EINTR;
    r->len += (size_t)n;
    *complete = n == 0 && r->len > 0;
    return n > 0;
}

/* A reading that ends leaves its descriptor closed; without its text if that is not complete. */
static void reading_end(struct readings *all, struct reading *r, bool complete)
{
    close(r->fd);
    r->fd = -1;
    if (complete)
        return;
    all->missing++;
    free(r->data);
    r->data = NULL;
}

static void readings_wait(struct readings *all, uint64_t until_ns)
{
    struct pollfd fd[NEIGHBOURS_MAX];
    size_t open = all->n;

    while (open > 0 && !clock_passed(until_ns)) {
        for (size_t i = 0; i < all->n; i++)
            fd[i] = (struct pollfd){ .fd = all->v[i].fd, .events = POLLIN };
        if (poll(fd, (nfds_t)all->n, clock_left_ms(until_ns)) <= 0)
            continue;
        for (size_t i = 0; i < all->n; i++) {
            bool complete = false;

            if (!fd[i].revents || reading_go_on(all, &all->v[i], &complete))
                continue;
            reading_end(all, &all->v[i], complete);
            open--;
        }
    }
    for (size_t i = 0; i < all->n; i++)
        if (all->v[i].fd >= 0)
            reading_end(all, &all->v[i], false);
}

bool gather_texts(const struct neighbours *from, uint32_t timeout_ms, struct gather *ret)
{
    struct readings *all = calloc(1, sizeof *all);
    bool ok;

    *ret = (struct gather){ 0 };
    if (!all)
        return false;
    neighbours_each(from, reading_begin, all);
    ret->text = calloc(all->n + 1, sizeof *ret->text);
    readings_wait(all, ret->text ? clock_deadline_ms(timeout_ms) : 0);
    for (size_t i = 0; i < all->n && ret->text; i++)
        if (all->v[i].data)
            ret->text[ret->n++] = (struct merge_text){ all->v[i].data, all->v[i].len };
    ret->missing = all->missing;
    ok = ret->text && !all->no_memory;
    free(all);
    return ok;
}

void gather_finish(struct gather *g)
{
    for (size_t i = 0; i < g->n; i++)
        free(g->text[i].data);
    free(g->text);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "core/tensor/release_page.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdatomic.h>
#include <unistd.h>

enum { FD_PAGE, FD_LINE };

/* The holder writes the page, the owner only clears `ended`. */
struct page {
    _Atomic uint64_t ended[RELEASE_PAGE_WORDS];
    _Atomic uint64_t held[RELEASE_PAGE_WORDS]; /* arrived and not ended */
    _Atomic uint64_t left;                     /* 1: no loan arrives any more */
};

static struct page *page_of(const struct release_page *l)
{
    return (struct page *)(void *)l->page.base;
}

static uint64_t release_page_bit(unsigned slot)
{
    return UINT64_C(1) << slot % 64;
}

tenrec_status release_page_make(struct release_page *ret, int fds[RELEASE_PAGE_FDS],
                                tenrec_error *err)
{
    struct release_page l;
    int line[2];
    tenrec_status st = memfd_region_make(sizeof(struct page), REGION_WRITE, &l.page, err);

    if (st != TENREC_OK)
        return st;
    if (pipe2(line, O_CLOEXEC | O_NONBLOCK) < 0) {
        tenrec_fail_errno(err, TENREC_EOS, errno, "cannot make a pipe for shared memory");
        memfd_region_close(&l.page);
        return TENREC_EOS;
    }
    fds[FD_PAGE] = l.page.fd;
    fds[FD_LINE] = line[1];
    l.page.fd = -1;
    l.line = line[0];
    *ret = l;
    return TENREC_OK;
}

tenrec_status release_page_take(const int fds[RELEASE_PAGE_FDS], struct release_page *ret,
                                tenrec_error *err)
{
    struct release_page l;
    tenrec_status st = memfd_region_map(fds[FD_PAGE], REGION_WRITE, &l.page, err);

    if (st != TENREC_OK)
        return st;
    if (l.page.bytes < sizeof(struct page)) {
        tenrec_fail(err, TENREC_EPROTOCOL, "release page of the peer has %zu bytes, expected %zu",
                    l.page.bytes, sizeof(struct page));
        l.page.fd = -1; /* the caller's */
        memfd_region_close(&l.page);
        return TENREC_EPROTOCOL;
    }
    close(l.page.fd);
    l.page.fd = -1;
    l.line = fds[FD_LINE];
    *ret = l;
    return TENREC_OK;
}

void release_page_hold(const struct release_page *l, unsigned slot)
{
    atomic_fetch_or(&page_of(l)->held[slot / 64], release_page_bit(slot));
}

void release_page_end(const struct release_page *l, unsigned slot)
{
    struct page *page = page_of(l);

    atomic_fetch_and(&page->held[slot / 64], ~release_page_bit(slot));
    /* Release: the holder's reads of the memory are done before. */
    atomic_fetch_or_explicit(&page->ended[slot / 64], release_page_bit(slot), memory_order_release);
}

void release_page_leave(const struct release_page *l)
{
    atomic_store(&page_of(l)->left, 1);
}

uint64_t release_page_ended(const struct release_page *l, unsigned word)
{
    _Atomic uint64_t *at = &page_of(l)->ended[word];

    if (atomic_load_explicit(at, memory_order_relaxed) == 0)
        return 0;
    return atomic_exchange_explicit(at, 0, memory_order_acquire);
}

uint64_t release_page_held(const struct release_page *l, unsigned word)
{
    struct page *page = page_of(l);

    return atomic_load(&page->left) ? atomic_load(&page->held[word]) : UINT64_MAX;
}

bool release_page_holder_is_gone(const struct release_page *l)
{
    struct pollfd line = { .fd = l->line };

    return poll(&line, 1, 0) > 0 && (line.revents & (POLLHUP | POLLERR));
}

void release_page_close(struct release_page *l)
{
    if (!l->page.base)
        return;
    memfd_region_close(&l->page);
    close(l->line);
    l->line = -1;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Ledgers: what a holder says, and how its end is seen. */
#include "../testing.h"

#include <errno.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/tensor/release_page.h"

static void make_both(struct release_page *owner, struct release_page *holder)
{
    tenrec_error err;
    int fds[RELEASE_PAGE_FDS];

    assert_status(release_page_make(owner, fds, &err), &err);
    assert_status(release_page_take(fds, holder, &err), &err);
}

TEST(release_page_reports_each_ended_loan_once)
{
    struct release_page owner, holder;

    make_both(&owner, &holder);
    assert_true(release_page_ended(&owner, 1) == 0);
    release_page_hold(&holder, 65);
    release_page_hold(&holder, 127);
    assert_true(release_page_ended(&owner, 1) == 0);
    release_page_end(&holder, 65);
    release_page_end(&holder, 127);
    assert_true(release_page_ended(&owner, 1) == (UINT64_C(1) << 63 | 2));
    assert_true(release_page_ended(&owner, 1) == 0);
    assert_true(release_page_ended(&owner, 0) == 0);
    release_page_close(&holder);
    release_page_close(&owner);
    release_page_close(&owner);
}

TEST(release_page_reports_remaining_loans_when_the_holder_left)
{
    struct release_page owner, holder;

    make_both(&owner, &holder);
    release_page_hold(&holder, 3);
    release_page_hold(&holder, 4);
    assert_true(release_page_held(&owner, 0) == UINT64_MAX); /* more may be on their way */
    release_page_leave(&holder);
    assert_true(release_page_held(&owner, 0) == (1 << 3 | 1 << 4));
    release_page_end(&holder, 3);
    assert_true(release_page_held(&owner, 0) == 1 << 4);
    assert_true(release_page_held(&owner, 15) == 0);
    release_page_close(&holder);
    release_page_close(&owner);
}

TEST(release_page_tells_when_the_holder_closed)
{
    struct release_page owner, holder;

    make_both(&owner, &holder);
    assert_false(release_page_holder_is_gone(&owner));
    release_page_close(&holder);
    assert_true(release_page_holder_is_gone(&owner));
    release_page_close(&owner);
}

TEST(release_page_tells_when_the_holder_was_killed)
{
    struct release_page owner, holder;
    tenrec_error err;
    int fds[RELEASE_PAGE_FDS], status;
    pid_t child;

    assert_status(release_page_make(&owner, fds, &err), &err);
    child = fork();
    if (child == 0) {
        if (release_page_take(fds, &holder, NULL) != TENREC_OK)
            _exit(1);
        release_page_hold(&holder, 9);
        pause();
        _exit(2);
    }
    for (unsigned i = 0; i < RELEASE_PAGE_FDS; i++)
        close(fds[i]);
    assert_false(release_page_holder_is_gone(&owner));
    assert_int_equal(kill(child, SIGKILL), 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status));
    assert_true(release_page_holder_is_gone(&owner));
    release_page_close(&owner);
}

TEST(release_page_takes_no_nonsense)
{
    struct memfd_region small, writable;
    struct release_page l;
    int line[2], fds[RELEASE_PAGE_FDS];
    tenrec_error err;

    assert_int_equal(pipe(line), 0);
    fds[0] = line[0];
    fds[1] = line[1];
    assert_int_equal(release_page_take(fds, &l, &err), TENREC_EPROTOCOL);
    /* A page that no process may write. */
    assert_status(memfd_region_make(4096, REGION_READ, &small, &err), &err);
    fds[0] = small.fd;
    assert_int_equal(release_page_take(fds, &l, &err), TENREC_EPROTOCOL);
    memfd_region_close(&small);
    assert_status(memfd_region_make(4096, REGION_WRITE, &writable, &err), &err);
    fds[0] = dup(writable.fd);
    memset(writable.base, 0xff, 4096);
    assert_status(release_page_take(fds, &l, &err), &err);
    release_page_close(&l);
    memfd_region_close(&writable);
    close(line[0]);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Ledgers: what a holder says, and how its end is seen. */
#include "../testing.h"

#include <errno.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/ledger.h"

static void make_both(struct ledger *owner, struct ledger *holder)
{
    tenrec_error err;
    int fds[LEDGER_FDS];

    assert_status(ledger_make(owner, fds, &err), &err);
    assert_status(ledger_take(fds, holder, &err), &err);
}

static void ledger_tells_what_has_ended_once(void **state)
{
    struct ledger owner, holder;

    (void)state;
    make_both(&owner, &holder);
    assert_true(ledger_ended(&owner, 1) == 0);
    ledger_hold(&holder, 65);
    ledger_hold(&holder, 127);
    assert_true(ledger_ended(&owner, 1) == 0);
    ledger_end(&holder, 65);
    ledger_end(&holder, 127);
    assert_true(ledger_ended(&owner, 1) == (UINT64_C(1) << 63 | 2));
    assert_true(ledger_ended(&owner, 1) == 0);
    assert_true(ledger_ended(&owner, 0) == 0);
    ledger_close(&holder);
    ledger_close(&owner);
    ledger_close(&owner);
}

static void ledger_tells_what_is_still_held_when_the_holder_left(void **state)
{
    struct ledger owner, holder;

    (void)state;
    make_both(&owner, &holder);
    ledger_hold(&holder, 3);
    ledger_hold(&holder, 4);
    assert_true(ledger_held(&owner, 0) == UINT64_MAX); /* more may be on their way */
    ledger_leave(&holder);
    assert_true(ledger_held(&owner, 0) == (1 << 3 | 1 << 4));
    ledger_end(&holder, 3);
    assert_true(ledger_held(&owner, 0) == 1 << 4);
    assert_true(ledger_held(&owner, 15) == 0);
    ledger_close(&holder);
    ledger_close(&owner);
}

static void ledger_tells_when_the_holder_closed(void **state)
{
    struct ledger owner, holder;

    (void)state;
    make_both(&owner, &holder);
    assert_false(ledger_holder_is_gone(&owner));
    ledger_close(&holder);
    assert_true(ledger_holder_is_gone(&owner));
    ledger_close(&owner);
}

static void ledger_tells_when_the_holder_was_killed(void **state)
{
    struct ledger owner, holder;
    tenrec_error err;
    int fds[LEDGER_FDS], status;
    pid_t child;

    (void)state;
    assert_status(ledger_make(&owner, fds, &err), &err);
    child = fork();
    if (child == 0) {
        if (ledger_take(fds, &holder, NULL) != TENREC_OK)
            _exit(1);
        ledger_hold(&holder, 9);
        pause();
        _exit(2);
    }
    for (unsigned i = 0; i < LEDGER_FDS; i++)
        close(fds[i]);
    assert_false(ledger_holder_is_gone(&owner));
    assert_int_equal(kill(child, SIGKILL), 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status));
    assert_true(ledger_holder_is_gone(&owner));
    ledger_close(&owner);
}

static void ledger_takes_no_nonsense(void **state)
{
    struct region small, writable;
    struct ledger l;
    int line[2], fds[LEDGER_FDS];
    tenrec_error err;

    (void)state;
    assert_int_equal(pipe(line), 0);
    fds[0] = line[0];
    fds[1] = line[1];
    assert_int_equal(ledger_take(fds, &l, &err), TENREC_EPROTOCOL);
    /* One that nobody may write. */
    assert_status(region_make(4096, REGION_READ, &small, &err), &err);
    fds[0] = small.fd;
    assert_int_equal(ledger_take(fds, &l, &err), TENREC_EPROTOCOL);
    region_close(&small);
    assert_status(region_make(4096, REGION_WRITE, &writable, &err), &err);
    fds[0] = dup(writable.fd);
    memset(writable.base, 0xff, 4096);
    assert_status(ledger_take(fds, &l, &err), &err);
    ledger_close(&l);
    region_close(&writable);
    close(line[0]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ledger_tells_what_has_ended_once),
        cmocka_unit_test(ledger_tells_what_is_still_held_when_the_holder_left),
        cmocka_unit_test(ledger_tells_when_the_holder_closed),
        cmocka_unit_test(ledger_tells_when_the_holder_was_killed),
        cmocka_unit_test(ledger_takes_no_nonsense),
    };

    return cmocka_run_group_tests_name("ledger", tests, NULL, NULL);
}

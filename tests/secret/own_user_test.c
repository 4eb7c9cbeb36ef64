/* SPDX-License-Identifier: Apache-2.0 */
/* own_user_test.c - the numbers of users that count as ours. */
#include "security/secret/secret.h"
#include "security/secret/secret_handover.h"

#include "../testing.h"

#include <poll.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#define ASK_MS 20000
#define NAME "tenrec-own-user-test"

TEST(own_user_is_that_of_the_process)
{
    assert_false(own_user_is(geteuid() + 1));
    if (geteuid() != 65534)
        assert_true(own_user_is(geteuid()));
}

/* Runs `body` in a child within a user namespace that has a number for no user: the child's,
 * and each other, is 65534 there. */
static pid_t nameless_start(void (*body)(const int *), const int *arg)
{
    pid_t child = fork();

    if (child != 0)
        return child;
    if (unshare(CLONE_NEWUSER) != 0)
        _exit(2);
    body(arg);
    _exit(1);
}

static void nameless_end(pid_t child)
{
    int status;

    assert_int_equal(waitpid(child, &status, 0), child);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 2)
        skip(); /* no user namespaces here */
    assert_int_equal(status, 0);
}

static void nameless_compare(const int *arg)
{
    (void)arg;
    _exit(own_user_is(geteuid()) ? 1 : 0);
}

TEST(own_user_is_unknown_where_users_have_no_number)
{
    nameless_end(nameless_start(nameless_compare, NULL));
}

static void nameless_give(const int *ready)
{
    struct secret_giver *g;
    struct secret *s;
    struct pollfd p = { .events = POLLIN };

    if (secret_new("sixteen and more", 16, &s, NULL) || secret_giver_open(s, NAME, &g, NULL))
        _exit(3);
    if (write(ready[1], "r", 1) != 1)
        _exit(4);
    p.fd = secret_giver_fd(g);
    if (poll(&p, 1, ASK_MS) != 1)
        _exit(5);
    secret_giver_serve(g);
    _exit(0);
}

TEST(own_user_gets_no_secret_of_a_launcher_to_which_all_users_look_alike)
{
    struct secret *got = NULL;
    tenrec_error err;
    pid_t child;
    int ready[2];
    char byte;

    assert_int_equal(pipe(ready), 0);
    child = nameless_start(nameless_give, ready);
    close(ready[1]);
    if (read(ready[0], &byte, 1) == 1) {
        assert_int_equal(secret_ask(NAME, ASK_MS, &got, &err), TENREC_ECONFIG);
        assert_text_has(err.text, "refuses");
    }
    close(ready[0]);
    assert_null(got);
    nameless_end(child);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* forks_test.c - functions that run in the child of a fork. */
#include "../testing.h"
#include "core/base/forks.h"

#include <sys/wait.h>
#include <unistd.h>

static unsigned first_runs, second_runs, second_ran_at;

static void first_child(void)
{
    first_runs++;
}

static void second_child(void)
{
    second_runs++;
    second_ran_at = first_runs;
}

static struct fork_hook first = { .child = first_child }, second = { .child = second_child };

static int status_of(pid_t child)
{
    int status = -1;

    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(fork_hooks_run_once_in_each_child_in_their_order)
{
    const uint32_t seen = forks_seen;
    pid_t child;

    for (int i = 0; i < 2; i++) {
        forks_follow(&first);
        forks_follow(&second);
    }
    child = fork();
    if (child == 0)
        _exit(first_runs == 1 && second_runs == 1 && second_ran_at == 1 && forks_seen == seen + 1
                  ? 0
                  : 1);
    assert_int_equal(status_of(child), 0);
    assert_int_equal(first_runs, 0); /* nothing ran in the parent */
    assert_int_equal(forks_seen, seen);
}

TEST(fork_hooks_run_again_in_the_child_of_a_child)
{
    pid_t child = fork();

    if (child == 0) {
        const unsigned before = first_runs;
        const pid_t inner = fork();

        if (inner == 0)
            _exit(first_runs == before + 1 ? 0 : 1);
        _exit(status_of(inner));
    }
    assert_int_equal(status_of(child), 0);
}

int main(void)
{
    return testing_run(NULL, NULL);
}

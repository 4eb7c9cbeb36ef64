/* SPDX-License-Identifier: Apache-2.0 */
/* Links between two processes, of which one is killed; the backend and the security mode in argv.
 */
#include "../support/functions.h"
#include "../testing.h"
#include "link_support.h"

#include "../region/region_support.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

static struct tenrec_worker *w;
static pid_t other;
static struct record of_other;
static struct tenrec_link *l;

static void read_all(int fd, void *to, size_t n)
{
    assert_int_equal(recv_again(fd, to, n, MSG_WAITALL), n);
}

/* The other process: serves until it is killed, or its parent has ended. */
static int serve(int fd)
{
    struct tenrec_worker *me = alone_new("south");
    struct record r = record_of(me);
    char end;

    if (send(fd, &r, sizeof r, 0) != sizeof r || recv(fd, &r, sizeof r, MSG_WAITALL) != sizeof r)
        return 1;
    link_to(me, &r);
    functions_close_gate();
    return send(fd, "", 1, 0) != 1 || recv(fd, &end, 1, 0) != 0;
}

static char **args; /* of this process */

static void start_other(int fd)
{
    char number[16], *argv[] = { args[0], args[1], args[2], number, NULL };

    snprintf(number, sizeof number, "%d", fd);
    other = fork();
    assert_true(other >= 0);
    if (other == 0) {
        fcntl(fd, F_SETFD, 0);
        execv("/proc/self/exe", argv);
        _exit(127);
    }
}

static void open_two(void)
{
    struct record r;
    int fd[2];
    char ready;

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd), 0);
    start_other(fd[1]);
    close(fd[1]);
    w = alone_new("north");
    r = record_of(w);
    read_all(fd[0], &of_other, sizeof of_other);
    assert_int_equal(send(fd[0], &r, sizeof r, 0), sizeof r);
    read_all(fd[0], &ready, 1);
    l = link_to(w, &of_other);
}

static void kill_other(void)
{
    assert_int_equal(kill(other, SIGKILL), 0);
    assert_int_equal(waitpid(other, NULL, 0), other);
    other = -1;
}

static void close_two(void)
{
    if (other > 0)
        kill_other();
    tenrec_link_drop(l);
    alone_drop(w);
}

TEST_WITH(link_calls_another_process, open_two, close_two)
{
    functions_must_call_add(w, "south");
}

TEST_WITH(link_fails_a_call_at_once_when_its_peer_is_killed, open_two, close_two)
{
    struct tenrec_future *f;
    tenrec_error err;

    functions_must_call_add(w, "south");
    assert_status(tenrec_rpc_async(w, "south", "wait_gate", NULL, 0, NULL, &f, &err), &err);
    functions_must_call_add(w, "south");
    kill_other();
    assert_int_equal(tenrec_future_wait(f, CLUSTER_LONG_MS, &err), TENREC_EPEER_LOST);
    assert_string_equal(err.worker_name, "south");
    tenrec_future_drop(f);
    assert_int_not_equal(functions_call_add(w, "south", 1, 2, &err), TENREC_OK);
    assert_int_not_equal(err.code, TENREC_ETIMEDOUT);
}

/* The holder of a reference is dead, and so holds nothing up. */
TEST_WITH(link_region_is_revoked_after_its_peer_was_killed, open_two, close_two)
{
    struct tenrec_tensor *memory = bytes_new(1 << 20, 1);
    struct tenrec_region *r = region_of(w, memory, BOTH);
    const struct tenrec_region_ref ref = ref_of(r);
    const struct tenrec_value v = tenrec_value_region(&ref);
    struct tenrec_future *f;
    tenrec_error err;

    assert_status(tenrec_rpc_async(w, "south", "read_on", &v, 1, NULL, &f, &err), &err);
    assert_becomes(info_of(w, "region.num_transfers") > 0);
    kill_other();
    assert_status(tenrec_region_revoke(r, CLUSTER_LONG_MS, &err), &err);
    assert_int_equal(tenrec_future_wait(f, CLUSTER_LONG_MS, &err), TENREC_EPEER_LOST);
    tenrec_future_drop(f);
    tenrec_region_drop(r);
    tenrec_tensor_drop(memory);
}

int main(int argc, char **argv)
{
    static char *plain[] = { "", "tensorpipe", "none", NULL };

    args = argc > 2 ? argv : plain;
    alone_use(args[1], args[2]);
    return argc > 3 ? serve(atoi(argv[3])) : testing_run(NULL, NULL);
}

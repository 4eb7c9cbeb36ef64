/* SPDX-License-Identifier: Apache-2.0 */
/* far.c - nodes that share memory, and worker 1 in a process of its own. */
#include "far.h"

#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

const char *const far_modes[3] = { "sleep", "adaptive", "busy" };

void open_node(struct node *n, tenrec_peer id, const char *progress)
{
    node_init(n, id);
    n->options.progress = progress;
    node_share_memory(n);
    node_open(n);
}

void open_pair(struct node n[2], const char *progress)
{
    open_node(&n[0], 0, progress);
    open_node(&n[1], 1, progress);
    nodes_start(n, 2);
}

static void far_obey(struct node *n, tenrec_peer from, struct tenrec_msg *msg)
{
    if (msg->payload_len && *(const char *)msg->payload == 'k')
        keep_request(n, from, msg);
    else
        echo_request(n, from, msg);
}

static void far_leave_spare(rlim_t spare)
{
    struct rlimit limit = { 0, 0 };

    for (int fd = 0; spare; fd++) {
        spare -= fcntl(fd, F_GETFD) < 0;
        limit.rlim_cur = limit.rlim_max = (rlim_t)fd + 1;
    }
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

struct far far_open(struct node n[2], const char *progress, rlim_t spare)
{
    struct far far;
    tenrec_error err;
    int fd[2], me;
    char end;

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd), 0);
    far.pid = fork();
    me = far.pid == 0;
    far.fd = fd[0];
    close(fd[!me]);
    if (me)
        prctl(PR_SET_PDEATHSIG, SIGKILL);
    node_init(&n[!me], !me);
    open_node(&n[me], me, progress);
    n[me].on_request = me ? far_obey : NULL;
    if (me && spare)
        far_leave_spare(spare);
    if (write(fd[me], n[me].address, sizeof n[me].address) != sizeof n[me].address ||
        recv(fd[me], n[!me].address, sizeof n[!me].address, MSG_WAITALL) != sizeof n[!me].address)
        fail_msg("the other process does not tell its address");
    n[me].all[0] = n[0].member;
    n[me].all[1] = n[1].member;
    assert_int_equal(n[me].agent.ops->start(&n[me].agent, n[me].all, 2, &err), TENREC_OK);
    n[me].started = true;
    if (!me)
        return far;
    if (read(fd[1], &end, 1) < 0)
        _exit(1);
    node_close(&n[1]);
    _exit(0);
}

void far_close(struct far *far, struct node n[2])
{
    close(far->fd);
    assert_int_equal(waitpid(far->pid, NULL, 0), far->pid);
    node_close(&n[0]);
    pthread_mutex_destroy(&n[1].lock);
}

struct told {
    const char *key, *text;
    bool found;
};

static void told_compare(void *arg, const char *key, const char *value)
{
    struct told *t = arg;

    t->found |= strcmp(key, t->key) == 0 && strstr(value, t->text);
}

bool node_tells(struct node *n, const char *key, const char *text)
{
    struct told t = { key, text, false };

    n->agent.ops->debug_info(&n->agent, told_compare, &t);
    return t.found;
}

void assert_over(struct node *n, const char *transport)
{
    if (!node_tells(n, "peer.1.transport", transport))
        fail_msg("not over %s", transport);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* cma_test.c - which processes learn the addresses of a worker's memory, and may read it.
 *
 * The test fakes the kernel's answers that depend on the machine: whether Yama
 * restricts ptrace, and the owner of the process. */
#include "channel/channel.h"
#include "node.h"
#include "raw.h"
#include "wire/handshake/brochure.h"
#include "wire/handshake/identity.h"

#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#ifndef PR_SET_PTRACER
#define PR_SET_PTRACER 0x59616d61
#endif
#define YAMA "/proc/sys/kernel/yama/ptrace_scope"
#define NOBODY_NAMED 0
#define ANOTHER_PID 0x7ffffff0 /* beyond all process ids */

enum { DESCRIPTOR, REPLY, ANNOUNCE, COMPLETION, CONNECTIONS };

/* ---- the kernel ---- */

static struct {
    char scope[2];
    _Atomic uid_t user_added; /* to the user id of this process */
    _Atomic unsigned long named;
    atomic_bool named_others; /* processes that the test has not allowed */
    _Atomic pid_t allowed;
} kernel = { .scope = "0" };

int __real_prctl(int option, ...);
int __wrap_prctl(int option, unsigned long arg);

/* The library's calls have one argument behind the option at least, or none. */
int __wrap_prctl(int option, unsigned long arg)
{
    if (option == PR_GET_DUMPABLE)
        return 1;
    if (option == PR_SET_PTRACER) {
        kernel.named = arg;
        if (arg != NOBODY_NAMED && arg != (unsigned long)kernel.allowed)
            kernel.named_others = true;
    }
    return __real_prctl(option, arg, 0UL, 0UL, 0UL);
}

static FILE *fopen_or_scope(const char *path, FILE *(*really)(const char *, const char *),
                            const char *mode)
{
    return strcmp(path, YAMA) == 0 ? fmemopen(kernel.scope, 1, "r") : really(path, mode);
}

/* Which of the two the C library's header names depends on the size of offsets. */
FILE *__real_fopen(const char *path, const char *mode);
FILE *__real_fopen64(const char *path, const char *mode);
FILE *__wrap_fopen(const char *path, const char *mode);
FILE *__wrap_fopen64(const char *path, const char *mode);

FILE *__wrap_fopen(const char *path, const char *mode)
{
    return fopen_or_scope(path, __real_fopen, mode);
}

FILE *__wrap_fopen64(const char *path, const char *mode)
{
    return fopen_or_scope(path, __real_fopen64, mode);
}

uid_t __real_geteuid(void);
uid_t __wrap_geteuid(void);

uid_t __wrap_geteuid(void)
{
    return __real_geteuid() + kernel.user_added;
}

static void setup(void)
{
    kernel.scope[0] = '1';
    kernel.user_added = 0;
    kernel.named = NOBODY_NAMED;
    kernel.named_others = false;
    kernel.allowed = getpid();
}

/* ---- tracers ---- */

TEST_WITH(tracer_is_this_process_alone_while_the_kernel_is_asked, setup, NULL)
{
    char why[CMA_TEXT_MAX];

    (void)cma_viable(why, sizeof why);
    assert_false(kernel.named_others);
    assert_int_equal(kernel.named, NOBODY_NAMED);
}

TEST_WITH(tracer_is_one_process_until_released_as_often_as_named, setup, NULL)
{
    assert_true(cma_allow(getpid()));
    assert_int_equal(kernel.named, getpid());
    assert_false(cma_allow(ANOTHER_PID));
    assert_true(cma_allow(getpid()));
    cma_disallow(getpid());
    assert_int_equal(kernel.named, getpid());
    cma_disallow(ANOTHER_PID); /* was not named */
    assert_int_equal(kernel.named, getpid());
    cma_disallow(getpid());
    assert_int_equal(kernel.named, NOBODY_NAMED);
    assert_false(kernel.named_others);
}

TEST_WITH(tracer_is_another_process_once_the_first_is_released, setup, NULL)
{
    assert_true(cma_allow(getpid()));
    cma_disallow(getpid());
    kernel.allowed = ANOTHER_PID;
    assert_true(cma_allow(ANOTHER_PID));
    assert_int_equal(kernel.named, ANOTHER_PID);
    cma_disallow(ANOTHER_PID);
    assert_int_equal(kernel.named, NOBODY_NAMED);
    assert_false(kernel.named_others);
}

TEST_WITH(tracer_is_not_named_where_all_processes_may_read, setup, NULL)
{
    kernel.scope[0] = '0';
    kernel.allowed = NOBODY_NAMED;
    assert_true(cma_allow(getpid()));
    assert_true(cma_allow(ANOTHER_PID));
    cma_disallow(getpid());
    assert_false(kernel.named_others);
}

/* Peers of this process, over rings. */
TEST_WITH(tracer_is_the_peer_of_a_pipe_for_as_long_as_the_pipe, setup, NULL)
{
    char why[CMA_TEXT_MAX];
    static unsigned char data[1 << 20];
    struct call c = { .into = NULL };
    struct node n[2];

    assert_true(cma_viable(why, sizeof why));
    for (int i = 0; i < 2; i++) {
        node_init(&n[i], i);
        node_share_memory(&n[i]);
        node_open(&n[i]);
    }
    nodes_start(n, 2);
    assert_int_equal(kernel.named, NOBODY_NAMED);
    assert_int_equal(call_sync(&n[0], 1, message_of(7, "x", 1, 1, data, sizeof data), &c), 0);
    call_finish(&c);
    assert_becomes(kernel.named == (unsigned long)getpid());
    group_close(n, 2);
    assert_int_equal(kernel.named, NOBODY_NAMED);
    assert_false(kernel.named_others);
}

/* ---- addresses over TCP ---- */

static void answer_with_a_tensor(struct node *n, tenrec_peer from, struct tenrec_msg *msg)
{
    static unsigned char data[64];

    (void)from;
    answer(n, msg, message_of(TENREC_MSG_RET, NULL, 0, 1, data, sizeof data));
    msg->release(msg);
}

static void open_reader(struct node n[2])
{
    for (int i = 0; i < 2; i++) {
        node_init(&n[i], i);
        n[i].channel[0].s = "cma";
        n[i].on_request = answer_with_a_tensor;
        node_open(&n[i]);
    }
    nodes_start(n, 2);
}

/* The connections of a pipe whose caller knows the domain of channel cma, and is another user
 * before the last of them is asked for. */
static void claim_cma(const char *address, bool of_another_user, int fd[CONNECTIONS])
{
    const struct wire_transport uv = { "uv", "uv:*", NULL };
    char domain[CMA_TEXT_MAX];
    const struct wire_channel_device cpu = { { nop_text("cpu"), 0 }, domain };
    const struct wire_channel cma = {
        .name = "cma", .devices = &cpu, .n_devices = 1, .n_connections = 2
    };
    const struct wire_offer offer = { &uv, &cma, 1, 1, NULL };
    unsigned char buf[1024];
    struct answer answer;
    struct nop_bytes ids;
    tenrec_error err;
    long len;

    assert_true(cma_domain(domain));
    fd[DESCRIPTOR] = raw_connect(address);
    raw_frame(fd[DESCRIPTOR], raw_hello, sizeof raw_hello);
    raw_frame(fd[DESCRIPTOR], buf, brochure_write(buf, sizeof buf, &offer));
    len = raw_recv_frame(fd[DESCRIPTOR], buf, sizeof buf);
    assert_true(len > 0);
    assert_int_equal(answer_read(buf, (size_t)len, &answer, &err), TENREC_OK);
    assert_true(answer_find_ids(&answer, "cma", &ids));
    kernel.user_added = of_another_user;
    for (int i = REPLY; i < CONNECTIONS; i++) {
        fd[i] = raw_connect(address);
        raw_hello_requested(fd[i], i == REPLY ? answer.reply_id
                                              : nop_uint64_at(ids, (size_t)(i - ANNOUNCE)));
    }
}

/* Returns the length of the frame with the address of the answer's tensor; -1: none. */
static long announced_to(const int fd[CONNECTIONS])
{
    unsigned char message[256], frame[64];

    raw_send(fd[DESCRIPTOR], message, raw_message(message, TENREC_MSG_CALL, 1, "?", 1));
    return raw_recv_frame(fd[ANNOUNCE], frame, sizeof frame);
}

TEST_WITH(address_goes_over_tcp_to_processes_of_the_user_alone, setup, NULL)
{
    char why[CMA_TEXT_MAX];
    int fd[CONNECTIONS];
    struct node n[2];

    kernel.scope[0] = '0';
    assert_true(cma_viable(why, sizeof why));
    open_reader(n);
    for (int of_another_user = 0; of_another_user < 2; of_another_user++) {
        kernel.user_added = 0;
        claim_cma(n[1].address, of_another_user, fd);
        if (of_another_user)
            assert_int_equal(announced_to(fd), -1);
        else
            assert_in_range(announced_to(fd), 1, 64);
        for (int i = 0; i < CONNECTIONS; i++)
            close(fd[i]);
    }
    kernel.user_added = 0;
    group_close(n, 2);
}

/* ---- a listener that chose cma ---- */

/* Answers the Brochure from `fd` as a listener at `address`, a process of another user from then
 * on. */
static void choose_cma(int fd, const char *address)
{
    static struct wire_selection selection;
    const uint64_t channel_id[] = { ANNOUNCE, COMPLETION };
    const struct wire_ids ids = { .reply = REPLY, .channels = channel_id };
    char domain[CMA_TEXT_MAX];
    const struct wire_transport uv = { "uv", "uv:*", strstr(address, "://") + 3 };
    const struct wire_channel_device cpu = { { nop_text("cpu"), 0 }, domain };
    const struct wire_channel cma = {
        .name = "cma", .devices = &cpu, .n_devices = 1, .n_connections = 2
    };
    const struct wire_offer offer = { &uv, &cma, 1, 1, NULL };
    unsigned char buf[2048];
    struct brochure brochure;
    tenrec_error err;
    long len;

    assert_true(cma_domain(domain));
    assert_true(raw_recv_frame(fd, buf, sizeof buf) > 0);
    len = raw_recv_frame(fd, buf, sizeof buf);
    assert_true(len > 0);
    assert_int_equal(brochure_read(buf, (size_t)len, &brochure, &err), TENREC_OK);
    assert_int_equal(brochure_select(&brochure, &offer, &selection, &err), TENREC_OK);
    kernel.user_added = 1;
    raw_frame(fd, buf, answer_write(buf, sizeof buf, &offer, &selection, &ids, false));
}

/* One of the connections that the answer asked for. */
static void accept_requested(int listener, int fd[CONNECTIONS])
{
    unsigned char buf[HELLO_MAX(0)];
    int c = raw_accept(listener);
    long len = raw_recv_frame(c, buf, sizeof buf);
    struct hello hello;
    tenrec_error err;

    assert_true(len > 0);
    assert_int_equal(hello_read(buf, (size_t)len, &hello, &err), TENREC_OK);
    assert_in_range(hello.id, REPLY, COMPLETION);
    fd[hello.id] = c;
}

/* The first message has a tensor, and waits until the pipe is open. */
TEST_WITH(address_goes_to_no_listener_of_another_user, setup, NULL)
{
    static unsigned char data[64];
    struct call c = { .wake_fd = -1 };
    unsigned char frame[64];
    int fd[CONNECTIONS], listener;
    struct node n[2], ghost;

    kernel.scope[0] = '0';
    open_reader(n);
    node_init(&ghost, 2);
    ghost.member.token = 0; /* a plain TensorPipe peer */
    listener = raw_listen(ghost.address);
    n[0].agent.ops->member_joined(&n[0].agent, &ghost.member);
    call_start(&n[0], &c, 2, message_of(TENREC_MSG_CALL, "x", 1, 1, data, sizeof data));
    fd[DESCRIPTOR] = raw_accept(listener);
    choose_cma(fd[DESCRIPTOR], ghost.address);
    for (int i = REPLY; i < CONNECTIONS; i++)
        accept_requested(listener, fd);
    assert_call_fails(&c, TENREC_EPROTOCOL);
    assert_int_equal(raw_recv_frame(fd[ANNOUNCE], frame, sizeof frame), -1);
    for (int i = 0; i < CONNECTIONS; i++)
        close(fd[i]);
    close(listener);
    kernel.user_added = 0;
    group_close(n, 2);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "rig.h"

#include "../../support/message_hooks.h"
#include "../../testing.h"
#include "agent/agent.h"
#include "core/backend/backend.h"
#include "cuda/device.h"
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHILD "--rig-child"
#define LEFT_OVER 87 /* the child's status when something is left */

static const struct tenrec_done nobody = { NULL, NULL };

/* ---- the core's part ---- */

static void drop_tensors(void *arg, struct tenrec_msg *msg)
{
    (void)arg;
    for (uint32_t i = 0; i < msg->n_tensors; i++) {
        struct tenrec_tensor_desc *t = tenrec_msg_tensor(msg, i);
        const struct tenrec_stream s = { t->device, t->stream };

        if (t->device.kind == TENREC_CUDA && t->data)
            cuda_device_ops.memory_drop(&s, t->data);
        else
            free(t->data);
    }
}

static tenrec_status place_one(struct tenrec_tensor_desc *t, tenrec_error *err)
{
    struct tenrec_stream s = { t->target, 0 };
    tenrec_status st;

    if (t->target.kind != TENREC_CUDA) {
        t->device = (struct tenrec_device){ TENREC_CPU, 0 };
        t->data = malloc(t->bytes + 1);
        return TENREC_OK;
    }
    t->device = t->target;
    st = cuda_device_ops.stream_get(t->target.index, &s.stream, err);
    if (!st)
        st = cuda_device_ops.memory_new(&s, t->bytes ? t->bytes : 1, &t->data, err);
    t->stream = s.stream;
    return st;
}

static tenrec_status place(struct tenrec_agent *self, tenrec_peer from, struct tenrec_msg *msg,
                           tenrec_error *err)
{
    tenrec_status st = TENREC_OK;

    (void)self, (void)from;
    for (uint32_t i = 0; i < msg->n_tensors; i++)
        tenrec_msg_tensor(msg, i)->data = NULL;
    message_on_release(msg, drop_tensors, NULL);
    for (uint32_t i = 0; i < msg->n_tensors && !st; i++)
        st = place_one(tenrec_msg_tensor(msg, i), err);
    return st;
}

static void release_request(void *arg, struct tenrec_msg *response)
{
    struct tenrec_msg *request = arg;

    (void)response;
    request->release(request);
}

/* Does not wait for the device: the answer is sent in the order of the request's streams.
 * A failed send is answered with an error. */
static void answer_done(void *arg, const tenrec_error *err)
{
    struct tenrec_msg *msg = arg;

    if (!err) {
        msg->release(msg);
        return;
    }
    snprintf(msg->payload, msg->payload_len, "%s", err->text);
    msg->payload_len = strlen(msg->payload);
    ((struct tenrec_agent *)(uintptr_t)msg->reserved[0])
        ->ops->send((void *)(uintptr_t)msg->reserved[0], TENREC_ANONYMOUS, msg, nobody);
}

static void echo(struct node *n, tenrec_peer from, struct tenrec_msg *request)
{
    const int32_t *back = request->payload;
    struct tenrec_msg *response = message_new(1, request->n_tensors);
    struct tenrec_msg *failure = message_new(sizeof((tenrec_error *)0)->text, 0);

    (void)from;
    memset(response->payload, 0, 1);
    response->type = TENREC_MSG_RET;
    for (uint32_t i = 0; i < request->n_tensors; i++) {
        struct tenrec_tensor_desc *t = tenrec_msg_tensor(response, i);

        *t = *tenrec_msg_tensor(request, i);
        t->target = back[i] < 0 ? (struct tenrec_device){ TENREC_CPU, 0 }
                                : (struct tenrec_device){ TENREC_CUDA, back[i] };
    }
    response->id = failure->id = request->id;
    response->route = failure->route = request->route;
    failure->type = TENREC_MSG_EXCEPTION;
    failure->reserved[0] = (uintptr_t)&n->agent;
    message_on_release(response, release_request, request);
    n->agent.ops->send(&n->agent, TENREC_ANONYMOUS, response,
                       (struct tenrec_done){ answer_done, failure });
}

/* ---- life ---- */

static void free_channels(struct rig *r)
{
    for (size_t k = 0; k < sizeof r->channels / sizeof r->channels[0]; k++) {
        free((void *)(uintptr_t)r->channels[k].s);
        r->channels[k].s = NULL;
    }
}

static void open_node(struct rig *r, unsigned i, const struct rig_setup *setup)
{
    static const struct tenrec_device all[] = { { TENREC_CUDA, 0 }, { TENREC_CUDA, 1 } };
    char text[128], *rest = text, *one;
    struct node *n = &r->n[i];
    uint32_t k = 0, n_devices;
    const struct tenrec_device_ops *ops;
    tenrec_error err;

    node_init(n, (tenrec_peer)i);
    if (setup->transport)
        n->transport[0].s = setup->transport;
    if (setup->staging)
        n->options.cuda_staging = setup->staging;
    snprintf(text, sizeof text, "%s",
             setup->channels ? setup->channels : "cuda_xth,cuda_ipc,cuda_basic");
    while (!r->n_channels && (one = strsep(&rest, ",")) != NULL)
        r->channels[k++].s = strdup(one);
    if (!r->n_channels) {
        r->channels[k++].s = strdup("basic");
        r->n_channels = k;
    }
    n->options.channels = (struct tenrec_option_list){ r->channels, r->n_channels };
    n->host.place = place;
    n->on_request = echo;
    node_open(n);
    if (setup->devices == -1 - (int)i)
        return;
    if (n->agent.ops->devices(&n->agent, &ops, &n_devices, &err) ||
        n->agent.ops->use_devices(&n->agent, all, n_devices < 2 ? n_devices : 2, &err)) {
        fprintf(stderr, "# devices: %s\n", err.text);
        abort();
    }
}

/* Messages between the two processes. */
struct letter {
    char address[96];
};

static void exchange(struct rig *r, unsigned me)
{
    struct letter mine, theirs;
    struct node *n = &r->n[me], *other = &r->n[!me];

    memset(&mine, 0, sizeof mine);
    snprintf(mine.address, sizeof mine.address, "%s", n->address);
    if (write(r->talk, &mine, sizeof mine) != sizeof mine ||
        read(r->talk, &theirs, sizeof theirs) != sizeof theirs)
        abort();
    snprintf(other->name, sizeof other->name, "worker%u", !me);
    snprintf(other->address, sizeof other->address, "%s", theirs.address);
    other->member = (struct tenrec_member){ sizeof other->member, (tenrec_peer)!me,
                                            1000 + (uint64_t)!me, other->name, other->address };
}

static void start_apart(struct rig *r, unsigned me)
{
    struct node *n = &r->n[me];
    tenrec_error err;

    exchange(r, me);
    for (unsigned i = 0; i < 2; i++)
        n->all[i] = r->n[i].member;
    if (n->agent.ops->start(&n->agent, n->all, 2, &err))
        abort();
    n->started = true;
}

/* The last agent has freed the blocks that the library kept for the next tensor. */
static bool is_clean(const char *who)
{
    static const char *const name[] = { "pieces of device memory", "pieces of pinned memory",
                                        "opened handles", "events" };
    bool clean = true;

    for (int i = 0; i < 4; i++)
        if (fake_live((enum fake_live)i)) {
            fprintf(stderr, "# %s: %d %s are left\n", who, fake_live((enum fake_live)i), name[i]);
            clean = false;
        }
    return clean && !fake_reports();
}

static int serve(char **argv)
{
    struct rig r = { .talk = atoi(argv[2]) };
    const struct rig_setup setup = { .channels = argv[3],
                                     .transport = argv[4],
                                     .staging = strtoull(argv[5], NULL, 10),
                                     .devices = atoi(argv[6]) };
    char byte;

    fake_open(NULL);
    open_node(&r, 1, &setup);
    start_apart(&r, 1);
    /* Until the parent is done with us, or is gone. */
    while (read(r.talk, &byte, 1) < 0 && errno == EINTR)
        continue;
    node_close(&r.n[1]);
    free_channels(&r);
    return is_clean("the other process") ? 0 : LEFT_OVER;
}

void rig_child(int argc, char **argv)
{
    if (argc == 7 && strcmp(argv[1], CHILD) == 0)
        exit(serve(argv));
}

static void start_child(struct rig *r, const struct rig_setup *setup)
{
    char fd[16], staging[24], devices[16], exe[PATH_MAX];
    int pair[2];

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    snprintf(fd, sizeof fd, "%d", pair[1]);
    snprintf(staging, sizeof staging, "%llu", (unsigned long long)setup->staging);
    snprintf(devices, sizeof devices, "%d", setup->devices);
    r->child = fork();
    assert_true(r->child >= 0);
    if (r->child == 0) {
        close(pair[0]);
        if (setup->child_env)
            putenv((char *)(uintptr_t)setup->child_env);
        /* By its name: under valgrind the link itself would be valgrind. */
        execl(realpath("/proc/self/exe", exe), "rig", CHILD, fd,
              setup->channels ? setup->channels : "cuda_xth,cuda_ipc,cuda_basic",
              setup->transport ? setup->transport : "uv", staging, devices, (char *)NULL);
        _exit(127);
    }
    close(pair[1]);
    r->talk = pair[0];
}

void rig_open(struct rig *r, const struct rig_setup *setup)
{
    *r = (struct rig){ .talk = -1 };
    r->call.wake_fd = -1;
    if (setup->two_processes)
        start_child(r, setup);
    open_node(r, 0, setup);
    if (setup->two_processes) {
        start_apart(r, 0);
    } else {
        open_node(r, 1, setup);
        nodes_start(r->n, 2);
    }
}

void rig_kill(struct rig *r)
{
    kill(r->child, SIGKILL);
    waitpid(r->child, NULL, 0);
    close(r->talk);
    r->child = -1;
}

void rig_close(struct rig *r)
{
    int status = 0;

    if (r->child > 0) {
        close(r->talk); /* it goes first, so that what is under way to it ends */
        waitpid(r->child, &status, 0);
    } else if (r->child == 0) {
        node_shutdown(&r->n[1]);
    }
    node_shutdown(&r->n[0]);
    if (r->child == 0)
        node_close(&r->n[1]);
    node_close(&r->n[0]);
    free_channels(r);
    fake_close();
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    assert_true(is_clean("this process"));
}

/* ---- calls ---- */

/* The tensor that the test sends: in its own memory, ready on its own stream. */
struct sent {
    void *data[RIG_TENSORS];
    int device[RIG_TENSORS];
    unsigned n;
    bool in_use; /* when it was released */
    atomic_bool released;
};

static void sent_released(void *arg, struct tenrec_msg *msg)
{
    struct sent *s = arg;

    (void)msg;
    for (unsigned i = 0; i < s->n; i++)
        s->in_use |= s->device[i] != RIG_CPU && fake_busy(s->data[i]);
    atomic_store(&s->released, true);
}

static void sent_drop(struct sent *s)
{
    assert_becomes(atomic_load(&s->released));
    assert_false(s->in_use);
    for (unsigned i = 0; i < s->n; i++) {
        if (s->device[i] == RIG_CPU)
            free(s->data[i]);
        else
            fake_drop(s->device[i], s->data[i]);
    }
    free(s);
}

static struct tenrec_msg *make(const struct rig *r, const struct rig_tensor *t, unsigned n,
                               uint32_t seed, struct sent **ret)
{
    int32_t back[RIG_TENSORS] = { 0 };
    struct sent *s = calloc(1, sizeof *s);
    struct tenrec_msg *msg = message_of(TENREC_MSG_CALL, back, sizeof back, n, NULL, 0);

    *ret = s;
    s->n = n;
    for (unsigned i = 0; i < n; i++) {
        struct tenrec_tensor_desc *d = tenrec_msg_tensor(msg, i);

        ((int32_t *)msg->payload)[i] = t[i].back;
        s->device[i] = t[i].from;
        d->bytes = t[i].bytes;
        d->shape[0] = (int64_t)t[i].bytes;
        if (t[i].from == RIG_CPU) {
            d->data = malloc(t[i].bytes + 1);
            fake_fill_host(d->data, t[i].bytes, seed + i);
        } else {
            d->data = fake_new(t[i].from, t[i].bytes);
            d->device = (struct tenrec_device){ TENREC_CUDA, t[i].from };
            d->stream = fake_stream(t[i].from);
            if (!r->ready)
                fake_delay(t[i].from, d->stream);
            fake_fill(t[i].from, d->stream, d->data, t[i].bytes, seed + i);
            if (r->ready)
                fake_wait(t[i].from, d->stream);
        }
        if (t[i].there != RIG_CPU)
            d->target = (struct tenrec_device){ TENREC_CUDA, t[i].there };
        s->data[i] = d->data;
    }
    message_on_release(msg, sent_released, s);
    return msg;
}

static void check(const struct tenrec_msg *msg, const struct rig_tensor *t, unsigned n,
                  uint32_t seed)
{
    assert_int_equal(msg->n_tensors, n);
    for (unsigned i = 0; i < n; i++) {
        const struct tenrec_tensor_desc *d = tenrec_msg_tensor(msg, i);

        assert_int_equal(d->bytes, t[i].bytes);
        assert_int_equal(d->device.kind, t[i].back == RIG_CPU ? TENREC_CPU : TENREC_CUDA);
        if (t[i].back == RIG_CPU) {
            fake_check_host(d->data, d->bytes, seed + i);
        } else {
            assert_int_equal(d->device.index, t[i].back);
            fake_check(d->device.index, d->stream, d->data, d->bytes, seed + i);
        }
    }
}

void rig_start(struct rig *r, const struct rig_tensor *t, unsigned n, uint32_t seed)
{
    struct tenrec_msg *msg = make(r, t, n, seed, &r->sent);

    if (r->fails)
        fake_fail(r->fails, r->nth);
    call_start(&r->n[0], &r->call, 1, msg);
}

static void disarm(struct rig *r)
{
    if (r->fails)
        r->failed = !fake_fail(r->fails, 0);
    r->fails = NULL;
}

tenrec_status rig_end(struct rig *r, const struct rig_tensor *t, unsigned n, uint32_t seed,
                      tenrec_error *err)
{
    struct call *c = &r->call;
    tenrec_status st;

    assert_becomes(atomic_load(&c->done));
    disarm(r);
    st = c->status;
    if (err)
        *err = c->err;
    if (c->answer && c->answer->type == TENREC_MSG_EXCEPTION) {
        st = TENREC_EREMOTE;
        if (err)
            tenrec_fail(err, st, "%.*s", (int)c->answer->payload_len, (char *)c->answer->payload);
    } else if (c->answer) {
        check(c->answer, t, n, seed);
    }
    call_finish(c);
    sent_drop(r->sent);
    return st;
}

tenrec_status rig_try(struct rig *r, const struct rig_tensor *t, unsigned n, uint32_t seed,
                      tenrec_error *err)
{
    rig_start(r, t, n, seed);
    return rig_end(r, t, n, seed, err);
}

void rig_call(struct rig *r, const struct rig_tensor *t, unsigned n, uint32_t seed)
{
    tenrec_error err;

    if (rig_try(r, t, n, seed, &err))
        fail_msg("call: %s", err.text);
}

void rig_ping(struct rig *r)
{
    rig_call(r, NULL, 0, 0);
}

uint64_t rig_count(struct rig *r, const char *key)
{
    return node_counter(&r->n[0], key);
}

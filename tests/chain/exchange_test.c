/* SPDX-License-Identifier: Apache-2.0 */
/* exchange_test.c - two processes exchange messages with tensors over a chain that a YAML text
 * names, with the library of core alone: exchange_test NAME-OF-THE-BACKEND. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <tenrec/chain.h>
#include <tenrec/config.h>
#include <tenrec/tensor.h>
#include <unistd.h>

#define LIMIT_S 20
#define ROWS 300
#define COLUMNS 1000
#define CHECK(x)                                                                                   \
    ((x) ? (void)0 : (printf("# %s:%d: failed: %s\n", __FILE__, __LINE__, #x), exit(1)))

static const char yaml[] = "backend: %s\n"
                           "backends:\n"
                           "  tensorpipe: { plugin: tensorpipe }\n"
                           "  faulty: { plugin: faulty, wraps: tensorpipe }\n";

static struct side {
    struct tenrec_chain *chain;
    tenrec_peer me;
    pthread_mutex_t lock; /* guards the rest */
    pthread_cond_t changed;
    struct tenrec_msg *arrived;
} side = { .lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER };

static void must(tenrec_status st, const tenrec_error *err)
{
    if (st == TENREC_OK)
        return;
    printf("# worker%d: %s: %s\n", (int)side.me, tenrec_status_name(st), err->text);
    exit(1);
}

static void done(void *arg, const tenrec_error *err)
{
    (void)arg;
    if (err)
        must(err->code, err);
}

static void deliver(void *arg, tenrec_peer from, struct tenrec_msg *msg)
{
    (void)arg;
    CHECK(from == 1 - side.me);
    pthread_mutex_lock(&side.lock);
    side.arrived = msg;
    pthread_cond_signal(&side.changed);
    pthread_mutex_unlock(&side.lock);
}

static struct tenrec_msg *await(int32_t type)
{
    struct tenrec_msg *msg;

    pthread_mutex_lock(&side.lock);
    while (!side.arrived)
        pthread_cond_wait(&side.changed, &side.lock);
    msg = side.arrived;
    side.arrived = NULL;
    pthread_mutex_unlock(&side.lock);
    CHECK(msg->type == type);
    return msg;
}

/* ---- messages ------------------------------------------------------------------------ */

static struct tenrec_tensor *matrix(int32_t first)
{
    struct tenrec_tensor *t;
    tenrec_error err;

    must(tenrec_tensor_new(TENREC_INT32, 2, (int64_t[]){ ROWS, COLUMNS }, &t, &err), &err);
    for (int32_t i = 0; i < ROWS * COLUMNS; i++)
        ((int32_t *)tenrec_tensor_data(t))[i] = first + i;
    return t;
}

static void post(int32_t type, int64_t id, struct tenrec_route route, const char *text,
                 int32_t first)
{
    struct tenrec_msg *msg = tenrec_msg_new(strlen(text), 1);

    CHECK(msg);
    msg->type = type;
    msg->id = id;
    msg->route = route;
    memcpy(msg->payload, text, strlen(text));
    tenrec_msg_set_tensor(msg, 0, matrix(first));
    tenrec_chain_send(side.chain, 1 - side.me, msg, (struct tenrec_done){ done, NULL });
}

static void compare(const struct tenrec_msg *msg, int64_t id, const char *text, int32_t first)
{
    const struct tenrec_tensor_desc *d = tenrec_msg_tensor(msg, 0);
    const int32_t *v = d->data;

    CHECK(msg->id == id);
    CHECK(msg->payload_len == strlen(text) && memcmp(msg->payload, text, strlen(text)) == 0);
    CHECK(msg->n_tensors == 1 && d->ndim == 2 && d->shape[0] == ROWS && d->shape[1] == COLUMNS);
    for (int32_t i = 0; i < ROWS * COLUMNS; i++)
        CHECK(v[i] == first + i);
}

static void ask(void)
{
    for (int32_t i = 0; i < 10; i++) {
        struct tenrec_msg *msg;
        post(TENREC_MSG_CALL, 100 + i, (struct tenrec_route){ 0 }, "question", i);
        msg = await(TENREC_MSG_RET);
        compare(msg, 100 + i, "answer", -i);
        msg->release(msg);
    }
}

static void answer(void)
{
    for (int32_t i = 0; i < 10; i++) {
        struct tenrec_msg *msg = await(TENREC_MSG_CALL);
        compare(msg, 100 + i, "question", i);
        post(TENREC_MSG_RET, msg->id, msg->route, "answer", -i);
        msg->release(msg);
    }
}

/* ---- a process ------------------------------------------------------------------------ */

static void run(tenrec_peer me, int fd, const char *backend)
{
    const struct tenrec_chain_user user = { .size = sizeof user, .deliver = deliver };
    char text[sizeof yaml + 64], address[2][256] = { "", "" };
    struct tenrec_member member[2] = {
        { sizeof member[0], 0, 1, "worker0", address[0], 0 },
        { sizeof member[0], 1, 1, "worker1", address[1], 0 },
    };
    struct tenrec_chain_options *options;
    struct tenrec_config *config;
    tenrec_error err;

    alarm(LIMIT_S);
    side.me = me;
    snprintf(text, sizeof text, yaml, backend);
    must(tenrec_config_parse(text, "exchange.yaml", &config, &err), &err);
    must(tenrec_chain_options_new(config, &options, &err), &err);
    tenrec_config_drop(config);
    must(tenrec_chain_new(options, &user, &member[me], 2, &side.chain, &err), &err);
    snprintf(address[me], sizeof address[me], "%s", tenrec_chain_address(side.chain));
    CHECK(write(fd, address[me], sizeof address[me]) == sizeof address[me]);
    CHECK(recv(fd, address[1 - me], sizeof address[0], MSG_WAITALL) == sizeof address[0]);
    must(tenrec_chain_start(side.chain, member, 2, &err), &err);
    me == 0 ? ask() : answer();
    must(tenrec_chain_drain(side.chain, LIMIT_S * 1000, &err), &err);
    CHECK(write(fd, "", 1) == 1 && read(fd, text, 1) == 1); /* until the other has all */
    tenrec_chain_drop(side.chain);
    tenrec_chain_options_drop(options);
}

int main(int argc, char **argv)
{
    const char *backend = argc > 1 ? argv[1] : "tensorpipe";
    int fd[2], status = 0;
    pid_t child;

    setvbuf(stdout, NULL, _IOLBF, 0);
    CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, fd) == 0);
    child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        run(1, fd[1], backend);
        exit(0);
    }
    run(0, fd[0], backend);
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    printf("ok 1 - processes_exchange_tensors_over_%s\n1..1\n", backend);
    return 0;
}

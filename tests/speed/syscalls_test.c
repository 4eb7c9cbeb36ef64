/* SPDX-License-Identifier: Apache-2.0 */
/* syscalls_test.c uv|shm|tls - how many system calls a synchronous call takes, in
 * the caller and in the callee, once the connection exists. Some more are
 * allowed, for a timer or a reading of the clock now and then: one in twenty calls. */
#include "count.h"
#include "two.h"

#include "security/secret/secret.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define CALLS 400u
#define WARM 50u
#define FEW (CALLS / 20)
#define LARGE (64 << 20)
#define ATTEMPTS 5

static const char *transport = "uv";

static bool is_tcp(void)
{
    return !strcmp(transport, "uv");
}

static bool is_shm(void)
{
    return !strcmp(transport, "shm");
}

static bool is_tls(void)
{
    return !strcmp(transport, "tls");
}

/* Returns true if the connection has the transport that is to be counted. */
static bool is_meant(const char *used)
{
    const bool tls = !strcmp(used, "tls"), tcp = tls || !strcmp(used, "uv");

    return is_shm() ? !tcp : tcp && tls == (is_tls() || two_over_tls());
}

static tenrec_status calls(struct tenrec_worker *w, void *arg, tenrec_error *err)
{
    tenrec_status st = TENREC_OK;
    char used[32];

    (void)arg;
    for (unsigned i = 0; !st && i < WARM; i++)
        st = two_call(w, err);
    two_transport(w, used, sizeof used);
    if (!st && !is_meant(used))
        return tenrec_fail(err, TENREC_EUNSUPPORTED, "the connection uses transport '%s'", used);
    count_begin();
    for (unsigned i = 0; !st && i < CALLS; i++)
        st = two_call(w, err);
    count_end();
    return st;
}

/* One tensor, when nothing else is said on the connection. */
static tenrec_status large_call(struct tenrec_worker *w, void *arg, tenrec_error *err)
{
    struct tenrec_tensor *t;
    struct tenrec_value v;
    tenrec_status st = tenrec_tensor_new(TENREC_UINT8, 1, (int64_t[]){ LARGE }, &t, err);

    (void)arg;
    if (st)
        return st;
    memset(tenrec_tensor_data(t), 1, LARGE);
    v = tenrec_value_tensor(t);
    st = tenrec_rpc_sync(w, "worker1", "call", &v, 1, NULL, NULL, err);
    count_begin();
    if (!st)
        st = tenrec_rpc_sync(w, "worker1", "call", &v, 1, NULL, NULL, err);
    count_end();
    tenrec_tensor_drop(t);
    return st;
}

/* In a process of its own, which is traced. */
struct subject {
    const char *progress;
    two_work_fn *work;
};

static int subject(void *arg)
{
    const struct subject *s = arg;
    const struct two t = { .transport = transport, .progress = s->progress, .work = s->work };
    tenrec_error err;
    int rc = two_run(&t, &err);

    if (rc)
        fprintf(stderr, "%s\n", err.text);
    return rc ? 1 : 0;
}

/* Expected counts of one process; limits are per call, with a few calls more. */
struct expected {
    uint32_t sends, receives, vain, waits, wakes;
    bool exact; /* neither more nor less sends and receives */
};

static bool is_few(uint32_t got, uint32_t of_each)
{
    return got <= of_each * CALLS + FEW;
}

static bool is_each(uint32_t got, uint32_t of_each)
{
    return got >= of_each * CALLS && is_few(got, of_each);
}

static bool fits(const struct count_process *p, const struct expected *e)
{
    struct count_sums s = count_sum(p);
    bool (*is)(uint32_t got, uint32_t of_each) = e->exact ? is_each : is_few;

    return is(s.sends, e->sends) && is(s.receives, e->receives) && is_few(s.vain, e->vain) &&
           is_few(s.waits, e->waits) && is_few(s.wakes, e->wakes) && is_few(s.others, 0);
}

/* Other programs use the processors, too, and a worker that does not run for long may go
 * to sleep: one good run of several is enough. */
static void expect_calls(const char *progress, const struct expected e[COUNT_ROLES])
{
    struct counts c;

    for (int i = 0; i < ATTEMPTS; i++) {
        struct subject s = { progress, calls };
        int rc = count_run(subject, &s, &c);

        if (rc)
            fail_msg("exit status %d (%s)", rc, rc < 0 ? strerror(errno) : "");
        if (fits(&c.of[0], &e[0]) && fits(&c.of[1], &e[1]))
            return;
    }
    count_print(&c);
    fail_msg("%u calls took more or other system calls", CALLS);
}

/* ---- TCP ------------------------------------------------------------------------------ */

/* A spinning thread may poll in vain, this connection and others, any number of times. */
TEST_WHEN(syscalls_tcp_busy_call_sends_once_and_receives_once, is_tcp, NULL, NULL)
{
    const uint32_t any = UINT32_MAX / CALLS / 2;
    const struct expected both[] = {
        { .sends = 1, .receives = 1, .exact = true, .vain = any },
        { .sends = 1, .receives = 1, .exact = true, .vain = any },
    };

    expect_calls("busy", both);
}

/* The caller waits inside its receive; the callee's loop has other connections,
 * too, so it waits for all of them. A caller over TLS waits outside of its session, whose lock
 * other threads need to write. */
TEST_WHEN(syscalls_tcp_sleeping_call_waits_once, is_tcp, NULL, NULL)
{
    const uint32_t outside = two_over_tls();
    const struct expected both[] = {
        { .sends = 1, .receives = 1, .exact = true, .waits = outside },
        { .sends = 1, .receives = 1, .exact = true, .waits = 1 },
    };

    expect_calls("sleep", both);
}

static bool is_plain_tcp(void)
{
    return is_tcp() && !two_over_tls();
}

/* A reader that sleeps wakes for each piece: short ones are for connections on which messages wait.
 */
TEST_WHEN(syscalls_tcp_large_tensor_goes_in_long_pieces, is_plain_tcp, NULL, NULL)
{
    struct subject s = { "sleep", large_call };
    struct counts c;
    uint32_t sends = UINT32_MAX;

    for (int i = 0; i < ATTEMPTS && sends > LARGE >> 19; i++) {
        assert_int_equal(0, count_run(subject, &s, &c));
        sends = count_sum(&c.of[0]).sends;
    }
    assert_in_range(sends, 1, LARGE >> 19);
}

/* ---- TLS ------------------------------------------------------------------------------ */

/* The caller waits for its socket before it reads, since others may write while it waits. */
TEST_WHEN(syscalls_tls_sleeping_call_reads_nothing_in_vain, is_tls, NULL, NULL)
{
    const struct expected both[] = {
        { .sends = 1, .receives = 1, .exact = true, .waits = 1 },
        { .sends = 1, .receives = 1, .exact = true, .waits = 1 },
    };

    expect_calls("sleep", both);
}

/* The workers of this test have the secret, and TLS because of it. */
static void use_tls(void)
{
    static char path[] = "/tmp/tenrec_syscalls_XXXXXX";
    struct secret *secret;
    tenrec_error err;

    close(mkstemp(path));
    unlink(path);
    if (secret_draw(&secret, &err) || secret_write_file(secret, path, &err)) {
        fprintf(stderr, "%s\n", err.text);
        exit(1);
    }
    secret_drop(secret);
    setenv("TENREC_SECRET_FILE", path, 1);
    setenv("TENREC_SECURITY__MODE", "tls", 1);
}

/* ---- shared memory ---------------------------------------------------------------------- */

TEST_WHEN(syscalls_shm_busy_call_takes_none, is_shm, NULL, NULL)
{
    const struct expected both[] = { { .sends = 0 }, { .sends = 0 } };

    expect_calls("busy", both);
}

/* The caller sleeps on a futex, the callee's loop on a descriptor: waking the
 * one is a futex call, waking the other a write. An awake thread needs none. */
TEST_WHEN(syscalls_shm_sleeping_call_wakes_once_and_waits_once, is_shm, NULL, NULL)
{
    const struct expected both[] = { { .sends = 1, .waits = 1 }, { .wakes = 1, .waits = 1 } };

    expect_calls("sleep", both);
}

int main(int argc, char **argv)
{
    int failed;

    if (argc > 1)
        transport = argv[1];
    if (is_tls())
        use_tls();
    failed = testing_run(NULL, NULL);
    if (is_tls())
        unlink(getenv("TENREC_SECRET_FILE"));
    return failed;
}

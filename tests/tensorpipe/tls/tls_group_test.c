/* SPDX-License-Identifier: Apache-2.0 */
/* tls_group_test.c - workers in the mode that TENREC_TEST_MODE names, tls or mtls, and strangers at
 * their port. */
#include "../../support/tensors.h"
#include "../proof/secrets.h"

#include "../../support/authority.h"
#include "../../support/functions.h"
#include "core/backend/backend.h"
#include "raw.h"
#include "rpc/future/worker.h"
#include "security/tls/tls.h"

#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

#define HOUR_S 3600L
#define BIG (1 << 24) /* numbers of a tensor of 64 MiB */

static struct cluster group;
static uint64_t hellos;

static bool by_secret(void)
{
    return strcmp(getenv("TENREC_TEST_MODE"), "tls") == 0;
}

static bool by_certificates(void)
{
    return !by_secret();
}

static bool by_tcp(void)
{
    return strcmp(getenv("TENREC_TRANSPORTS"), "uv") == 0;
}

static bool has_tcp(void)
{
    return strstr(getenv("TENREC_TRANSPORTS"), "uv") != NULL;
}

static bool by_secret_and_tcp(void)
{
    return by_secret() && by_tcp();
}

/* ---- files ---- */

static char folder[] = "/tmp/tenrec_mtls_XXXXXX";
static const char *cert_of[2]; /* of each rank, without a suffix */
static const char *ca_of[2];
static const char *mode_of[2];

static const char *file_at(const char *name, const char *suffix)
{
    static char path[8][128];
    static unsigned next;
    char *p = path[next++ % 8];

    snprintf(p, sizeof path[0], "%s/%s%s", folder, name, suffix);
    return p;
}

static void files_make(void)
{
    struct authority ours, theirs;

    assert_non_null(mkdtemp(folder));
    ours = authority_make("ours");
    theirs = authority_make("theirs");
    authority_write(&ours, file_at("ours", ".ca"));
    authority_write(&theirs, file_at("theirs", ".ca"));
    authority_issue(&ours, "DNS:worker0", -HOUR_S, HOUR_S, file_at("worker0", ".pem"),
                    file_at("worker0", ".key"));
    authority_issue(&ours, "DNS:worker1", -HOUR_S, HOUR_S, file_at("worker1", ".pem"),
                    file_at("worker1", ".key"));
    authority_issue(&theirs, "DNS:worker1", -HOUR_S, HOUR_S, file_at("stranger", ".pem"),
                    file_at("stranger", ".key"));
    authority_issue(&ours, "DNS:worker7", -HOUR_S, HOUR_S, file_at("another", ".pem"),
                    file_at("another", ".key"));
    authority_drop(&ours);
    authority_drop(&theirs);
}

static void files_remove(void)
{
    static const char *const certs[] = { "worker0", "worker1", "stranger", "another" };

    for (size_t i = 0; i < sizeof certs / sizeof *certs; i++) {
        unlink(file_at(certs[i], ".pem"));
        unlink(file_at(certs[i], ".key"));
    }
    unlink(file_at("ours", ".ca"));
    unlink(file_at("theirs", ".ca"));
    rmdir(folder);
}

/* ---- groups ---- */

static void configure(struct tenrec_config *config, int rank)
{
    const struct {
        const char *key, *value;
    } set[] = {
        { "security.mtls.ca", file_at(ca_of[rank], ".ca") },
        { "security.mtls.cert", file_at(cert_of[rank], ".pem") },
        { "security.mtls.key", file_at(cert_of[rank], ".key") },
        { "security.mode", mode_of[rank] },
    };
    tenrec_error err;

    for (size_t i = 0; i < sizeof set / sizeof *set; i++)
        assert_status(tenrec_config_set(config, set[i].key, set[i].value, &err), &err);
}

static void open_with(enum secret_of first, enum secret_of second)
{
    for (int i = 0; i < 2; i++) {
        mode_of[i] = mode_of[i] ? mode_of[i] : getenv("TENREC_TEST_MODE");
        ca_of[i] = ca_of[i] ? ca_of[i] : "ours";
        cert_of[i] = cert_of[i] ? cert_of[i] : i ? "worker1" : "worker0";
    }
    secrets_group(&group, by_secret() ? first : NO_SECRET, by_secret() ? second : NO_SECRET);
    for (int i = 0; i < 2; i++)
        mode_of[i] = ca_of[i] = cert_of[i] = NULL;
}

static void open_group(void)
{
    open_with(OUR_SECRET, OUR_SECRET);
    functions_must_call_add(group.worker[1], "worker0");
    hellos = secrets_counter(group.worker[0], "hellos");
}

/* After each case: nothing of a stranger was parsed, and the members have not noticed. */
static void close_group(void)
{
    assert_int_equal(secrets_counter(group.worker[0], "hellos"), hellos);
    functions_must_call_add(group.worker[1], "worker0");
    functions_must_call_add(group.worker[0], "worker1");
    cluster_close(&group, TENREC_GRACEFUL);
}

/* A float32 tensor of n ones there, and their sum back. */
static void must_sum(struct tenrec_worker *from, const char *to, int64_t n)
{
    struct tenrec_tensor *t;
    struct tenrec_value arg, *sum = NULL;
    tenrec_error err;

    assert_status(tenrec_tensor_new(TENREC_FLOAT32, 1, &n, &t, &err), &err);
    for (int64_t i = 0; i < n; i++)
        ((float *)tenrec_tensor_data(t))[i] = 1;
    arg = tenrec_value_tensor(t);
    assert_status(tenrec_rpc_sync(from, to, "sum", &arg, 1, NULL, &sum, &err), &err);
    assert_true(sum->u.number == (double)n);
    tenrec_value_drop(sum);
    tenrec_tensor_drop(t);
}

TEST_WITH(members_call_and_pass_tensors, open_group, close_group)
{
    struct tenrec_worker *w = group.worker[0], *other = group.worker[1];

    assert_true(secrets_tells(w, "security", getenv("TENREC_TEST_MODE")));
    for (int64_t n = 1; n <= BIG; n *= 8)
        must_sum(w, "worker1", n);
    must_sum(other, "worker0", BIG);
    hellos = secrets_counter(w, "hellos"); /* of the connections for tensors, too */
    assert_true(secrets_tells(w, "peer.1.transport", by_tcp() ? "tls" : "tenrec_ring"));
    assert_int_equal(secrets_counter(w, "proofs_refused"), 0);
}

/* Shared memory has none. */
TEST_WITH(info_names_the_encryption_of_a_peer, open_group, close_group)
{
    const char *wanted = "TLSv1.3 TLS_AES_128_GCM_SHA256, encrypts: ";

    if (!by_tcp())
        wanted = "none";
    else if (getenv("TENREC_TEST_KERNEL_TLS"))
        wanted = "encrypts: kernel, decrypts: kernel";
    must_sum(group.worker[0], "worker1", 1);
    assert_true(secrets_tells(group.worker[0], "peer.1.encryption", wanted));
}

TEST_WHEN(address_says_that_it_is_encrypted, has_tcp, open_group, close_group)
{
    assert_memory_equal(chain_address(group.worker[0]->chain), "tls://", 6);
}

/* ---- a peer that stalls ---- */

#define WAITING 30000 /* small requests: more than sockets take */

static pthread_mutex_t hold_lock = PTHREAD_MUTEX_INITIALIZER;
static atomic_bool held;
static atomic_uint freed;

/* Keeps the loop thread of its worker, which reads nothing meanwhile. */
static tenrec_status hold(struct tenrec_call *call, void *arg, tenrec_error *err)
{
    (void)arg;
    atomic_store(&held, true);
    pthread_mutex_lock(&hold_lock);
    pthread_mutex_unlock(&hold_lock);
    return tenrec_call_return(call, NULL, err);
}

static void count_freed(void *arg, void *data)
{
    (void)arg;
    (void)data;
    atomic_fetch_add(&freed, 1);
}

static struct tenrec_future *ask_to_sum(struct tenrec_worker *w)
{
    static float data[25];
    const struct tenrec_call_options options = { .size = sizeof options, .timeout_ms = 100 };
    const int64_t n = sizeof data / sizeof *data;
    struct tenrec_tensor *t;
    struct tenrec_value arg;
    struct tenrec_future *f;
    tenrec_error err;

    assert_status(tensors_owned(data, sizeof data, TENREC_FLOAT32, &n, count_freed, NULL, &t, &err),
                  &err);
    arg = tenrec_value_tensor(t);
    assert_status(tenrec_rpc_async(w, "worker1", "sum", &arg, 1, &options, &f, &err), &err);
    tenrec_tensor_drop(t);
    return f;
}

/* Requests whose deadline has passed leave the queue, but for those that are encrypted by now: else
 * the bytes behind them would be cut. */
TEST_WHEN(bytes_stay_whole_when_requests_are_withdrawn, by_tcp, open_group, close_group)
{
    struct tenrec_worker *w = group.worker[0];
    static struct tenrec_future *f[WAITING];
    struct tenrec_future *holding;
    tenrec_error err;

    assert_status(
        tenrec_worker_register_function(group.worker[1], "hold", hold, NULL, TENREC_INLINE, &err),
        &err);
    pthread_mutex_lock(&hold_lock);
    assert_status(tenrec_rpc_async(w, "worker1", "hold", NULL, 0, NULL, &holding, &err), &err);
    assert_becomes(atomic_load(&held));
    for (unsigned i = 0; i < WAITING; i++)
        f[i] = ask_to_sum(w);
    for (unsigned i = 0; i < WAITING; i++) {
        assert_int_equal(tenrec_future_wait(f[i], CLUSTER_LONG_MS, &err), TENREC_ETIMEDOUT);
        tenrec_future_drop(f[i]);
    }

    assert_becomes(atomic_load(&freed) > WAITING / 10 * 9);
    pthread_mutex_unlock(&hold_lock);
    assert_status(tenrec_future_wait(holding, CLUSTER_LONG_MS, &err), &err);
    tenrec_future_drop(holding);
    must_sum(w, "worker1", BIG / 64);
    assert_becomes(atomic_load(&freed) == WAITING);
    assert_int_equal(secrets_counter(w, "pipes_broken"), 0);
}

/* ---- members that are refused ---- */

static void must_fail_to_call(int from, const char *why)
{
    tenrec_error err;

    assert_int_equal(
        functions_call_add(group.worker[from], from ? "worker0" : "worker1", 1, 2, &err),
        TENREC_EPERM);
    assert_text_has(err.text, why);
}

TEST_WHEN(call_fails_when_the_secrets_are_two, by_secret_and_tcp, NULL, NULL)
{
    open_with(OUR_SECRET, OTHER_SECRET);
    must_fail_to_call(0, "has another group secret");
    must_fail_to_call(1, "has another group secret");
    assert_becomes(secrets_counter(group.worker[0], "proofs_refused") == 1);
    assert_int_equal(secrets_counter(group.worker[0], "hellos"), 0);
    cluster_close(&group, TENREC_IMMEDIATE);
}

TEST_WHEN(call_fails_when_another_authority_has_signed, by_certificates, NULL, NULL)
{
    cert_of[1] = "stranger";
    open_with(OUR_SECRET, OUR_SECRET);
    must_fail_to_call(0, "certificate is refused");
    must_fail_to_call(1, "authority of this worker's certificate");
    assert_int_equal(secrets_counter(group.worker[0], "hellos"), 0);
    cluster_close(&group, TENREC_IMMEDIATE);
}

TEST_WHEN(call_fails_when_the_certificate_is_for_another_name, by_certificates, NULL, NULL)
{
    cert_of[1] = "another";
    open_with(OUR_SECRET, OUR_SECRET);
    must_fail_to_call(0, "is for 'worker7', not for 'worker1'");
    must_fail_to_call(1, "refuses");
    assert_int_equal(secrets_counter(group.worker[0], "hellos"), 0);
    cluster_close(&group, TENREC_IMMEDIATE);
}

/* Nothing is dialled in plain because the other side is plain, or the reverse. */
TEST_WHEN(call_fails_when_the_modes_are_two, by_secret_and_tcp, NULL, NULL)
{
    tenrec_error err;

    mode_of[1] = "secret";
    open_with(OUR_SECRET, OUR_SECRET);
    assert_int_equal(functions_call_add(group.worker[0], "worker1", 1, 2, &err), TENREC_ECONNECT);
    assert_text_has(err.text, "tls://");
    assert_int_equal(functions_call_add(group.worker[1], "worker0", 1, 2, &err), TENREC_ECONNECT);
    assert_text_has(err.text, "tls://");
    cluster_close(&group, TENREC_IMMEDIATE);
}

/* ---- strangers ---- */

static int connect_to(struct tenrec_worker *w)
{
    return by_hand_connect(chain_address(w->chain));
}

TEST_WITH(stranger_is_closed_when_it_speaks_plain, open_group, close_group)
{
    const uint64_t before = secrets_counter(group.worker[0], "proofs_refused");
    int fd = connect_to(group.worker[0]);

    raw_frame(fd, raw_hello, sizeof raw_hello);
    assert_true(raw_closed(fd));
    assert_becomes(secrets_counter(group.worker[0], "proofs_refused") == before + 1);
    close(fd);
}

/* The session of a stranger that speaks TLS. */
static struct tls_session *strange_session(int fd)
{
    struct secret *secret;
    struct tls *t;
    struct tls_session *s;
    tenrec_error err;

    assert_status(secret_draw(&secret, &err), &err);
    assert_status(tls_open_secret(secret, &t, &err), &err);
    assert_status(tls_session_open(t, fd, TLS_DIALLER, &s, &err), &err);
    secret_drop(secret);
    tls_drop(t);
    return s;
}

static tenrec_status strange_shake(struct tls_session *s, int fd, tenrec_error *err)
{
    struct pollfd p = { .fd = fd, .events = POLLIN };
    tenrec_status st;

    while ((st = tls_session_shake(s, err)) == TENREC_EAGAIN)
        assert_int_equal(poll(&p, 1, 20000), 1);
    return st;
}

TEST_WITH(stranger_is_refused_when_its_key_is_another, open_group, close_group)
{
    int fd = connect_to(group.worker[0]);
    struct tls_session *s = strange_session(fd);
    tenrec_error err;

    assert_int_equal(strange_shake(s, fd, &err), TENREC_EPERM);
    tls_session_close(s);
    close(fd);
}

/* A stranger that ends, or says nothing more, at each byte of its first flight. */
TEST_WITH(strangers_disturb_nobody_when_they_stop_at_any_byte, open_group, close_group)
{
    struct tls_session *s = strange_session(-1);
    const char *hello;
    size_t len;
    tenrec_error err;
    int fd;

    assert_int_equal(tls_session_shake(s, &err), TENREC_EAGAIN);
    hello = tls_session_output(s, &len);
    for (size_t cut = 0; cut < len; cut++) {
        fd = connect_to(group.worker[0]);
        raw_send(fd, hello, cut);
        close(fd);
        if (cut % 64 == 0)
            functions_must_call_add(group.worker[1], "worker0");
    }
    tls_session_close(s);
}

int main(void)
{
    int failed;

    cluster_use("tensorpipe");
    secrets_make();
    files_make();
    secrets_configure = configure;
    failed = testing_run(NULL, NULL);
    files_remove();
    secrets_remove();
    return failed;
}

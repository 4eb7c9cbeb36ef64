/* SPDX-License-Identifier: Apache-2.0 */
/* proved_group_test.c - workers that prove the group secret to each other, over the transport that
 * TENREC_TRANSPORTS names; and what they and others hear when it differs. */
#include "secrets.h"

#include "../../support/functions.h"
#include "core/backend/backend.h"
#include "raw.h"
#include "rpc/future/worker.h"
#include "transport/ring/ring.h"
#include "wire/handshake/brochure.h"
#include <stdio.h>
#include <unistd.h>

static struct cluster group;

static bool over_tcp(void)
{
    return strcmp(getenv("TENREC_TRANSPORTS"), "uv") == 0;
}

/* Over rings alone: the address of a worker is that of its ring's socket. */
static bool over_rings(void)
{
    return strcmp(getenv("TENREC_TRANSPORTS"), "shm") == 0;
}

static void open_group(void)
{
    secrets_group(&group, OUR_SECRET, OUR_SECRET);
}

static void close_group(void)
{
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

TEST_WITH(members_call_when_both_have_the_secret, open_group, close_group)
{
    struct tenrec_worker *w = group.worker[0], *other = group.worker[1];

    assert_true(secrets_tells(w, "security", "secret"));
    functions_must_call_add(w, "worker1");
    functions_must_call_add(other, "worker0");
    must_sum(w, "worker1", 16);
    must_sum(w, "worker1", 1 << 20);
    must_sum(other, "worker0", 1 << 20);
    assert_true(secrets_tells(w, "peer.1.transport", over_tcp() ? "uv" : "tenrec_ring"));
    assert_true(secrets_counter(w, "proofs") == secrets_counter(w, "hellos"));
    assert_true(secrets_counter(w, "proofs") >= 2);
    assert_int_equal(secrets_counter(w, "proofs_refused"), 0);
}

/* ---- secrets that differ ---- */

static void must_fail_to_call(struct tenrec_worker *w, const char *to, const char *why)
{
    tenrec_error err;

    assert_int_equal(functions_call_add(w, to, 1, 2, &err), TENREC_EPERM);
    assert_text_has(err.text, why);
}

TEST_WHEN(call_fails_and_both_sides_tell_why_when_one_has_no_secret, over_tcp, NULL, NULL)
{
    secrets_group(&group, NO_SECRET, OUR_SECRET);
    must_fail_to_call(group.worker[0], "worker1", "asks for a group secret; none was given");
    must_fail_to_call(group.worker[1], "worker0", "has no group secret");
    /* It hears from the other that the proof has failed, and maybe after that one's call. */
    assert_becomes(secrets_counter(group.worker[0], "proofs_refused") == 1);
    assert_int_equal(secrets_counter(group.worker[1], "proofs_refused"), 1);
    assert_int_equal(secrets_counter(group.worker[1], "hellos"), 0);
    assert_int_equal(secrets_counter(group.worker[0], "hellos"), 0);
    cluster_close(&group, TENREC_IMMEDIATE);
}

TEST(call_fails_when_the_secrets_are_two)
{
    secrets_group(&group, OTHER_SECRET, OUR_SECRET);
    must_fail_to_call(group.worker[0], "worker1", "has another group secret");
    must_fail_to_call(group.worker[1], "worker0", "has another group secret");
    assert_int_equal(secrets_counter(group.worker[0], "hellos"), 0);
    cluster_close(&group, TENREC_IMMEDIATE);
}

/* ---- a tool ---- */

static struct tenrec_worker *tool_attach(enum secret_of which)
{
    struct tenrec_config *config = cluster_config();
    struct tenrec_worker *tool;
    tenrec_error err;

    secrets_use(which);
    assert_status(tenrec_worker_new(config, &tool, &err), &err);
    tenrec_config_drop(config);
    assert_status(tenrec_worker_attach(tool, secrets_store(), CLUSTER_LONG_MS, &err), &err);
    return tool;
}

TEST_WITH(tool_calls_when_it_has_the_secret, open_group, close_group)
{
    struct tenrec_worker *tool = tool_attach(OUR_SECRET);

    functions_must_call_add(tool, "worker0");
    functions_must_call_add(tool, "worker1");
    tenrec_worker_drop(tool);
}

TEST_WITH(tool_is_refused_when_it_has_no_secret, open_group, close_group)
{
    struct tenrec_worker *tool = tool_attach(NO_SECRET);
    tenrec_error err;

    assert_true(functions_call_add(tool, "worker0", 1, 2, &err) != TENREC_OK);
    if (over_tcp())
        assert_text_has(err.text, "--secret-file");
    tenrec_worker_drop(tool);
}

/* ---- behind the proof ---- */

static void send_brochure(int fd, const char *identity)
{
    const struct wire_transport uv = { "uv", "uv:*", NULL };
    const struct wire_channel_device any = { { nop_text("cpu"), 0 }, "any" };
    const struct wire_channel basic = {
        .name = "basic", .devices = &any, .n_devices = 1, .n_connections = 1
    };
    const struct wire_offer offer = { &uv, &basic, 1, 1, identity };
    unsigned char buf[1024];

    raw_frame(fd, raw_hello, sizeof raw_hello);
    raw_frame(fd, buf, brochure_write(buf, sizeof buf, &offer));
}

/* A member that has proved to be itself claims to be another member, or none. */
TEST_WHEN(caller_is_refused_when_its_brochure_names_another_than_its_proof, over_tcp, open_group,
          close_group)
{
    const struct proof_party me = secrets_party(group.worker[1]);
    char identity[2][96];
    unsigned char buf[1024];
    tenrec_error err;

    snprintf(identity[0], sizeof identity[0], "tenrec:1:1:%llx:f",
             (unsigned long long)me.incarnation);
    snprintf(identity[1], sizeof identity[1], "tenrec:1:0:%llx:f",
             (unsigned long long)secrets_party(group.worker[0]).incarnation);
    for (int i = 0; i < 3; i++) {
        struct by_hand h = by_hand_dial(OUR_SECRET, &me, group.worker[0], 0);

        assert_status(by_hand_prove(&h, &err), &err);
        send_brochure(h.fd, i < 2 ? identity[i] : NULL);
        if (i == 0)
            assert_true(raw_recv_frame(h.fd, buf, sizeof buf) > 0);
        else
            assert_true(raw_closed(h.fd));
        by_hand_close(&h);
    }
}

/* The proof of a further connection is of that one alone: here the id is awaited. */
TEST_WHEN(connection_is_refused_when_its_proof_is_of_another_id, over_tcp, open_group, close_group)
{
    const struct proof_party me = secrets_party(group.worker[1]);
    struct by_hand first = by_hand_dial(OUR_SECRET, &me, group.worker[0], 0), h;
    unsigned char buf[1024];
    struct answer answer;
    char identity[96];
    tenrec_error err;
    uint64_t id;
    long len;

    snprintf(identity, sizeof identity, "tenrec:1:1:%llx:f", (unsigned long long)me.incarnation);
    assert_status(by_hand_prove(&first, &err), &err);
    send_brochure(first.fd, identity);
    len = raw_recv_frame(first.fd, buf, sizeof buf);
    assert_true(len > 0);
    assert_status(answer_read(buf, (size_t)len, &answer, &err), &err);
    id = answer.reply_id;
    for (int i = 0; i < 2; i++) {
        h = by_hand_dial(OUR_SECRET, &me, group.worker[0], i ? id + 1 : 0);
        assert_status(by_hand_prove(&h, &err), &err);
        raw_hello_requested(h.fd, id);
        assert_true(raw_closed(h.fd));
        by_hand_close(&h);
    }
    by_hand_close(&first);
}

/* ---- rings ---- */

static int mapped_rings(void)
{
    FILE *maps = fopen("/proc/self/maps", "re");
    char line[512];
    int n = 0;

    assert_non_null(maps);
    while (fgets(line, sizeof line, maps))
        n += strstr(line, "tenrec ring") != NULL;
    fclose(maps);
    return n;
}

TEST_WHEN(memory_is_not_mapped_when_it_comes_without_proof, over_rings, open_group, close_group)
{
    const struct proof_party me = secrets_party(group.worker[1]);
    struct by_hand h = by_hand_dial(OUR_SECRET, &me, group.worker[0], 0);
    const uint64_t before = secrets_counter(group.worker[0], "proofs_refused");
    const int rings = mapped_rings();
    unsigned char record[PROOF_RECORD_MAX];
    struct ring_end end;

    assert_int_equal(ring_setup_call(h.fd, RING_SIZE_MIN, &end), 0);
    assert_true(record_refuses(record, by_hand_read(&h, record)));
    assert_true(raw_closed(h.fd));
    assert_int_equal(mapped_rings(), rings + 1); /* ours */
    assert_int_equal(secrets_counter(group.worker[0], "proofs_refused"), before + 1);
    ring_end_close(&end);
    by_hand_close(&h);
}

TEST_WHEN(memory_is_not_mapped_when_it_comes_before_the_proof_is_accepted, over_rings, open_group,
          close_group)
{
    const struct proof_party me = secrets_party(group.worker[1]);
    struct by_hand h = by_hand_dial(OUR_SECRET, &me, group.worker[0], 0);
    const int rings = mapped_rings();
    unsigned char said[PROOF_RECORD_MAX + 64] = { 0 };
    size_t len;
    const void *out;
    tenrec_error err;

    by_hand_send(&h, SIZE_MAX);
    assert_status(by_hand_take(&h, &err), &err);
    out = proof_output(h.proof, &len);
    memcpy(said, out, len);
    raw_send(h.fd, said, len + 24); /* in one piece, as a hasty peer would */
    assert_true(raw_closed(h.fd));
    assert_int_equal(mapped_rings(), rings);
    by_hand_close(&h);
}

TEST_WHEN(ring_carries_calls_when_the_descriptors_follow_the_proof, over_rings, open_group,
          close_group)
{
    functions_must_call_add(group.worker[0], "worker1");
    assert_true(mapped_rings() > 0);
}

int main(void)
{
    int failed;

    cluster_use("tensorpipe");
    secrets_make();
    failed = testing_run(NULL, NULL);
    secrets_remove();
    return failed;
}

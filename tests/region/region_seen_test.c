/* SPDX-License-Identifier: Apache-2.0 */
/* The transfers of regions as wrappers and the metrics see them: trace around meter around limit
 * around the backend in argv. */
#include "../support/debug_info.h"
#include "../testing.h"
#include "region_support.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { N = 4096 };

static const char *transport = "inproc";
static struct cluster c;
static struct tenrec_tensor *memory, *local;
static struct tenrec_region *r;
static struct tenrec_region_ref ref;
static char lines_file[64];

static void open_with(const char *limit)
{
    char seen[256], limited[128];
    const char *extra[] = { seen, "backend=seen", "observe.durations=true", limited, NULL };
    int fd;

    snprintf(lines_file, sizeof lines_file, "/tmp/tenrec-region-seen-XXXXXX");
    fd = mkstemp(lines_file);
    assert_true(fd >= 0);
    close(fd);
    snprintf(seen, sizeof seen,
             "backends.seen={ plugin: trace, wraps: meter_%s, options: { file: %s, types: "
             "[BULK_READ, BULK_WRITE, BULK_READ_RET, BULK_WRITE_RET] } }",
             transport, lines_file);
    snprintf(limited, sizeof limited, "backends.limit_%s.options=%s", transport, limit);
    cluster_open(&c, 2, extra, NULL);
    memory = bytes_new(N, 1);
    local = bytes_new(N, 50);
    r = region_of(c.worker[1], memory, BOTH);
    ref = ref_of(r);
}

static void open_unlimited(void)
{
    open_with("{}");
}

static void close_all(void)
{
    tenrec_region_drop(r);
    tenrec_tensor_drop(memory);
    tenrec_tensor_drop(local);
    cluster_close(&c, TENREC_GRACEFUL);
    unlink(lines_file);
}

/* A read and a write of different sizes. */
static void transfer_both_ways(void)
{
    struct tenrec_bulk e[] = { reading(&ref, 0, 1000, local, 0),
                               writing(&ref, 2000, 500, local, 2000) };
    tenrec_error err;

    assert_status(transfer(c.worker[0], e, 2, &err), &err);
}

static long metered(size_t rank, const char *key)
{
    char full[128];

    snprintf(full, sizeof full, "meter_%s.peer.%zu.%s", transport, 1 - rank, key);
    return debug_info_number(c.worker[rank], full);
}

TEST_WITH(meter_counts_the_messages_of_regions, open_unlimited, close_all)
{
    transfer_both_ways();
    assert_int_equal(metered(0, "out.BULK_READ.messages"), 1);
    assert_int_equal(metered(0, "out.BULK_READ.answers"), 1);
    assert_in_range(metered(0, "in.BULK_READ_RET.bytes"), 1000, 1100);
    assert_in_range(metered(0, "out.BULK_WRITE.bytes"), 500, 700);
    assert_int_equal(metered(1, "in.BULK_WRITE.messages"), 1);
    assert_int_equal(metered(1, "out.BULK_WRITE_RET.messages"), 1);
}

TEST_WITH(small_entries_share_messages, open_unlimited, close_all)
{
    enum { ENTRIES = 130 };
    struct tenrec_bulk e[ENTRIES];
    tenrec_error err;

    for (uint64_t i = 0; i < ENTRIES; i++)
        e[i] = reading(&ref, i, 1, local, i);
    assert_status(transfer(c.worker[0], e, ENTRIES, &err), &err);
    assert_int_equal(metered(0, "out.BULK_READ.messages"), 3); /* of 64 entries at most */
    assert_true(bytes_are(local, 0, ENTRIES, 1));
}

static int lines_with(const char *words)
{
    FILE *f = fopen(lines_file, "r");
    char line[512];
    int n = 0;

    assert_non_null(f);
    while (fgets(line, sizeof line, f))
        n += strstr(line, words) != NULL;
    fclose(f);
    return n;
}

TEST_WITH(trace_writes_lines_for_the_messages_of_regions, open_unlimited, close_all)
{
    transfer_both_ways();
    assert_int_equal(lines_with("worker0/seen out BULK_READ peer 1"), 1);
    assert_int_equal(lines_with("worker0/seen in BULK_READ_RET peer 1"), 1);
    assert_int_equal(lines_with("worker1/seen in BULK_WRITE peer 0"), 1);
    assert_int_equal(lines_with("worker1/seen out BULK_WRITE_RET peer 0"), 1);
    assert_int_equal(lines_with("tensors 1 of 1000"), 2); /* sent and received */
}

/* The transfers of worker0 with that outcome, by their durations. */
static int64_t timed(const char *function, const char *error)
{
    const struct tenrec_value *calls, *one;
    struct tenrec_value *all = NULL;
    int64_t n = 0;
    tenrec_error err;

    assert_status(
        tenrec_worker_inspect(c.worker[0], NULL, TENREC_INSPECT_METRICS, NULL, &all, &err), &err);
    calls = tenrec_value_find(all, "calls");
    assert_non_null(calls);
    for (uint64_t i = 0; i < calls->n; i++) {
        one = &calls->u.array[i];
        if (strcmp(tenrec_value_find(one, "function")->u.text, function) == 0 &&
            strcmp(tenrec_value_find(one, "error")->u.text, error) == 0)
            n += tenrec_value_find(one, "count")->u.integer;
    }
    tenrec_value_drop(all);
    return n;
}

TEST_WITH(metrics_time_the_transfers_of_regions, open_unlimited, close_all)
{
    const int64_t reads = timed("bulk_read", ""), stale = timed("bulk_write", "ESTALE");
    struct tenrec_bulk e = writing(&ref, 0, 1, local, 0);
    tenrec_error err;

    transfer_both_ways();
    /* An observer may hear of the end after the thread that waits for it. */
    assert_becomes(timed("bulk_read", "") == reads + 1);
    assert_status(tenrec_region_revoke(r, CLUSTER_LONG_MS, &err), &err);
    assert_int_equal(transfer(c.worker[0], &e, 1, &err), TENREC_ESTALE);
    assert_becomes(timed("bulk_write", "ESTALE") == stale + 1);
}

static void open_with_few_transfers(void)
{
    open_with("{ calls_per_second: 0.001, burst: 3000s, over: refuse, types: [BULK_WRITE] }");
}

TEST_WITH(limit_refuses_transfers_beyond_their_number, open_with_few_transfers, close_all)
{
    struct tenrec_bulk e = writing(&ref, 0, 1, local, 0);
    tenrec_error err;

    for (int i = 0; i < 3; i++)
        assert_status(transfer(c.worker[0], &e, 1, &err), &err);
    assert_int_equal(transfer(c.worker[0], &e, 1, &err), TENREC_EAGAIN);
    assert_text_has(err.text, "BULK_WRITE to worker 1 exceeds calls_per_second");
    e = reading(&ref, 0, 1, local, 0);
    assert_status(transfer(c.worker[0], &e, 1, &err), &err);
}

TEST_MAIN(transport = argv[1], NULL, NULL)

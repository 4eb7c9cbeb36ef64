/* SPDX-License-Identifier: Apache-2.0 */
/* weights_device_test.c BACKEND [DEVICES] - weights in memory of devices: those that inproc
 * simulates, of the stand-in of the driver, or of GPUs. */
#include "../testing.h"
#include "weights_support.h"

#include <stdlib.h>
#include <tenrec/region.h>

enum { N = 4, ROWS = 64, COLUMNS = 48, HOST = -1 };

static int last_device = 1;
static struct cluster c;
static struct tenrec_weights *s[N];
static const int64_t shape[] = { ROWS, COLUMNS }, zero[] = { 0, 0 };
static tenrec_error err;

static void open_all(void)
{
    const char *const extra[] = { "backends.inproc.options.devices=2",
                                  last_device ? "worker.devices=[cuda:0, cuda:1]"
                                              : "worker.devices=[cuda:0]",
                                  NULL };

    cluster_open(&c, N, extra, NULL);
    for (size_t i = 0; i < N; i++)
        s[i] = open_set(c.worker[i]);
}

static void close_all(void)
{
    for (size_t i = 0; i < N; i++)
        tenrec_weights_close(s[i]);
    cluster_close(&c, TENREC_GRACEFUL);
}

/* A part of the matrix of a version, on a device or in the host. */
static struct tenrec_tensor *rows_on(int device, int64_t rows, int64_t first, int64_t version)
{
    struct tenrec_tensor *host = matrix_new(rows, COLUMNS), *t = NULL;

    matrix_fill(host, shape, (int64_t[]){ first, 0 }, version);
    if (device == HOST)
        return host;
    assert_status(tenrec_tensor_to(host, (struct tenrec_device){ TENREC_CUDA, device }, &t, &err),
                  &err);
    tenrec_tensor_drop(host);
    return t;
}

static bool is_version(struct tenrec_tensor *t, int64_t version)
{
    struct tenrec_tensor *host = NULL;
    bool same;

    assert_status(tenrec_tensor_to(t, (struct tenrec_device){ TENREC_CPU, 0 }, &host, &err), &err);
    same = matrix_is(host, shape, zero, version);
    tenrec_tensor_drop(host);
    return same;
}

static tenrec_status publish_as(struct tenrec_tensor *t, int64_t version, uint32_t flags)
{
    const struct tenrec_weights_options o = { .size = sizeof o, .flags = flags };
    const struct tenrec_weights_box b = whole("m", t);

    return tenrec_weights_publish(s[0], version, &b, 1, &o, &err);
}

static void pulls_of(int published, uint32_t flags)
{
    const int place[N] = { HOST, last_device, 0, HOST };
    struct tenrec_tensor *m[N] = { rows_on(published, ROWS, 0, 1) };
    int64_t got;

    assert_status(publish_as(m[0], 1, flags), &err);
    for (size_t i = 1; i < N; i++) { /* each may read from those before it */
        m[i] = rows_on(place[i], ROWS, 0, 9);
        assert_status(pull(s[i], TENREC_WEIGHTS_LATEST, m[i], &got, &err), &err);
        assert_true(is_version(m[i], 1));
    }
    assert_status(tenrec_weights_withdraw(s[0], 1, CLUSTER_LONG_MS, &err), &err);
    for (size_t i = 0; i < N; i++)
        tenrec_tensor_drop(m[i]);
}

TEST_WITH(weights_of_a_device_are_copied_by_a_publish, open_all, close_all)
{
    pulls_of(0, 0);
}

TEST_WITH(weights_of_a_device_are_read_in_place, open_all, close_all)
{
    pulls_of(last_device, TENREC_WEIGHTS_IN_PLACE);
}

TEST_WITH(weights_of_the_host_fill_boxes_on_devices, open_all, close_all)
{
    pulls_of(HOST, TENREC_WEIGHTS_IN_PLACE);
}

TEST_WITH(weights_box_on_a_device_is_put_together_from_parts, open_all, close_all)
{
    enum { HALF = ROWS / 2 };
    const struct tenrec_weights_options o = { .size = sizeof o, .publishers = 1 };
    struct tenrec_tensor *half[2] = { rows_on(0, HALF, 0, 3), rows_on(HOST, HALF, HALF, 3) };
    struct tenrec_tensor *to = rows_on(last_device, ROWS, 0, 9);
    const struct tenrec_weights_box b[2] = { part("m", half[0], shape, zero),
                                             part("m", half[1], shape, (int64_t[]){ HALF, 0 }) };
    int64_t got;

    assert_status(tenrec_weights_publish(s[0], 3, b, 2, &o, &err), &err);
    assert_status(pull(s[1], 3, to, &got, &err), &err);
    assert_true(is_version(to, 3));
    tenrec_tensor_drop(half[0]);
    tenrec_tensor_drop(half[1]);
    tenrec_tensor_drop(to);
}

TEST_WITH(weights_on_a_device_are_compared_with_their_checksum, open_all, close_all)
{
    struct tenrec_tensor *m = rows_on(0, ROWS, 0, 1), *to = rows_on(last_device, ROWS, 0, 9);
    struct tenrec_region *r = NULL;
    struct tenrec_bulk e = {
        .size = sizeof e, .direction = TENREC_BULK_WRITE, .bytes = 4, .local = to
    };
    struct tenrec_future *f = NULL;
    int64_t got;

    assert_status(publish_as(m, 1, TENREC_WEIGHTS_IN_PLACE), &err);
    /* An element changes against the rules. */
    assert_status(
        tenrec_region_new(c.worker[0], m, TENREC_REGION_WRITE | TENREC_REGION_OWN, &r, &err), &err);
    tenrec_region_describe(r, &e.remote);
    assert_status(tenrec_bulk_async(c.worker[1], &e, 1, NULL, &f, &err), &err);
    assert_status(tenrec_future_wait(f, CLUSTER_LONG_MS, &err), &err);
    assert_int_equal(pull(s[1], 1, to, &got, &err), TENREC_EPROTOCOL);
    assert_text_has(err.text, "checksum");
    tenrec_future_drop(f);
    tenrec_region_drop(r);
    tenrec_tensor_drop(m);
    tenrec_tensor_drop(to);
}

int main(int argc, char **argv)
{
    if (argc > 1)
        cluster_use(argv[1]);
    if (argc > 2)
        last_device = atoi(argv[2]) > 1;
    return testing_run(NULL, NULL);
}

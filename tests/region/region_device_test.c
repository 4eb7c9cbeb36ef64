/* SPDX-License-Identifier: Apache-2.0 */
/* region_device_test.c BACKEND [DEVICES] - regions and local tensors in memory of devices: those
 * that inproc simulates, of the stand-in of the driver, or of GPUs. */
#include "../support/functions.h"
#include "../testing.h"
#include "region_support.h"

#include "core/tensor/device.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

enum { N = 4096, HOST = -1 };

static int last_device = 1;
static struct cluster c;
static tenrec_error err;

/* ---- the copies of the driver, held or failing on demand --------------------------------- */

static const struct tenrec_device_ops *real;
static struct tenrec_device_ops hooked;
static pthread_mutex_t gate_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t gate_changed = PTHREAD_COND_INITIALIZER;
static bool gate_shut;
static atomic_uint stuck;        /* copies that wait at the gate */
static atomic_int until_failure; /* copies before the copy that fails; 0: none does */

static tenrec_status hooked_copy(const struct tenrec_stream *s, void *to, const void *from,
                                 uint64_t bytes, tenrec_error *why)
{
    if (atomic_load(&until_failure) > 0 && atomic_fetch_sub(&until_failure, 1) == 1)
        return tenrec_fail(why, TENREC_EOS, "the device is broken");
    pthread_mutex_lock(&gate_lock);
    atomic_fetch_add(&stuck, gate_shut);
    while (gate_shut)
        pthread_cond_wait(&gate_changed, &gate_lock);
    atomic_store(&stuck, 0);
    pthread_mutex_unlock(&gate_lock);
    return real->copy(s, to, from, bytes, why);
}

static void gate_set(bool shut)
{
    pthread_mutex_lock(&gate_lock);
    gate_shut = shut;
    pthread_cond_broadcast(&gate_changed);
    pthread_mutex_unlock(&gate_lock);
}

static void hook_copies(void)
{
    if (real)
        return;
    real = stream_ops();
    assert_non_null(real);
    memcpy(&hooked, real, sizeof hooked);
    hooked.size = sizeof hooked;
    hooked.copy = hooked_copy;
    atomic_store(&stream_ops_of_process, &hooked);
}

/* ---- workers and tensors ----------------------------------------------------------------- */

static atomic_uint seen; /* by the function `look` */
static struct tenrec_tensor *looked_at;

/* A tensor of bytes_new(n, first) on a device, or in the host. */
static struct tenrec_tensor *bytes_on(int device, int64_t n, unsigned first)
{
    struct tenrec_tensor *host = bytes_new(n, first), *t = NULL;

    if (device == HOST)
        return host;
    assert_status(tenrec_tensor_to(host, (struct tenrec_device){ TENREC_CUDA, device }, &t, &err),
                  &err);
    tenrec_tensor_drop(host);
    return t;
}

static struct tenrec_tensor *in_host(struct tenrec_tensor *t)
{
    struct tenrec_tensor *host = NULL;

    assert_status(tenrec_tensor_to(t, (struct tenrec_device){ TENREC_CPU, 0 }, &host, &err), &err);
    return host;
}

static bool has_bytes(struct tenrec_tensor *t, uint64_t at, uint64_t n, unsigned first)
{
    const bool copied = tenrec_tensor_desc(t)->device.kind != TENREC_CPU;
    struct tenrec_tensor *host = copied ? in_host(t) : t;
    const bool same = bytes_are(host, at, n, first);

    if (copied)
        tenrec_tensor_drop(host);
    return same;
}

static tenrec_status look(struct tenrec_call *call, void *arg, tenrec_error *why)
{
    struct tenrec_tensor *host = NULL;

    (void)arg;
    if (tenrec_tensor_to(looked_at, (struct tenrec_device){ TENREC_CPU, 0 }, &host, why))
        return why->code;
    atomic_store(&seen, ((const unsigned char *)tenrec_tensor_data(host))[N - 1]);
    tenrec_tensor_drop(host);
    return tenrec_call_return(call, &(struct tenrec_value){ .type = TENREC_VALUE_NIL }, why);
}

static void add_function(struct tenrec_worker *w, size_t rank)
{
    if (rank == 1)
        functions_offer(w, "look", look, 0);
}

static void open_two(void)
{
    char devices[64];
    const char *const extra[] = { "backends.inproc.options.devices=2", devices, NULL };

    snprintf(devices, sizeof devices,
             last_device ? "worker.devices=[cuda:0, cuda:%d]" : "worker.devices=[cuda:0]",
             last_device);
    cluster_open(&c, 2, extra, add_function);
    hook_copies();
}

static void close_two(void)
{
    cluster_close(&c, TENREC_GRACEFUL);
}

static void drop_both(void)
{
    for (size_t i = 0; i < c.n; i++)
        tenrec_worker_drop(c.worker[i]);
}

/* A region of worker1. */
static struct owned {
    struct tenrec_tensor *memory;
    struct tenrec_region *r;
    struct tenrec_region_ref ref;
} own(int device, int64_t n)
{
    struct owned o = { .memory = bytes_on(device, n, 1) };

    o.r = region_of(c.worker[1], o.memory, BOTH);
    o.ref = ref_of(o.r);
    return o;
}

static void disown(struct owned *o)
{
    assert_status(tenrec_region_revoke(o->r, CLUSTER_LONG_MS, &err), &err);
    assert_int_equal(tenrec_region_pending(o->r), 0);
    tenrec_region_drop(o->r);
    tenrec_tensor_drop(o->memory);
}

/* ---- errors before there is a device: the first case, as devices are of the process -------- */

static void open_without(void)
{
    cluster_open(&c, 2, NULL, NULL);
}

static void data_stays(void *arg, void *data)
{
    (void)arg;
    (void)data;
}

TEST_WITH(region_of_a_device_is_refused_when_no_backend_has_it, open_without, close_two)
{
    static char memory[8];
    const struct tenrec_tensor_desc d = { .data = memory,
                                          .bytes = sizeof memory,
                                          .dtype = TENREC_UINT8,
                                          .ndim = 1,
                                          .shape = { sizeof memory },
                                          .strides = { 1 },
                                          .device = { TENREC_CUDA, 0 } };
    struct tenrec_tensor *t;
    struct tenrec_region *r;

    assert_status(tenrec_tensor_from_desc(&d, data_stays, NULL, &t, &err), &err);
    assert_int_equal(tenrec_region_new(c.worker[1], t, BOTH, &r, &err), TENREC_EUNSUPPORTED);
    assert_text_has(err.text, "no backend of this process has cuda:0");
    tenrec_tensor_drop(t);
}

/* ---- transfers ----------------------------------------------------------------------------- */

static void moves_between(int region, int local, int64_t n)
{
    struct owned o = own(region, n);
    struct tenrec_tensor *to = bytes_on(local, n, 0), *from = bytes_on(local, n, 77);
    struct tenrec_bulk read = reading(&o.ref, 5, (uint64_t)n - 5, to, 3);
    struct tenrec_bulk write = writing(&o.ref, 1, (uint64_t)n - 2, from, 2);

    read.bytes -= 3;
    assert_status(transfer(c.worker[0], &read, 1, &err), &err);
    assert_true(has_bytes(to, 0, 3, 0));
    assert_true(has_bytes(to, 3, read.bytes, 6));
    assert_status(transfer(c.worker[0], &write, 1, &err), &err);
    assert_true(has_bytes(o.memory, 1, write.bytes, 79));
    assert_true(has_bytes(o.memory, 0, 1, 1));
    disown(&o);
    tenrec_tensor_drop(to);
    tenrec_tensor_drop(from);
}

TEST_WITH(bulk_moves_bytes_between_devices_and_the_host, open_two, close_two)
{
    const int place[] = { HOST, 0, last_device };

    for (size_t i = 0; i < 3; i++)
        for (size_t k = 0; k < 3; k++)
            moves_between(place[i], place[k], N);
}

TEST_WITH(bulk_moves_megabytes_between_two_devices, open_two, close_two)
{
    moves_between(0, last_device, 3 << 20);
}

TEST_WITH(bulk_batch_mixes_devices_and_the_host, open_two, close_two)
{
    enum { ENTRIES = 400, EACH = 500, ALL = ENTRIES * EACH };
    struct owned o[2] = { own(0, ALL), own(HOST, ALL) };
    struct tenrec_tensor *local[2] = { bytes_on(last_device, ALL, 9), bytes_on(HOST, ALL, 9) };
    struct tenrec_bulk *e = calloc(ENTRIES, sizeof *e);

    for (uint64_t i = 0; i < ENTRIES; i++) {
        const uint64_t at = i * EACH;
        e[i] = i % 2 ? reading(&o[i / 4 % 2].ref, at, EACH, local[i / 8 % 2], at)
                     : writing(&o[i / 4 % 2].ref, at, EACH, local[i / 8 % 2], at);
    }
    assert_status(transfer(c.worker[0], e, ENTRIES, &err), &err);
    for (uint64_t i = 0; i < ENTRIES; i += 2) { /* each is followed by a read */
        const uint64_t at = i * EACH;
        assert_true(has_bytes(o[i / 4 % 2].memory, at, EACH, 9 + (unsigned)at));
        assert_true(has_bytes(local[(i + 1) / 8 % 2], at + EACH, EACH, 1 + (unsigned)at + EACH));
    }
    free(e);
    for (size_t i = 0; i < 2; i++) {
        disown(&o[i]);
        tenrec_tensor_drop(local[i]);
    }
}

/* ---- completions --------------------------------------------------------------------------- */

TEST_WITH(then_sees_the_bytes_on_the_device_of_the_owner, open_two, close_two)
{
    struct owned o = own(0, N);
    struct tenrec_tensor *from = bytes_on(last_device, N, 50);
    struct tenrec_bulk e = writing(&o.ref, 0, N, from, 0);
    struct tenrec_future *done, *visible, *quiet;
    const struct tenrec_bulk_options options = {
        .size = sizeof options, .then = "look", .ret_free = &quiet, .ret_visible = &visible
    };

    looked_at = o.memory;
    assert_status(tenrec_bulk_async(c.worker[0], &e, 1, &options, &done, &err), &err);
    assert_status(tenrec_future_wait(visible, CLUSTER_LONG_MS, &err), &err);
    assert_true(has_bytes(o.memory, 0, N, 50));
    assert_status(tenrec_future_wait(quiet, CLUSTER_LONG_MS, &err), &err);
    assert_status(tenrec_future_wait(done, CLUSTER_LONG_MS, &err), &err);
    assert_int_equal(atomic_load(&seen), (50 + N - 1) & 255);
    tenrec_future_drop(done);
    tenrec_future_drop(visible);
    tenrec_future_drop(quiet);
    disown(&o);
    tenrec_tensor_drop(from);
}

/* Begins an entry whose first copy does not end while the gate is shut. */
static struct tenrec_future *begin_held(const struct tenrec_bulk *e, struct tenrec_future **quiet)
{
    const struct tenrec_bulk_options options = { .size = sizeof options, .ret_free = quiet };
    struct tenrec_future *f;

    gate_set(true);
    assert_status(tenrec_bulk_async(c.worker[0], e, 1, &options, &f, &err), &err);
    assert_becomes(atomic_load(&stuck) > 0);
    return f;
}

TEST_WITH(write_has_the_buffer_until_its_copy_to_the_host_has_ended, open_two, close_two)
{
    struct owned o = own(HOST, N);
    struct tenrec_tensor *from = bytes_on(0, N, 50);
    struct tenrec_bulk e = writing(&o.ref, 0, N, from, 0);
    struct tenrec_future *quiet, *f = begin_held(&e, &quiet);

    assert_false(tenrec_future_done(quiet) || tenrec_future_done(f));
    assert_true(has_bytes(o.memory, 0, N, 1));
    gate_set(false);
    assert_status(tenrec_future_wait(f, CLUSTER_LONG_MS, &err), &err);
    assert_status(tenrec_future_wait(quiet, CLUSTER_LONG_MS, &err), &err);
    assert_true(has_bytes(o.memory, 0, N, 50));
    tenrec_future_drop(f);
    tenrec_future_drop(quiet);
    disown(&o);
    tenrec_tensor_drop(from);
}

TEST_WITH(read_is_not_done_before_the_bytes_are_on_the_device, open_two, close_two)
{
    struct owned o = own(HOST, N);
    struct tenrec_tensor *to = bytes_on(0, N, 50);
    struct tenrec_bulk e = reading(&o.ref, 0, N, to, 0);
    struct tenrec_future *quiet, *f = begin_held(&e, &quiet);

    assert_int_equal(tenrec_future_wait(f, 20, &err), TENREC_ETIMEDOUT);
    assert_false(tenrec_future_done(quiet));
    gate_set(false);
    assert_status(tenrec_future_wait(f, CLUSTER_LONG_MS, &err), &err);
    assert_status(tenrec_future_wait(quiet, CLUSTER_LONG_MS, &err), &err);
    assert_true(has_bytes(to, 0, N, 1));
    tenrec_future_drop(f);
    tenrec_future_drop(quiet);
    disown(&o);
    tenrec_tensor_drop(to);
}

/* ---- the end of a region --------------------------------------------------------------------- */

static void revoke_waits_for(struct tenrec_bulk e, struct owned *o, const char *named)
{
    struct tenrec_future *quiet, *f = begin_held(&e, &quiet);

    assert_int_equal(tenrec_region_revoke(o->r, 20, &err), TENREC_ETIMEDOUT);
    assert_text_has(err.text, named);
    gate_set(false);
    assert_status(tenrec_region_revoke(o->r, CLUSTER_LONG_MS, &err), &err);
    assert_status(tenrec_future_wait(f, CLUSTER_LONG_MS, &err), &err);
    tenrec_future_drop(f);
    tenrec_future_drop(quiet);
    assert_int_equal(transfer(c.worker[0], &e, 1, &err), TENREC_ESTALE);
}

/* A doubled request is refused after the revoke before the first has its answer, or is copied well.
 */
static bool doubles_nothing(void)
{
    return !strstr(cluster_backend(), "doubling");
}

TEST_WHEN(revoke_waits_for_the_copy_of_a_read, doubles_nothing, open_two, close_two)
{
    struct owned o = own(0, N);
    struct tenrec_tensor *to = bytes_on(HOST, N, 0);

    revoke_waits_for(reading(&o.ref, 0, N, to, 0), &o, "'worker0' reads");
    assert_true(bytes_are(to, 0, N, 1));
    disown(&o);
    tenrec_tensor_drop(to);
}

TEST_WITH(revoke_waits_for_the_copy_of_a_write, open_two, close_two)
{
    struct owned o = own(0, N);
    struct tenrec_tensor *from = bytes_on(HOST, N, 50);

    revoke_waits_for(writing(&o.ref, 0, N, from, 0), &o, "'worker0' writes");
    assert_true(has_bytes(o.memory, 0, N, 50));
    disown(&o);
    tenrec_tensor_drop(from);
}

/* ---- failures -------------------------------------------------------------------------------- */

/* The copy of the second of two entries, of two messages, fails. */
static void failing_copy_is_named(int region, int local, uint32_t direction, const char *text)
{
    struct owned o[2] = { own(HOST, N), own(region, N) };
    struct tenrec_tensor *host = bytes_on(HOST, N, 0), *t = bytes_on(local, N, 50);
    struct tenrec_bulk e[2] = { reading(&o[0].ref, 0, N, host, 0), reading(&o[1].ref, 0, N, t, 0) };

    e[0].direction = e[1].direction = direction;
    atomic_store(&until_failure, 1);
    assert_int_equal(transfer(c.worker[0], e, 2, &err), TENREC_EOS);
    assert_text_has(err.text, "entry 1");
    assert_text_has(err.text, text);
    assert_text_has(err.text, "the device is broken");
    assert_int_equal(atomic_load(&until_failure), 0);
    assert_status(transfer(c.worker[0], e, 2, &err), &err);
    for (size_t i = 0; i < 2; i++)
        disown(&o[i]);
    tenrec_tensor_drop(host);
    tenrec_tensor_drop(t);
}

TEST_WHEN(bulk_names_the_entry_whose_copy_fails, doubles_nothing, open_two, close_two)
{
    failing_copy_is_named(0, HOST, TENREC_BULK_READ, "copy from a device");
    failing_copy_is_named(0, HOST, TENREC_BULK_WRITE, "copy to a device");
    failing_copy_is_named(HOST, 0, TENREC_BULK_READ, "copy to a device");
    failing_copy_is_named(HOST, 0, TENREC_BULK_WRITE, "copy from a device");
}

static void *open_gate_later(void *arg)
{
    struct tenrec_worker *w = arg;

    while (tenrec_worker_running(w))
        sched_yield();
    gate_set(false);
    return NULL;
}

/* `at`: which worker is dropped while it copies. */
static void end_while_copying(size_t at, int region, int local, uint32_t direction)
{
    struct owned o = own(region, N);
    struct tenrec_tensor *t = bytes_on(local, N, 50);
    struct tenrec_bulk e = reading(&o.ref, 0, N, t, 0);
    struct tenrec_future *quiet, *f;
    pthread_t thread;

    e.direction = direction;
    f = begin_held(&e, &quiet);
    assert_int_equal(pthread_create(&thread, NULL, open_gate_later, c.worker[at]), 0);
    assert_status(tenrec_shutdown(c.worker[at], TENREC_IMMEDIATE, CLUSTER_LONG_MS, &err), &err);
    pthread_join(thread, NULL);
    assert_int_not_equal(tenrec_future_wait(f, CLUSTER_LONG_MS, &err), TENREC_OK);
    assert_status(tenrec_future_wait(quiet, CLUSTER_LONG_MS, &err), &err);
    tenrec_future_drop(f);
    tenrec_future_drop(quiet);
    assert_status(tenrec_region_revoke(o.r, CLUSTER_LONG_MS, &err), &err);
    tenrec_region_drop(o.r);
    tenrec_tensor_drop(o.memory);
    tenrec_tensor_drop(t);
}

TEST_WITH(owner_shuts_down_while_a_read_is_copied, open_two, drop_both)
{
    end_while_copying(1, 0, HOST, TENREC_BULK_READ);
}

TEST_WITH(owner_shuts_down_while_a_write_is_copied, open_two, drop_both)
{
    end_while_copying(1, 0, HOST, TENREC_BULK_WRITE);
}

TEST_WITH(reader_shuts_down_while_its_bytes_are_copied, open_two, drop_both)
{
    end_while_copying(0, HOST, 0, TENREC_BULK_READ);
}

TEST_WITH(writer_shuts_down_while_its_bytes_are_copied, open_two, drop_both)
{
    end_while_copying(0, HOST, 0, TENREC_BULK_WRITE);
}

/* ---- order ------------------------------------------------------------------------------------
 */

/* Copies from the host that are queued and not waited for. */
TEST_WITH(write_waits_for_the_work_that_its_thread_has_queued, open_two, close_two)
{
    struct owned o = own(HOST, N);
    struct tenrec_tensor *from = bytes_on(0, N, 1), *later = bytes_on(HOST, N, 90);
    struct tenrec_bulk e = writing(&o.ref, 0, N, from, 0);
    struct tenrec_stream s;

    assert_status(tenrec_stream_get((struct tenrec_device){ TENREC_CUDA, 0 }, &s, &err), &err);
    assert_status(tenrec_stream_set_current(&s, &err), &err);
    for (int i = 0; i < 20; i++)
        assert_status(real->copy(&s, tenrec_tensor_data(from), tenrec_tensor_data(later), N, &err),
                      &err);
    assert_status(transfer(c.worker[0], &e, 1, &err), &err);
    s.stream = 0;
    assert_status(tenrec_stream_set_current(&s, &err), &err);
    assert_true(has_bytes(o.memory, 0, N, 90));
    disown(&o);
    tenrec_tensor_drop(from);
    tenrec_tensor_drop(later);
}

int main(int argc, char **argv)
{
    if (argc > 1)
        cluster_use(argv[1]);
    if (argc > 2)
        last_device = atoi(argv[2]) > 1;
    return testing_run(NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* bench.c - what a tensor takes from a GPU to the same GPU in another process and
 * back, against copies by the driver alone, and a call without a tensor. One JSON object
 * on stdout.
 *
 * Not a test: script/ci/gpu-test runs it. On the stand-in its figures mean nothing. */
#include "../../support/message_hooks.h"
#include "../../testing.h"
#include "core/backend/backend.h"
#include "cuda/device.h"
#include "rig.h"

#include <stdlib.h>

#define MIB ((size_t)1 << 20)
#define ROUNDS 30

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static double median_us(double *ns, unsigned n)
{
    qsort(ns, n, sizeof *ns, compare);
    return ns[n / 2] / 1000;
}

static void released(void *arg, struct tenrec_msg *msg)
{
    (void)msg;
    atomic_store((atomic_bool *)arg, true);
}

/* There and back, until the device has it. data NULL: without a tensor. */
static double call_ns(struct rig *r, void *data, uint64_t stream, size_t bytes)
{
    const int32_t back[RIG_TENSORS] = { 0 };
    struct tenrec_msg *msg =
        message_of(TENREC_MSG_CALL, back, sizeof back, data != NULL, data, bytes);
    struct tenrec_stream s = { { TENREC_CUDA, 0 }, 0 };
    atomic_bool done = false;
    const uint64_t start = clock_ns();
    struct call c = { .wake_fd = -1 };
    uint64_t end;

    if (data) {
        struct tenrec_tensor_desc *t = tenrec_msg_tensor(msg, 0);

        t->device = t->target = s.device;
        t->stream = stream;
    }
    msg->flags |= TENREC_MSG_MAY_WAIT; /* as of a blocking call: 256 MiB fill the queue */
    message_on_release(msg, released, &done);
    call_start(&r->n[0], &c, 1, msg);
    while (!atomic_load(&c.done))
        continue;
    if (c.status || !c.answer->n_tensors != !data)
        fail_msg("call: %s", c.err.text);
    if (data) {
        s.stream = tenrec_msg_tensor(c.answer, 0)->stream;
        cuda_device_ops.stream_wait(&s, NULL);
    }
    end = clock_ns();
    call_finish(&c);
    while (!atomic_load(&done))
        continue;
    return (double)(end - start);
}

/* Two copies by the driver, one after the other, and a wait. */
static double copies_ns(void *from, void *to, uint64_t stream, size_t bytes)
{
    const struct tenrec_stream s = { { TENREC_CUDA, 0 }, stream };
    const uint64_t start = clock_ns();

    cuda_device_ops.copy(&s, to, from, bytes, NULL);
    cuda_device_ops.copy(&s, from, to, bytes, NULL);
    cuda_device_ops.stream_wait(&s, NULL);
    return (double)(clock_ns() - start);
}

static void measure(struct rig *r, size_t bytes, const char *end)
{
    void *from = fake_new(0, bytes), *to = fake_new(0, bytes);
    const uint64_t stream = fake_stream(0);
    double calls[ROUNDS], copies[ROUNDS], call, copy;

    fake_fill(0, stream, from, bytes, 1);
    fake_wait(0, stream);
    for (int i = 0; i < 3; i++) /* handles are opened, memory is taken */
        call_ns(r, from, stream, bytes);
    for (unsigned i = 0; i < ROUNDS; i++) {
        calls[i] = call_ns(r, from, stream, bytes);
        copies[i] = copies_ns(from, to, stream, bytes);
    }
    call = median_us(calls, ROUNDS);
    copy = median_us(copies, ROUNDS);
    printf("    {\"bytes\": %zu, \"call_us\": %.1f, \"copies_us\": %.1f, \"ratio\": %.3f}%s\n",
           bytes, call, copy, copy / call, end);
    fake_drop(0, from);
    fake_drop(0, to);
}

static double without_tensor_us(struct rig *r)
{
    double ns[ROUNDS];

    for (unsigned i = 0; i < ROUNDS; i++)
        ns[i] = call_ns(r, NULL, 0, 0);
    return median_us(ns, ROUNDS);
}

int main(int argc, char **argv)
{
    const struct rig_setup setup = { .channels = "cuda_ipc,cuda_basic",
                                     .two_processes = true,
                                     .transport = "shm" };
    struct rig r;
    const char *why;

    rig_child(argc, argv);
    if (!fake_open(&why)) {
        fprintf(stderr, "no GPU: %s\n", why);
        return 1;
    }
    rig_open(&r, &setup);
    printf("{\"stand_in\": %s, \"without_tensor_us\": %.1f, \"there_and_back\": [\n",
           fake_is_stand_in() ? "true" : "false", without_tensor_us(&r));
    measure(&r, 4, ",");
    measure(&r, MIB, ",");
    measure(&r, 16 * MIB, ",");
    measure(&r, 64 * MIB, ",");
    measure(&r, 256 * MIB, "");
    printf("], \"mapped\": %s}\n", rig_count(&r, "cuda.ipc_refused") ? "false" : "true");
    rig_close(&r);
    return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* fault_test.c - each call of the driver fails once: the message fails with the name of
 * the call, or the tensor takes another path; and the next message succeeds. */
#include "../../../testing.h"
#include "cuda/driver.h"
#include "rig.h"

#include <stdlib.h>

#define MIB ((size_t)1 << 20)
#define NTH_MAX 3
#define TRIES 20

static const char *const calls[] = {
#define NAME(name, symbol, parameters) #symbol,
    DRIVER_CALLS(NAME)
#undef NAME
};
#define CALLS (sizeof calls / sizeof calls[0])

static const struct rig_tensor tensors[] = {
    { 2 * MIB + 1, 0, 1, 0 },
    { 1000, RIG_CPU, 0, RIG_CPU },
    { 700, 0, 0, 0 },
};

/* A broken pipe is made again by the call after. */
static void works_again(struct rig *r)
{
    unsigned left = TRIES;

    while (rig_try(r, tensors, 3, 9, NULL) != TENREC_OK)
        if (left-- == 0)
            fail_msg("it does not work again");
}

/* How often the call failed. */
static unsigned fail_each(const struct rig_setup *setup, const char *call)
{
    unsigned failed = 0;
    struct rig r;

    for (unsigned nth = 1; nth <= NTH_MAX; nth++) {
        tenrec_error err;
        tenrec_status st;

        rig_open(&r, setup);
        r.ready = true;
        r.fails = call;
        r.nth = nth;
        st = rig_try(&r, tensors, 3, nth, &err);
        if (st && st != TENREC_EPEER_LOST && !strstr(err.text, call))
            fail_msg("%s: call %u fails, and that is said of it: %s", call, nth, err.text);
        failed += r.failed;
        works_again(&r);
        rig_close(&r);
        if (!r.failed)
            break;
    }
    return failed;
}

/* A late poll may find the work done without asking: whether
 * cuEventQuery is called at all before the answer has arrived is not counted. */
static void fail_all(const struct rig_setup *setup, unsigned at_least)
{
    unsigned failed = 0;

    for (size_t i = 0; i < CALLS; i++)
        failed += fail_each(setup, calls[i]) > 0 && strcmp(calls[i], "cuEventQuery") != 0;
    if (failed < at_least)
        fail_msg("%u calls failed, at least %u should have", failed, at_least);
}

TEST(fault_of_each_call_in_one_process)
{
    fail_all(&(struct rig_setup){ .two_processes = false }, 7);
}

TEST(fault_of_each_call_of_staging)
{
    fail_all(&(struct rig_setup){ .channels = "cuda_basic" }, 6);
}

TEST(fault_of_each_call_of_the_lender)
{
    fail_all(&(struct rig_setup){ .channels = "cuda_ipc,cuda_basic", .two_processes = true }, 13);
}

/* Without it no worker starts; or what it has to give back is lost with it. */
static bool ends_it(const char *call)
{
    static const char *const names[] = {
        "cuInit",       "cuDeviceGetCount", "cuCtxPushCurrent_v2", "cuDevicePrimaryCtxRetain",
        "cuMemFree_v2", "cuMemFreeHost",    "cuEventDestroy_v2",   "cuIpcCloseMemHandle",
    };

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcmp(call, names[i]) == 0)
            return true;
    return false;
}

/* Of the process that answers, where contexts are made too. */
TEST(fault_of_each_call_of_the_peer)
{
    for (size_t i = 0; i < CALLS; i++) {
        char env[64];
        struct rig_setup setup = { .channels = "cuda_ipc,cuda_basic",
                                   .two_processes = true,
                                   .child_env = env };
        tenrec_error err;
        struct rig r;

        if (ends_it(calls[i]))
            continue;
        snprintf(env, sizeof env, "FAKE_CUDA_FAIL=%s:1", calls[i]);
        rig_open(&r, &setup);
        r.ready = true;
        if (rig_try(&r, tensors, 3, 1, &err) && err.code != TENREC_EPEER_LOST &&
            !strstr(err.text, calls[i]))
            fail_msg("%s fails, and that is said of it: %s", calls[i], err.text);
        works_again(&r);
        rig_close(&r);
    }
}

int main(int argc, char **argv)
{
    const char *why;

    rig_child(argc, argv);
    if (!fake_open(&why)) {
        printf("1..0 # SKIP no GPU: %s\n", why);
        return 77;
    }
    if (!fake_is_stand_in()) {
        printf("1..0 # SKIP a real driver cannot inject failures\n");
        return 77;
    }
    return testing_run(NULL, NULL);
}

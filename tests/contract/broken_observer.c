/* SPDX-License-Identifier: Apache-2.0 */
/* broken_observer.c - the observer tray, breaking the rule that TENREC_TEST_BREAKS names. `tenrec
 * conformance` must see each. */
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <tenrec/observer_plugin.h>
#include <unistd.h>

tenrec_init_observer_fn tray_init;
#define tenrec_init_observer tray_init
#include "../metrics/tray.c"
#undef tenrec_init_observer

static struct tenrec_span *kept; /* the last span of a worker that leaves */

static bool breaks(const char *what)
{
    const char *broken = getenv("TENREC_TEST_BREAKS");

    return broken && strcmp(broken, what) == 0;
}

/* More than a second, longer where the tests are slower. */
static void broken_sleep(void)
{
    const char *slow = getenv("TENREC_TEST_SLOW");

    poll(NULL, 0, 1300 * (slow && atoi(slow) > 0 ? atoi(slow) : 1));
}

static void *broken_thread(void *arg)
{
    for (;;)
        pause();
    return arg;
}

static void broken_span(struct tenrec_observer *self, struct tenrec_span *s)
{
    if (breaks("span lost") && self->impl && strcmp(s->origin->worker, "worker1") == 0)
        return;
    if (!breaks("worker kept") || kept)
        tray_span(self, s);
    else
        kept = s;
}

static void broken_leave(struct tenrec_observer *self, const struct tenrec_origin *origin)
{
    if (breaks("slow leave"))
        broken_sleep();
    tray_leave(self, origin);
}

static void broken_close(struct tenrec_observer *self)
{
    if (breaks("slow close"))
        broken_sleep();
    if (kept)
        tray_span(self, kept);
    tray_close(self);
}

static const struct tenrec_observer_ops broken_ops = {
    .size = sizeof broken_ops, .close = broken_close, .span = broken_span, .leave = broken_leave
};

tenrec_status tenrec_init_observer(const struct tenrec_observer_init *in,
                                   struct tenrec_observer *self, tenrec_error *err)
{
    pthread_t thread;
    const tenrec_status st = tray_init(in, self, err);

    if (st != TENREC_OK) {
        if (breaks("refusal without a text"))
            err->text[0] = '\0';
        if (breaks("refusal leaks"))
            open("/dev/null", O_RDONLY | O_CLOEXEC);
        return st;
    }
    if (breaks("thread"))
        pthread_create(&thread, NULL, broken_thread, NULL);
    if (breaks("descriptor"))
        open("/dev/null", O_RDONLY | O_CLOEXEC);
    self->ops = &broken_ops;
    return TENREC_OK;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "torch/member/member.h"

#include "core/base/clock.h"
#include "core/base/log.h"
#include "core/base/threads.h"
#include "group/membership/torch_keys.h"
#include "group/store/store.h"

#include <stdlib.h>
#include <tenrec/store.h>

/* torch's process groups count at `init/`, too: their workers get so long to begin a dynamic group.
 */
enum { POLL_US = 50000, BEFORE_MS = 2000, ALONE_MS = 5000, STORE_MS = 2000 };

/* Returns true if torch's workers wait for each other here and have not said for which group. */
static bool is_set_up(struct tenrec_torch_member *m, uint64_t deadline_ns, bool ours)
{
    struct store_value kind = { NULL, 0 };
    bool counted = false;

    if (store_has_init(m->keys, deadline_ns, &counted, NULL) != TENREC_OK || !counted)
        return false;
    if (!ours && store_read(m->keys, TORCH_KIND, deadline_ns, &kind, NULL) != TENREC_OK)
        return false;
    free(kind.data);
    return kind.len == 0;
}

/* Ends the waits of torch's workers: of its rank 0, which serves the store, by the count; of the
 * others by the end of the store. A member without a rank is none that they wait for. */
static void static_group_stop_torch(struct tenrec_torch_member *m)
{
    if (m->rendezvous->launch.rank >= 0)
        store_fail_init(m->keys, clock_deadline_ms(STORE_MS), NULL);
}

static tenrec_status static_group_fail(tenrec_error *err)
{
    return tenrec_fail(err, TENREC_EGROUP,
                       "torch's workers set up a static group in this store (init_rpc with "
                       "world_size): a member of Tenrec joins dynamic groups only, init_rpc "
                       "without world_size");
}

tenrec_status static_group_check(struct tenrec_torch_member *m, uint64_t deadline_ns,
                                 tenrec_error *err)
{
    const uint64_t until_ns = clock_deadline_ms(BEFORE_MS);
    struct backoff pause = { POLL_US, POLL_US };

    while (is_set_up(m, deadline_ns, false))
        if (!backoff_take(&pause, until_ns < deadline_ns ? until_ns : deadline_ns)) {
            static_group_stop_torch(m);
            return static_group_fail(err);
        }
    return TENREC_OK;
}

/* ---- while alone -------------------------------------------------------------------------- */

static void static_group_end(struct tenrec_torch_member *m)
{
    struct tenrec_store_server *server = NULL;
    bool ends;
    tenrec_error why;

    static_group_fail(&why);
    pthread_mutex_lock(&m->lock);
    ends = m->state == TORCH_JOINED && torch_peers_alone(m);
    if (ends) {
        m->why = why;
        m->state = TORCH_LEFT;
        server = m->rendezvous->server;
        m->rendezvous->server = NULL;
        pthread_cond_broadcast(&m->changed);
    }
    pthread_mutex_unlock(&m->lock);
    if (!ends)
        return;
    log_line(TENREC_LOG_ERROR, m->name, "%s", why.text);
    static_group_stop_torch(m);
    tenrec_store_server_drop(server);
}

/* Returns true if the member is still to be watched. Lock held. */
static bool is_watched(const struct tenrec_torch_member *m)
{
    return (m->state == TORCH_JOINING || m->state == TORCH_JOINED) && torch_peers_alone(m);
}

static void *static_group_run(void *arg)
{
    struct tenrec_torch_member *m = arg;
    uint64_t since_ns = 0;

    pthread_mutex_lock(&m->lock);
    while (is_watched(m)) {
        bool set_up;

        pthread_mutex_unlock(&m->lock);
        set_up = is_set_up(m, clock_deadline_ms(STORE_MS), true);
        since_ns = !set_up ? 0 : since_ns ? since_ns : clock_now_ns();
        if (since_ns && clock_now_ns() - since_ns > ALONE_MS * UINT64_C(1000000))
            static_group_end(m);
        pthread_mutex_lock(&m->lock);
        if (is_watched(m))
            clock_cond_wait(&m->changed, &m->lock, clock_deadline_ms(ALONE_MS / 10));
    }
    pthread_mutex_unlock(&m->lock);
    return NULL;
}

void static_group_watch(struct tenrec_torch_member *m)
{
    m->watched = threads_start(&m->watcher, "tenrec-static", static_group_run, m) == 0;
}

void static_group_unwatch(struct tenrec_torch_member *m)
{
    if (m->watched)
        pthread_join(m->watcher, NULL);
    m->watched = false;
}

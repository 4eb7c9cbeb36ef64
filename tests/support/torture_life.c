/* SPDX-License-Identifier: Apache-2.0 */
#include "torture_life.h"

#include "../testing.h"
#include "torture.h"

#include <stdatomic.h>
#include <tenrec/backend.h>
#include <tenrec/chain.h>

static atomic_int told;

static void on_deliver(void *arg, tenrec_peer from, struct tenrec_msg *msg)
{
    (void)arg, (void)from;
    msg->release(msg);
}

static void on_done(void *arg, const tenrec_error *err)
{
    (void)arg, (void)err;
    atomic_fetch_add(&told, 1);
}

static void send_all(struct tenrec_chain *agent, const struct torture_life *life)
{
    for (size_t i = 0; i < life->n_sends; i++) {
        struct tenrec_msg *msg = tenrec_msg_new(100, 0);
        if (!msg) { /* nothing was sent, so nothing completes */
            atomic_fetch_add(&told, 1);
            continue;
        }
        memset(msg->payload, (int)i, 100);
        msg->type = life->type[i % life->n_types];
        tenrec_chain_send(agent, 0, msg, (struct tenrec_done){ on_done, NULL });
    }
}

tenrec_status torture_life(void *arg, tenrec_error *err)
{
    const struct torture_life *life = arg;
    const struct tenrec_chain_user user = { .size = sizeof user, .deliver = on_deliver };
    const struct tenrec_member me = { sizeof me, 0, 0, "worker0", "" };
    struct tenrec_chain_options *options = NULL;
    struct tenrec_chain *agent = NULL;
    tenrec_status st;

    torture_on();
    st = tenrec_chain_options_new(life->config, &options, err);
    if (st == TENREC_OK)
        st = tenrec_chain_new(options, &user, &me, 1, &agent, err);
    if (st == TENREC_OK)
        st = tenrec_chain_start(agent, &me, 1, err);
    if (st == TENREC_OK) {
        atomic_store(&told, 0);
        send_all(agent, life);
    }
    tenrec_chain_drop(agent);
    torture_off();
    if (st == TENREC_OK)
        assert_int_equal(atomic_load(&told), life->n_sends);
    tenrec_chain_options_drop(options);
    return st;
}

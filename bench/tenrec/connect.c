/* SPDX-License-Identifier: Apache-2.0 */
/* connect.c - the first call between two workers that have joined: their connections, the proof of
 * the secret, the handshake of TLS, and one call. */
#include "modes.h"
#include "samples.h"
#include "side.h"

#include <pthread.h>
#include <stdlib.h>

#define CONNECT_TIMES 15

static tenrec_status connect_answer(struct tenrec_call *call, void *arg, tenrec_error *err)
{
    (void)arg;
    return tenrec_call_return(call, NULL, err);
}

static void *connect_join(void *worker)
{
    tenrec_error err;

    if (tenrec_init_rpc(worker, &err))
        side_give_up(&err);
    return NULL;
}

static void *connect_leave(void *worker)
{
    side_end_worker(worker);
    return NULL;
}

/* Both workers of this process at once. */
static void connect_both(struct tenrec_worker *const w[2], void *(*what)(void *worker))
{
    pthread_t thread[2];

    for (int i = 0; i < 2; i++)
        if (pthread_create(&thread[i], NULL, what, w[i]))
            exit(1);
    for (int i = 0; i < 2; i++)
        pthread_join(thread[i], NULL);
}

static uint64_t connect_once(const char *via)
{
    struct side *s = side_new(via, "adaptive", 2);
    struct tenrec_worker *w[2];
    uint64_t since, ns;
    tenrec_error err;

    for (int i = 0; i < 2; i++) {
        w[i] = side_worker(s, i);
        if (tenrec_worker_register_function(w[i], "nothing", connect_answer, NULL, TENREC_INLINE,
                                            &err))
            side_give_up(&err);
    }
    connect_both(w, connect_join);
    since = samples_now_ns();
    if (tenrec_rpc_sync(w[0], "w1", "nothing", NULL, 0, NULL, NULL, &err))
        side_give_up(&err);
    ns = samples_now_ns() - since;
    connect_both(w, connect_leave);
    side_drop(s);
    return ns;
}

int connect_main(const char *via)
{
    struct samples times;

    unsetenv("BENCH_CPUS");
    if (samples_init(&times, CONNECT_TIMES))
        return 1;
    for (int i = 0; i < CONNECT_TIMES; i++)
        samples_add(&times, connect_once(via));
    printf("{\"peer\": \"tenrec\", \"via\": \"%s\", \"mode\": \"connect\", \"p50_us\": %.1f}\n",
           via, samples_us(&times, 0.5));
    samples_finish(&times);
    return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* all_to_all.c - a whole program as users write them: all call all, then leave.
 *
 *     all_to_all [ROUNDS]    says "NAME of N: C calls" at the end
 */
#include "exchange.h"

#include <stdlib.h>

int main(int argc, char **argv)
{
    int rounds = argc > 1 ? atoi(argv[1]) : 1, calls = 0;
    struct tenrec_worker_info me, none;
    struct tenrec_worker *w = NULL;
    size_t n = 0;
    tenrec_error err = { .code = TENREC_OK };
    bool ok;

    ok = !tenrec_worker_new(NULL, &w, &err) && !exchange_register(w, &err) &&
         !tenrec_init_rpc(w, &err) && !exchange_all(w, rounds, &calls, &err) &&
         !tenrec_get_worker_info(w, NULL, &me, &err) &&
         !tenrec_worker_get_infos(w, &none, 0, &n, &err);
    if (ok)
        printf("%s of %zu: %d calls\n", me.name, n, calls);
    ok = ok && !tenrec_shutdown(w, TENREC_GRACEFUL, TENREC_TIMEOUT_DEFAULT, &err);
    /* A success leaves the error unchanged. */
    if (!ok || err.code != TENREC_OK)
        fprintf(stderr, "%s\n", err.text);
    tenrec_worker_drop(w);
    return ok ? 0 : 1;
}

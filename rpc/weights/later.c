/* SPDX-License-Identifier: Apache-2.0 */
#include "rpc/weights/later.h"

#include <stdlib.h>

void later_try(struct later **list, later_ready_fn *ready, void *arg, struct later **done)
{
    struct later *l;

    while ((l = *list) != NULL) {
        if (ready(l, arg)) {
            *list = l->next;
            later_add(done, l);
        } else {
            list = &l->next;
        }
    }
}

void later_fail(struct later **list, const tenrec_error *why, struct later **done)
{
    struct later *l;

    while ((l = *list) != NULL) {
        *list = l->next;
        l->why = *why;
        later_add(done, l);
    }
}

void later_finish(struct later *done)
{
    struct later *next;

    for (; done; done = next) {
        next = done->next;
        tenrec_call_finish(done->call, done->why.code == TENREC_OK ? NULL : &done->why);
        free(done);
    }
}

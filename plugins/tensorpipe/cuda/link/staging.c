/* SPDX-License-Identifier: Apache-2.0 */
#include "cuda/link/link.h"

#include <stdlib.h>

void staging_init(struct staging *s, uint64_t max_bytes)
{
    *s = (struct staging){ .max = max_bytes / STAGING_PIECE };
    if (s->max < 2)
        s->max = 2; /* one for each way */
    pthread_mutex_init(&s->lock, NULL);
}

static void free_piece(struct staging_piece *p)
{
    if (device_enter(p->device, NULL) == TENREC_OK) {
        driver()->host_drop(p->data);
        device_leave();
    }
    free(p);
}

void staging_finish(struct staging *s)
{
    while (s->free) {
        struct staging_piece *p = s->free;

        s->free = p->next;
        free_piece(p);
    }
    pthread_mutex_destroy(&s->lock);
}

static tenrec_status staging_make(int device, struct staging_piece **ret, tenrec_error *err)
{
    struct staging_piece *p = calloc(1, sizeof *p);
    void *data = NULL;
    tenrec_status st;

    if (!p)
        return tenrec_fail(err, TENREC_ENOMEM, "no memory for a piece of pinned memory");
    st = device_enter(device, err);
    if (!st) {
        st = DRIVER(host_new, device, err, &data, (size_t)STAGING_PIECE, DRIVER_HOST_PORTABLE);
        device_leave();
    }
    if (st) {
        free(p);
        return st;
    }
    p->data = data;
    p->device = device;
    *ret = p;
    return TENREC_OK;
}

tenrec_status staging_get(struct staging *s, int device, struct staging_piece **ret,
                          tenrec_error *err)
{
    struct staging_piece *p;
    bool full = false;
    tenrec_status st;

    pthread_mutex_lock(&s->lock);
    p = s->free;
    if (p)
        s->free = p->next;
    else if (s->made < s->max)
        s->made++;
    else
        full = true;
    pthread_mutex_unlock(&s->lock);
    if (full)
        return tenrec_fail(err, TENREC_EAGAIN, "all pinned memory is in use");
    st = p ? TENREC_OK : staging_make(device, &p, err);
    if (st) {
        pthread_mutex_lock(&s->lock);
        s->made--;
        pthread_mutex_unlock(&s->lock);
        return st;
    }
    *ret = p;
    return TENREC_OK;
}

void staging_give(struct staging *s, struct staging_piece *piece)
{
    pthread_mutex_lock(&s->lock);
    piece->next = s->free;
    s->free = piece;
    pthread_mutex_unlock(&s->lock);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "cuda/device.h"

#include <pthread.h>
#include <stdlib.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct handover *handovers; /* under lock, as all states */
static uint64_t numbers;

struct handover *handover_offer(const void *data, uint64_t bytes, struct device_event *event)
{
    struct handover *l = calloc(1, sizeof *l);

    if (!l)
        return NULL;
    l->data = data;
    l->bytes = bytes;
    l->event = event;
    pthread_mutex_lock(&lock);
    l->number = ++numbers;
    l->next = handovers;
    handovers = l;
    pthread_mutex_unlock(&lock);
    return l;
}

bool handover_end(struct handover *l, bool withdraw)
{
    struct handover **at = &handovers;
    bool ended;

    pthread_mutex_lock(&lock);
    ended = l->state == HANDOVER_RETURNED || (withdraw && l->state == HANDOVER_OFFERED);
    if (ended) {
        while (*at != l)
            at = &(*at)->next;
        *at = l->next;
    }
    pthread_mutex_unlock(&lock);
    if (ended)
        free(l);
    return ended;
}

struct handover *handover_take(uint64_t number, uint64_t bytes)
{
    struct handover *l;

    pthread_mutex_lock(&lock);
    l = handovers;
    while (l && l->number != number)
        l = l->next;
    if (l && l->state == HANDOVER_OFFERED && l->bytes == bytes)
        l->state = HANDOVER_TAKEN;
    else
        l = NULL;
    pthread_mutex_unlock(&lock);
    return l;
}

void handover_return(struct handover *l)
{
    pthread_mutex_lock(&lock);
    l->state = HANDOVER_RETURNED;
    pthread_mutex_unlock(&lock);
}

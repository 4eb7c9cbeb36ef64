/* SPDX-License-Identifier: Apache-2.0 */
#include "cuda/loan.h"

#include <pthread.h>
#include <stdlib.h>

enum state { OFFERED, TAKEN, RETURNED };

struct loan {
    struct loan *next, **prev;
    uint64_t number, bytes;
    const void *data;
    struct device_event *event;
    enum state state;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct loan *loans; /* under lock, as all states */
static uint64_t numbers;

struct loan *loan_offer(const void *data, uint64_t bytes, struct device_event *event)
{
    struct loan *l = calloc(1, sizeof *l);

    if (!l)
        return NULL;
    l->data = data;
    l->bytes = bytes;
    l->event = event;
    pthread_mutex_lock(&lock);
    l->number = ++numbers;
    l->next = loans;
    l->prev = &loans;
    if (loans)
        loans->prev = &l->next;
    loans = l;
    pthread_mutex_unlock(&lock);
    return l;
}

uint64_t loan_number(const struct loan *l)
{
    return l->number;
}

bool loan_end(struct loan *l, bool withdraw)
{
    bool ended;

    pthread_mutex_lock(&lock);
    ended = l->state == RETURNED || (withdraw && l->state == OFFERED);
    if (ended) {
        *l->prev = l->next;
        if (l->next)
            l->next->prev = l->prev;
    }
    pthread_mutex_unlock(&lock);
    if (ended)
        free(l);
    return ended;
}

struct loan *loan_take(uint64_t number, uint64_t bytes)
{
    struct loan *l;

    pthread_mutex_lock(&lock);
    l = loans;
    while (l && l->number != number)
        l = l->next;
    if (l && l->state == OFFERED && l->bytes == bytes)
        l->state = TAKEN;
    else
        l = NULL;
    pthread_mutex_unlock(&lock);
    return l;
}

const void *loan_data(const struct loan *l)
{
    return l->data;
}

struct device_event *loan_event(const struct loan *l)
{
    return l->event;
}

void loan_return(struct loan *l)
{
    pthread_mutex_lock(&lock);
    l->state = RETURNED;
    pthread_mutex_unlock(&lock);
}

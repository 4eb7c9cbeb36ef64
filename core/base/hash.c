/* SPDX-License-Identifier: Apache-2.0 */
#include "core/base/hash.h"

#include <pthread.h>

static pthread_once_t drawn = PTHREAD_ONCE_INIT;
static struct siphash_key hash_key;

static void hash_draw(void)
{
    hash_key = siphash_draw();
}

unsigned hash_keyed(const void *data, size_t len)
{
    pthread_once(&drawn, hash_draw);
    return (unsigned)siphash(&hash_key, data, len);
}

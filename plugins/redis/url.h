/* SPDX-License-Identifier: Apache-2.0 */
/* url.h - parses redis://[user:password@]host[:port][/prefix], or rediss:// for TLS. */
#ifndef REDIS_URL_H
#define REDIS_URL_H

#include <stdbool.h>
#include <stdint.h>
#include <tenrec/error.h>

#define REDIS_PORT 6379
#define REDIS_PREFIX_MAX 200 /* bytes */

struct redis_url {
    char host[256];
    char user[128];     /* "": none */
    char password[512]; /* "": none */
    char prefix[REDIS_PREFIX_MAX + 1];
    uint16_t port;
    bool tls;
};

/* User, password and prefix may hold %XX. The default prefix is "tenrec".
 *
 * errors: EINVAL names the wrong part, without the password */
tenrec_status redis_url_read(const char *url, struct redis_url *ret, tenrec_error *err);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* url.h - parses SCHEME://[user:password@]host[:port][,host[:port]...][/prefix], or SCHEMEs:// for
 * TLS. */
#ifndef STORE_URL_H
#define STORE_URL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <tenrec/error.h>

#define STORE_PREFIX_MAX 200 /* bytes */
#define STORE_HOSTS_MAX 8

/* What the URLs of one plugin have. */
struct store_url_form {
    const char *scheme;  /* without TLS */
    uint16_t port;       /* by default */
    uint32_t most_hosts; /* STORE_HOSTS_MAX at most */
};

struct store_host {
    char host[256];
    uint16_t port;
};

struct store_url {
    struct store_host at[STORE_HOSTS_MAX];
    uint32_t n_hosts;
    char user[128];     /* "": none */
    char password[512]; /* "": none */
    char prefix[STORE_PREFIX_MAX + 1];
    bool tls;
};

/* User, password and prefix may hold %XX. The default prefix is "tenrec".
 *
 * errors: EINVAL names the wrong part, without the password */
tenrec_status store_url_read(const char *url, const struct store_url_form *form,
                             struct store_url *ret, tenrec_error *err);

/* "redis store 10.0.0.3:6379/jobs", for error texts. */
void store_url_name(const struct store_url *url, const struct store_url_form *form, size_t room,
                    char *ret);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* post.h - requests to one collector, over a connection that stays open. One thread at a time. */
#ifndef OTLP_POST_H
#define OTLP_POST_H

#include <stdint.h>
#include <tenrec/plugin.h>

struct post;

/* url      borrowed until post_close, like the rest
 * here     the URL is of this host: no proxy is asked
 * ca_file  "": the authorities of the system
 * errors   ENOMEM, EINVAL (a header that is none), EUNSUPPORTED (libcurl cannot) */
tenrec_status post_open(const char *url, bool here, const struct tenrec_option_map *headers,
                        const char *ca_file, struct post **ret, tenrec_error *err);
void post_close(struct post *p); /* NULL is fine */

/* errors: ETIMEDOUT, ECONNECT (also answers after which another try may help), EPERM (refused) */
tenrec_status post_send(struct post *p, const void *body, size_t len, uint32_t timeout_ms,
                        tenrec_error *err);

#endif

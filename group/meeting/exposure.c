/* SPDX-License-Identifier: Apache-2.0 */
#include "group/meeting/meeting.h"

#include "core/base/log.h"
#include "security/proof/security.h"
#include "security/secret/secret_handover.h"

#include <arpa/inet.h>
#include <stdatomic.h>
#include <string.h>

static atomic_flag warned = ATOMIC_FLAG_INIT;

/* Copies the host of "host:port" or "[v6%zone]:port". */
static void exposure_host(const char *text, char ret[INET6_ADDRSTRLEN])
{
    const bool bracket = *text == '[';
    const size_t len = strcspn(text + bracket, bracket ? "]%" : ":");

    *ret = '\0';
    if (len < INET6_ADDRSTRLEN)
        memcpy(ret, text + bracket, len);
    ret[len < INET6_ADDRSTRLEN ? len : 0] = '\0';
}

bool exposure_is_beyond_loopback(const char *address)
{
    char host[INET6_ADDRSTRLEN];
    struct in6_addr any;

    for (const char *at = address; (at = strstr(at, "://"));) {
        at += strlen("://");
        exposure_host(at, host);
        if ((inet_pton(AF_INET, host, &any) == 1 || inet_pton(AF_INET6, host, &any) == 1) &&
            !advertise_address_is_loopback(host))
            return true;
    }
    return false;
}

void exposure_warn(const struct security *s, const char *worker, const char *address)
{
    if (s->mode != SECURITY_NONE || s->written || !exposure_is_beyond_loopback(address) ||
        atomic_flag_test_and_set(&warned))
        return;
    log_line(TENREC_LOG_WARN, worker,
             "listens at %s in security mode none: any process that reaches it can call its "
             "functions; set " SECRET_FILE_VARIABLE
             ", or 'security: { mode: none }' to silence this line",
             address);
}

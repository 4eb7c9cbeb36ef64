/* SPDX-License-Identifier: Apache-2.0 */
#include "secret_lookup.h"

#include "core/base/resolve.h"
#include "core/config/settings.h"
#include "group/meeting/launch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Finds the address of a TCP store. Returns false if the URL has none. */
static bool secret_lookup_find(const char *url, struct launch *ret)
{
    struct init_method method;
    bool found = init_method_read(url, &method, NULL) == TENREC_OK;

    if (found && method.kind == INIT_TCP)
        found =
            resolve_split(method.text, ret->host, sizeof ret->host, &ret->port, NULL) == TENREC_OK;
    else
        found = found && method.kind == INIT_ENV && launch_find_store(ret, NULL) == TENREC_OK;
    init_method_finish(&method);
    return found && ret->port;
}

tenrec_status secret_lookup_is_written(const struct tenrec_config *config, bool *ret,
                                       tenrec_error *err)
{
    struct config_security *section;
    tenrec_status st = config_security_make(config, &section, err);

    if (st != TENREC_OK)
        return st;
    *ret = *section->secret_file || (section->mode && (strcmp(section->mode, "none") == 0 ||
                                                       strcmp(section->mode, "mtls") == 0));
    config_security_drop(section);
    return TENREC_OK;
}

tenrec_status secret_lookup_ask(const char *url, uint32_t ms, struct secret **ret,
                                tenrec_error *err)
{
    struct launch at = { .rank = -1, .world = -1 };
    char name[SECRET_NAME_MAX];
    tenrec_status st;

    *ret = NULL;
    if (!secret_lookup_find(url, &at))
        return TENREC_OK;
    secret_giver_derive(at.host, at.port, name);
    st = secret_ask(name, ms, ret, err);
    if (st == TENREC_OK || st == TENREC_ECONNECT)
        return TENREC_OK;
    tenrec_error_prefix(err,
                        "no secret of the launcher that serves the store at '%s', port %u, and no "
                        "--secret-file",
                        at.host, (unsigned)at.port);
    return st;
}

tenrec_status secret_lookup_announce(const struct secret *s, tenrec_error *err)
{
    char number[16];
    int fd = -1;
    tenrec_status st = secret_memfd_new(s, &fd, err);

    if (st != TENREC_OK)
        return st;
    snprintf(number, sizeof number, "%d", fd);
    if (setenv(SECRET_FD_VARIABLE, number, 1) == 0)
        return TENREC_OK;
    close(fd);
    return tenrec_fail(err, TENREC_ENOMEM, "no memory for a variable");
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "run/workers.h"

#include "group/meeting/meeting.h"
#include "secret_lookup.h"

#include <stdlib.h>
#include <string.h>
#include <tenrec/config.h>
#include <unistd.h>

enum { ASK_MS = 5000 }; /* an outer launcher, or that of the joined store */

/* Returns true if launchers on other hosts take part: a secret that is drawn here would be unknown
 * to them. */
static bool run_secret_is_shared(const struct workers_plan *plan)
{
    return plan->elastic.join || (plan->serve_at && !advertise_address_is_loopback(plan->serve_at));
}

/* A secret that exists already. *ret is NULL and the status OK if there is none. */
static tenrec_status run_secret_find(const struct workers_plan *plan, struct secret **ret,
                                     const char **ret_source, tenrec_error *err)
{
    tenrec_status st = secret_inherit(ASK_MS, ret, ret_source, err);

    if (st != TENREC_OK || *ret || !plan->elastic.join)
        return st;
    *ret_source = "the launcher of the store";
    return secret_lookup_ask(plan->elastic.join, ASK_MS, ret, err);
}

/* Compares the demands of the configuration with the options. */
static tenrec_status run_secret_check(const struct workers_plan *plan, const struct security *s,
                                      const struct secret *found, tenrec_error *err)
{
    if (plan->insecure && s->mode != SECURITY_NONE)
        return tenrec_fail(err, TENREC_ECONFIG,
                           "--insecure, but the configuration demands mode '%s' (%s)",
                           security_mode_name(s->mode), s->mode_source);
    if (plan->secret_file && !(s->secret && secret_equal(s->secret, found)))
        return tenrec_fail(err, TENREC_ECONFIG,
                           "--secret-file is given, but the configuration says mode '%s' (%s)%s",
                           security_mode_name(s->mode), s->mode_source,
                           s->secret ? " with another secret" : "");
    if (plan->insecure || s->mode != SECURITY_NONE || s->written)
        return TENREC_OK;
    return tenrec_fail(err, TENREC_ECONFIG,
                       "%s requires the secret that all launchers of the group have: give "
                       "--secret-file FILE ('tenrec secret new FILE' makes one), or --insecure",
                       plan->elastic.join ? "--join" : "--serve for other hosts");
}

/* Gets the secret that the configuration does not have: *ret is NULL if there is none. */
static tenrec_status run_secret_get(const struct workers_plan *plan,
                                    const struct tenrec_config *config, struct secret **ret,
                                    const char **ret_source, tenrec_error *err)
{
    bool written = false;
    tenrec_status st;

    *ret_source = "the launcher";
    if (plan->insecure)
        return TENREC_OK;
    if (plan->secret_file) {
        *ret_source = "--secret-file";
        return secret_read_file(plan->secret_file, ret, err);
    }
    st = secret_lookup_is_written(config, &written, err);
    if (st != TENREC_OK || written)
        return st;
    st = run_secret_find(plan, ret, ret_source, err);
    if (st != TENREC_OK || *ret || run_secret_is_shared(plan))
        return st;
    *ret_source = "the launcher";
    return secret_draw(ret, err);
}

static tenrec_status run_secret_choose(const struct workers_plan *plan,
                                       const struct tenrec_config *config, struct security **ret,
                                       tenrec_error *err)
{
    struct secret *found = NULL;
    struct security *security = NULL;
    const char *source;
    tenrec_status st = run_secret_get(plan, config, &found, &source, err);

    if (st == TENREC_OK)
        st = security_open_with(config, found, source, &security, err);
    if (st == TENREC_OK)
        st = run_secret_check(plan, security, found, err);
    secret_drop(found);
    if (st == TENREC_OK)
        *ret = security;
    else
        security_drop(security);
    return st;
}

tenrec_status run_secret_open(const struct workers_plan *plan, struct run_secret *ret,
                              tenrec_error *err)
{
    struct tenrec_config *config = NULL;
    tenrec_status st = tenrec_config_load(plan->config, &config, err);

    if (st == TENREC_OK)
        st = run_secret_choose(plan, config, &ret->security, err);
    tenrec_config_drop(config);
    if (st == TENREC_OK && ret->security->secret)
        st = secret_memfd_new(ret->security->secret, &ret->fd, err);
    return st;
}

tenrec_status run_secret_give(struct run_secret *s, const char *host, uint16_t port,
                              tenrec_error *err)
{
    char name[SECRET_NAME_MAX];
    tenrec_status st;

    if (!s->fd)
        return TENREC_OK;
    secret_giver_derive(host, port, name);
    st = secret_giver_open(s->security->secret, port ? name : NULL, &s->giver, err);
    /* A process that was here before us has the name. The workers learn another by a variable; a
     * shell needs --secret-file. */
    if (st == TENREC_EEXIST)
        st = secret_giver_open(s->security->secret, NULL, &s->giver, err);
    return st;
}

void run_secret_close(struct run_secret *s)
{
    secret_giver_close(s->giver);
    if (s->fd)
        close(s->fd);
    security_drop(s->security);
}

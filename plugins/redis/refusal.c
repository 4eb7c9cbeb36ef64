/* SPDX-License-Identifier: Apache-2.0 */
/* refusal.c - explains the error replies of a server. */
#include "conn.h"

#include <string.h>

static const struct {
    const char *begins[2]; /* texts of different server versions */
    tenrec_status status;  /* EPEER_LOST: a retry may succeed; else a person has to mend it */
    const char *means;
} refusals[] = {
    { { "LOADING" }, TENREC_EPEER_LOST, "the server is still loading its data" },
    { { "BUSY " }, TENREC_EPEER_LOST, "the server is busy with another client's script" },
    { { "MASTERDOWN" }, TENREC_EPEER_LOST, "the server is a replica without its master" },
    { { "CLUSTERDOWN" }, TENREC_EPEER_LOST, "the server's cluster is down" },
    { { "TRYAGAIN" }, TENREC_EPEER_LOST, "the server's cluster is moving keys" },
    { { "ERR max number of clients" },
      TENREC_EPEER_LOST,
      "the server has too many clients: raise its maxclients" },
    { { "NOAUTH" },
      TENREC_ECONFIG,
      "the server requires a password: redis://user:password@..., or the option 'password'" },
    { { "WRONGPASS" }, TENREC_ECONFIG, "the server refuses the user or the password" },
    { { "ERR invalid password" }, TENREC_ECONFIG, "the server refuses the password" },
    { { "ERR Client sent AUTH, but no password", "ERR AUTH <password> called without" },
      TENREC_ECONFIG,
      "the server has no password: remove it from the URL or the options" },
    { { "NOPERM", "ERR The user executing the script can't" },
      TENREC_ECONFIG,
      "the user lacks a permission: keys and channels PREFIX*, and the commands of "
      "docs/stores.md" },
    { { "DENIED" },
      TENREC_ECONFIG,
      "the server is in protected mode, which admits only its own host" },
    { { "READONLY" },
      TENREC_ECONFIG,
      "the server is a read-only replica: name its master instead" },
    { { "OOM" }, TENREC_ETOOBIG, "the server is full: raise its maxmemory" },
    { { "MISCONF" }, TENREC_ECONFIG, "the server cannot save its data and refuses changes" },
    { { "NOREPLICAS" }, TENREC_ECONFIG, "the server has too few replicas and refuses changes" },
    { { "MOVED", "CROSSSLOT" },
      TENREC_EUNSUPPORTED,
      "the server is part of a Redis Cluster, which this plugin does not support" },
    { { "WRONGTYPE" },
      TENREC_ECONFIG,
      "the keys at this prefix belong to something else: choose another prefix" },
    { { "ERR DB index is out of range" },
      TENREC_ECONFIG,
      "the server has no such database: see the option 'database'" },
    { { "ERR unknown command" }, TENREC_EUNSUPPORTED, "the server lacks a required command" },
};

static bool refusal_begins(const char *text, const char *with)
{
    return with && strncmp(text, with, strlen(with)) == 0;
}

enum conn_end conn_refused(const redisReply *r, tenrec_error *err)
{
    for (size_t i = 0; i < sizeof refusals / sizeof refusals[0]; i++) {
        if (!refusal_begins(r->str, refusals[i].begins[0]) &&
            !refusal_begins(r->str, refusals[i].begins[1]))
            continue;
        tenrec_fail(err, refusals[i].status, "%s (%.150s)", refusals[i].means, r->str);
        return refusals[i].status == TENREC_EPEER_LOST ? CONN_AGAIN : CONN_NEVER;
    }
    tenrec_fail(err, TENREC_EPROTOCOL, "the server replies: %.250s", r->str);
    return CONN_NEVER;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* refusal.c - what the errors mean that a server answers. */
#include "conn.h"

#include <string.h>

/* It may be another one soon. */
static const struct {
    const char *begins, *means;
} for_now[] = {
    { "LOADING", "it is still loading its data" },
    { "BUSY ", "it is busy with a script of somebody's" },
    { "MASTERDOWN", "it is a replica without its master" },
    { "CLUSTERDOWN", "its cluster is down" },
    { "TRYAGAIN", "its cluster moves keys" },
    { "ERR max number of clients", "it has too many clients: raise its maxclients" },
};

/* Somebody must do something. */
static const struct {
    const char *begins[2]; /* as servers of different ages put it */
    tenrec_status status;
    const char *means;
} for_good[] = {
    { { "NOAUTH" },
      TENREC_ECONFIG,
      "it wants a password: redis://user:password@..., or the option 'password'" },
    { { "WRONGPASS" }, TENREC_ECONFIG, "it refuses the user or the password" },
    { { "ERR invalid password" }, TENREC_ECONFIG, "it refuses the password" },
    { { "ERR Client sent AUTH, but no password", "ERR AUTH <password> called without" },
      TENREC_ECONFIG,
      "it knows no password: leave it out" },
    { { "NOPERM", "ERR The user executing the script can't" },
      TENREC_ECONFIG,
      "its user lacks a right: keys and channels PREFIX*, and the commands of docs/stores.md" },
    { { "DENIED" }, TENREC_ECONFIG, "it is in protected mode, which lets only its own host in" },
    { { "READONLY" }, TENREC_ECONFIG, "it is a read-only replica: name its master instead" },
    { { "OOM" }, TENREC_ETOOBIG, "it is full: raise its maxmemory" },
    { { "MISCONF" }, TENREC_ECONFIG, "it cannot save its data and takes no more" },
    { { "NOREPLICAS" }, TENREC_ECONFIG, "it has too few replicas and takes no more" },
    { { "MOVED", "CROSSSLOT" },
      TENREC_EUNSUPPORTED,
      "it is part of a Redis Cluster, which this plugin does not speak" },
    { { "WRONGTYPE" },
      TENREC_ECONFIG,
      "the keys at this prefix belong to something else: choose another prefix" },
    { { "ERR DB index is out of range" },
      TENREC_ECONFIG,
      "it has no such database: see the option 'database'" },
    { { "ERR unknown command" }, TENREC_EUNSUPPORTED, "it lacks a command that is needed" },
};

static bool refusal_begins(const char *text, const char *with)
{
    return with && strncmp(text, with, strlen(with)) == 0;
}

enum conn_end conn_refused(const redisReply *r, tenrec_error *err)
{
    for (size_t i = 0; i < sizeof for_now / sizeof for_now[0]; i++) {
        if (!refusal_begins(r->str, for_now[i].begins))
            continue;
        tenrec_fail(err, TENREC_EPEER_LOST, "%s (%.150s)", for_now[i].means, r->str);
        return CONN_AGAIN;
    }
    for (size_t i = 0; i < sizeof for_good / sizeof for_good[0]; i++) {
        if (!refusal_begins(r->str, for_good[i].begins[0]) &&
            !refusal_begins(r->str, for_good[i].begins[1]))
            continue;
        tenrec_fail(err, for_good[i].status, "%s (%.150s)", for_good[i].means, r->str);
        return CONN_NEVER;
    }
    tenrec_fail(err, TENREC_EPROTOCOL, "it says: %.250s", r->str);
    return CONN_NEVER;
}

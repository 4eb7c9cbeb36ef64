/* SPDX-License-Identifier: Apache-2.0 */
/* reconfigure_call.c - the settings of a worker, changed by another process.
 *
 * The caller leaves the settings in a note for processes of its user on its host, and sends the
 * name of the note beside them. A worker that finds the note obeys it. Other callers are obeyed if
 * they are named by a rule of `security: allow:` for this very function. */
#include "core/backend/chain.h"
#include "core/base/memory.h"
#include "rpc/call/function.h"
#include "rpc/future/worker.h"
#include "rpc/member/membership.h"
#include "rpc/worker/reconfigure.h"
#include "security/proof/rules.h"
#include "security/proof/user_note.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 64 }; /* settings in one call */

/* ---- the note: its receiver, then a line for each setting --------------------------- */

enum { RECEIVER_MAX = 1024 };

/* Names one life of one worker of one group: no other worker obeys the note, whoever sends its name
 * there. */
static void note_receiver(struct tenrec_worker *w, tenrec_peer id, const char *address,
                          char ret[static RECEIVER_MAX])
{
    snprintf(ret, RECEIVER_MAX, "%s %s %" PRIx64 " %s", peers_name(&w->peers, id),
             membership_group(w->membership), peers_incarnation(&w->peers, id), address);
}

static tenrec_status note_leave(struct tenrec_worker *w, const char *to,
                                const struct tenrec_setting *s, size_t n,
                                char ret_name[USER_NOTE_NAME], tenrec_error *err)
{
    char *text = NULL, receiver[RECEIVER_MAX];
    size_t len = 0;
    tenrec_peer id;
    FILE *f;
    tenrec_status st = peers_find(&w->peers, to, &id, err);

    if (st != TENREC_OK)
        return st;
    note_receiver(w, id, chain_member_address(w->chain, id), receiver);
    f = open_memstream(&text, &len);
    if (f) {
        fprintf(f, "%s\n", receiver);
        for (size_t i = 0; i < n; i++)
            fprintf(f, "%s=%s\n", s[i].key, s[i].value);
    }
    st = f && fclose(f) == 0 ? user_note_leave(text, ret_name, err) : memory_fail(err);
    free(text);
    return st;
}

/* Takes the lines of `text` apart, in place. */
static tenrec_status note_read(char *text, struct tenrec_setting *s, size_t *ret_n,
                               tenrec_error *err)
{
    const char *line;

    for (*ret_n = 0; (line = strsep(&text, "\n")) && *line; ++*ret_n) {
        char *value = strchr(line, '=');

        if (!value || *ret_n == MOST)
            return tenrec_fail(err, TENREC_EINVAL, "the note has %s",
                               value ? "too many lines" : "a line without '='");
        *value = '\0';
        s[*ret_n] = (struct tenrec_setting){ line, value + 1 };
    }
    return TENREC_OK;
}

/* ---- the served function: name of the note, map of the settings --------------------- */

static bool reconfigure_is_allowed(struct tenrec_worker *w, const struct tenrec_call *call)
{
    const struct rule *rule =
        w->functions->rules ? rules_named(w->functions->rules, RECONFIGURE_FUNCTION) : NULL;
    const struct tenrec_worker_info from = tenrec_call_from(call);
    const struct rule_caller caller = {
        .member = from.id >= 0 || tenrec_call_proof(call) == TENREC_PROVED_SECRET, .name = from.name
    };

    return rule && rule_admits(rule, &caller);
}

static tenrec_status reconfigure_by_map(struct tenrec_worker *w, const struct tenrec_call *call,
                                        const struct tenrec_value *map, tenrec_error *err)
{
    struct tenrec_setting s[MOST];

    if (!reconfigure_is_allowed(w, call))
        return tenrec_fail(err, TENREC_EPERM,
                           "settings change for processes of its user on its host, and for callers "
                           "that a rule of security.allow with 'function: " RECONFIGURE_FUNCTION
                           "' names");
    if (map->type != TENREC_VALUE_MAP || map->n > MOST)
        return tenrec_fail(err, TENREC_EINVAL, "expected a map of at most %d settings", MOST);
    for (size_t i = 0; i < map->n; i++) {
        const struct tenrec_value *v = &map->u.map[i].value;

        if (v->type != TENREC_VALUE_TEXT || strlen(v->u.text) != v->n)
            return tenrec_fail(err, TENREC_EINVAL, "setting '%s' is %s, expected text",
                               map->u.map[i].key, tenrec_value_type_name(map->u.map[i].value.type));
        s[i] = (struct tenrec_setting){ map->u.map[i].key, map->u.map[i].value.u.text };
    }
    return reconfigure(w, s, map->n, tenrec_call_from(call).name, err);
}

static tenrec_status reconfigure_answer(struct tenrec_call *call, void *arg, tenrec_error *err)
{
    struct tenrec_worker *w = tenrec_call_worker(call);
    const struct tenrec_value *map;
    struct tenrec_setting s[MOST];
    const char *name;
    char *text = NULL, self[RECEIVER_MAX];
    size_t n = 0;
    tenrec_status st = tenrec_call_get_args(call, err, "sv", &name, &map);

    (void)arg;
    if (st != TENREC_OK)
        return st;
    note_receiver(w, w->self.id, chain_address(w->chain), self);
    st = user_note_take(name, self, &text, err);
    if (st == TENREC_ENOTFOUND)
        return reconfigure_by_map(w, call, map, err);
    if (st == TENREC_OK)
        st = note_read(text, s, &n, err);
    if (st == TENREC_OK)
        st = reconfigure(w, s, n, tenrec_call_from(call).name, err);
    free(text);
    return st;
}

/* Inline, so that it answers even if blocked functions fill the pool. */
tenrec_status reconfigure_serve(struct functions *f, tenrec_error *err)
{
    return functions_add(f, RECONFIGURE_FUNCTION, reconfigure_answer, NULL,
                         TENREC_INLINE | FUNCTION_DECIDES, err);
}

/* ---- the caller -------------------------------------------------------------------- */

static tenrec_status reconfigure_ask(struct tenrec_worker *w, const char *to, const char *note,
                                     const struct tenrec_setting *setting, size_t n,
                                     const struct tenrec_call_options *options, tenrec_error *err)
{
    struct tenrec_entry entry[MOST];
    struct tenrec_value args[2];

    for (size_t i = 0; i < n; i++)
        entry[i] = (struct tenrec_entry){ setting[i].key, tenrec_value_text(setting[i].value) };
    args[0] = tenrec_value_text(note);
    args[1] = tenrec_value_map(entry, n);
    return tenrec_rpc_sync(w, to, RECONFIGURE_FUNCTION, args, 2, options, NULL, err);
}

tenrec_status tenrec_worker_reconfigure(struct tenrec_worker *w, const char *to,
                                        const struct tenrec_setting *setting, size_t n,
                                        const struct tenrec_call_options *options,
                                        tenrec_error *err)
{
    char note[USER_NOTE_NAME] = "";
    tenrec_status st;

    if (n == 0 || n > MOST)
        return tenrec_fail(err, TENREC_EINVAL, "%zu settings, expected 1 to %d", n, MOST);
    for (size_t i = 0; i < n; i++)
        if (!setting[i].key || !setting[i].value || strpbrk(setting[i].key, "=\n") ||
            strchr(setting[i].value, '\n'))
            return tenrec_fail(err, TENREC_EINVAL,
                               "setting %zu: expected a key without '=', and a value of one line",
                               i + 1);
    if (!to)
        return reconfigure(w, setting, n, "", err);
    st = note_leave(w, to, setting, n, note, err);
    if (st == TENREC_OK)
        st = reconfigure_ask(w, to, note, setting, n, options, err);
    user_note_withdraw(note);
    return st;
}

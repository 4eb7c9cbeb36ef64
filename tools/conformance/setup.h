/* SPDX-License-Identifier: Apache-2.0 */
/* setup.h - what is checked, as the arguments of the command name it. */
#ifndef TENREC_TOOLS_CONFORMANCE_SETUP_H
#define TENREC_TOOLS_CONFORMANCE_SETUP_H

struct tool;

/* The contract: of tenrec/agent.h, store_plugin.h or observer_plugin.h. */
enum conformance_kind { OF_AGENTS, OF_STORES, OF_OBSERVERS };

/* The backend, store or observer under test. */
struct conformance_setup {
    const char *path;         /* of the config; NULL: as TENREC_CONFIG says */
    const char *text;         /* of a config without a file; NULL: the file's */
    const char *mode;         /* of security; NULL: as the config and the environment say */
    const char *url;          /* of a store; else NULL */
    const char *address;      /* of an observer, whose plugin is `path`; else NULL */
    int workers;              /* 1 or 2 */
    char *own_text, *own_url; /* owns: what `text` and `url` may point to */
};

/* The words of the command: a configuration or a plugin, a URL, or both in any order. `around` is
 * the plugin inside, or NULL. Returns TOOL_GO_ON, or an exit status after it has printed why.
 *
 * ret   finished by setup_finish on success; `workers`, `mode` and `address` stay as they are */
int setup_make(const struct tool *self, char **word, int n, const char *around,
               struct conformance_setup *ret);
void setup_finish(struct conformance_setup *s);

static inline enum conformance_kind setup_kind(const struct conformance_setup *s)
{
    return s->address ? OF_OBSERVERS : s->url ? OF_STORES : OF_AGENTS;
}

#endif

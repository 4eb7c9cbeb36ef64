/* SPDX-License-Identifier: Apache-2.0 */
/* setup.h - what is checked, as the arguments of the command name it. */
#ifndef TENREC_TOOLS_CONFORMANCE_SETUP_H
#define TENREC_TOOLS_CONFORMANCE_SETUP_H

struct tool;

/* The backend or store under test. */
struct conformance_setup {
    const char *path;         /* of the config; NULL: as TENREC_CONFIG says */
    const char *text;         /* of a config without a file; NULL: the file's */
    const char *mode;         /* of security; NULL: as the config and the environment say */
    const char *url;          /* of a store; NULL: the backend */
    int workers;              /* 1 or 2 */
    char *own_text, *own_url; /* owns: what `text` and `url` may point to */
};

/* The words of the command: a configuration or a plugin, a URL, or both in any order. `around` is
 * the plugin inside, or NULL. Returns TOOL_GO_ON, or an exit status after it has printed why.
 *
 * ret   finished by setup_finish on success; `workers` and `mode` stay as they are */
int setup_make(const struct tool *self, char **word, int n, const char *around,
               struct conformance_setup *ret);
void setup_finish(struct conformance_setup *s);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* init_method.h - parses the text that names a group's store. */
#ifndef TENREC_MEETING_INIT_METHOD_H
#define TENREC_MEETING_INIT_METHOD_H

#include <stdint.h>
#include <tenrec/error.h>

struct init_method {
    enum { INIT_ENV, INIT_TCP, INIT_FILE, INIT_MEMORY, INIT_OTHER } kind;
    char *text;          /* owns; between :// and the '?'; of INIT_OTHER with the scheme */
    int32_t rank, world; /* of the query; -1: not in it */
};

/* Reads `text`. ret: init_method_finish it, also after an error. errors: EINVAL, ENOMEM */
tenrec_status init_method_read(const char *text, struct init_method *ret, tenrec_error *err);
void init_method_finish(struct init_method *m);

/* Prefixes an error with `label` and the init_method, and masks a password in it. */
void init_method_blame(const char *label, const char *text, tenrec_error *err);

#endif

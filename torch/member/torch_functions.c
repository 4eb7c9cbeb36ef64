/* SPDX-License-Identifier: Apache-2.0 */
/* torch_functions.c - the functions of a member, which torch's workers call. */
#include "core/base/memory.h"
#include "core/base/text.h"
#include "torch/member/torch_request.h"

#include <stdlib.h>
#include <string.h>

static struct torch_function *function_find(const struct tenrec_torch_member *m, const char *name,
                                            size_t len)
{
    for (struct torch_function *f = m->function; f; f = f->next)
        if (strlen(f->name) == len && memcmp(f->name, name, len) == 0)
            return f;
    return NULL;
}

tenrec_status tenrec_torch_member_register_function(struct tenrec_torch_member *m, const char *name,
                                                    tenrec_torch_function_fn *fn, void *arg,
                                                    tenrec_error *err)
{
    const size_t len = name ? strlen(name) : 0;
    struct torch_function *f;
    bool known;

    if (len == 0 || !fn)
        return tenrec_fail(err, TENREC_EINVAL, "no %s is given", fn ? "name" : "function");
    f = memory_new(1, sizeof *f + len + 1);
    if (!f)
        return tenrec_fail(err, TENREC_ENOMEM, "no memory for function '%s'", name);
    f->fn = fn;
    f->arg = arg;
    memcpy(f->name, name, len);
    pthread_mutex_lock(&m->lock);
    known = function_find(m, name, len) != NULL;
    if (!known) {
        f->next = m->function;
        m->function = f;
    }
    pthread_mutex_unlock(&m->lock);
    if (!known)
        return TENREC_OK;
    free(f);
    return tenrec_fail(err, TENREC_EEXIST, "function '%s' is registered already", name);
}

void torch_functions_finish(struct tenrec_torch_member *m)
{
    struct torch_function *next;

    for (struct torch_function *f = m->function; f; f = next) {
        next = f->next;
        free(f);
    }
    m->function = NULL;
}

tenrec_status torch_functions_get(struct tenrec_torch_member *m, const char *name,
                                  const struct torch_function **ret, tenrec_error *err)
{
    struct suggestion near;

    suggest_init(&near, name);
    pthread_mutex_lock(&m->lock);
    *ret = function_find(m, name, strlen(name));
    if (!*ret)
        *ret = function_find(m, name, strcspn(name, "("));
    for (const struct torch_function *f = m->function; f && !*ret; f = f->next)
        suggest_try(&near, f->name);
    pthread_mutex_unlock(&m->lock);
    return *ret ? TENREC_OK
                : tenrec_fail(err, TENREC_ENOFUNCTION, "'%s' has no function '%s'%s", m->name, name,
                              suggest_hint(&near));
}

bool torch_functions_has_methods(struct tenrec_torch_member *m, const char *class_name)
{
    const size_t len = strlen(class_name);
    bool found = false;

    pthread_mutex_lock(&m->lock);
    for (const struct torch_function *f = m->function; f && !found; f = f->next)
        found = len > 0 && strncmp(f->name, class_name, len) == 0 && f->name[len] == '.';
    pthread_mutex_unlock(&m->lock);
    return found;
}

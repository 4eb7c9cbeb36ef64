/* SPDX-License-Identifier: Apache-2.0 */
#include "rpc/call/function.h"

#include "core/base/memory.h"
#include "core/base/text.h"
#include "rpc/call/calls.h"
#include "rpc/call/mailbox.h"
#include "security/proof/rules.h"

#include <stdlib.h>

enum { NAME_MAX_BYTES = 255 };

void functions_init(struct functions *f)
{
    f->by_name = NULL;
    f->rules = NULL;
    atomic_init(&f->last, NULL);
    pthread_rwlock_init(&f->lock, NULL);
}

static void function_free(struct function *one)
{
    if (one && one->mailbox) {
        mailbox_finish(one->mailbox);
        free(one->mailbox);
    }
    if (one)
        free(one->name);
    free(one);
}

void functions_finish(struct functions *f)
{
    struct function *one, *next;

    HASH_ITER(hh, f->by_name, one, next)
    {
        HASH_DEL(f->by_name, one);
        function_free(one);
    }
    pthread_rwlock_destroy(&f->lock);
}

const struct function *functions_find(struct functions *f, const char *name, size_t len)
{
    const struct function *last = atomic_load_explicit(&f->last, memory_order_acquire);
    struct function *one;

    if (last && last->len == len && memcmp(last->name, name, len) == 0)
        return last;
    pthread_rwlock_rdlock(&f->lock);
    HASH_FIND(hh, f->by_name, name, len, one);
    pthread_rwlock_unlock(&f->lock);
    if (one)
        atomic_store_explicit(&f->last, one, memory_order_release);
    return one;
}

/* Returns true for a name of the library's own functions. */
static bool functions_own(const char *name)
{
    return strncmp(name, "tenrec.", 7) == 0;
}

tenrec_status functions_none(struct functions *f, const char *worker, const char *name, size_t len,
                             tenrec_error *err)
{
    char word[NAME_MAX_BYTES + 1];
    struct function *one, *next;
    struct suggestion near;

    snprintf(word, sizeof word, "%.*s", (int)(len < sizeof word ? len : sizeof word - 1), name);
    suggest_init(&near, word);
    pthread_rwlock_rdlock(&f->lock);
    HASH_ITER(hh, f->by_name, one, next)
    if (functions_own(one->name) == functions_own(word))
        suggest_try(&near, one->name);
    pthread_rwlock_unlock(&f->lock);
    return tenrec_fail(err, TENREC_ENOFUNCTION, "'%s' has no function '%s'%s", worker, word,
                       suggest_hint(&near));
}

struct pool_task *functions_close(struct functions *f)
{
    struct pool_task *held = NULL, **last = &held;
    struct function *one, *next;

    pthread_rwlock_rdlock(&f->lock);
    HASH_ITER(hh, f->by_name, one, next)
    {
        if (one->mailbox)
            *last = mailbox_close(one->mailbox);
        while (*last)
            last = &(*last)->next;
    }
    pthread_rwlock_unlock(&f->lock);
    return held;
}

void functions_open(struct functions *f)
{
    struct function *one, *next;

    pthread_rwlock_rdlock(&f->lock);
    HASH_ITER(hh, f->by_name, one, next)
    if (one->mailbox)
        mailbox_open(one->mailbox);
    pthread_rwlock_unlock(&f->lock);
}

static struct function *function_new(const char *name, tenrec_function_fn *fn, void *arg,
                                     uint32_t flags)
{
    const bool boxed = flags & TENREC_MAILBOX;
    struct function *one = memory_new(1, sizeof *one);

    if (!one)
        return NULL;
    one->name = memory_text(name);
    one->mailbox = boxed ? memory_new(1, sizeof *one->mailbox) : NULL;
    if (one->mailbox)
        mailbox_init(one->mailbox);
    if (!one->name || (boxed && !one->mailbox)) {
        function_free(one);
        return NULL;
    }
    one->len = strlen(name);
    one->fn = boxed ? mailbox_put : fn;
    one->arg = boxed ? one->mailbox : arg;
    one->flags = boxed ? TENREC_INLINE | TENREC_LATER : flags;
    return one;
}

tenrec_status functions_add(struct functions *f, const char *name, tenrec_function_fn *fn,
                            void *arg, uint32_t flags, tenrec_error *err)
{
    struct function *one = function_new(name, fn, arg, flags), *former;
    const size_t len = strlen(name);
    tenrec_status st = TENREC_OK;

    if (!one)
        return tenrec_fail(err, TENREC_ENOMEM, "no memory for function '%s'", name);
    if (f->rules)
        one->rule = rules_find(f->rules, name, len);
    pthread_rwlock_wrlock(&f->lock);
    HASH_FIND(hh, f->by_name, name, len, former);
    if (former) {
        st = tenrec_fail(err, TENREC_EEXIST, "function '%s' is registered already", name);
    } else {
        HASH_ADD_KEYPTR(hh, f->by_name, one->name, len, one);
        if (!hash_has(one))
            st = tenrec_fail(err, TENREC_ENOMEM, "no memory for function '%s'", name);
    }
    pthread_rwlock_unlock(&f->lock);
    if (st != TENREC_OK)
        function_free(one);
    return st;
}

tenrec_status tenrec_worker_register_function(struct tenrec_worker *w, const char *name,
                                              tenrec_function_fn *fn, void *arg, uint32_t flags,
                                              tenrec_error *err)
{
    size_t len = name ? strlen(name) : 0;

    if (len == 0 || len > NAME_MAX_BYTES)
        return tenrec_fail(err, TENREC_EINVAL, "a function's name has 1 to %d bytes, got %zu",
                           NAME_MAX_BYTES, len);
    if (strncmp(name, FUNCTION_RESERVED_PREFIX, strlen(FUNCTION_RESERVED_PREFIX)) == 0)
        return tenrec_fail(err, TENREC_EINVAL,
                           "function '%s': names that begin with '%s' are reserved for built-in "
                           "functions",
                           name, FUNCTION_RESERVED_PREFIX);
    if (!fn && !(flags & TENREC_MAILBOX))
        return tenrec_fail(err, TENREC_EINVAL, "function '%s': fn is NULL", name);
    if (fn && flags & TENREC_MAILBOX)
        return tenrec_fail(err, TENREC_EINVAL, "mailbox '%s': expected NULL as fn", name);
    if (flags & ~(uint32_t)(TENREC_INLINE | TENREC_LATER) && flags != TENREC_MAILBOX)
        return tenrec_fail(err, TENREC_EINVAL, "function '%s': unknown flags 0x%x", name, flags);
    return functions_add(&w->calls->functions, name, fn, arg, flags, err);
}

tenrec_status function_return(void *arg, const struct tenrec_value *v, tenrec_error *err)
{
    return tenrec_call_return(arg, v, err);
}

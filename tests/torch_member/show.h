/* SPDX-License-Identifier: Apache-2.0 */
/* show.h - objects of a pickle as text, for comparison. */
#ifndef TENREC_TESTS_TORCH_MEMBER_SHOW_H
#define TENREC_TESTS_TORCH_MEMBER_SHOW_H

#include "torch/member/pyobject.h"

#include <stdio.h>

/* Writes `o` into `text` as Python might print it: [1, 'a', torch._C.WorkerInfo('w0', 0)]. */
static void show(const struct pyobject *o, FILE *to)
{
    const char *open = o->kind == PY_LIST ? "[" : o->kind == PY_DICT ? "{" : "(";
    const char *close = o->kind == PY_LIST ? "]" : o->kind == PY_DICT ? "}" : ")";
    const uint32_t first = o->kind == PY_OBJECT;

    switch (o->kind) {
    case PY_NONE:
        fputs("None", to);
        return;
    case PY_BOOL:
        fputs(o->u.boolean ? "True" : "False", to);
        return;
    case PY_INT:
        fprintf(to, "%lld", (long long)o->u.integer);
        return;
    case PY_FLOAT:
        fprintf(to, "%g", o->u.number);
        return;
    case PY_TEXT:
    case PY_BYTES:
        fprintf(to, "%s'%.*s'", o->kind == PY_BYTES ? "b" : "", (int)o->u.text.len,
                (const char *)o->u.text.data);
        return;
    case PY_GLOBAL:
        fprintf(to, "%.*s.%.*s", (int)o->u.item[0]->u.text.len,
                (const char *)o->u.item[0]->u.text.data, (int)o->u.item[1]->u.text.len,
                (const char *)o->u.item[1]->u.text.data);
        return;
    case PY_TENSOR:
        fprintf(to, "tensor%lld", (long long)o->u.integer);
        return;
    case PY_RECEIVER:
        fputs("receiver", to);
        return;
    case PY_RREF_RECEIVER:
        fputs("rref_receiver", to);
        return;
    case PY_RREF:
        fputs("rref", to);
        break;
    case PY_OBJECT:
        show(o->u.item[0], to);
        break;
    case PY_LIST:
    case PY_TUPLE:
    case PY_DICT:
        break;
    }
    fputs(open, to);
    for (uint32_t i = first; i < o->n; i++) {
        fputs(i == first ? "" : o->kind == PY_DICT && (i - first) % 2 ? ": " : ", ", to);
        show(o->u.item[i], to);
    }
    fputs(close, to);
}

#endif

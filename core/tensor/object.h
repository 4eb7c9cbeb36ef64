/* SPDX-License-Identifier: Apache-2.0 */
/* object.h - C objects as values. */
#ifndef TENREC_TENSOR_OBJECT_H
#define TENREC_TENSOR_OBJECT_H

#include <pthread.h>
#include <tenrec/rref.h>

struct object_type_entry;

/* The types of which objects may arrive. */
struct object_types {
    pthread_mutex_t lock; /* guards the table */
    struct object_type_entry *table;
};

void object_types_init(struct object_types *t);
void object_types_finish(struct object_types *t);

/* Borrows `type`. errors: EINVAL, EEXIST, ENOMEM */
tenrec_status object_types_add(struct object_types *t, const struct tenrec_object_type *type,
                               tenrec_error *err);

/* Makes an object of a value that came as type `name`. errors: EUNSUPPORTED (no
 * such type here), what decode says */
tenrec_status object_decode(struct object_types *t, const char *name,
                            const struct tenrec_value *value, struct tenrec_object **ret,
                            tenrec_error *err);

/* The value that travels for it; *ret_type is the name of its type. errors:
 * EUNSUPPORTED, what encode says */
tenrec_status object_encode(const struct tenrec_object *o, struct tenrec_value **ret,
                            const char **ret_type, tenrec_error *err);

#endif

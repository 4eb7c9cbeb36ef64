/* SPDX-License-Identifier: Apache-2.0 */
/* section.h - the sections of a configuration whose entries name a plugin. */
#ifndef TENREC_CONFIG_SECTION_H
#define TENREC_CONFIG_SECTION_H

enum config_section { SECTION_BACKENDS, SECTION_STORES, SECTION_OBSERVERS };

/* "backends": the key in the file. */
static inline const char *section_key(enum config_section s)
{
    static const char *const key[] = { "backends", "stores", "observers" };

    return key[s];
}

/* "backend": the word for an entry. */
static inline const char *section_word(enum config_section s)
{
    static const char *const word[] = { "backend", "store", "observer" };

    return word[s];
}

#endif

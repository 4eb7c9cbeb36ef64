/* SPDX-License-Identifier: Apache-2.0 */
/* login.h - the user and password for the server of a store, and how its certificate is checked. */
#ifndef STORE_LOGIN_H
#define STORE_LOGIN_H

#include "url.h"

#include <stddef.h>
#include <tenrec/plugin.h>

/* The options of every store that has a server; "": none. */
struct store_login {
    const char *user;
    const char *password;
    const char *password_file;
    const char *ca_file, *cert_file, *key_file; /* of TLS */
};

#define STORE_LOGIN_OPTION(type_, member, name, flags_, help_)                                     \
    {                                                                                              \
        .key = name, .type = TENREC_OPT_STRING, .offset = offsetof(type_, member),                 \
        .flags = flags_, .def = "", .help = help_                                                  \
    }

/* Rows of a table of options whose struct `type_` has a struct store_login `login`. */
#define STORE_LOGIN_OPTIONS(type_, scheme)                                                         \
    STORE_LOGIN_OPTION(type_, login.user, "user", 0,                                               \
                       "User to log in as, if the URL names no user; needs a password."),          \
        STORE_LOGIN_OPTION(type_, login.password, "password", TENREC_OPT_SECRET,                   \
                           "Password to log in with, if the URL has no password."),                \
        STORE_LOGIN_OPTION(                                                                        \
            type_, login.password_file, "password_file", 0,                                        \
            "File with the password, readable by its owner only, if the URL has none."),           \
        STORE_LOGIN_OPTION(type_, login.ca_file, "ca_file", 0,                                     \
                           "For " scheme ": PEM file of the authorities that may sign the "        \
                           "server's certificate; by default the system's."),                      \
        STORE_LOGIN_OPTION(type_, login.cert_file, "cert_file", 0,                                 \
                           "For " scheme                                                           \
                           ": PEM file of our certificate, if the server asks for one."),          \
        STORE_LOGIN_OPTION(type_, login.key_file, "key_file", 0,                                   \
                           "For " scheme ": PEM file of the key of 'cert_file'.")

/* errors: ECONFIG names options that do not go together */
tenrec_status login_check(const struct store_login *o, tenrec_error *err);

/* Who logs in; the texts are those of the URL and the options, or `file`. */
struct login {
    const char *user, *password; /* "": none */
    char file[512];              /* the first line of the password_file */
};

/* Takes the password of the URL, or of the file, which only its owner, we or root, can read, or of
 * the options. The owner of `ret` clears it after use.
 * errors: ECONFIG with the path and the remedy, never with the text of the file */
tenrec_status login_read(const struct store_login *o, const struct store_url *url,
                         struct login *ret, tenrec_error *err);

#endif

// SPDX-License-Identifier: Apache-2.0
#include "options.h"

#include <stdexcept>
#include <tenrec/config.h>
#include <tenrec/proof.h>

namespace tenrec_torch
{

namespace
{

constexpr char NO_PROOF[] =
    "security asks for a proof of the group secret, and the backend of this configuration proves "
    "nothing: PyTorch's calls are pickles, which are read of proved members only; use the plugin "
    "tensorpipe, or security: { mode: none }";

tenrec_status load(const std::string &config, tenrec_config **ret, tenrec_error *err)
{
    if (config.find('\n') != std::string::npos)
        return tenrec_config_parse(config.c_str(), nullptr, ret, err);
    return tenrec_config_load(config.empty() ? nullptr : config.c_str(), ret, err);
}

} // namespace

Options::Options(const std::string &config, const std::map<std::string, std::string> &values)
{
    tenrec_config *tree = nullptr;
    tenrec_error err;
    tenrec_status st = load(config, &tree, &err);

    for (auto &[key, value] : values)
        if (st == TENREC_OK)
            st = tenrec_config_set(tree, key.c_str(), value.c_str(), &err);
    // No plain peer can be a member, and its messages would be pickles.
    if (st == TENREC_OK)
        st = tenrec_config_set(tree, "security.plain_peers", "none", &err);
    if (st == TENREC_OK)
        st = tenrec_chain_options_new(tree, &options_, &err);
    tenrec_config_drop(tree);
    if (st != TENREC_OK)
        throw std::invalid_argument(err.text);
    if (proves() && !settings().backend_proves) {
        tenrec_chain_options_drop(options_);
        throw std::invalid_argument(NO_PROOF);
    }
}

Options::~Options()
{
    tenrec_chain_options_drop(options_);
}

tenrec_chain_settings Options::settings() const
{
    tenrec_chain_settings settings{};

    settings.size = sizeof settings;
    tenrec_chain_options_settings(options_, &settings);
    return settings;
}

const char *Options::securityMode() const
{
    switch (settings().security_mode) {
    case TENREC_SECURITY_NONE:
        return "none";
    case TENREC_SECURITY_SECRET:
        return "secret";
    case TENREC_SECURITY_TLS:
        return "tls";
    case TENREC_SECURITY_MTLS:
        return "mtls";
    default:
        return "unknown";
    }
}

bool Options::proves() const
{
    return settings().security_mode != TENREC_SECURITY_NONE;
}

} // namespace tenrec_torch

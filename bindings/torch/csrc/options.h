/* SPDX-License-Identifier: Apache-2.0 */
// options.h - reads and checks a configuration of Tenrec.
#pragma once

#include <map>
#include <string>
#include <tenrec/chain.h>

namespace tenrec_torch
{

class Options
{
  public:
    // config   path of a YAML file, or YAML text, which has a line break;
    //          "": the file that TENREC_CONFIG names, else the built-in config
    // values   override the file: "backend", "backends.faulty.options.seed"
    // Throws std::invalid_argument with the position and the remedy.
    Options(const std::string &config, const std::map<std::string, std::string> &values);
    ~Options();
    Options(const Options &) = delete;
    Options &operator=(const Options &) = delete;

    const tenrec_chain_options *get() const
    {
        return options_;
    }

    tenrec_chain_settings settings() const;

    // The mode as the configuration names it: "secret".
    const char *securityMode() const;

    // Returns true in each mode but none: the members prove that they belong to the group.
    bool proves() const;

  private:
    tenrec_chain_options *options_ = nullptr;
};

} // namespace tenrec_torch

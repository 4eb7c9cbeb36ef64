/* SPDX-License-Identifier: Apache-2.0 */
// text.h - the text of an exception for a user.
#pragma once

#include <c10/util/Exception.h>
#include <string>

namespace tenrec_torch
{

// Removes the frames of C++ that libtorch adds to the texts of its exceptions.
inline std::string text_without_frames(const std::string &text)
{
    const size_t from = text.find("\nException raised from ");

    return from != text.npos && text.find("(most recent call first):", from) != text.npos
               ? text.substr(0, from)
               : text;
}

inline std::string text_of(const std::exception &e)
{
    return text_without_frames(e.what());
}

} // namespace tenrec_torch

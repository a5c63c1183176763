#pragma once

#include <fmt/format.h>

#include "widelimit/error.hpp"
#include "widelimit/kernel/inputs.hpp"

namespace widelimit {

/// Throws ArgumentError for a batch without inputs, in functions that can do nothing with one.
template <typename Scalar>
void require_inputs(const Inputs<Scalar>& x, const char* where, const char* name) {
  if (x.size() == 0)
    throw ArgumentError(fmt::format("{}: expected at least one input, {} holds none", where, name));
}

}  // namespace widelimit

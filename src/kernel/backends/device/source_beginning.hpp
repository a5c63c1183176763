#pragma once

#include <string>

#include "widelimit/error.hpp"
#include "widelimit/numerics/formula/symbol.hpp"

namespace widelimit {

/// The first lines of every source: the type `real` of numbers, and add(&sum, &low, number), a sum that keeps what
/// rounding loses.
std::string source_beginning(numerics::formula::Precision precision);

/// A number as sources write it. Throws NumericalError for one that the type cannot hold.
std::string literal_of(double number, numerics::formula::Precision precision);

/// Throws the DeviceError of a layer, by its path, whose source has a number that the type cannot hold.
[[noreturn]] void throw_beyond_type(const std::string& path, const NumericalError& error);

/// What `write` makes, which writes the source of the layer of this path.
template <typename Write>
decltype(auto) written_for(const std::string& path, const Write& write) {
  try {
    return write();
  } catch (const NumericalError& error) {
    throw_beyond_type(path, error);
  }
}

}  // namespace widelimit

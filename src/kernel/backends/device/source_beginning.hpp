#pragma once

#include <string>

#include "widelimit/numerics/formula/symbol.hpp"

namespace widelimit {

/// The first lines of every source: the type `real` of numbers, and add(&sum, &low, number), a sum that keeps what
/// rounding loses.
std::string source_beginning(numerics::formula::Precision precision);

/// A number as sources write it.
std::string literal_of(double number, numerics::formula::Precision precision);

}  // namespace widelimit

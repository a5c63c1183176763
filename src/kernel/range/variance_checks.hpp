#pragma once

#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "network/graph.hpp"
#include "widelimit/error.hpp"

/// Variances that leave the range of their precision are found where they do, while the states of the inputs
/// are made: covariances of pairs are not larger.
namespace widelimit {

/// Throws the error again with the layer's path before its message.
template <typename AnyError>
[[noreturn]] void throw_named(const Node& node, const AnyError& error) {
  throw AnyError(fmt::format("{}: {}", node.path, error.what()));
}

/// Calls body() and puts the layer's path before numerical errors, and before errors about functions that users gave.
template <typename Body>
void name_layer(const Node& node, const Body& body) {
  try {
    body();
  } catch (const NumericalError& error) {
    throw_named(node, error);
  } catch (const ArgumentError& error) {
    throw_named(node, error);
  }
}

template <typename Scalar>
constexpr const char* out_of_range_advice =
    sizeof(Scalar) == 4 ? "it leaves the range of float: rescale the inputs or weights, or use double"
                        : "it leaves the range of double: rescale the inputs or weights";

/// True if all numbers are 0 or normal. It compares their bits, which compilers do for whole vectors at a time.
template <typename Scalar>
bool are_in_range(const Scalar* numbers, Index count) {
  using Bits = std::conditional_t<sizeof(Scalar) == 4, std::uint32_t, std::uint64_t>;
  const auto without_sign = [](Scalar number) { return static_cast<Bits>(std::bit_cast<Bits>(number) << 1); };
  const Bits least = without_sign(std::numeric_limits<Scalar>::min()),
             end = without_sign(std::numeric_limits<Scalar>::infinity());
  Bits outside = 0;
  for (Index i = 0; i < count; ++i) {
    const Bits size = without_sign(numbers[i]);
    // Unsigned differences wrap around, so one comparison finds numbers below `least` (subnormal) as well as those
    // from `end` on (infinity, NaN).
    outside |= size != 0 && size - least >= end - least ? Bits{1} : Bits{0};
  }
  return outside == 0;
}

/// Throws NumericalError unless the variances of all positions are 0 or normal numbers.
template <typename Scalar>
void check_variances(const Scalar* variances, Index positions) {
  if (are_in_range(variances, positions)) return;
  for (Index i = 0; i < positions; ++i)
    if (variances[i] != 0 && !std::isnormal(variances[i]))
      throw NumericalError(fmt::format(
          "the variance of {} is {}, {}", positions == 1 ? "the vector" : fmt::format("position {}", i),
          std::isfinite(variances[i]) ? fmt::format("{:g}", variances[i]) : "not finite",
          out_of_range_advice<Scalar>));
}

/// Throws NumericalError unless the NTK of an input with itself is finite at some positions.
template <typename Scalar>
void check_ntk(const Scalar* ntk, Index positions) {
  for (Index i = 0; i < positions; ++i)
    if (!std::isfinite(ntk[i]))
      throw NumericalError(fmt::format("the ntk is not finite, {}", out_of_range_advice<Scalar>));
}

/// Throws NumericalError for an input that is not 0 but whose variances have all been rounded to 0. A later layer
/// that knows no scale (a sign, a norm) would make zeros of what should be ones.
template <typename Scalar>
[[noreturn]] void throw_vanished() {
  throw NumericalError(fmt::format("variances above 0 are rounded to 0, {}", out_of_range_advice<Scalar>));
}

/// Throws NumericalError if the variance of a vector that is not 0 has been rounded to 0 or leaves the range.
template <typename Scalar>
void check_input_variance(Scalar variance, bool is_zero) {
  check_variances(&variance, 1);
  if (!is_zero && variance == 0) throw_vanished<Scalar>();
}

}  // namespace widelimit

#pragma once

#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "network/graph.hpp"
#include "widelimit/error.hpp"

/// Variances that leave the range of their precision are found where they do, while the states of the inputs
/// are made: covariances of pairs are not larger.
namespace widelimit {

/// The error with the layer's path in front.
[[noreturn]] inline void throw_named(const Node& node, const NumericalError& error) {
  throw NumericalError(fmt::format("{}: {}", node.path, error.what()));
}

/// Runs body() and puts the layer's path in front of numerical errors.
template <typename Body>
void name_layer(const Node& node, const Body& body) {
  try {
    body();
  } catch (const NumericalError& error) {
    throw_named(node, error);
  }
}

template <typename Scalar>
constexpr const char* out_of_range_advice =
    sizeof(Scalar) == 4 ? "it leaves the range of float: rescale the inputs or weights, or use double"
                        : "it leaves the range of double: rescale the inputs or weights";

/// Throws NumericalError unless the variances of all positions are finite.
template <typename Scalar>
void check_variances(const Scalar* variances, Index positions) {
  for (Index i = 0; i < positions; ++i)
    if (!std::isfinite(variances[i]))
      throw NumericalError(fmt::format("the variance of {} is not finite, {}",
                                       positions == 1 ? "the vector" : fmt::format("position {}", i),
                                       out_of_range_advice<Scalar>));
}

/// Throws NumericalError unless the variance of a vector that is not 0 can be told from 0.
template <typename Scalar>
void check_input_variance(Scalar variance, bool is_zero) {
  check_variances(&variance, 1);
  if (!is_zero && variance < std::numeric_limits<Scalar>::min())
    throw NumericalError(fmt::format("the variance of a vector that is not 0 is {:g}, {}", variance,
                                     out_of_range_advice<Scalar>));
}

}  // namespace widelimit

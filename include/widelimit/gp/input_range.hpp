#pragma once

#include <optional>
#include <string>

#include "widelimit/gp/preprocessing.hpp"
#include "widelimit/index.hpp"
#include "widelimit/kernel/inputs.hpp"

namespace widelimit::gp {

/// What people should be told of new inputs whose numbers lie far outside of those of the training inputs, as bytes do
/// beside images from 0 to 1, or of images and sequences whose numbers are all far smaller: both ranges. Empty where
/// there is nothing to say. Both have been through `preprocessing`, which the text names.
///
/// Far outside: ten times as far from the middle of the training range as its ends. Far smaller: all numbers within a
/// fiftieth of the largest training number.
template <typename Train, typename Scalar>
[[nodiscard]] std::string range_warning(const Inputs<Train>& train, const Inputs<Scalar>& x,
                                        const Preprocessing& preprocessing);

/// What rounding to float would lose.
struct FloatLoss {
  std::string text;            ///< For people, with what to do about it.
  std::optional<Index> input;  ///< Whose numbers they are; absent: those of a channel.
};

/// The first loss in inputs, if there is one. Lost are: numbers beyond the range of float; all numbers of an input or
/// of a channel, if they are not 0 and their roundings are; and, in training inputs, all differences of a channel, if
/// its numbers differ and their roundings do not.
[[nodiscard]] std::optional<FloatLoss> lost_in_float(const Inputs<double>& x, bool is_training);

}  // namespace widelimit::gp

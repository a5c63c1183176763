#pragma once

#include <functional>
#include <string>
#include <vector>

#include "widelimit/kernel/inputs.hpp"
#include "widelimit/network/network.hpp"

/// Random networks of every layer of the library together with batches of every kind of inputs.
namespace widelimit::testing {

/// What the inputs of a batch are, besides normal numbers; drawn one by one, so that a case may have several.
struct InputKinds {
  bool zeros = false;     ///< One input is 0 everywhere, another along its border or in half of its channels.
  bool constant = false;  ///< One input is the same at all positions.
  bool symmetric = false;   ///< One input reads the same backwards.
  bool duplicates = false;  ///< Two inputs are equal, in one batch and between both.
  bool multiples = false;   ///< One input is a multiple of another.
  bool repeated = false;    ///< Two positions of an input are equal, another is a multiple of them.
  bool scales = false;      ///< Inputs' sizes differ by 1e6.
};

/// Equal seeds give equal cases.
struct RandomCase {
  Network network;
  Inputs<double> x1, x2;  ///< Their numbers are those of floats.
  InputKinds kinds;
  std::vector<std::string>
      tags;  ///< Of the case: "graphs", "masks", "one channel", and every kind of layer in it.
};

RandomCase random_case(unsigned seed);

/// The number of entry `entry` of input `i`, [positions, channels].
using InputNumber = std::function<double(Index i, Index entry)>;

/// Inputs of other numbers, with the shapes, masks and graphs of these.
template <typename Scalar>
Inputs<Scalar> with_numbers(const Inputs<double>& inputs, const InputNumber& number);

/// The same numbers in float.
Inputs<float> in_float(const Inputs<double>& inputs);

}  // namespace widelimit::testing

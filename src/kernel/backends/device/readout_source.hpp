#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "kernel/backends/device/chain_source.hpp"
#include "kernel/backends/device/kept_planes.hpp"
#include "kernel/backends/device/readout_terms.hpp"

namespace widelimit {

/// Terms of a readout that is pulled back, and what they read.
struct TermsSource {
  /// Terms of inputs of both sides, of which `chosen` are summed, one for each.
  const ReadoutTerms &left, &right;
  std::vector<std::size_t> chosen;
  Index left_state, right_state;    ///< Where the numbers of the stage begin in the states.
  KeptPlanes planes;                ///< The covariance before the layers, between all positions.
  Index product;                    ///< Where the product of the chosen terms begins among what is kept.
  std::vector<std::size_t> tables;  ///< Where the encodings R of every chosen term begin in the step's table.
};

/// A kernel that adds up terms over the entries of a pair, and leaves sums as ChainSource does. Its numbers are
/// KeptNodes::size and those of the planes.
std::string readout_source(const TermsSource& terms, const ChainSourceOptions& options);

}  // namespace widelimit

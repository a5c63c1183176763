#pragma once

#include "cli/gp/gp_run.hpp"

namespace widelimit::cli {

/// Functions of a network before any data, for people to look at: samples of the NNGP prior, at places on the straight
/// line between two test inputs of different targets, or, for sequences of different length, at some test inputs.
struct GpPrior {
  std::vector<double> places;         ///< 0 to 1 on a line; else the numbers of the test inputs.
  Matrix<double> functions;           ///< [places, samples], scaled by the amplitude.
  Vector<double> deviation;           ///< [places]
  std::size_t first = 0;              ///< Numbers of the test inputs that the line joins,
  std::optional<std::size_t> second;  ///< which is absent where there is no line.
};

/// `amplitude`: of the kernel. The same samples in every run. Throws what gram() throws.
template <typename Scalar>
[[nodiscard]] GpPrior sample_prior(const Network& network, const GpTask<Scalar>& task,
                                   const GpOptions& options, double amplitude, const Interrupt& interrupt);

}  // namespace widelimit::cli

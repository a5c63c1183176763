#pragma once

#include "widelimit/gp/learned_inputs.hpp"
#include "widelimit/kernel/gram_vjp.hpp"

namespace widelimit::gp {

/// The two ways of learn_inputs(), from inputs that were checked and chosen.
[[nodiscard]] LearnedInputs learn_relevance(const Network& network, const Inputs<double>& x,
                                            const Matrix<double>& y, const LearningOptions& options,
                                            const RunControl& run);
[[nodiscard]] LearnedInputs learn_features(const Network& network, const Inputs<double>& x,
                                           const Matrix<double>& y, const LearningOptions& options,
                                           const RunControl& run);

/// The kernel that is learned with, [n, n].
[[nodiscard]] Matrix<double> learning_gram(const Network& network, const Inputs<double>& x, Kernels kernel,
                                           const RunControl& run);

/// Cotangents of that kernel.
[[nodiscard]] KernelCotangents<double> learning_cotangents(Matrix<double> cotangents, Kernels kernel);

}  // namespace widelimit::gp

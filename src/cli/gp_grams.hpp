#pragma once

#include <memory>

#include "cli/gp_gram.hpp"
#include "cli/gp_run.hpp"

namespace widelimit::cli {

/// All that predictions need of the kernels; the test inputs' own Gram matrix is not among it.
struct GpGrams {
  std::unique_ptr<GpGram> train;  ///< [n, n]
  std::unique_ptr<GpGram>
      validation;                ///< [n_validation, n]; null where nothing is chosen on validation data.
  std::unique_ptr<GpGram> test;  ///< [n_test, n]
  Vector<double> validation_variances;  ///< NNGP, [n_validation]; empty as above.
  Vector<double> test_variances;        ///< NNGP, [n_test]
};

/// What a regulariser is chosen by, where the user does not say.
[[nodiscard]] gp::Criterion criterion_of(const GpOptions& options, TargetKind kind);

/// Computes them, or what is missing of them in stores.
template <typename Scalar>
[[nodiscard]] GpGrams compute_grams(const Network& network, const GpTask<Scalar>& task,
                                    const GpOptions& options, const Interrupt& interrupt);

}  // namespace widelimit::cli

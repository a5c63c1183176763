#pragma once

#include <doctest/doctest.h>

#include "widelimit/gp/model.hpp"

namespace widelimit::gp_test {

/// Whether two models predict the same bits, and draw the same samples.
inline void check_same_predictions(const gp::Model& first, const gp::Model& second, const Inputs<double>& x) {
  const gp::ModelPrediction a = first.predict(x), b = second.predict(x);
  CHECK(a.mean == b.mean);
  CHECK(a.variance == b.variance);
  CHECK(a.noise_variance == b.noise_variance);
  CHECK(a.class_probabilities == b.class_probabilities);
  CHECK(first.predict_jointly(x).covariances == second.predict_jointly(x).covariances);
  CHECK(first.samples(x, 2, 3)[1] == second.samples(x, 2, 3)[1]);
  CHECK(first.prior_samples(x, 2, 3)[1] == second.prior_samples(x, 2, 3)[1]);
}

}  // namespace widelimit::gp_test

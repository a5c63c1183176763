#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "widelimit/matrix.hpp"
#include "widelimit/run_control.hpp"
#include "widelimit/specialization/prior.hpp"

namespace widelimit::specialization {

/// Samples given value by value, e.g. quadrature nodes.
struct SampleValues {
  Index count = 0;               ///< n.
  Index tokens = 0;              ///< L.
  Index features = 0;            ///< F.
  Index noises = 0;              ///< H: directions orthogonal to the spikes.
  std::vector<double> chi_star;  ///< [n][L][F], the signal already added to token eps.
  std::vector<double> xi;        ///< [n][L][H].
  std::vector<Index> eps;        ///< [n], in [0, L).
  std::vector<double> weights;   ///< [n], > 0, or empty for equal weights.
};

/// Sizes of a set to draw.
struct SampleShape {
  Index tokens = 0;  ///< L.
  Index heads = 0;   ///< H, the number of noise directions.
  Index count = 0;   ///< n.
};

/// Whether a drawn set is completed under the symmetries of the model: cyclic shifts of the heads of xi and
/// the signs of every feature in which the prior is symmetric. On a closed set heads that start equal stay
/// exactly equal, so a finite n does not start their specialisation.
enum class SampleSymmetry { plain, closed };

/// How SampleSet::draw() goes beyond plain draws of the prior.
struct SampleOptions {
  SampleSymmetry symmetry = SampleSymmetry::plain;
  /// F x F; theta is replaced by theta_map theta. p^(1/2) accounts for spikes of finite D. Empty: identity.
  Matrix<double> theta_map = {};
  RunControl run = {};  ///< Progress is not reported.
};

template <typename Scalar>
class SampleTiles;

/// A fixed set of Monte-Carlo samples (chi*, xi), in the order in which the loss reads them fastest.
///
/// The relevant token is moved to index 0, which does not change any loss. Immutable; copies share memory.
/// Cost     n L (F + H) numbers of type Scalar; drawing takes about 5 ns for each number and thread.
template <typename Scalar>
class SampleSet {
 public:
  /// Errors  ArgumentError for n = 0, sizes that do not match, weights <= 0, eps outside [0, L), non-finite
  ///         values.
  explicit SampleSet(const SampleValues& values);

  /// Draws n samples of a prior. Depends on the seed alone, never on the number of threads; the first samples
  /// do not depend on n. A closed set holds n rounded up to whole groups of H 2^(symmetric features) samples.
  /// Errors   ArgumentError for L < 1, H < 1, n < 1 or a theta_map that is not F x F.
  [[nodiscard]] static SampleSet draw(const Prior& prior, const SampleShape& shape, std::uint64_t seed,
                                      const SampleOptions& options = {});

  [[nodiscard]] Index count() const { return shape_.count; }
  [[nodiscard]] Index tokens() const { return shape_.tokens; }
  [[nodiscard]] Index features() const { return features_; }
  [[nodiscard]] Index noises() const { return shape_.heads; }

  /// Sums of the weights and of their squares (n and n for equal weights).
  [[nodiscard]] double weight_sum() const { return weight_sum_; }
  [[nodiscard]] double squared_weight_sum() const { return squared_weight_sum_; }

  /// Rows of the scores' inputs: row f < F is chi*_f, row F + h is xi_h. Token 0 is the relevant one.
  [[nodiscard]] Scalar value(Index sample, Index token, Index row) const;
  /// 1 for drawn sets. Numbers of samples are not checked, here as in value().
  [[nodiscard]] double weight(Index sample) const;

 private:
  explicit SampleSet(std::shared_ptr<const SampleTiles<Scalar>> tiles);

  template <typename Number>
  friend const SampleTiles<Number>& tiles_of(const SampleSet<Number>& samples);

  std::shared_ptr<const SampleTiles<Scalar>> tiles_;
  SampleShape shape_;
  Index features_ = 0;
  double weight_sum_ = 0;
  double squared_weight_sum_ = 0;
};

}  // namespace widelimit::specialization

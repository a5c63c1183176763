#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "widelimit/matrix.hpp"
#include "widelimit/specialization/prior.hpp"

namespace widelimit::specialization {

/// Samples given value by value, e.g. quadrature nodes.
struct SampleValues {
  Eigen::Index count = 0;         ///< n.
  Eigen::Index tokens = 0;        ///< L.
  Eigen::Index features = 0;      ///< F.
  Eigen::Index noises = 0;        ///< H: directions orthogonal to the spikes.
  std::vector<double> chi_star;   ///< [n][L][F], the signal already added to token eps.
  std::vector<double> xi;         ///< [n][L][H].
  std::vector<Eigen::Index> eps;  ///< [n], in [0, L).
  std::vector<double> weights;    ///< [n], > 0, or empty for equal weights.
};

/// Sizes of a set to draw.
struct SampleShape {
  Eigen::Index tokens = 0;  ///< L.
  Eigen::Index heads = 0;   ///< H, the number of noise directions.
  Eigen::Index count = 0;   ///< n.
};

/// Whether a drawn set is completed under the symmetries of the model: cyclic shifts of the heads of xi and
/// the signs of every feature in which the prior is symmetric. On a closed set heads that start equal stay
/// exactly equal, so a finite n does not start their specialisation.
enum class SampleSymmetry { plain, closed };

struct SampleOptions {
  SampleSymmetry symmetry = SampleSymmetry::plain;
  /// F x F; theta is replaced by theta_map theta. p^(1/2) accounts for spikes of finite D. Empty: identity.
  Matrix<double> theta_map;
};

/// A fixed set of Monte-Carlo samples (chi*, xi) in the order the loss kernel reads them.
///
/// The relevant token is moved to index 0, which no loss notices. Immutable; copies share memory.
/// Cost     n L (F + H) numbers of type Scalar; drawing takes about 5 ns a number and thread.
template <typename Scalar>
class SampleSet {
 public:
  static constexpr Eigen::Index kTile = 64;     ///< Samples a kernel pass reads together.
  static constexpr Eigen::Index kBlock = 1024;  ///< Samples of one random stream, summed before blocks are.

  /// Errors  ArgumentError for n = 0, sizes that do not match, weights <= 0, eps outside [0, L), non-finite
  ///         values.
  explicit SampleSet(const SampleValues& values);

  /// Draws n samples of a prior. Depends on the seed alone, never on the number of threads; the first samples
  /// do not depend on n. A closed set holds n rounded up to whole groups of H 2^(symmetric features) samples.
  /// Errors   ArgumentError for L < 1, H < 1, n < 1 or a theta_map that is not F x F.
  static SampleSet draw(const Prior& prior, const SampleShape& shape, std::uint64_t seed,
                        const SampleOptions& options = {});

  Eigen::Index count() const { return count_; }
  Eigen::Index tokens() const { return tokens_; }
  Eigen::Index features() const { return features_; }
  Eigen::Index noises() const { return noises_; }

  /// Sums of the weights and of their squares (n and n for equal weights).
  double weight_sum() const { return weight_sum_; }
  double squared_weight_sum() const { return squared_weight_sum_; }

  /// Rows of the scores' inputs: row f < F is chi*_f, row F + h is xi_h. Token 0 is the relevant one.
  Scalar value(Eigen::Index sample, Eigen::Index token, Eigen::Index row) const {
    return values_[place(sample, token, row)];
  }
  double weight(Eigen::Index sample) const { return static_cast<double>(weights_[sample]); }

  /// Tiles of 64 samples: [row][token][sample], and their weights [sample] (0 past the last sample).
  Eigen::Index tiles() const { return (count_ + kTile - 1) / kTile; }
  const Scalar* tile(Eigen::Index index) const { return values_.get() + index * tile_size(); }
  const Scalar* tile_weights(Eigen::Index index) const { return weights_.get() + index * kTile; }

 private:
  SampleSet(const SampleShape& shape, Eigen::Index features);

  Eigen::Index tile_size() const { return (features_ + noises_) * tokens_ * kTile; }
  Eigen::Index place(Eigen::Index sample, Eigen::Index token, Eigen::Index row) const {
    return (sample / kTile) * tile_size() + (row * tokens_ + token) * kTile + sample % kTile;
  }
  void draw_block(const Prior& prior, std::uint64_t seed, const Matrix<double>& theta_map,
                  Eigen::Index block);
  SampleSet closed_under_symmetries(const Prior& prior, Eigen::Index group, Eigen::Index wanted) const;

  Eigen::Index count_ = 0;
  Eigen::Index tokens_ = 0;
  Eigen::Index features_ = 0;
  Eigen::Index noises_ = 0;
  double weight_sum_ = 0;
  double squared_weight_sum_ = 0;
  std::shared_ptr<Scalar[]> values_;
  std::shared_ptr<Scalar[]> weights_;
};

}  // namespace widelimit::specialization

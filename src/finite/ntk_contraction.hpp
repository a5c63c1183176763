#pragma once

#include <vector>

#include "widelimit/finite/empirical_kernel.hpp"

namespace widelimit::finite {

/// What a backward pass left of one affine map, or of other parameters: a copy of a sink's arguments.
template <typename Scalar>
struct GradientRecord {
  Index n;
  Matrix<Scalar> inputs;     ///< [n * d, in]; empty for plain gradients.
  Matrix<Scalar> gradients;  ///< [n * d, out], or plain gradients [n, count].
  Scalar weight_scale = 1;
  Scalar bias_scale = 0;
  Sharing sharing = Sharing::shared;
};

template <typename Scalar>
using GradientRecords = std::vector<GradientRecord<Scalar>>;

template <typename Scalar>
class RecordSink final : public GradientSink<Scalar> {
 public:
  [[nodiscard]] GradientRecords<Scalar>& records() { return records_; }

 private:
  void add_affine(const AffineGradient<Scalar>& g) override {
    records_.push_back({g.n, g.inputs, g.gradients, g.weight_scale, g.bias_scale, g.sharing});
  }
  void add_plain(Index, const Matrix<Scalar>& gradients) override {
    records_.push_back({gradients.rows(), {}, gradients});
  }

  GradientRecords<Scalar> records_;
};

/// ntk [n1, n2] += products of gradients summed over parameters; the records are of the same network in the
/// same order. Of the options: method, memory_bytes and stop.
template <typename Scalar>
void contract(const GradientRecords<Scalar>& left, const GradientRecords<Scalar>& right,
              const NtkOptions& options, Matrix<Scalar>& ntk);

}  // namespace widelimit::finite

#pragma once

#include <cstddef>

#include "widelimit/matrix.hpp"
#include "widelimit/network/shape.hpp"

namespace widelimit {

/// The features of one input, [channels, d] row by row: the d positions of a channel are neighbours.
template <typename Scalar>
struct FeatureView {
  Eigen::Map<const Matrix<Scalar>> values;
  const Shape& shape;
};

/// The states and the shapes of the two inputs of a pair.
template <typename Scalar>
struct FeaturePair {
  const Scalar* left_state;
  const Scalar* right_state;
  const Shape& left_shape;
  const Shape& right_shape;
};

/// Everything from the inputs to a readout in a network whose layers between are linear in the covariance. A few
/// vectors of each input are kept, and the covariance between positions is never formed. The engine computes one
/// state for each input and then one pair of numbers for each pair of inputs. Implementations are immutable.
class FeatureStage {
 public:
  /// One number of each kernel for a pair.
  struct Values {
    double nngp = 0;
    double ntk = 0;
  };

  virtual ~FeatureStage() = default;

  /// Throws ArgumentError if one of the layers cannot take inputs of this shape.
  /// `shape` is that behind the transforms of the FeatureNode.
  virtual void check_shape(const Shape& shape) const = 0;
  /// The numbers that prepare() writes.
  [[nodiscard]] virtual std::size_t state_size(const Shape& shape, Index channels) const = 0;

  /// Computes the state of one input.
  virtual void prepare(const FeatureView<float>& features, float* state) const = 0;
  virtual void prepare(const FeatureView<double>& features, double* state) const = 0;

  /// The kernels of a pair, from the states alone. `channels` is that of the inputs.
  [[nodiscard]] virtual Values apply(const FeaturePair<float>& pair, Index channels) const = 0;
  [[nodiscard]] virtual Values apply(const FeaturePair<double>& pair, Index channels) const = 0;
};

}  // namespace widelimit

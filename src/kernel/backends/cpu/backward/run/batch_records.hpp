#pragma once

#include <optional>
#include <vector>

#include "kernel/backends/cpu/backward/run/backward_plan.hpp"
#include "widelimit/kernel/inputs.hpp"
#include "widelimit/stop_request.hpp"

namespace widelimit {

/// The vectors that an input node makes of the inputs of a batch: the rows of a matrix.
template <typename Scalar>
struct VectorFeatures {
  Matrix<Scalar> made;            ///< [n, C]; empty if the batch itself is this matrix.
  const Scalar* first = nullptr;  ///< The first row.
  Index channels = 0;
  std::vector<Scalar> variances;  ///< [n]

  [[nodiscard]] Eigen::Map<const Matrix<Scalar>> rows() const {
    return {first, static_cast<Index>(variances.size()), channels};
  }
};

/// The records of all inputs of a batch.
template <typename Scalar>
struct BatchRecords {
  std::vector<InputRecord<Scalar>> inputs;
  std::vector<VectorFeatures<Scalar>> vectors;     ///< [plan.vector_count]
  std::vector<std::optional<PositionMask>> masks;  ///< Referred to by the records; empty without masks.

  BatchRecords(const BackwardPlan& plan, const Inputs<Scalar>& x, const StopRequest& stop = {});
};

/// The adjoints of the records of a batch.
template <typename Scalar>
struct BatchAdjoints {
  std::vector<RecordAdjoint<Scalar>> inputs;
  std::vector<Matrix<Scalar>> vectors;  ///< [plan.vector_count], [n, C]; empty until they are made.

  explicit BatchAdjoints(const BatchRecords<Scalar>& records, const StopRequest& stop = {});

  /// Adds other adjoints of the same batch, except those of vectors.
  void add(const BatchAdjoints& others);
};

/// The derivative with respect to the inputs, [n, longest spatial..., C]. It is 0 after the end of shorter inputs and
/// at masked positions.
template <typename Scalar>
[[nodiscard]] xt::xarray<Scalar> input_gradient(const BackwardPlan& plan, const Inputs<Scalar>& x,
                                                BatchAdjoints<Scalar>& adjoints);

}  // namespace widelimit

#pragma once

#include <memory>
#include <utility>

#include "kernel/backends/device/packed_inputs.hpp"
#include "widelimit/matrix.hpp"
#include "widelimit/stop_request.hpp"

namespace widelimit {

/// Products of kernels with vectors, and their entries, computed from inputs in a device's memory.
template <typename Scalar>
class DeviceProducts {
 public:
  /// Vectors that are multiplied together: as many as fill a multiple of the smaller number, up to the larger one.
  static constexpr Index few_vectors = 16, most_vectors = 64;

  /// `smooth`: SmoothTables.
  DeviceProducts(const MatrixFreeSource& source, opencl::Session& session,
                 std::shared_ptr<const opencl::Buffer> smooth, StopRequest stop)
      : source_{source},
        session_{session},
        smooth_{std::move(smooth)},
        queue_{session.queue()},
        stop_{stop} {}

  /// K(rows, columns) v, [rows, vectors]. NumericalError if it is not finite.
  [[nodiscard]] Matrix<double> multiply(Wanted wanted, const PackedInputs<Scalar>& rows,
                                        const PackedInputs<Scalar>& columns, const Matrix<double>& v);
  /// Rows first .. first + count - 1 of the matrix. NumericalError as above.
  [[nodiscard]] Matrix<double> entries(Wanted wanted, const PackedInputs<Scalar>& rows,
                                       const PackedInputs<Scalar>& columns, Index first, Index count);

 private:
  static constexpr Index side = MatrixFreeSource::side;

  [[nodiscard]] static Index shares_of(const PackedInputs<Scalar>& columns);
  /// The products with vectors first .. first + width - 1.
  void multiply(Wanted wanted, const PackedInputs<Scalar>& rows, const PackedInputs<Scalar>& columns,
                const Matrix<double>& v, Index first, Index width, Matrix<double>& products);
  /// The kernel with what all tails have in common.
  [[nodiscard]] opencl::Kernel kernel(const std::string& source, const PackedInputs<Scalar>& rows,
                                      const PackedInputs<Scalar>& columns) const;

  const MatrixFreeSource& source_;
  opencl::Session& session_;
  std::shared_ptr<const opencl::Buffer> smooth_;
  opencl::Queue queue_;
  StopRequest stop_;
};

}  // namespace widelimit

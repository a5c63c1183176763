#pragma once

#include "kernel/backends/cpu/planes/plane.hpp"
#include "kernel/backends/cpu/planes/store_layout.hpp"
#include "kernel/readouts/pair_sums.hpp"

namespace widelimit {

/// Weighted sums over covariances that are stored as planes, read in place. Assembling matrices from them takes
/// longer, because each entry of a plane goes to another cache line.
template <typename Scalar>
class PlaneSums final : public PairSums<Scalar> {
 public:
  using typename PairSums<Scalar>::Values;

  /// The planes of these offsets, between inputs of these sizes. Everything must outlive the sums.
  PlaneSums(const Index3& left, const Index3& right, const Offsets& offsets, const StoreLayout& layout,
            const Plane<Scalar>& planes)
      : left_{left}, right_{right}, offsets_{offsets}, layout_{layout}, planes_{planes} {}

  [[nodiscard]] Values outer(const Scalar* left, const Scalar* right) const override;
  [[nodiscard]] Values diagonal(const Scalar* left, const Scalar* right) const override;
  [[nodiscard]] Values full(const Scalar* weights) const override;

 private:
  /// Adds the sum of products of `weights` with the planes' entries from `begin` on, for both kernels.
  void add(const Scalar* weights, Index begin, Index size, Values& values) const;

  const Index3& left_;
  const Index3& right_;
  const Offsets& offsets_;
  const StoreLayout& layout_;
  Plane<Scalar> planes_;
};

}  // namespace widelimit

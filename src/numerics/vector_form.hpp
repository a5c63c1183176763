#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <utility>

#include "numerics/closed_form.hpp"

namespace widelimit::numerics {

/// A ClosedForm whose rows are vectorised: a Map is a small immutable object with
///   static constexpr std::size_t auxiliary_count, of which the first is the variance;
///   void prepare(const Scalar* variance, Scalar* const* auxiliary, std::size_t size) const,
///   void apply(const DualRow<Scalar>&) const for float and double,
///   bool covers(const DualRow<Scalar>&) const: whether apply() is right for all entries of the row.
/// What a map does not cover is left to the formula, entry by entry, so that no entry depends on its neighbours.
template <typename Formula, typename Map>
class VectorForm final : public ClosedForm<Formula> {
 public:
  VectorForm(Formula formula, Map map) : ClosedForm<Formula>(std::move(formula)), map_{std::move(map)} {}

  [[nodiscard]] std::size_t auxiliary_count() const override { return Map::auxiliary_count; }

  void prepare(const float* variance, float* const* auxiliary, std::size_t size) const override {
    map_.prepare(variance, auxiliary, size);
  }
  void prepare(const double* variance, double* const* auxiliary, std::size_t size) const override {
    map_.prepare(variance, auxiliary, size);
  }
  void apply(const DualRow<float>& row) const override { apply_vectors(row); }
  void apply(const DualRow<double>& row) const override { apply_vectors(row); }
  void apply_to_multiples(const DualRow<float>& row) const override { apply_vectors_to_multiples(row); }
  void apply_to_multiples(const DualRow<double>& row) const override { apply_vectors_to_multiples(row); }

 private:
  template <typename Scalar>
  struct OneEntry {
    std::array<const Scalar*, Map::auxiliary_count> left, right;
    DualRow<Scalar> row;

    OneEntry(const DualRow<Scalar>& all, std::size_t i) {
      for (std::size_t k = 0; k < Map::auxiliary_count; ++k) {
        left[k] = all.left[k] + i;
        right[k] = all.right[k] + i;
      }
      row = {all.nngp + i, all.ntk == nullptr ? nullptr : all.ntk + i, left.data(), right.data(), 1};
    }
  };

  template <typename Scalar>
  void apply_vectors(const DualRow<Scalar>& row) const {
    if (map_.covers(row)) return map_.apply(row);
    for (std::size_t i = 0; i < row.size; ++i) apply_one(OneEntry<Scalar>(row, i).row);
  }

  template <typename Scalar>
  void apply_one(const DualRow<Scalar>& row) const {
    if (map_.covers(row)) return map_.apply(row);
    write(row, this->entry(row.left[0][0], row.right[0][0], row.nngp[0]));
  }

  /// Equal variances and covariances give the bits of apply(); the determinant of other multiples is 0.
  template <typename Scalar>
  void apply_vectors_to_multiples(const DualRow<Scalar>& row) const {
    for (std::size_t i = 0; i < row.size; ++i) {
      const OneEntry<Scalar> one(row, i);
      const Scalar p = row.left[0][i], q = row.right[0][i];
      const std::optional<Scalar> perfect = perfect_covariance(p, q, row.nngp[i]);
      if (perfect) row.nngp[i] = *perfect;
      if (perfect && p != q)
        write(one.row, this->perfect_entry(p, q, *perfect));
      else
        apply_one(one.row);
    }
  }

  template <typename Scalar>
  static void write(const DualRow<Scalar>& row, const Dual<Scalar>& dual) {
    row.nngp[0] = dual.value;
    if (row.ntk != nullptr) row.ntk[0] *= dual.derivative;
  }

  Map map_;
};

template <typename Formula, typename Map>
ActivationPtr make_vector_form(Formula formula, Map map) {
  return std::make_shared<VectorForm<Formula, Map>>(std::move(formula), std::move(map));
}

}  // namespace widelimit::numerics

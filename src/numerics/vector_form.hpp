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
///   bool covers(const DualRow<Scalar>&) const: whether apply() is right for all entries of the row, whose covariances
///   it does not read;
///   and perhaps void apply_adjoint(const AdjointRow<Scalar>&) const, right for the same rows.
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
  void apply_adjoint(const AdjointRow<float>& row) const override { backward_pass(row); }
  void apply_adjoint(const AdjointRow<double>& row) const override { backward_pass(row); }
  void apply_to_multiples(const DualRow<float>& row) const override { apply_vectors_to_multiples(row); }
  void apply_to_multiples(const DualRow<double>& row) const override { apply_vectors_to_multiples(row); }

 private:
  /// What an entry of a row reads of the inputs.
  template <typename Scalar>
  struct EntryArrays {
    std::array<const Scalar*, Map::auxiliary_count> left, right;

    template <typename Row>
    EntryArrays(const Row& all, std::size_t i) {
      for (std::size_t k = 0; k < Map::auxiliary_count; ++k) {
        left[k] = all.left[k] + i;
        right[k] = all.right[k] + i;
      }
    }
  };

  template <typename Number>
  static Number* further(Number* numbers, std::size_t i) {
    return numbers == nullptr ? nullptr : numbers + i;
  }

  template <typename Scalar>
  struct OneEntry {
    EntryArrays<Scalar> arrays;
    DualRow<Scalar> row;

    OneEntry(const DualRow<Scalar>& all, std::size_t i)
        : arrays(all, i),
          row{all.nngp + i, further(all.ntk, i), arrays.left.data(), arrays.right.data(), 1} {}
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

  /// Recursion into single entries: a row with one entry out of range must not change the bits of the others.
  template <typename Scalar>
  void backward_pass(const AdjointRow<Scalar>& row) const {
    if constexpr (requires { map_.apply_adjoint(row); }) {
      const DualRow<Scalar> all{nullptr, nullptr, row.left, row.right, row.size};
      if (map_.covers(all)) return map_.apply_adjoint(row);
      // A single entry that the map does not cover ends the recursion at the formula.
      if (row.size == 1) return ClosedForm<Formula>::apply_adjoint(row);
      for (std::size_t i = 0; i < row.size; ++i) {
        const EntryArrays<Scalar> arrays(row, i);
        backward_pass(AdjointRow<Scalar>{row.nngp + i, further(row.ntk, i), row.left_variance + i,
                                         row.right_variance + i, arrays.left.data(), arrays.right.data(),
                                         row.nngp_adjoint + i, further(row.ntk_adjoint, i),
                                         row.left_adjoint + i, row.right_adjoint + i, 1});
      }
    } else {
      ClosedForm<Formula>::apply_adjoint(row);
    }
  }

  /// Equal variances and covariances give the bits of apply(); the determinant of other multiples is 0.
  template <typename Scalar>
  void apply_vectors_to_multiples(const DualRow<Scalar>& row) const {
    for (std::size_t i = 0; i < row.size; ++i) {
      const OneEntry<Scalar> one(row, i);
      const Scalar p = row.left[0][i], q = row.right[0][i];
      const std::optional<Scalar> perfect = perfect_covariance(p, q, row.nngp[i]);
      if (perfect) row.nngp[i] = *perfect;
      // Equal variances have the angle 0 in apply() already, with the same bits; others get an exact determinant of 0.
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

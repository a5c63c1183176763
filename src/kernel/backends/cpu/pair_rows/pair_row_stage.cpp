#include "kernel/backends/cpu/pair_rows/pair_row_stage.hpp"

namespace widelimit {
namespace {

/// Entries at some places of rows, with their arrays, which are copied before the stage is applied to whole rows.
/// They then obey the rule for multiples instead.
template <typename Scalar>
class TakenEntries {
 public:
  TakenEntries(std::vector<Index> places, const Plane<Scalar>& rows, const PairRowArrays<Scalar>& arrays)
      : places_{std::move(places)}, rows_{rows} {
    if (places_.empty()) return;
    nngp_ = gathered(rows.nngp);
    if (rows.ntk != nullptr) ntk_ = gathered(rows.ntk);
    for (const Scalar* row : arrays.left) left_.push_back(gathered(row));
    for (const Scalar* row : arrays.right) right_.push_back(gathered(row));
  }

  /// Applies the rule for multiples and writes the entries back.
  void apply(const RowStage& stage) {
    if (places_.empty()) return;
    const auto left = pointers(left_), right = pointers(right_);
    stage.apply_to_multiples({nngp_.data(), rows_.ntk != nullptr ? ntk_.data() : nullptr, left.data(),
                              right.data(), places_.size()});
    for (std::size_t i = 0; i < places_.size(); ++i) {
      rows_.nngp[places_[i]] = nngp_[i];
      if (rows_.ntk != nullptr) rows_.ntk[places_[i]] = ntk_[i];
    }
  }

 private:
  using Values = std::vector<Scalar>;

  [[nodiscard]] Values gathered(const Scalar* row) const {
    Values values;
    values.reserve(places_.size());
    for (const Index place : places_) values.push_back(row[place]);
    return values;
  }
  static std::vector<const Scalar*> pointers(const std::vector<Values>& arrays) {
    std::vector<const Scalar*> result;
    for (const Values& array : arrays) result.push_back(array.data());
    return result;
  }

  std::vector<Index> places_;
  Plane<Scalar> rows_;
  Values nngp_, ntk_;
  std::vector<Values> left_, right_;  ///< [k]
};

/// The places of multiples of the rows' left inputs.
template <typename Scalar>
std::vector<Index> places_of_multiples(const PairRows<Scalar>& rows) {
  std::vector<Index> places;
  rows.for_each([&](const PairRow<Scalar>& row, Index place) {
    for (const Index column : row.multiples) places.push_back(place + column);
  });
  return places;
}

/// Applies the stage to an input with itself, at a place of the rows.
template <typename Scalar>
void apply_to_itself(const RowStage& stage, const PairRowArrays<Scalar>& arrays, const Plane<Scalar>& itself,
                     Index place) {
  std::vector<const Scalar*> left, right;
  for (std::size_t k = 0; k < arrays.left.size(); ++k) {
    left.push_back(arrays.left[k] + place);
    right.push_back(arrays.right[k] + place);
  }
  stage.apply_self({itself.nngp, itself.ntk, left.data(), right.data(), 1});
}

/// The kernels of an input with itself before the stage.
template <typename Scalar>
struct Itself {
  Index place;
  Scalar nngp;
  Scalar ntk;
};

template <typename Scalar>
std::vector<Itself<Scalar>> values_before(const PairRows<Scalar>& rows, const Plane<Scalar>& target) {
  std::vector<Itself<Scalar>> before;
  rows.for_each([&](const PairRow<Scalar>& row, Index place) {
    if (row.same < 0) return;
    const Plane<Scalar> itself = target + (place + row.same);
    before.push_back({place + row.same, *itself.nngp, itself.ntk != nullptr ? *itself.ntk : Scalar{0}});
  });
  return before;
}

}  // namespace

template <typename Scalar>
void apply_row_stage(const RowStage& stage, const PairRows<Scalar>& rows, const PairRowArrays<Scalar>& arrays,
                     bool keeps_multiples, const Plane<Scalar>& target) {
  arrays.gather_left(rows);
  const std::vector<Itself<Scalar>> before = values_before(rows, target);
  TakenEntries<Scalar> multiples(keeps_multiples ? places_of_multiples(rows) : std::vector<Index>(), target,
                                 arrays);
  // Whole rows go first, as one vector; the few entries with another rule are then put in their place.
  stage.apply({target.nngp, target.ntk, arrays.left.data(), arrays.right.data(), rows.size()});
  multiples.apply(stage);
  for (const auto& [place, nngp, ntk] : before) {
    const Plane<Scalar> itself = target + place;
    *itself.nngp = nngp;
    if (itself.ntk != nullptr) *itself.ntk = ntk;
    apply_to_itself(stage, arrays, itself, place);
  }
}

template void apply_row_stage(const RowStage&, const PairRows<float>&, const PairRowArrays<float>&, bool,
                              const Plane<float>&);
template void apply_row_stage(const RowStage&, const PairRows<double>&, const PairRowArrays<double>&, bool,
                              const Plane<double>&);

}  // namespace widelimit

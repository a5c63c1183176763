#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <span>
#include <string>
#include <vector>

#include "kernel/backends/gram_plan.hpp"

namespace widelimit {

/// A batch in the order in which it is computed: by shape, so that each side of a tile has one. Vectors have no
/// positions whose sizes matter and keep the order of the batch. Indices of all functions count in this order;
/// originals() translates to the batch.
template <typename Scalar>
class OrderedInputs {
 public:
  /// Errors call input i of `inputs` number `first` + i of the batch `name`.
  OrderedInputs(const Inputs<Scalar>& inputs, const GramPlan& plan, const char* name, Index first = 0)
      : inputs_{inputs},
        plan_{plan},
        name_{name},
        first_{first},
        order_(static_cast<std::size_t>(inputs.size())) {
    std::iota(order_.begin(), order_.end(), Index{0});
    if (inputs.is_ragged() && !plan.vectors_only)
      std::stable_sort(order_.begin(), order_.end(),
                       [&](Index i, Index j) { return inputs.shape(i) < inputs.shape(j); });
  }

  [[nodiscard]] Index size() const { return inputs_.size(); }
  [[nodiscard]] std::span<const Scalar> input(Index i) const { return inputs_[original(i)]; }
  /// The mask of input i. An input without a mask counts all its positions.
  [[nodiscard]] PositionMask mask(Index i) const {
    const auto counts = inputs_.mask(original(i));
    return counts.empty() ? full_mask(shape(i)) : PositionMask{shape(i), {counts.begin(), counts.end()}};
  }
  [[nodiscard]] const InputGraph* graph(Index i) const { return inputs_.graph(original(i)); }
  [[nodiscard]] std::string name(Index i) const {
    return fmt::format("input {} of {}", first_ + original(i), name_);
  }
  [[nodiscard]] const Shape& shape(Index i) const { return inputs_.shape(original(i)); }
  [[nodiscard]] const StateLayout& layout(Index i) const { return plan_.state_layouts.at(shape(i)); }
  /// Where inputs [begin, end) stand in the batch.
  [[nodiscard]] std::span<const Index> originals(Index begin, Index end) const {
    return std::span(order_).subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(end - begin));
  }

 private:
  [[nodiscard]] Index original(Index i) const { return order_[static_cast<std::size_t>(i)]; }

  const Inputs<Scalar>& inputs_;
  const GramPlan& plan_;
  const char* name_;
  Index first_;
  std::vector<Index> order_;
};

}  // namespace widelimit

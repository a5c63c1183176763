#include "kernel/run/state_counts.hpp"

#include <algorithm>
#include <list>
#include <utility>

namespace widelimit {
namespace {

Index blocks_of(Index inputs, Index a_block) { return (inputs + a_block - 1) / a_block; }

/// The slices that SliceStateCache would hold, by their first inputs.
class Slices {
 public:
  Slices(double state_bytes, double memory_bytes, Index step)
      : state_bytes_{std::max(state_bytes, 1.0)},
        memory_{memory_bytes},
        most_{std::max(static_cast<Index>(std::min(memory_bytes / 4 / state_bytes_, 1e15)), Index{1})},
        step_{step} {}

  /// use(begin, end) for the slices of a range of inputs.
  template <typename Use>
  void cut(Index begin, Index end, const Use& use) const {
    while (begin < end) {
      Index next = std::min(end, begin + most_);
      if (next < end) next = std::min(end, std::max(next - next % step_, begin + step_));
      use(begin, next);
      begin = next;
    }
  }

  void get(Index begin, Index end) {
    for (auto it = kept_.begin(); it != kept_.end(); ++it)
      if (it->first == begin && it->second == end) return kept_.splice(kept_.begin(), kept_, it);
    const double bytes = state_bytes_ * static_cast<double>(end - begin);
    while (!kept_.empty() && held_ + bytes > memory_) {
      held_ -= state_bytes_ * static_cast<double>(kept_.back().second - kept_.back().first);
      kept_.pop_back();
    }
    kept_.emplace_front(begin, end);
    held_ += bytes;
    made_ += static_cast<double>(end - begin);
  }

  [[nodiscard]] double made() const { return made_; }

 private:
  double state_bytes_;
  double memory_;
  Index most_;
  Index step_;
  double held_ = 0;
  double made_ = 0;
  std::list<std::pair<Index, Index>> kept_;  ///< The most recently used comes first.
};

}  // namespace

Index inputs_a_block(const StateRoom& room) {
  const double fit = static_cast<double>(room.memory_bytes) / 2 / std::max(room.state_bytes, 1.0);
  const auto inputs = static_cast<Index>(std::min(fit, 1e15));
  return std::max(inputs / room.step, Index{1}) * room.step;
}

double states_made(Index inputs, const StateRoom& room) {
  const Index block = inputs_a_block(room), blocks = blocks_of(inputs, block);
  double made = 0;
  // The states of a block on the left meet those of all inputs from there on.
  for (Index b = 0; b < blocks; ++b) made += static_cast<double>(inputs - b * block);
  return made;
}

double states_made(Index rows, Index columns, const StateRoom& room) {
  return static_cast<double>(rows) +
         static_cast<double>(blocks_of(rows, inputs_a_block(room))) * static_cast<double>(columns);
}

double states_made_in_tiles(Index inputs, Index side, const StateRoom& room) {
  Slices slices(room.state_bytes, static_cast<double>(room.memory_bytes), room.step);
  for (Index row = 0; row < inputs; row += side)
    for (Index column = row; column < inputs; column += side)
      slices.cut(row, std::min(inputs, row + side), [&](Index left, Index left_end) {
        slices.get(left, left_end);
        slices.cut(column, std::min(inputs, column + side), [&](Index right, Index right_end) {
          if (right >= left || column != row) slices.get(right, right_end);
        });
      });
  return slices.made();
}

double states_made_in_tiles(Index rows, Index columns, Index side, const StateRoom& room) {
  const double half = static_cast<double>(room.memory_bytes) / 2;
  Slices of_rows(room.state_bytes, half, room.step), of_columns(room.state_bytes, half, room.step);
  for (Index row = 0; row < rows; row += side)
    for (Index column = 0; column < columns; column += side)
      of_rows.cut(row, std::min(rows, row + side), [&](Index left, Index left_end) {
        of_rows.get(left, left_end);
        of_columns.cut(column, std::min(columns, column + side),
                       [&](Index right, Index right_end) { of_columns.get(right, right_end); });
      });
  return of_rows.made() + of_columns.made();
}

}  // namespace widelimit

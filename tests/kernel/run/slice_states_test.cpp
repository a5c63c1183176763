// Slices of a batch whose states are kept.
#include "kernel/run/slice_states.hpp"

#include <doctest/doctest.h>

#include "kernel/run/gram_run.hpp"
#include "support/random_inputs.hpp"
#include "widelimit/network/network_file.hpp"

namespace widelimit::testing::slice_states_test {
namespace {

/// A batch of sequences with a memory for the states of so many inputs.
class SliceRequests {
 public:
  explicit SliceRequests(Index inputs_in_memory)
      : x_(random_inputs(1, {12, 6, 2})),
        plan_{make_plan(
            parse_network(R"({"widelimit": 1, "layers": [{"layer": "conv", "filter": [3]}, {"layer": "relu"},
                                          {"layer": "global_average_pool"}]})"),
            shapes_of(x_, "x"), {2, 12, 12, 78}, sizeof(double), {})},
        progress_(options_, 78),
        computation_(plan_, options_, progress_),
        cache_(x_, "x", plan_,
               static_cast<std::size_t>(inputs_in_memory * plan_.any_layout().size) * sizeof(double)) {}

  using Cache = SliceStateCache<double, double>;
  [[nodiscard]] std::vector<InputRange> cut(InputRange range, Index grid) const {
    return cache_.cut(range, grid);
  }
  Cache::States get(InputRange range) { return cache_.get(range, computation_); }

 private:
  Inputs<double> x_;
  GramPlan plan_;
  GramOptions options_;
  ProgressCounter progress_;
  GramComputation<double, double> computation_;
  Cache cache_;
};

TEST_CASE("SliceStateCache: slices make up the range, end on the grid, and several fit into the memory") {
  const SliceRequests requests(16);
  for (const InputRange& range : {InputRange{0, 12}, InputRange{3, 11}, InputRange{5, 6}})
    for (const Index grid : {1, 2, 4}) {
      Index next = range.begin;
      for (const InputRange& slice : requests.cut(range, grid)) {
        CHECK(slice.begin == next);
        CHECK(slice.size() > 0);
        if (slice.end < range.end && slice.begin % grid == 0) CHECK(slice.end % grid == 0);
        CHECK(slice.size() <= std::max<Index>(16 / 4, grid));
        next = slice.end;
      }
      CHECK(next == range.end);
    }
  // Where a single state is more than a quarter, slices of one input, as the grid has them.
  CHECK(SliceRequests(1).cut({0, 3}, 1).size() == 3);
}

TEST_CASE("SliceStateCache: states that were used last are kept") {
  SliceRequests requests(8);
  const SliceStates<double, double>* first = requests.get({0, 4}).get();
  requests.get({4, 8});
  CHECK(requests.get({0, 4}).get() == first);
  // Used before the first ones: given up for the next.
  const auto last = requests.get({8, 12});
  CHECK(requests.get({0, 4}).get() == first);
  CHECK(requests.get({8, 12}) == last);
}

TEST_CASE("SliceStateCache: states in use stay, whatever the memory") {
  SliceRequests requests(4);
  const auto first = requests.get({0, 4}), second = requests.get({4, 8}), third = requests.get({8, 12});
  CHECK(requests.get({0, 4}) == first);
  CHECK(requests.get({4, 8}) == second);
  CHECK(first->range == InputRange{0, 4});
  CHECK(first->inputs.name(1) == "input 1 of x");
  CHECK(third->inputs.name(1) == "input 9 of x");
}

}  // namespace
}  // namespace widelimit::testing::slice_states_test

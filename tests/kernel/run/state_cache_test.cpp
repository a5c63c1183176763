// Which states of a batch are kept.
#include "kernel/run/state_cache.hpp"

#include <doctest/doctest.h>

#include "kernel/run/gram_run.hpp"
#include "support/random_inputs.hpp"
#include "widelimit/network/network_file.hpp"

namespace widelimit::testing::state_cache_test {
namespace {

using PlanPointer = std::shared_ptr<const GramPlan>;

const std::string conv =
    R"([{"layer": "conv", "filter": [3]}, {"layer": "relu"}, {"layer": "global_average_pool"}])";
const std::string longer =
    R"([{"layer": "conv", "filter": [3]}, {"layer": "relu"}, {"layer": "conv", "filter": [3]}, {"layer": "erf"},
        {"layer": "global_average_pool"}])";

PlanPointer plan_of(const std::string& layers, const NamedShapes& shapes, const GramOptions& options = {},
                    Index channels = 2) {
  return std::make_shared<const GramPlan>(
      make_plan(parse_network(R"({"widelimit": 1, "layers": )" + layers + "}"), shapes, {channels, 5, 5, 15},
                sizeof(double), options));
}

TEST_CASE("states_agree: whatever is wanted of pairs, states of the same nodes and layouts are the same") {
  const PlanPointer plan = plan_of(conv, {{Shape{6}, "x"}});
  CHECK(states_agree(*plan, *plan_of(conv, {{Shape{6}, "x"}}, {.kernels = Kernels::nngp})));
  CHECK(states_agree(*plan, *plan_of(conv, {{Shape{6}, "x"}}, {.tile_size = 2})));
  // Shapes that only one of them knows say nothing.
  CHECK(states_agree(*plan, *plan_of(conv, {{Shape{5}, "x"}, {Shape{6}, "y"}})));
  CHECK_FALSE(states_agree(*plan, *plan_of(longer, {{Shape{6}, "x"}})));
  CHECK_FALSE(states_agree(*plan, *plan_of(conv, {{Shape{6}, "x"}}, {}, 3)));
}

/// Asks for states and counts those that are made.
class StateRequests {
 public:
  using States = StateCache<double, double>::States;

  States get(const PlanPointer& plan, std::int64_t replicate = 0) {
    return cache_.get(*plan, replicate, [&] {
      ++made;
      return std::make_shared<const KeptStates<double, double>>(plan, x_, "x");
    });
  }

  int made = 0;

 private:
  Inputs<double> x_ = Inputs<double>(random_inputs(1, {3, 6, 2}));
  StateCache<double, double> cache_;
};

TEST_CASE("StateCache: states serve every plan that would make the same of them, a replicate each") {
  StateRequests requests;
  const auto states = requests.get(plan_of(conv, {{Shape{6}, "x"}}));
  CHECK(requests.get(plan_of(conv, {{Shape{6}, "x"}}, {.kernels = Kernels::ntk})) == states);
  CHECK(requests.made == 1);
  CHECK(requests.get(plan_of(conv, {{Shape{6}, "x"}}), 1) != states);
  CHECK(requests.made == 2);
}

TEST_CASE("StateCache: under the first plan and the last other one") {
  StateRequests requests;
  const PlanPointer first = plan_of(conv, {{Shape{6}, "x"}}), second = plan_of(longer, {{Shape{6}, "x"}}),
                    third = plan_of(conv, {{Shape{6}, "x"}}, {}, 3);
  const auto kept = requests.get(first);
  requests.get(second);
  CHECK(requests.get(first) == kept);
  requests.get(second);
  CHECK(requests.made == 2);
  requests.get(third);
  CHECK(requests.get(first) == kept);
  CHECK(requests.made == 3);
  // The third took the second's place.
  requests.get(second);
  CHECK(requests.made == 4);
  CHECK(requests.get(first) == kept);
}

}  // namespace
}  // namespace widelimit::testing::state_cache_test

// Which plans are kept.
#include "kernel/run/plan_cache.hpp"

#include <doctest/doctest.h>

#include "widelimit/error.hpp"
#include "widelimit/network/network_file.hpp"

namespace widelimit::testing::plan_cache_test {
namespace {

/// Asks a cache for plans and counts those that are made.
class PlanRequests {
 public:
  std::shared_ptr<const GramPlan> get(const Shape& shape, const GramSize& size,
                                      const GramOptions& options = {}) {
    const NamedShapes shapes{{shape, "x"}};
    return cache_.get(PlanKey(shapes, size, options), [&] {
      ++made;
      return std::make_shared<const GramPlan>(make_plan(network_, shapes, size, sizeof(double), options));
    });
  }

  int made = 0;

 private:
  Network network_ = parse_network(
      R"({"widelimit": 1, "layers": [{"layer": "conv", "filter": [3]}, {"layer": "relu"}, {"layer": "flatten"}]})");
  PlanCache cache_;
};

constexpr GramSize size{2, 5, 5, 15};

TEST_CASE("PlanCache: a plan that was asked for before is not made again") {
  PlanRequests requests;
  const auto first = requests.get({6}, size);
  CHECK(requests.get({6}, size) == first);
  CHECK(requests.made == 1);
}

TEST_CASE("PlanCache: whatever a plan depends on makes another") {
  PlanRequests requests;
  requests.get({6}, size);
  requests.get({7}, size);
  requests.get({6}, {2, 6, 5, 30});
  requests.get({6}, size, {.kernels = Kernels::nngp});
  CHECK(requests.made == 4);
  requests.get({6}, size, {.demand = GramOptions::Demand::everything});
  requests.get({6}, size, {.tile_size = 3});
  requests.get({6}, size, {.threads = 2});
  requests.get({6}, {2, 5, 5, 15, InputMasks::present});
  CHECK(requests.made == 8);
}

TEST_CASE("PlanCache: the last four are kept, and those that were given away stay valid") {
  PlanRequests requests;
  const auto oldest = requests.get({5}, size);
  for (const Index length : {6, 7, 8, 9}) requests.get({length}, size);
  CHECK(requests.made == 5);
  requests.get({9}, size);
  requests.get({6}, size);
  CHECK(requests.made == 5);
  CHECK(oldest->state_layouts.contains(Shape{5}));
  CHECK(requests.get({5}, size) != oldest);
  CHECK(requests.made == 6);
}

TEST_CASE("PlanCache: a plan that cannot be made leaves nothing") {
  PlanRequests requests;
  CHECK_THROWS_AS(requests.get({6, 6}, size), NetworkError);
  CHECK_THROWS_AS(requests.get({6, 6}, size), NetworkError);
  CHECK(requests.made == 2);
}

}  // namespace
}  // namespace widelimit::testing::plan_cache_test

// Which maps of positions become windows of a chain.
#include "kernel/plan/selections.hpp"

#include <doctest/doctest.h>

#include <string>

#include "kernel/backends/cpu/planes/engine_program.hpp"

namespace widelimit::testing {
namespace {

std::string with_map(const std::string& map) {
  return R"([{"layer": "conv", "filter": [3, 3]}, {"layer": "relu"}, {)" + map +
         R"(}, {"layer": "dense"}, {"layer": "relu"}, {"layer": "global_average_pool"}])";
}

/// The windows without weights of a network between inputs of two shapes.
std::vector<Window> selections(const std::string& map, const Shape& left, const Shape& right) {
  const EngineProgram engine(with_map(map), left, right, 2);
  std::vector<Window> windows;
  for (const Node& node : engine.program.graph.nodes)
    if (const auto* affine = std::get_if<AffineNode>(&node.operation);
        affine != nullptr && affine->weights == AffineNode::Weights::none)
      windows.push_back(affine->window);
  return windows;
}

TEST_CASE("maps that choose positions in steps are windows of a chain") {
  const std::string nearest = R"("layer": "image_resize", "size": [4, 3], "method": "nearest")";
  const auto found = selections(nearest, {8, 9}, {8, 9});
  REQUIRE(found.size() == 1);
  CHECK(found[0] == Window{{1, 1}, {2, 3}, Padding::valid, {1, 1}, {-1, -1}});
  // No weight but 1, at one place.
  const std::string odd = R"("layer": "image_resize", "size": [2, 3], "antialias": false)";
  CHECK(selections(odd, {6, 9}, {6, 9}) ==
        std::vector{Window{{1, 1}, {3, 3}, Padding::valid, {1, 1}, {-1, -1}}});
  // The last positions are left out.
  CHECK(selections(R"("layer": "slice", "begin": [1, 0], "end": [-3, -2], "step": [2, 1])", {8, 6}, {8, 6}) ==
        std::vector{Window{{1, 1}, {2, 1}, Padding::valid, {1, 0}, {5, 4}}});
}

TEST_CASE("others are not, nor those whose steps depend on the input's shape") {
  const std::string nearest = R"("layer": "image_resize", "size": [4, 4], "method": "nearest")";
  CHECK(selections(nearest, {8, 8}, {4, 8}).empty());
  CHECK(selections(nearest, {6, 8}, {6, 8}).empty());
  CHECK(selections(nearest, {2, 2}, {2, 2}).empty());
  CHECK(selections(R"("layer": "slice", "begin": [null, null], "end": [null, null], "step": [-1, 1])", {4, 4},
                   {4, 4})
            .empty());
  CHECK(selections(R"("layer": "image_resize", "size": [4, 4])", {8, 8}, {8, 8}).empty());
}

}  // namespace
}  // namespace widelimit::testing

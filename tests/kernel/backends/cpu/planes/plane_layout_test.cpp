// Where the entries of planes lie, against loops over all pairs of positions.
#include "kernel/backends/cpu/planes/plane_layout.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <set>

#include "kernel/backends/cpu/planes/placed_plane.hpp"

using namespace widelimit;

namespace {

struct PairOfPositions {
  Index3 left;
  Index3 right;
  auto operator<=>(const PairOfPositions&) const = default;
};

/// Which pair of positions every place of a plane holds; places are checked to be one's own.
std::map<Index, PairOfPositions> entries_of(const PlacedPlane& plane) {
  std::map<Index, PairOfPositions> entries;
  if (plane.empty()) return entries;
  plane.for_each_piece([&](const Box& box, Index begin) {
    for (Index x = 0; x < box.extent[0]; ++x)
      for (Index y = 0; y < box.extent[1]; ++y)
        for (Index z = 0; z < box.extent[2]; ++z) {
          const Index3 a{box.origin[0] + x, box.origin[1] + y, box.origin[2] + z};
          const Index3 b{a[0] + box.offset[0], a[1] + box.offset[1], a[2] + box.offset[2]};
          CHECK(entries.emplace(begin + plane.layout.at(x, y) + z, PairOfPositions{a, b}).second);
        }
  });
  return entries;
}

/// All pairs of positions whose offset is among these.
std::set<PairOfPositions> pairs_at(const Index3& left, const Index3& right, const std::set<Index3>& offsets) {
  std::set<PairOfPositions> pairs;
  for_each_row(left, [&](Index x, Index y) {
    for (Index z = 0; z < left[2]; ++z)
      for (const Index3& offset : offsets) {
        const Index3 b{x + offset[0], y + offset[1], z + offset[2]};
        const bool inside =
            b[0] >= 0 && b[1] >= 0 && b[2] >= 0 && b[0] < right[0] && b[1] < right[1] && b[2] < right[2];
        if (inside) pairs.insert({{x, y, z}, b});
      }
  });
  return pairs;
}

std::set<PairOfPositions> values_of(const std::map<Index, PairOfPositions>& entries) {
  std::set<PairOfPositions> values;
  for (const auto& [place, pair] : entries) values.insert(pair);
  return values;
}

ChainGeometry run_of(const Index3& guard, const OffsetMap& map) {
  ChainGeometry chain;
  chain.guard = guard;
  chain.complements = true;
  chain.maps = {map};
  return chain;
}

/// The places from `begin` to the end of the row are free: nothing stands in a guard.
void check_guards(const PlacedPlane& plane, const std::map<Index, PairOfPositions>& entries) {
  const PlaneLayout& layout = plane.layout;
  for (const auto& [place, pair] : entries) {
    REQUIRE(place >= 0);
    REQUIRE(place < layout.length);
    const Index row = place % layout.stride[0] / layout.stride[1], column = place % layout.stride[1];
    CHECK(row < layout.extent[1]);
    CHECK(column < layout.extent[2]);
    CHECK((row < layout.gap[1] || row >= layout.gap[1] + layout.gap_size[1]));
    CHECK((column < layout.gap[2] || column >= layout.gap[2] + layout.gap_size[2]));
  }
}

}  // namespace

TEST_CASE("a plane holds the pairs of positions of its offset, and none in its guards") {
  const std::vector<std::pair<Index3, Index3>> sizes{
      {{1, 1, 5}, {1, 1, 5}}, {{1, 1, 3}, {1, 1, 8}}, {{1, 4, 5}, {1, 6, 3}}, {{2, 3, 4}, {3, 2, 4}}};
  const OffsetMap map{{1, 2, 1}, {0, 1, -1}};
  for (const auto& [left, right] : sizes)
    for (const Index3& guard : {Index3{0, 0, 0}, Index3{0, 1, 2}})
      for (Index y = -3; y <= 3; ++y)
        for (Index z = -4; z <= 4; ++z) {
          PlacedPlane plane;
          plane.place(run_of(guard, map), 0, {{{{0, 0}, 1}, {{y, 0}, 1}, {{z, 0}, 1}}}, left, right);
          const Index3 offset{0, 2 * y + 1, z - 1};
          const auto entries = entries_of(plane);
          CHECK(values_of(entries) == pairs_at(left, right, {offset}));
          CHECK(plane.empty() == entries.empty());
          CHECK(plane.has_offset(offset));
          CHECK(plane.is_diagonal == (offset == Index3{0, 0, 0}));
          if (!plane.empty()) check_guards(plane, entries);
        }
}

TEST_CASE("complementary offsets fill one plane, with gaps between the pieces") {
  const Index3 sizes{1, 5, 6};
  for (const Index3& guard : {Index3{0, 1, 1}, Index3{0, 2, 0}})
    for (Index y = 1; y < sizes[1]; ++y)
      for (Index z = 1; z < sizes[2]; ++z) {
        PlacedPlane plane;
        const AxisOffsets rows{{y, y - sizes[1]}, 2}, columns{{z, z - sizes[2]}, 2};
        plane.place(run_of(guard, {}), 0, {{{{0, 0}, 1}, rows, columns}}, sizes, sizes);
        const auto entries = entries_of(plane);
        CHECK(values_of(entries) ==
              pairs_at(
                  sizes, sizes,
                  {{0, y, z}, {0, y - sizes[1], z}, {0, y, z - sizes[2]}, {0, y - sizes[1], z - sizes[2]}}));
        CHECK(static_cast<Index>(entries.size()) == product(sizes));
        CHECK(plane.layout.extent == Index3{1, sizes[1] + guard[1], sizes[2] + guard[2]});
        CHECK(plane.layout.gap_size == Index3{0, guard[1], guard[2]});
        check_guards(plane, entries);
      }
}

TEST_CASE("a plane alone has no guards") {
  const auto plane = PlacedPlane::alone({0, 1, -2}, {1, 4, 5}, {1, 3, 6});
  const auto entries = entries_of(plane);
  CHECK(values_of(entries) == pairs_at({1, 4, 5}, {1, 3, 6}, {{0, 1, -2}}));
  CHECK(static_cast<Index>(entries.size()) == plane.layout.length);
  CHECK(PlacedPlane::alone({0, 3, 0}, {1, 4, 5}, {1, 3, 6}).empty());
}

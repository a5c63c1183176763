// Where the entries of kept nodes lie, against loops over all pairs of positions.
#include "kernel/backends/cpu/planes/store_layout.hpp"

#include <doctest/doctest.h>

#include <set>

using namespace widelimit;

namespace {

/// Calls body(a, b) for every pair of positions whose offset is among these.
template <typename Body>
void for_each_pair_at(const Index3& left, const Index3& right, const Offsets& offsets, const Body& body) {
  const auto for_each_position = [](const Index3& sizes, const auto& visit) {
    for_each_row(sizes, [&](Index x, Index y) {
      for (Index z = 0; z < sizes[2]; ++z) visit(Index3{x, y, z});
    });
  };
  for_each_position(left, [&](const Index3& a) {
    for_each_position(right, [&](const Index3& b) {
      if (offsets.contains({b[0] - a[0], b[1] - a[1], b[2] - a[2]})) body(a, b);
    });
  });
}

/// Every entry has a place of its own, that of its plane; all places are taken.
void check_layout(const StoreLayout& layout, const Index3& left, const Index3& right, const Offsets& offsets,
                  Index entries) {
  std::set<Index> places;
  for_each_pair_at(left, right, offsets, [&](const Index3& a, const Index3& b) {
    const Index entry = layout.entry(a, b);
    CHECK(entry >= 0);
    CHECK(entry < layout.size());
    CHECK(places.insert(entry).second);
    const Box box(left, right, {b[0] - a[0], b[1] - a[1], b[2] - a[2]});
    const auto [start, step] = layout.place(box);
    Index of_plane = start;
    for (std::size_t k = 0; k < 3; ++k) of_plane += (a[k] - box.origin[k]) * step[k];
    CHECK(of_plane == entry);
  });
  CHECK(static_cast<Index>(places.size()) == entries);
}

const std::vector<std::pair<Index3, Index3>> all_sizes{
    {{1, 1, 5}, {1, 1, 5}}, {{1, 1, 3}, {1, 1, 8}}, {{1, 4, 5}, {1, 6, 3}}, {{2, 3, 4}, {3, 2, 4}}};

}  // namespace

TEST_CASE("a matrix has an entry for every pair of positions, row by row") {
  for (const auto& sizes : all_sizes) {
    const Index3 &left = sizes.first, &right = sizes.second;
    const StoreLayout layout = StoreLayout::matrix(left, right);
    CHECK(layout.is_matrix());
    CHECK(layout.size() == product(left) * product(right));
    check_layout(layout, left, right, Offsets::all(left, right), layout.size());
    for_each_pair_at(left, right, Offsets::all(left, right), [&](const Index3& a, const Index3& b) {
      CHECK(layout.entry(a, b) == position_number(a, left) * product(right) + position_number(b, right));
    });
  }
}

TEST_CASE("planes of all offsets, and of some, fill their room") {
  for (const auto& sizes : all_sizes) {
    const Index3 &left = sizes.first, &right = sizes.second;
    Offsets some = Offsets::all(left, right);
    for (auto& axis : some.axis)
      std::erase_if(axis, [](Index offset) { return offset != 0 && offset % 2 == 0; });
    for (const Offsets& offsets : {Offsets::all(left, right), some, Offsets::zero()}) {
      const StoreLayout layout = StoreLayout::planes(left, right, offsets);
      CHECK(!layout.is_matrix());
      check_layout(layout, left, right, offsets, layout.size());
      for (Index offset = -left[1]; offset <= right[1]; ++offset)
        CHECK(layout.contains(1, offset) == offsets.contains({0, offset, 0}));
    }
  }
}

TEST_CASE("the rows of planes that agree in their offset along the last axis are one block") {
  const Index3 left{1, 4, 5}, right{1, 6, 3};
  const Offsets offsets = Offsets::all(left, right);
  const StoreLayout layout = StoreLayout::planes(left, right, offsets);
  for (const Index z : offsets.axis[2]) {
    Index row = 0;
    for (const Index y : offsets.axis[1]) {
      const Box box(left, right, {0, y, z});
      CHECK(layout.first_row({0, y}) == row);
      for (Index j = 0; j < box.extent[1]; ++j, ++row)
        CHECK(layout.row_start(row, z) == layout.place(box).start + j * layout.place(box).step[1]);
    }
    CHECK(row == layout.rows());
  }
}

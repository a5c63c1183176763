// Entries of kept nodes.
#include "kernel/backends/cpu/backward/planes/kept_windows.hpp"

#include <doctest/doctest.h>

#include <map>
#include <random>

#include "kernel/backends/cpu/planes/engine_program.hpp"

namespace widelimit::testing::kept_windows_test {
namespace {

using Meeting = std::pair<std::size_t, std::size_t>;

TEST_CASE("for_each_wrapped: windows of a sequence go around its ends") {
  const Index3 sizes{1, 1, 4};
  const Affine affine(AffineNode{{{3}, {1}, Padding::circular}, 1, 0}, sizes, sizes);
  // Offset 1: positions 0, 1, 2 with 1, 2, 3, each seen through taps -1, 0, 1.
  std::vector<Meeting> meetings;
  for_each_wrapped(affine, PlacedPlane::alone({0, 0, 1}, sizes, sizes), sizes, sizes,
                   [&](std::size_t entry, std::size_t source) { meetings.emplace_back(entry, source); });
  const std::vector<Meeting> expected{{0, 3 * 4 + 0}, {0, 0 * 4 + 1}, {0, 1 * 4 + 2},  //
                                      {1, 0 * 4 + 1}, {1, 1 * 4 + 2}, {1, 2 * 4 + 3},  //
                                      {2, 1 * 4 + 2}, {2, 2 * 4 + 3}, {2, 3 * 4 + 0}};
  CHECK(meetings == expected);
}

TEST_CASE("for_each_wrapped: over all offsets, every entry is read as often as the window has taps") {
  const Index3 sizes{1, 3, 4};
  const Affine affine(AffineNode{{{3, 2}, {1, 1}, Padding::circular}, 1, 0}, sizes, sizes);
  std::map<std::size_t, int> reads;
  for (Index y = -2; y <= 2; ++y)
    for (Index z = -3; z <= 3; ++z)
      for_each_wrapped(affine, PlacedPlane::alone({0, y, z}, sizes, sizes), sizes, sizes,
                       [&](std::size_t, std::size_t source) { ++reads[source]; });
  CHECK(reads.size() == 144);
  for (const auto& [source, count] : reads) CHECK(count == 6);
}

TEST_CASE("planes of a kept node: read_kept() and its transpose add_to_kept() meet every entry once") {
  std::mt19937 generator(9);
  const Index3 left{1, 3, 4}, right{1, 2, 5};
  KeptNode<double> kept;
  kept.rows = 12;
  kept.columns = 10;
  kept.clear(true);
  kept.nngp = normal_numbers(120, generator);
  kept.ntk = normal_numbers(120, generator);
  kept.clear_adjoint();
  for (Index y = -2; y <= 1; ++y)
    for (Index z = -3; z <= 4; ++z) {
      const auto plane = PlacedPlane::alone({0, y, z}, left, right);
      std::vector<double> nngp(static_cast<std::size_t>(plane.layout.length)), ntk = nngp;
      read_kept(kept, plane, left, right, Plane<double>{nngp.data(), ntk.data()});
      add_to_kept(Plane<double>{nngp.data(), ntk.data()}, plane, left, right, kept);
    }
  CHECK(kept.nngp_adjoint == kept.nngp);
  CHECK(kept.ntk_adjoint == kept.ntk);
}

}  // namespace
}  // namespace widelimit::testing::kept_windows_test

#include "widelimit/network/pair_views.hpp"

#include <doctest/doctest.h>

using widelimit::Entries;
using widelimit::PairSize;

TEST_CASE("pair size: counts of kernels and entries, for flops") {
  for (const bool with_ntk : {false, true})
    CHECK(PairSize{.left = 3, .right = 5, .wanted = Entries::all, .with_ntk = with_ntk}.kernels() ==
          (with_ntk ? 2 : 1));
  for (long left = 1; left <= 4; ++left)
    for (long right = 1; right <= 4; ++right) {
      long all = 0, diagonal = 0;
      for (long a = 0; a < left; ++a)
        for (long b = 0; b < right; ++b) {
          ++all;
          diagonal += a == b ? 1 : 0;
        }
      const PairSize whole{left, right, Entries::all, false}, own{left, right, Entries::diagonal, false};
      CHECK(whole.entries() == all);
      CHECK(own.entries() == all);
      CHECK(whole.wanted_entries() == all);
      CHECK(own.wanted_entries() == diagonal);
    }
}

TEST_CASE("pair size: entries of inputs with many positions do not overflow") {
  const PairSize size{1L << 40, 1L << 40, Entries::all, true};
  CHECK(size.entries() == 0x1p80);
}

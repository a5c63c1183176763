#include "kernel/run/state_counts.hpp"

#include <doctest/doctest.h>

namespace widelimit::testing {
namespace {

TEST_CASE("state counts: a block takes half of the memory, in steps") {
  CHECK(inputs_a_block({.state_bytes = 100, .memory_bytes = 1000}) == 5);
  CHECK(inputs_a_block({.state_bytes = 100, .memory_bytes = 1000, .step = 2}) == 4);
  CHECK(inputs_a_block({.state_bytes = 100, .memory_bytes = 10, .step = 16}) == 16);
  CHECK(inputs_a_block({.state_bytes = 0, .memory_bytes = 10}) == 5);
}

TEST_CASE("state counts: states that do not fit are made again for every block on the left") {
  const StateRoom room{.state_bytes = 100, .memory_bytes = 800};  // four inputs a block
  CHECK(states_made(4, room) == 4);
  // The first block meets all ten, the second six, the third two.
  CHECK(states_made(10, room) == 10 + 6 + 2);
  CHECK(states_made(10, 3, room) == 10 + 3 * 3);
}

TEST_CASE("state counts: tiles keep the states used last") {
  // All fit: each is made once.
  CHECK(states_made_in_tiles(10, 2, {.state_bytes = 100, .memory_bytes = 1000}) == 10);
  // Four slices of one input. Of the tiles of a row, all but those kept from the row before are made.
  const StateRoom room{.state_bytes = 100, .memory_bytes = 400};
  CHECK(states_made_in_tiles(4, 1, room) == 4);
  // Rows of six: 6, then the row's own input has been dropped for later ones, which are dropped in turn.
  CHECK(states_made_in_tiles(6, 1, room) > 6);
  CHECK(states_made_in_tiles(6, 1, room) <= 6 + 5 + 4 + 3);
  // Each half of the memory is for one batch.
  CHECK(states_made_in_tiles(4, 2, 1, {.state_bytes = 100, .memory_bytes = 800}) == 6);
}

}  // namespace
}  // namespace widelimit::testing

// Claims of tiles: one at a time, also between processes, and lost with them.
#include "store/tile_claims.hpp"

#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "data/temporary_folder.hpp"
#include "widelimit/error.hpp"

namespace widelimit::store {
namespace {

TEST_CASE("tile claims: a link to a file of somebody else is not followed") {
  const TemporaryFolder folder;
  const auto file = folder.write("mine", "mine"), link = folder.path() / "claims";
  std::filesystem::create_symlink(file, link);
  CHECK_THROWS_AS(store::TileClaims{link}, DataError);
  CHECK(read_bytes(file) == "mine");
}

TEST_CASE("claims: a tile is claimed once, others are free, a released one is free again") {
  const TemporaryFolder folder;
  const auto file = folder.path() / "claims";
  TileClaims first(file), second(file);
  CHECK(first.claim(7));
  CHECK_FALSE(second.claim(7));
  CHECK(second.claim(8));
  CHECK_FALSE(first.claim(8));
  first.release(7);
  CHECK(second.claim(7));
  CHECK(first.are_kept());
  CHECK_THROWS_AS(TileClaims(folder.path() / "no" / "claims"), DataError);
}

TEST_CASE("claims: many use a store's shape, or one changes it") {
  const TemporaryFolder folder;
  const auto file = folder.path() / "claims";
  TileClaims first(file), second(file);
  CHECK(first.use_shape());
  CHECK(second.use_shape());
  {
    TileClaims third(file);
    CHECK_FALSE(third.change_shape());
  }
  TileClaims alone(folder.path() / "others"), late(folder.path() / "others");
  CHECK(alone.change_shape());
  CHECK_FALSE(late.use_shape());
  CHECK_FALSE(late.change_shape());
}

TEST_CASE("claims: those of a process that is killed are free") {
  const TemporaryFolder folder;
  const auto file = folder.path() / "claims";
  int pipe_ends[2];
  REQUIRE(pipe(pipe_ends) == 0);
  const pid_t child = fork();
  if (child == 0) {
    TileClaims claims(file);
    const char claimed = claims.claim(3) ? 'y' : 'n';
    static_cast<void>(!::write(pipe_ends[1], &claimed, 1));
    for (;;) pause();
  }
  char claimed = 0;
  REQUIRE(::read(pipe_ends[0], &claimed, 1) == 1);
  CHECK(claimed == 'y');
  TileClaims claims(file);
  CHECK_FALSE(claims.claim(3));
  ::kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  CHECK(claims.claim(3));
  close(pipe_ends[0]), close(pipe_ends[1]);
}

}  // namespace
}  // namespace widelimit::store

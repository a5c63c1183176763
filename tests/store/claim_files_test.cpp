// Claims by files: one owner, free when it is released, has ended or was silent for long.
#include "store/claim_files.hpp"

#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <thread>

#include "data/temporary_folder.hpp"
#include "widelimit/error.hpp"

namespace widelimit::store {
namespace {

using namespace std::chrono_literals;

/// A claim of a process of another machine, touched so long ago.
void write_foreign(const TemporaryFolder& folder, const char* name, std::chrono::seconds ago) {
  folder.write(std::string("claims/") + name, "elsewhere-00000000-17-0badcafe 0\n");
  const auto file = folder.path() / "claims" / name;
  std::filesystem::last_write_time(file, std::filesystem::last_write_time(file) - ago);
}

TEST_CASE("claim files: one owner, and free again") {
  const TemporaryFolder folder;
  ClaimFiles first(folder.path() / "claims"), second(folder.path() / "claims");
  CHECK(first.take("tile-7"));
  CHECK_FALSE(second.take("tile-7"));
  CHECK_FALSE(first.take("tile-7"));
  CHECK(second.take("tile-8"));
  CHECK(second.holder("tile-7") == files::this_process());
  CHECK(second.taken_by_others("tile-") == std::vector<std::string>{"tile-7"});
  first.release("tile-7");
  CHECK(second.take("tile-7"));
  // Not its own any more.
  first.release("tile-7");
  CHECK_FALSE(first.take("tile-7"));
  CHECK_THROWS_AS(ClaimFiles("/proc/claims"), DataError);
}

TEST_CASE("claim files: those of another machine count while they are touched, those of the dead do not") {
  const TemporaryFolder folder;
  {
    ClaimFiles claims(folder.path() / "claims");
    write_foreign(folder, "tile-1", 60s);
    write_foreign(folder, "tile-2", 200s);
    CHECK_FALSE(claims.take("tile-1"));
    CHECK(claims.taken_by_others("tile-") == std::vector<std::string>{"tile-1"});
    CHECK(claims.take("tile-2"));
    CHECK_FALSE(claims.take("tile-2"));
    const pid_t child = fork();
    if (child == 0) {
      ClaimFiles of_child(folder.path() / "claims");
      static_cast<void>(!of_child.take("tile-3"));
      _exit(0);
    }
    waitpid(child, nullptr, 0);
    CHECK(claims.take("tile-3"));
  }
  ClaimFiles late(folder.path() / "claims");
  CHECK(late.taken_by_others("tile-") == std::vector<std::string>{"tile-1"});
}

TEST_CASE("claim files: their owner touches them") {
  const TemporaryFolder folder;
  const ClaimPulse quick{20ms, 400ms};
  ClaimFiles claims(folder.path() / "claims", quick), others(folder.path() / "claims", quick);
  CHECK(claims.take("tile-1"));
  std::this_thread::sleep_for(900ms);
  CHECK_FALSE(others.take("tile-1"));
}

}  // namespace
}  // namespace widelimit::store

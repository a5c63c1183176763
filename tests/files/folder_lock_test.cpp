#include "widelimit/files/folder_lock.hpp"

#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <optional>

#include "data/temporary_folder.hpp"
#include "support/error_message.hpp"
#include "widelimit/error.hpp"

using namespace widelimit::files;
using widelimit::DataError;
using widelimit::testing::error_message;

TEST_CASE(
    "folder lock: one at a time has it, in this process and in others, and nothing lies in the folder") {
  const TemporaryFolder folder;
  const std::string expected =
      folder.path().string() +
      ": another run writes to this folder: wait until it has ended, or choose another folder";
  const auto locking = [&] { const FolderLock lock(folder.path()); };
  std::optional<FolderLock> lock(std::in_place, folder.path());
  CHECK(std::filesystem::is_empty(folder.path()));
  CHECK(error_message<DataError>(locking) == expected);
  const pid_t child = fork();
  if (child == 0) _exit(error_message<DataError>(locking) == expected ? 0 : 1);
  int status = 0;
  waitpid(child, &status, 0);
  CHECK(status == 0);
  lock.reset();
  CHECK(error_message<DataError>(locking) == "no error");
}

TEST_CASE("folder lock: where there is no folder, others say so") {
  CHECK_NOTHROW(FolderLock("/no/such/folder"));
}

TEST_CASE("folder claim: of two processes that make a folder the second is told, and nothing stays behind") {
  const TemporaryFolder folder;
  const auto place = folder.path() / "model";
  std::optional<FolderClaim> claim(std::in_place, place);
  const auto in_another = [](const auto& is_true) {
    const pid_t child = fork();
    if (child == 0) _exit(is_true() ? 0 : 1);
    int status = 0;
    waitpid(child, &status, 0);
    return status == 0;
  };
  const auto message = [](const std::filesystem::path& path) {
    return error_message<DataError>([&] { const FolderClaim other(path); });
  };
  for (const auto& name : {place, place / ""})
    CHECK(in_another(
        [&] { return message(name).starts_with(name.string() + ": another run writes to this folder"); }));
  CHECK(in_another([&] { return message(folder.path() / "other") == "no error"; }));
  claim.reset();
  CHECK(in_another([&] { return message(place) == "no error"; }));
  CHECK(std::filesystem::is_empty(folder.path()));
  // One that was killed is none.
  CHECK(in_another([&] {
    static const FolderClaim killed(place);
    return true;
  }));
  CHECK_FALSE(std::filesystem::is_empty(folder.path()));
  CHECK(message(place) == "no error");
  CHECK(std::filesystem::is_empty(folder.path()));
}

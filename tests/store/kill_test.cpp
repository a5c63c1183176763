// Writers of a store that are killed at random moments: what they reported is there, and nothing else is wrong.
#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <memory>
#include <random>

#include "store/kill_network.hpp"
#include "store/store_support.hpp"

extern char** environ;

namespace widelimit::testing {
namespace {

/// A process that computes the store.
class Writer {
 public:
  Writer(const std::filesystem::path& folder, Index images, Index side) {
    int ends[2];
    REQUIRE(pipe2(ends, O_CLOEXEC) == 0);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    std::string program = WIDELIMIT_STORE_WRITER, place = folder.string(), count = std::to_string(images),
                tile = std::to_string(side);
    char* arguments[] = {program.data(), place.data(), count.data(), tile.data(), nullptr};
    REQUIRE(posix_spawn(&process_, program.c_str(), &actions, nullptr, arguments, environ) == 0);
    posix_spawn_file_actions_destroy(&actions);
    ::close(ends[1]);
    reports_ = ends[0];
  }
  ~Writer() {
    if (process_ > 0) kill();
    ::close(reports_);
  }
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;

  /// The next number of pairs that it reports; -1 at its end.
  Index next_report() {
    std::string line;
    char c = 0;
    while (::read(reports_, &c, 1) == 1 && c != '\n') line += c;
    return c == '\n' && !line.empty() ? last_ = std::atol(line.c_str()) : -1;
  }

  /// The last number of pairs that it reported, all its reports read.
  Index kill() {
    ::kill(process_, SIGKILL);
    ::waitpid(process_, nullptr, 0);
    process_ = 0;
    while (next_report() >= 0) continue;
    return last_;
  }

  int wait() {
    while (next_report() >= 0) continue;
    int status = 0;
    ::waitpid(process_, &status, 0);
    process_ = 0;
    return status;
  }

 private:
  pid_t process_ = 0;
  int reports_ = -1;
  Index last_ = 0;
};

/// How many pairs are in the store, none of whose files may be damaged.
Index whole_pairs(const std::filesystem::path& folder) {
  if (!std::filesystem::exists(folder / "zarr.json")) return 0;
  const store::StoredGram stored(folder);
  const auto check = stored.check();
  CHECK(check.damaged.empty());
  Index pairs = stored.grid().pairs();
  for (const store::TileIndex& tile : check.missing) pairs -= stored.grid().pairs(tile);
  return pairs;
}

void check_finished(const std::filesystem::path& folder, Index images) {
  const auto x = kill_inputs(images);
  check_same_kernels(store::StoredGram(folder).matrix<float>(), gram(kill_network(), x));
  for (const std::string& file : contents(folder))
    CHECK(file.substr(0, file.find('\n')).find(".part") == std::string::npos);
}

TEST_CASE("one writer, killed at 100 random moments: what was reported is there and right [slow]") {
  const TemporaryFolder folder;
  const auto place = folder.path() / "store";
  constexpr Index images = 300, side = 6;
  std::mt19937 random(7);
  Index in_store = 0;
  int tiles_between = 0;
  for (int kills = 0; kills < 100; ++kills) {
    Writer writer(place, images, side);
    // Its first reports count what it finds.
    const Index goal = in_store + 21 * static_cast<Index>(random() % 3);
    for (Index reported = 0; reported >= 0 && reported <= goal;) reported = writer.next_report();
    ::usleep(static_cast<useconds_t>(random() % 4000));
    const Index reported = writer.kill();
    const Index there = whole_pairs(place);
    CHECK(there >= reported);
    CHECK(there >= in_store);
    if (there > in_store) ++tiles_between;
    in_store = there;
  }
  CHECK(tiles_between > 30);
  CHECK(in_store < images * (images + 1) / 2);
  CHECK(Writer(place, images, side).wait() == 0);
  check_finished(place, images);
}

TEST_CASE("four writers, of which one is killed at each of 100 random moments [slow]") {
  const TemporaryFolder folder;
  const auto place = folder.path() / "store";
  constexpr Index images = 400, side = 6;
  std::mt19937 random(8);
  std::vector<std::unique_ptr<Writer>> writers(4);
  for (auto& writer : writers) writer = std::make_unique<Writer>(place, images, side);
  for (int kills = 0; kills < 100; ++kills) {
    auto& victim = writers[random() % writers.size()];
    for (auto reports = random() % 4; reports > 0; --reports) static_cast<void>(victim->next_report());
    ::usleep(static_cast<useconds_t>(random() % 20000));
    const Index reported = victim->kill();
    CHECK(whole_pairs(place) >= reported);
    victim = std::make_unique<Writer>(place, images, side);
  }
  for (auto& writer : writers) CHECK(writer->wait() == 0);
  check_finished(place, images);
}

}  // namespace
}  // namespace widelimit::testing

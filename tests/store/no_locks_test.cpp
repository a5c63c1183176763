// File systems without locks, on which processes of containers have the same numbers: every tile is computed once,
// nobody breaks another's files, and the claims of the dead are free.
#include <cstdlib>
#include <fstream>

#include "store/kill_network.hpp"
#include "store/store_support.hpp"

namespace widelimit::testing {
namespace {

/// Runs a script in which "writer IMAGES SIDE" computes the store without locks.
int run_script(const std::filesystem::path& store, const std::string& script) {
  return std::system(("writer() { LD_PRELOAD=" WIDELIMIT_NO_LOCKS " " WIDELIMIT_STORE_WRITER " " +
                      store.string() + " $1 $2; }\n" + script)
                         .c_str());
}

TEST_CASE("without locks, processes of the same number compute every tile once") {
  const TemporaryFolder folder;
  const auto store = folder.path() / "store";
  const std::string errors = (folder.path() / "errors").string();
  CHECK(run_script(store, "for k in 1 2 3 4; do writer 90 6 >/dev/null 2>" + errors + "$k & done; wait") ==
        0);
  Index computed = 0;
  for (const char* k : {"1", "2", "3", "4"}) {
    const std::string text = read_bytes(errors + k);
    CAPTURE(text);
    REQUIRE(text.starts_with("computed "));
    computed += std::atol(text.c_str() + 9);
  }
  CHECK(computed == 120);
  CHECK(store::StoredGram(store).check().is_complete());
  check_same_kernels(store::StoredGram(store).matrix<float>(), gram(kill_network(), kill_inputs(90)));
  for (const std::string& file : contents(folder.path()))
    CHECK(file.substr(0, file.find('\n')).find(".part") == std::string::npos);
}

TEST_CASE("without locks, what a killed process had is free at once on its machine") {
  const TemporaryFolder folder;
  const auto store = folder.path() / "store";
  CHECK(run_script(store, "LD_PRELOAD=" WIDELIMIT_NO_LOCKS " " WIDELIMIT_STORE_WRITER " " + store.string() +
                              " 90 6 >/dev/null 2>&1 & killed=$!\n"
                              "for wait in $(seq 2000); do [ -e " +
                              store.string() +
                              "/ntk/c/0/4 ] && break; sleep 0.01; done\n"
                              "kill -9 $killed; wait $killed\n"
                              "writer 90 6 >/dev/null 2>&1") == 0);
  CHECK(store::StoredGram(store).check().is_complete());
  for (const std::string& file : contents(folder.path()))
    CHECK(file.substr(0, file.find('\n')).find(".part") == std::string::npos);
}

}  // namespace
}  // namespace widelimit::testing

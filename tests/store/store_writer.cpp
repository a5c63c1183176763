// store_writer FOLDER IMAGES SIDE: computes the store that kill_test.cpp kills the writers of, and prints after each
// tile how many pairs are in it; in the end, on standard error, how many tiles it computed.
#include <cstdio>
#include <cstdlib>
#include <exception>

#include "store/kill_network.hpp"
#include "widelimit/store.hpp"

int main(int argc, char** argv) {
  using namespace widelimit;
  if (argc != 4) return 2;
  try {
    store::StoreOptions options{.gram = {.threads = 1}, .tile_side = std::atol(argv[3])};
    options.progress = [last = Index{-1}](const store::StoreProgress& progress) mutable {
      if (progress.pairs_done == last) return;
      last = progress.pairs_done;
      std::printf("%td\n", last);
      std::fflush(stdout);
    };
    const auto report = store::GramStore<float>(argv[1], testing::kill_network(),
                                                testing::kill_inputs(std::atol(argv[2])), options)
                            .compute();
    std::fprintf(stderr, "computed %td\n", report.computed);
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}

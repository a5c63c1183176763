#include <fmt/format.h>
#include <mpi.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <string>
#include <thread>

#include "cli/program/commands.hpp"
#include "cli/program/program_main.hpp"
#include "distributed/mpi_dealer.hpp"

namespace {

using namespace widelimit::cli;

/// "Open MPI v4.1.4", say.
std::string mpi_library() {
  std::array<char, MPI_MAX_LIBRARY_VERSION_STRING> text{};
  int length = 0;
  MPI_Get_library_version(text.data(), &length);
  const std::string all(text.data(), static_cast<std::size_t>(length));
  return all.substr(0, all.find_first_of(",\n"));
}

/// What is wrong with the options is wrong on all ranks: the first that tells it ends the others. So each waits until
/// those below it would have, and for the seconds that MPI takes to end a rank on a busy machine.
void wait_for_lower_ranks(int rank) {
  constexpr double first = 10, each = 0.25, most = 20;
  if (rank > 0)
    std::this_thread::sleep_for(std::chrono::duration<double>(std::min(first + each * rank, most)));
}

/// One rank's part of the program, from its arguments to its exit code.
int run_rank(int argc, char** argv) {
  widelimit::distributed::MpiDealer dealer;
  // All ranks do the same; one tells of it.
  if (!dealer.is_first() && std::freopen("/dev/null", "w", stdout) == nullptr) return 1;
  const int code = program_main(
      argc, argv,
      {.name = "widelimit-mpi",
       .purpose = "Gram matrices and predictions on many machines: the ranks compute tiles into one store.",
       .complains_as = fmt::format("widelimit-mpi: rank {}", dealer.rank()),
       .mpi = mpi_library(),
       .commands = {&gram_command, &gp_command},
       .dealer = &dealer,
       .before_complaint = [&dealer] { wait_for_lower_ranks(dealer.rank()); }});
  // Others wait for this rank, or for its tiles.
  if (code != 0) MPI_Abort(MPI_COMM_WORLD, code);
  return code;
}

}  // namespace

int main(int argc, char** argv) {
  int provided = MPI_THREAD_SINGLE;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  const int code = run_rank(argc, argv);
  MPI_Finalize();
  return code;
}

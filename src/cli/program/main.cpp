#include "cli/program/commands.hpp"
#include "cli/program/program_main.hpp"

int main(int argc, char** argv) {
  using namespace widelimit::cli;
  return program_main(
      argc, argv,
      {.name = "widelimit",
       .purpose = "Wide networks: kernels, predictions with them, and limit theories of transformers.",
       .complains_as = "widelimit",
       .mpi = WIDELIMIT_MPI_TEXT,
       .commands = {&gp_command, &fit_command, &predict_command, &gram_command, &store_command,
                    &explain_command, &networks_command, &devices_command, &sde_command, &heads_command,
                    &propagation_command, &check_command, &doctor_command, &rerun_command,
                    &completion_command}});
}

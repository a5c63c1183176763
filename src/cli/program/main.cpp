#include "cli/program/commands.hpp"
#include "cli/program/program_main.hpp"
#include "cli/program/rerun.hpp"

int main(int argc, char** argv) {
  using namespace widelimit::cli;
  const auto add_commands = [](CLI::App& program, const RunContext& context) {
    add_gp_command(program, context);
    add_fit_command(program, context);
    add_predict_command(program, context);
    add_gram_command(program, context);
    add_store_command(program, context);
    add_explain_command(program, context);
    add_networks_command(program, context);
    add_devices_command(program, context);
    add_sde_command(program, context);
    add_heads_command(program, context);
    add_propagation_command(program, context);
    add_check_command(program, context);
    add_doctor_command(program, context);
    add_rerun_command(program);
    add_completion_command(program, context);
  };
  return program_main(
      argc, argv,
      {.name = "widelimit",
       .purpose = "Wide networks: kernels, predictions with them, and limit theories of transformers.",
       .complains_as = "widelimit",
       .mpi = WIDELIMIT_MPI_TEXT,
       .add_commands = add_commands});
}

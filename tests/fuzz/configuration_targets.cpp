#include <algorithm>

#include "bounded_json.hpp"
#include "cli/sde_config.hpp"
#include "memory_file.hpp"
#include "widelimit/covariance_sde/check_reference.hpp"
#include "widelimit/json/read_json.hpp"
#include "widelimit/propagation/check_reference.hpp"
#include "widelimit/specialization/check.hpp"
#include "widelimit/specialization/experiment.hpp"

namespace widelimit::fuzz {
namespace {

using nlohmann::json;

void simulate(json config) {
  set_default(config, "paths", 2);
  expect_our_errors([&] {
    static_cast<void>(cli::take_gammas(config));
    FieldReader fields(config, "config");
    cli::SdeSetup setup = cli::read_sde_setup(fields);
    fields.finish();
    setup.options.threads = 1;
    static_cast<void>(covariance_sde::simulate(setup.model, setup.v0, setup.options));
  });
}

void sample_networks(json config) {
  set_default(config, "samples", 2);
  expect_our_errors([&] {
    FieldReader fields(config, "config");
    cli::NetworkSetup setup = cli::read_network_setup(fields);
    fields.finish();
    setup.options.threads = 1;
    static_cast<void>(covariance_sde::sample_networks(setup.network, setup.v0, setup.options));
  });
}

/// The split rate at the saddle of flip2 takes a million samples, too many for here; one head has none.
void avoid_saddle(const std::string& experiment, json& config) {
  if ((experiment == "hessian" || experiment == "phase-transition") && config.is_object())
    config["heads"] = 1;
}

}  // namespace

void sde_config(Bytes bytes) {
  const MemoryFile file(bytes);
  expect_our_errors([&] { static_cast<void>(cli::read_sde_config(file.path())); });
  expect_our_errors([&] {
    const json config = bounded_json(bytes);
    if (!config.is_object()) return;
    simulate(config);
    sample_networks(config);
  });
}

void heads_config(Bytes bytes) {
  const Bytes choice = take(bytes, 1);
  if (choice.empty()) return;
  const auto& names = specialization::experiment_names();
  const std::string& name = names[choice[0] % names.size()];
  expect_our_errors([&] {
    json config = bounded_json(bytes);
    for (const char* field : {"samples", "fresh_samples"}) {
      const bool takes =
          field[0] == 's' ? name != "sgd" && name != "hessian" : name == "flow" || name == "prune";
      if (takes) set_default(config, field, 4);
    }
    avoid_saddle(name, config);
    static_cast<void>(specialization::run_experiment(name, config));
  });
}

void reference_file(Bytes bytes) {
  const covariance_sde::CheckOptions few{.sde_paths = 2, .network_samples = 2, .seed = 1, .threads = 1};
  expect_our_errors([&] {
    const json file = bounded_json(bytes);
    expect_our_errors([&] { static_cast<void>(propagation::check_reference(file)); });
    expect_our_errors([&] { static_cast<void>(specialization::check_reference(file)); });
    expect_our_errors([&] { static_cast<void>(covariance_sde::check_reference(file, few)); });
  });
}

}  // namespace widelimit::fuzz

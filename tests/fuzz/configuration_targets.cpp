#include <algorithm>
#include <set>

#include "bounded_json.hpp"
#include "memory_file.hpp"
#include "widelimit/covariance_sde/check_reference.hpp"
#include "widelimit/covariance_sde/configuration.hpp"
#include "widelimit/json/read_json.hpp"
#include "widelimit/propagation/check_reference.hpp"
#include "widelimit/specialization/check.hpp"
#include "widelimit/specialization/experiments.hpp"

namespace widelimit::fuzz {
namespace {

using nlohmann::json;

void simulate(json config) {
  set_default(config, "paths", 2);
  expect_our_errors([&] {
    ConfigReader fields(config, covariance_sde::command_fields("simulate"));
    covariance_sde::SdeSetup setup = covariance_sde::read_sde_setup(fields);
    fields.finish();
    setup.options.threads = 1;
    static_cast<void>(covariance_sde::simulate(setup.model, setup.v0, setup.options));
  });
}

void sample_networks(json config) {
  set_default(config, "samples", 2);
  expect_our_errors([&] {
    ConfigReader fields(config, covariance_sde::command_fields("network"));
    covariance_sde::NetworkSetup setup = covariance_sde::read_network_setup(fields);
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

/// A flow without a time goes on until it rests.
void end_early(const std::string& experiment, json& config) {
  if (experiment == "flow" || experiment == "prune" || experiment == "resampling")
    set_default(config, "tau", 1);
  if (experiment == "digit-times") {
    set_default(config, "images", 10);
    set_default(config, "batch", 2);
  }
}

/// Roots of whole trajectories: seconds a case under the sanitizers, which leaves no time for others.
void drop_slow_cases(json& file) {
  static const std::set<json> slow{"kink", "critical_sigma_w", "small_alpha_sigma_w"};
  if (!file.is_object() || !file.contains("cases") || !file["cases"].is_array()) return;
  std::erase_if(file["cases"].get_ref<json::array_t&>(), [](const json& one) {
    return one.is_object() && one.contains("function") && slow.contains(one["function"]);
  });
}

}  // namespace

void sde_config(Bytes bytes) {
  const MemoryFile file(bytes);
  expect_our_errors([&] { static_cast<void>(read_json(file.path())); });
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
  const auto& rows = specialization::experiments().experiments;
  const std::string& name = rows[choice[0] % rows.size()].name;
  expect_our_errors([&] {
    json config = bounded_json(bytes);
    for (const char* field : {"samples", "fresh_samples"}) {
      const bool takes = field[0] == 's' ? name != "sgd" && name != "hessian" && name != "digit-times"
                                         : name == "flow" || name == "prune";
      if (takes) set_default(config, field, 4);
    }
    avoid_saddle(name, config);
    end_early(name, config);
    static_cast<void>(specialization::experiments().run(name, config));
  });
}

void reference_file(Bytes bytes) {
  const covariance_sde::CheckOptions few{.sde_paths = 2, .network_samples = 2, .seed = 1, .threads = 1};
  expect_our_errors([&] {
    json file = bounded_json(bytes);
    drop_slow_cases(file);
    expect_our_errors([&] { static_cast<void>(propagation::check_reference(file)); });
    expect_our_errors([&] { static_cast<void>(specialization::check_reference(file)); });
    expect_our_errors([&] { static_cast<void>(covariance_sde::check_reference(file, few)); });
  });
}

}  // namespace widelimit::fuzz

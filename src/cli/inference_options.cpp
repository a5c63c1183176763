#include "cli/inference_options.hpp"

#include <fmt/format.h>

#include <map>

namespace widelimit::cli {
namespace {

const std::map<std::string, gp::Criterion>& criteria() {
  static const std::map<std::string, gp::Criterion> words{
      {"accuracy", gp::Criterion::accuracy},
      {"mse", gp::Criterion::mean_squared_error},
      {"nlpd", gp::Criterion::negative_log_predictive_density},
      {"evidence", gp::Criterion::evidence},
      {"loo", gp::Criterion::leave_one_out}};
  return words;
}

}  // namespace

void add_criterion_option(CLI::App& command, std::optional<gp::Criterion>& criterion,
                          const std::string& otherwise) {
  command
      .add_option_function<std::string>(
          "--criterion", [&criterion](const std::string& word) { criterion = criteria().at(word); },
          fmt::format(
              "What to choose by: accuracy, mse or nlpd (negative log predictive density) of the "
              "validation data, evidence (log marginal likelihood, of the NNGP), or loo (leave-one-out "
              "density), which take no validation data [{}]",
              otherwise))
      ->check(CLI::IsMember(criteria()).description(""))
      ->type_name("accuracy|mse|nlpd|evidence|loo");
}

const char* criterion_name(gp::Criterion criterion) {
  for (const auto& [word, value] : criteria())
    if (value == criterion) return word.c_str();
  return "";
}

}  // namespace widelimit::cli

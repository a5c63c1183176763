#include <fmt/format.h>

#include <iterator>

#include "cli/sde/sde_run.hpp"
#include "widelimit/covariance_sde/coefficients.hpp"

namespace widelimit::cli {

using namespace covariance_sde;
using nlohmann::json;

namespace {

/// [a][d][b][w]
json first_moments(const Matrix<double>& v, AttentionMask mask) {
  const Matrix<double> moments = first_softmax_moments(v, mask);
  const Index m = v.rows();
  json result = json::array();
  for (Index a = 0; a < m; ++a) {
    json of_row = json::array();
    for (Index d = 0; d < m; ++d)
      of_row.push_back(matrix_json(moments.row(a * m + d).reshaped<Eigen::RowMajor>(m, m)));
    result.push_back(std::move(of_row));
  }
  return result;
}

/// The pairs of the coordinates, in their order.
json coordinates_of(Index tokens) {
  json pairs = json::array();
  for (Index a = 0; a < tokens; ++a)
    for (Index b = a; b < tokens; ++b) pairs.push_back({a, b});
  return pairs;
}

json report_of(const SdeModel& model, const Matrix<double>& v) {
  json report{{"V", matrix_json(v)},
              {"coordinates", coordinates_of(v.rows())},
              {"weights",
               {{"relu_drift", model.relu_drift},
                {"attention_drift", model.attention_drift},
                {"linear_noise", model.linear_noise},
                {"attention_noise", model.attention_noise}}},
              {"drift", matrix_json(drift(model, v))},
              {"Sigma", matrix_json(diffusion(model, v))},
              {"Sigma_lin", matrix_json(linear_diffusion(v))}};
  if (model.relu_drift > 0) {
    SdeModel relu = model;
    relu.attention_drift = 0;
    report["drift_relu"] = matrix_json(drift(relu, v));
  }
  if (!(model.attention_drift > 0)) return report;
  SdeModel attention = model;
  attention.relu_drift = 0;
  report["drift_attention"] = matrix_json(drift(attention, v));
  report["A"] = matrix_json(attention_diffusion(v, model.mask));
  report["S1"] = first_moments(v, model.mask);
  report["S2"] = matrix_json(second_softmax_moment(v, model.mask));
  return report;
}

/// Every pair of coordinates is written, and every entry of S1.
void require_few(const ConfigReader& fields, const Matrix<double>& v) {
  if (v.rows() > most_coefficient_tokens)
    fields.fail("V0",
                fmt::format("expected at most {} tokens for sde coefficients, whose tables have tokens^4 "
                            "entries, got {}",
                            most_coefficient_tokens, v.rows()));
}

}  // namespace

void run_sde_coefficients(const SdeArguments& arguments, const RunContext& context) {
  SdeRun run(arguments, context, "coefficients", {"coefficients.json", "coefficients.csv"}, {});
  Matrix<double> v;
  const json report = run.with_config([&] {
    const CoefficientSetup setup = run.read(run.config, read_coefficient_setup);
    v = setup.v0;
    require_few(run.reader(run.config), v);
    return report_of(setup.model, v);
  });
  std::string csv = "row,column,V,drift\n";
  for (Index a = 0; a < v.rows(); ++a)
    for (Index b = a; b < v.rows(); ++b)
      fmt::format_to(std::back_inserter(csv), "{},{},{:.12g},{:.12g}\n", a, b, v(a, b),
                     report["drift"][static_cast<std::size_t>(a)][static_cast<std::size_t>(b)].get<double>());
  run.write_csv("coefficients.csv", csv);
  run.write_report("coefficients.json", report);
  say("{}", csv);
  run.finish({{"V0", {v.rows(), v.cols()}}}, {});
}

}  // namespace widelimit::cli

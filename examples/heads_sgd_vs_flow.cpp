// Online SGD at D = 10^4 against the gradient flow of the limit: figures 1, 9 and 10 of arXiv:2603.03993.
// Small differences of the heads at the start decide when they split, so the samples are closed under the
// symmetries. SGD runs in Gram form; the flow starts from SGD's own overlaps, with spikes whitened and batch
// noise included.

#include <cmath>
#include <widelimit/specialization/sgd.hpp>

#include "heads_common.hpp"

using namespace heads;

namespace {

struct Comparison {
  std::string figure;
  std::string name;
  HeadActivation activation;
  Prior prior;
  Index tokens;
  Index heads;
  double tau;        ///< Last time of SGD and the matched flow.
  double final_tau;  ///< Last time of the flow whose final loss is reported.
};

std::vector<Comparison> comparisons(const Settings& s) {
  std::vector<Comparison> list;
  const auto tau = [&](double full) { return s.size(full, 1.0); };
  list.push_back(
      {"1", "fig1_softmax", HeadActivation::softmax, Prior::flip2(2, 2), 10, 2, tau(40), tau(400)});
  for (const HeadActivation a :
       {HeadActivation::softmax, HeadActivation::softmaxv, HeadActivation::softmax1, HeadActivation::bayes})
    list.push_back({"9", "fig9_" + std::string(head_activation_name(a)), a, Prior::flip2(2, 2), 5, 2, tau(40),
                    tau(800)});
  for (const HeadActivation a : {HeadActivation::softmax, HeadActivation::softmax1, HeadActivation::bayes})
    list.push_back({"10", "fig10_" + std::string(head_activation_name(a)), a,
                    Prior::gaussian(linear_variances(2, 8, 2)), 5, 4, tau(30), tau(3000)});
  return list;
}

constexpr double gamma = 0.02;

std::vector<SgdPoint> run_sgd(const Comparison& c, Index D) {
  SgdOptions options;
  options.tokens = c.tokens;
  options.batch = D;
  options.gamma = gamma;
  options.steps = std::lround(c.tau / gamma);
  options.record = record_every(10, options.steps);
  options.seed = 11;
  return gram_sgd(c.activation, c.prior,
                  random_gram_start(c.activation, c.heads, c.prior.features(), D, 1, 12), options);
}

std::vector<FlowPoint> run_flow(const Settings& settings, const Comparison& c, const MatchedFlow& matched) {
  const auto samples =
      SampleSet<float>::draw(c.prior, {c.tokens, c.heads, settings.size<Index>(100'000, 2'000)}, 13,
                             {SampleSymmetry::closed, matched.spike_root});
  FlowOptions options;
  options.step = 0.1;
  options.steps = std::lround(c.tau / options.step);
  options.record = record_every(2, options.steps);
  options.batch_noise = gamma;
  return gradient_flow(c.activation, matched.start, samples, options);
}

/// SGD and the flow from its start, side by side.
struct Paths {
  std::vector<double> tau;
  std::vector<Matrix<double>> sgd_m, flow_m;
  double worst_m = 0, worst_S = 0;
};

Paths write_paths(const Settings& settings, const Comparison& c, const std::vector<SgdPoint>& sgd_points,
                  const std::vector<FlowPoint>& flow_points, const Matrix<double>& spike_root) {
  const std::string overlaps = overlap_header(c.heads, c.prior.features());
  Csv csv(settings, c.name, "tau,loss" + overlaps + " (SGD)" + overlaps + " (flow)");
  Paths paths;
  for (std::size_t i = 0; i < sgd_points.size() && i < flow_points.size(); ++i) {
    paths.tau.push_back(sgd_points[i].tau);
    paths.sgd_m.push_back(sgd_points[i].overlaps.m);
    paths.flow_m.push_back(flow_points[i].parameters.m * spike_root);
    const Matrix<double>&sgd_m = paths.sgd_m.back(), &flow_m = paths.flow_m.back();
    paths.worst_m = std::max(paths.worst_m, (sgd_m - flow_m).cwiseAbs().maxCoeff());
    paths.worst_S =
        std::max(paths.worst_S, (sgd_points[i].overlaps.S - flow_points[i].S).cwiseAbs().maxCoeff());
    csv.stream() << paths.tau.back() << ',' << sgd_points[i].loss;
    for (const auto* m : {&sgd_m, &flow_m})
      for (const double entry : m->reshaped<Eigen::RowMajor>()) csv.stream() << ',' << entry;
    csv.stream() << '\n';
  }
  return paths;
}

void draw_paths(const Settings& settings, const Comparison& c) {
  std::string commands =
      "set title '" + c.name + ": lines flow, points SGD'\nset xlabel 'tau'\nset ylabel 'm'\nplot ";
  const Index features = c.prior.features(), entries = c.heads * features;
  for (Index k = 0; k < entries; ++k)
    commands += "'" + c.name + ".csv' using 1:" + std::to_string(3 + entries + k) + " with lines lc " +
                std::to_string(k + 1) + " title 'm" + std::to_string(k / features) +
                std::to_string(k % features) + "', '' using 1:" + std::to_string(3 + k) +
                " every 10::1 with points pt 7 ps 0.6 lc " + std::to_string(k + 1) + " notitle, ";
  plot(settings, c.name, commands + "\n");
}

std::string split_time(const std::vector<double>& tau, const std::vector<Matrix<double>>& m) {
  const std::optional<double> time = specialisation_time(tau, m);
  return time ? std::to_string(*time) : "later";
}

}  // namespace

int main(int argc, char** argv) {
  return run_example(argc, argv, [](const Settings& settings) {
    const Index D = settings.size<Index>(10'000, 200);
    Csv table(
        settings, "heads_sgd_vs_flow",
        "figure,run,D,tau,largest |dm|,largest |dS|,SGD split over 0.2 at,flow split at,final tau,final "
        "loss,standard error,seconds");
    for (const Comparison& c : comparisons(settings)) {
      if (!settings.wants(c.name)) continue;
      const Clock clock;
      const std::vector<SgdPoint> sgd_points = run_sgd(c, D);
      const MatchedFlow matched = matched_flow(sgd_points.front());
      const std::vector<FlowPoint> flow_points = run_flow(settings, c, matched);
      const Paths paths = write_paths(settings, c, sgd_points, flow_points, matched.spike_root);
      const Trained final_state = train({c.activation, c.prior, c.tokens, c.heads, c.final_tau, 0.2,
                                         settings.size<Index>(50'000, 2'000), 21});
      table.row(c.figure, c.name, D, c.tau, paths.worst_m, paths.worst_S, split_time(paths.tau, paths.sgd_m),
                split_time(paths.tau, paths.flow_m), c.final_tau, final_state.loss,
                final_state.standard_error, clock.seconds());
      draw_paths(settings, c);
    }
  });
}

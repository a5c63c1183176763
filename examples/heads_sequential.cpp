// Heads specialise one feature after another: figures 2, 3, 12, 13 and 14 of arXiv:2603.03993.
// Writes heads_sequential.csv (a row for each run: final loss on fresh samples, split times), the trajectories
// and pictures.

#include <iomanip>

#include "heads_common.hpp"

using namespace heads;

namespace {

struct Panel {
  std::string figure;
  std::string name;
  Training run;
};

std::vector<Panel> panels(const Settings& s) {
  const Index n = s.size<Index>(30'000, 2'000);
  const auto tau = [&](double full) { return s.size(full, 20.0); };
  std::vector<Panel> list;
  for (const Index H : {2, 4, 5, 8})
    list.push_back({"12",
                    "fig12_flip_H" + std::to_string(H),
                    {HeadActivation::softmax, Prior::flip2(2, 2), 4, H, tau(H == 8 ? 3000 : 800), 0.4, n}});
  for (const Index H : {2, 5, 8})
    list.push_back(
        {"13 top",
         "fig13_isotropic_H" + std::to_string(H),
         {HeadActivation::softmax, Prior::gaussian(linear_variances(2, 2, 2)), 4, H, tau(800), 0.4, n}});
  for (const Index H : {2, 4, 5, 8})
    list.push_back(
        {"2b, 13 bottom",
         "fig13_anisotropic_H" + std::to_string(H),
         {HeadActivation::softmax, Prior::gaussian(linear_variances(2, 8, 2)), 4, H, tau(3000), 0.4, n}});
  for (const HeadActivation a : {HeadActivation::softmax, HeadActivation::softmax1, HeadActivation::bayes})
    list.push_back({"3, 14",
                    "fig14_" + std::string(head_activation_name(a)),
                    {a, Prior::gaussian(linear_variances(3, 20, 1)), 5, 8, tau(4000), 0.4, n}});
  return list;
}

std::string time_text(const std::optional<double>& tau) { return tau ? std::to_string(*tau) : "never"; }

std::string overlaps_text(const Matrix<double>& m) {
  std::string text;
  for (Index h = 0; h < m.rows(); ++h) {
    text += h == 0 ? "(" : " (";
    for (Index f = 0; f < m.cols(); ++f) text.append(f == 0 ? "" : " ").append(fixed(m(h, f)), 0, 5);
    text += ")";
  }
  return text;
}

}  // namespace

int main(int argc, char** argv) {
  return run_example(argc, argv, [](const Settings& settings) {
    Csv table(settings, "heads_sequential",
              "figure,run,heads,tau,loss,standard error,split over 0.2 at,feature splits over 1 "
              "at,seconds,overlaps");
    for (const Panel& panel : panels(settings)) {
      if (!settings.wants(panel.name)) continue;
      const Clock clock;
      const Trained trained = train(panel.run);
      write_trajectory(settings, panel.name, trained);
      const Index features = panel.run.prior.features();
      plot(settings, panel.name, overlap_panel(panel.name, panel.name, panel.run.heads, features));
      std::string splits;
      for (Index f = 0; f < features; ++f)
        splits.append(f == 0 ? "" : " / ")
            .append(time_text(feature_specialisation_time(trained.times(), trained.overlaps(), f, 1)));
      table.row(std::quoted(panel.figure), panel.name, panel.run.heads, panel.run.tau, trained.loss,
                trained.standard_error, time_text(specialisation_time(trained.times(), trained.overlaps())),
                splits, clock.seconds(), overlaps_text(trained.end().m));
    }
  });
}

// What trained heads can express: final losses against the Bayes risk over the number of heads and the signal
// strength (figure 4), attention maps (figure 15) and pruning (figure 16) of arXiv:2603.03993.

#include <algorithm>
#include <widelimit/specialization/trained_starts.hpp>

#include "heads_common.hpp"

using namespace heads;

namespace {

constexpr HeadActivation all_activations[] = {HeadActivation::softmax, HeadActivation::softmaxv,
                                              HeadActivation::softmax1, HeadActivation::bayes};

struct Study {
  const Settings& settings;
  Index samples;
  double longest;  ///< Time at which a flow that has not come to rest is given up.
  Index starts;
  Csv& every_start;

  TrainingSetup setup(HeadActivation activation, const Prior& prior, Index heads) const {
    TrainingSetup setup;
    setup.activation = activation;
    setup.prior = prior;
    setup.tokens = 5;
    setup.heads = heads;
    setup.flow.step = 0.5;
    setup.flow.steps = static_cast<Index>(longest / setup.flow.step);
    setup.samples = samples;
    setup.fresh_samples = settings.size<Index>(200'000, 2'000);
    setup.starts = starts;
    return setup;
  }
  BayesRisk risk(const Prior& prior) const {
    return bayes_risk(prior, 5, settings.size<Index>(400'000, 5'000), 7);
  }
};

/// The key of a table of losses: the prior, and its strength or the number of heads.
struct Place {
  std::string prior;
  double x;
};

constexpr const char* loss_columns =
    "prior,activation,x,median,least,greatest,at rest,bayes risk,standard error";

std::vector<TrainedStart> add_losses(const Study& study, const TrainingSetup& setup, const Place& place,
                                     const BayesRisk& risk, Csv& table) {
  auto starts = train_from_starts(setup);
  const Spread loss = loss_spread(starts);
  const auto at_rest =
      std::count_if(starts.begin(), starts.end(), [](const TrainedStart& start) { return start.converged; });
  table.row(place.prior, head_activation_name(setup.activation), place.x, loss.median, loss.least,
            loss.greatest, at_rest, risk.risk, risk.standard_error);
  for (const TrainedStart& start : starts)
    study.every_start.row(place.prior, head_activation_name(setup.activation), setup.heads, place.x,
                          start.seed, start.end().tau, start.end().gradient, start.loss,
                          start.standard_error);
  return starts;
}

void prune(const std::string& prior, const TrainingSetup& setup, const std::vector<TrainedStart>& starts,
           Csv& table) {
  const auto fresh = fresh_samples(setup);
  std::vector<std::vector<double>> losses(static_cast<std::size_t>(setup.heads));
  for (const TrainedStart& start : starts) {
    const PruneResult result = greedy_prune(setup.activation, start.end().parameters, fresh);
    for (std::size_t i = 0; i < losses.size(); ++i) losses[i].push_back(result.losses[i]);
  }
  for (std::size_t i = 0; i < losses.size(); ++i) {
    const Spread loss = spread_of(losses[i]);
    table.row(prior, head_activation_name(setup.activation), i, loss.median, loss.least, loss.greatest);
  }
}

void figures_4_left_and_16(const Study& study) {
  const std::vector<std::pair<std::string, Prior>> priors = {
      {"spikes", Prior::spikes(4, 10)}, {"gaussian", Prior::gaussian(linear_variances(4, 10, 10))}};
  const std::vector<Index> counts =
      study.settings.quick ? std::vector<Index>{1, 4} : std::vector<Index>{1, 2, 4, 6, 8};
  Csv table(study.settings, "fig4_heads", loss_columns);
  Csv pruned(study.settings, "fig16_pruning", "prior,activation,removed,median,least,greatest");
  for (const auto& [name, prior] : priors) {
    const BayesRisk risk = study.risk(prior);
    for (const HeadActivation activation : all_activations)
      for (const Index heads : counts) {
        const TrainingSetup setup = study.setup(activation, prior, heads);
        const auto starts = add_losses(study, setup, {name, static_cast<double>(heads)}, risk, table);
        if (heads == counts.back()) prune(name, setup, starts, pruned);
      }
  }
}

void figure_4_right(const Study& study) {
  Csv table(study.settings, "fig4_strength", loss_columns);
  const auto lines = [&](const std::string& name, double nu, const Prior& prior) {
    const BayesRisk risk = study.risk(prior);
    for (const HeadActivation activation : all_activations)
      add_losses(study, study.setup(activation, prior, 4), {name, nu}, risk, table);
  };
  const std::vector<double> flips =
      study.settings.quick ? std::vector<double>{2} : std::vector<double>{1, 2, 5, 10};
  const std::vector<double> gaussians =
      study.settings.quick ? std::vector<double>{5} : std::vector<double>{1, 5, 10, 20, 40};
  for (const double nu : flips) lines("flip2", nu, Prior::flip2(nu, nu));
  for (const double nu : gaussians) lines("gaussian", nu, Prior::gaussian(linear_variances(2, nu, nu)));
}

void figure_15(const Study& study) {
  const Prior prior = Prior::gaussian(linear_variances(3, 9, 9));
  Csv table(study.settings, "fig15_mass", "activation,relevant mass,other mass,loss,standard error");
  Csv maps(study.settings, "fig15_maps", "activation,sequence,head,token,weight");
  const auto shown = SampleSet<float>::draw(prior, {5, 4, 20'000}, 5);
  for (const HeadActivation activation : all_activations) {
    const auto starts = train_from_starts(study.setup(activation, prior, 4));
    const TrainedStart& trained = starts[median_start(starts)];
    const HeadParameters& heads = trained.end().parameters;
    const AttentionMass mass = attention_mass(activation, heads, shown);
    const auto name = head_activation_name(activation);
    table.row(name, mass.relevant, mass.other, trained.loss, trained.standard_error);
    for (Index sequence = 0; sequence < 6; ++sequence) {
      Matrix<double> chi_star(5, 3), xi(5, 4);
      for (Index l = 0; l < 5; ++l) {
        for (Index f = 0; f < 3; ++f) chi_star(l, f) = static_cast<double>(shown.value(sequence, l, f));
        for (Index h = 0; h < 4; ++h) xi(l, h) = static_cast<double>(shown.value(sequence, l, 3 + h));
      }
      const Matrix<double> map = attention_map(activation, heads, chi_star, xi);
      for (Index h = 0; h < 4; ++h)
        for (Index l = 0; l < 5; ++l) maps.row(name, sequence, h, l, map(h, l));
    }
  }
  // One row of pixels for each head and sequence; token 0 carries the signal.
  std::string commands =
      "set multiplot layout 1,4 title 'attention, token 0 carries the signal'\nunset key\nset yrange "
      "[23.5:-0.5] noreverse\n"
      "set xrange [-0.5:4.5]\nset cbrange [0:0.5]\nunset colorbox\nset palette gray negative\n";
  for (const HeadActivation activation : all_activations) {
    const std::string name(head_activation_name(activation));
    commands += "set title '" + name + "'\nplot '< grep ^" + name +
                ", fig15_maps.csv' using 4:($2*4+$3):5 with image\n";
  }
  plot(study.settings, "fig15_maps", commands + "unset multiplot\n");
}

/// Medians over the starts with their ranges, one panel for each prior; `risk`: with the column of the Bayes risk.
void draw_spreads(const Settings& settings, const std::string& name, const std::string& x,
                  const std::string& scale, const std::vector<std::string>& priors, bool risk) {
  std::string commands = "set multiplot layout 1,2\nset xlabel '" + x + "'\nset ylabel 'loss'\n" + scale;
  for (const std::string& prior : priors) {
    commands += "set title '" + prior + "'\nplot ";
    for (const HeadActivation activation : all_activations) {
      const std::string curve(head_activation_name(activation));
      commands += "'< grep ^" + prior + "," + curve + ", " + name +
                  ".csv' using 3:4:5:6 with yerrorlines title '" + curve + "', ";
    }
    if (risk)
      commands +=
          "'< grep ^" + prior + ",bayes, " + name + ".csv' using 3:8 with lines dt 2 title 'Bayes risk'";
    commands += "\n";
  }
  plot(settings, name, commands + "unset multiplot\n");
}

}  // namespace

int main(int argc, char** argv) {
  return run_example(argc, argv, [](const Settings& settings) {
    Csv every_start(settings, "heads_expressivity_starts",
                    "prior,activation,heads,x,seed,tau,gradient,loss,standard error");
    const Study study{settings, settings.size<Index>(20'000, 1'000), settings.size(40'000.0, 10.0),
                      settings.size<Index>(5, 2), every_start};
    if (settings.wants("fig15")) figure_15(study);
    if (settings.wants("fig4_strength")) {
      figure_4_right(study);
      draw_spreads(settings, "fig4_strength", "nu", "set logscale x\n", {"flip2", "gaussian"}, true);
    }
    if (!settings.wants("fig4_heads")) return;
    figures_4_left_and_16(study);
    draw_spreads(settings, "fig4_heads", "heads", "", {"spikes", "gaussian"}, true);
    draw_spreads(settings, "fig16_pruning", "heads removed", "", {"spikes", "gaussian"}, false);
  });
}

// What trained heads can express: final losses against the Bayes risk over the number of heads and the signal
// strength (figure 4), attention maps (figure 15) and pruning (figure 16) of arXiv:2603.03993.

#include "heads_common.hpp"

using namespace heads;

namespace {

constexpr HeadActivation kActivations[] = {HeadActivation::softmax, HeadActivation::softmaxv,
                                           HeadActivation::softmax1, HeadActivation::bayes};

struct Study {
  const Settings& settings;
  Index samples;
  double tau;

  Trained run(HeadActivation activation, const Prior& prior, Index heads) const {
    return train({activation, prior, 5, heads, tau, 0.5, samples, 1, 20});
  }
  BayesRisk risk(const Prior& prior) const {
    return bayes_risk(prior, 5, settings.size<Index>(400'000, 5'000), 7);
  }
};

void prune(const Study& study, const std::string& prior_name, const Prior& prior, HeadActivation activation,
           const Trained& trained, Csv& table) {
  const auto fresh = SampleSet<float>::draw(
      prior, {5, trained.end().m.rows(), study.settings.size<Index>(100'000, 2'000)}, 99);
  const PruneResult result = greedy_prune(activation, trained.end(), fresh);
  for (std::size_t i = 0; i < result.losses.size(); ++i)
    table.row(prior_name, head_activation_name(activation), i, result.losses[i]);
}

void figures_4_left_and_16(const Study& study) {
  const std::vector<std::pair<std::string, Prior>> priors = {
      {"spikes", Prior::spikes(4, 10)}, {"gaussian", Prior::gaussian(linear_variances(4, 10, 10))}};
  const std::vector<Index> counts =
      study.settings.quick ? std::vector<Index>{1, 4} : std::vector<Index>{1, 2, 4, 6, 8};
  Csv table(study.settings, "fig4_heads",
            "prior,heads,softmax,softmaxv,softmax1,bayes,bayes risk,standard error");
  Csv pruned(study.settings, "fig16_pruning", "prior,activation,removed,loss");
  for (const auto& [name, prior] : priors) {
    const BayesRisk risk = study.risk(prior);
    for (const Index heads : counts) {
      table.stream() << name << ',' << heads;
      for (const HeadActivation activation : kActivations) {
        const Trained trained = study.run(activation, prior, heads);
        table.stream() << ',' << trained.loss << std::flush;
        if (heads == counts.back()) prune(study, name, prior, activation, trained, pruned);
      }
      table.stream() << ',' << risk.risk << ',' << risk.standard_error << std::endl;
    }
  }
}

void figure_4_right(const Study& study) {
  Csv table(study.settings, "fig4_strength",
            "prior,nu,softmax,softmaxv,softmax1,bayes,bayes risk,standard error");
  const auto line = [&](const std::string& name, double nu, const Prior& prior) {
    table.stream() << name << ',' << nu;
    for (const HeadActivation activation : kActivations)
      table.stream() << ',' << study.run(activation, prior, 4).loss << std::flush;
    const BayesRisk risk = study.risk(prior);
    table.stream() << ',' << risk.risk << ',' << risk.standard_error << std::endl;
  };
  const std::vector<double> flips =
      study.settings.quick ? std::vector<double>{2} : std::vector<double>{1, 2, 5, 10};
  const std::vector<double> gaussians =
      study.settings.quick ? std::vector<double>{5} : std::vector<double>{1, 5, 10, 20, 40};
  for (const double nu : flips) line("flip2", nu, Prior::flip2(nu, nu));
  for (const double nu : gaussians) line("gaussian", nu, Prior::gaussian(linear_variances(2, nu, nu)));
}

void figure_15(const Study& study) {
  const Prior prior = Prior::gaussian(linear_variances(3, 9, 9));
  Csv table(study.settings, "fig15_mass", "activation,relevant mass,other mass,loss,standard error");
  Csv maps(study.settings, "fig15_maps", "activation,sequence,head,token,weight");
  const auto shown = SampleSet<float>::draw(prior, {5, 4, 20'000}, 5);
  for (const HeadActivation activation : kActivations) {
    const Trained trained = study.run(activation, prior, 4);
    const AttentionMass mass = attention_mass(activation, trained.end(), shown);
    const auto name = head_activation_name(activation);
    table.row(name, mass.relevant, mass.other, trained.loss, trained.standard_error);
    for (Index sequence = 0; sequence < 6; ++sequence) {
      Matrix<double> chi_star(5, 3), xi(5, 4);
      for (Index l = 0; l < 5; ++l) {
        for (Index f = 0; f < 3; ++f) chi_star(l, f) = static_cast<double>(shown.value(sequence, l, f));
        for (Index h = 0; h < 4; ++h) xi(l, h) = static_cast<double>(shown.value(sequence, l, 3 + h));
      }
      const Matrix<double> map = attention_map(activation, trained.end(), chi_star, xi);
      for (Index h = 0; h < 4; ++h)
        for (Index l = 0; l < 5; ++l) maps.row(name, sequence, h, l, map(h, l));
    }
  }
  // One row of pixels a head and sequence; token 0 carries the signal.
  std::string commands =
      "set multiplot layout 1,4 title 'attention, token 0 carries the signal'\nunset key\nset yrange "
      "[23.5:-0.5] noreverse\n"
      "set xrange [-0.5:4.5]\nset cbrange [0:0.5]\nunset colorbox\nset palette gray negative\n";
  for (const HeadActivation activation : kActivations) {
    const std::string name(head_activation_name(activation));
    commands += "set title '" + name + "'\nplot '< grep ^" + name +
                ", fig15_maps.csv' using 4:($2*4+$3):5 with image\n";
  }
  plot(study.settings, "fig15_maps", commands + "unset multiplot\n");
}

void draw_lines(const Settings& settings, const std::string& name, const std::string& x,
                const std::string& first, const std::string& second, const std::string& scale) {
  std::string commands = "set multiplot layout 1,2\nset xlabel '" + x + "'\nset ylabel 'loss'\n" + scale;
  for (const std::string& prior : {first, second}) {
    commands += "set title '" + prior + "'\nplot ";
    int column = 3;
    for (const char* curve : {"softmax", "softmax-v", "softmax-1", "bayes", "Bayes risk"})
      commands += "'< grep ^" + prior + ", " + name + ".csv' using 2:" + std::to_string(column++) +
                  " with linespoints title '" + curve + "', ";
    commands += "\n";
  }
  plot(settings, name, commands + "unset multiplot\n");
}

void draw_pruning(const Settings& settings) {
  std::string commands = "set multiplot layout 1,2\nset xlabel 'heads removed'\nset ylabel 'loss'\n";
  for (const std::string prior : {"spikes", "gaussian"}) {
    commands += "set title '" + prior + "'\nplot ";
    for (const HeadActivation activation : kActivations) {
      const std::string name(head_activation_name(activation));
      commands += "'< grep ^" + prior + "," + name +
                  ", fig16_pruning.csv' using 3:4 with linespoints title '" + name + "', ";
    }
    commands += "\n";
  }
  plot(settings, "fig16_pruning", commands + "unset multiplot\n");
}

}  // namespace

int main(int argc, char** argv) {
  return run_example(argc, argv, [](const Settings& settings) {
    const Study study{settings, settings.size<Index>(20'000, 1'000), settings.size(2000.0, 10.0)};
    if (settings.wants("fig15")) figure_15(study);
    if (settings.wants("fig4_strength")) {
      figure_4_right(study);
      draw_lines(settings, "fig4_strength", "nu", "flip2", "gaussian", "set logscale x\n");
    }
    if (!settings.wants("fig4_heads")) return;
    figures_4_left_and_16(study);
    draw_lines(settings, "fig4_heads", "heads", "spikes", "gaussian", "");
    draw_pruning(settings);
  });
}

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <optional>

#include "cli/gp/gp_arguments.hpp"
#include "cli/gp/gp_output.hpp"
#include "cli/gp/gp_prior.hpp"
#include "cli/gp/gp_report.hpp"
#include "cli/gp/gp_run.hpp"
#include "cli/grams/store_options.hpp"
#include "cli/models/learning.hpp"
#include "cli/options/inference_options.hpp"
#include "cli/options/network_argument.hpp"
#include "cli/output/result_text.hpp"
#include "cli/program/commands.hpp"
#include "cli/program/given_arguments.hpp"
#include "cli/quality/task_baselines.hpp"
#include "cli/report/page.hpp"
#include "cli/tasks/data_sources.hpp"
#include "distributed/rank_solver.hpp"
#include "widelimit/error.hpp"
#include "widelimit/files/writing_places.hpp"
#include "widelimit/gp/model.hpp"
#include "widelimit/gp/resources.hpp"
#include "widelimit/json/read_json.hpp"
#include "widelimit/kernel/devices.hpp"
#include "widelimit/kernel/explain.hpp"
#include "widelimit/network/network_file.hpp"
#include "widelimit/numerics/memory.hpp"
#include "widelimit/text/visible_text.hpp"

namespace widelimit::cli {
namespace {

template <typename Scalar>
void require_validation_for(const GpTask<Scalar>& task, const GpArguments& arguments) {
  const DataSource& source = data_source(arguments.data.kind);
  if (!task.validation && arguments.fit.chooses_by_validation())
    throw DataError(
        fmt::format("{}: no {} to choose the regulariser on; add {} or give --criterion loo or --regulariser",
                    arguments.data.path.string(), source.validation, source.it));
}

std::string amplitude_text(const gp::FitOptions& options) {
  if (options.amplitude) return fmt::format("amplitude of the kernels: {}", *options.amplitude);
  return "amplitude of the kernels: fitted to the training targets (--amplitude 1: kernels as they are)";
}

template <typename Scalar>
void require_amplitude(const GpTask<Scalar>& task, const GpArguments& arguments) {
  require_reliability(arguments.reliability, task.kind, task.test.size() > 0 && task.test.targets);
  const gp::ModelOptions& given = arguments.fit.options;
  if (!given.amplitude)
    gp::require_varying_targets(*task.train.targets, task.kind, given.targets_as_they_are,
                                "give --amplitude");
}

std::vector<NamedFile> files_read_by(const GpArguments& arguments) {
  std::vector<NamedFile> files{{"--path", arguments.data.path}, {"--vectors", arguments.data.vectors}};
  for (const std::string& network : arguments.networks) files.push_back({"--network", network});
  return files;
}

/// The networks that are chosen for the task, where that is asked for.
template <typename Scalar>
std::vector<std::optional<gp::AutomaticNetwork>> automatic_networks(const GpArguments& arguments,
                                                                    GpTask<Scalar>& task,
                                                                    const RunContext& context) {
  const gp::AutomaticOptions options = gp::automatic_options(arguments.fit.options);
  std::vector<std::optional<gp::AutomaticNetwork>> found(arguments.networks.size());
  for (std::size_t i = 0; i < found.size(); ++i)
    if (arguments.networks[i] == automatic_argument)
      found[i] = automatic_network(task, {}, options, arguments.depth,
                                   threads_of(arguments.kernel.threads, context), context.interrupt);
  return found;
}

/// Whether they can be applied to the inputs shows when they are planned, before the first long computation.
template <typename Scalar>
std::vector<Network> networks_for(const GpArguments& arguments, const GpSet<Scalar>& train,
                                  const std::vector<std::optional<gp::AutomaticNetwork>>& automatic) {
  std::vector<Network> networks;
  for (std::size_t i = 0; i < arguments.networks.size(); ++i)
    networks.push_back(automatic[i]
                           ? automatic[i]->network
                           : network_for_inputs(arguments.networks[i], train.inputs(), arguments.depth));
  return networks;
}

GpOptions options_of(const GpArguments& arguments) {
  const gp::ModelOptions& given = arguments.fit.options;
  GpOptions options{
      .inference = {arguments.kernel.kernels, arguments.fit.times(), gp::fit_options(given), given.refit},
      .flip = given.flip,
      .gram_folder = given.gram_folder.value_or(""),
      .store = arguments.store,
      .device = arguments.kernel.device,
      .exact_attention = arguments.kernel.exact_attention,
      .request = arguments.fit.request};
  options.inference.fit.threads = arguments.kernel.threads;
  return options;
}

/// A task, ready for kernels.
template <typename Scalar>
GpTask<Scalar> prepared_task(const GpArguments& arguments) {
  auto task =
      load_prepared_task<Scalar>(arguments.data, arguments.fit.options.flip, [&](const auto& unprepared) {
        require_validation_for(unprepared, arguments);
        require_amplitude(unprepared, arguments);
        gp::FitRequest request = arguments.fit.request;
        request.kind = unprepared.kind;
        request.has_validation = unprepared.validation.has_value();
        gp::require_fit(request, gp::Door::program);
        if (arguments.fit.options.flip) require_images_for_flips(unprepared);
      });
  task.description += ", " + to_string(arguments.kernel.precision);
  const gp::FeatureMap varying = without_constants(task);
  return varying.is_identity() ? task : mapped_task(std::move(task), varying);
}

/// Computes, prints and writes one network after the other.
template <typename Scalar>
class NetworkPredictor {
 public:
  NetworkPredictor(const GpArguments& arguments, const RunContext& context)
      : arguments_{arguments},
        context_{context},
        task_{prepared_task<Scalar>(arguments)},
        automatic_{automatic_networks(arguments, task_, context)},
        networks_{networks_for(arguments, task_.train, automatic_)},
        options_{options_of(arguments)},
        places_{places_of(networks_)} {
    options_.device = device_of(options_.device, context);
    solver_text_ = choose_gp_solver(arguments);
    require_one_process();
    if (arguments.output.folder.empty() || !is_first()) return;
    output_.emplace(arguments.output, files_read_by(arguments), options_.inference, networks_, context,
                    shapes_of(task_));
    if (arguments.output.no_report) return;
    ReportHead head{context.command_line, task_.description, task_.notes, output_->record().shapes,
                    amplitude_text(options_.inference.fit)};
    report_.emplace(std::move(head), ReportTest{task_.test.targets, task_.test_faces});
  }
  NetworkPredictor(const NetworkPredictor&) = delete;
  NetworkPredictor& operator=(const NetworkPredictor&) = delete;

  void run() {
    say("{}\n", visible_text(task_.description));
    for (const std::string& note : task_.notes) say("{}\n", visible_text(note));
    say("{}\n", amplitude_text(options_.inference.fit));
    if (options_.request.chooses())
      say("regularisers chosen by {}\n", criterion_title(options_.inference.fit.criterion));
    say("{}\n", solver_text_);
    if (options_.solver == gp::Solver::distributed)
      say("the distributed solver leaves rows out one by one, equal ones too\n");
    for (std::size_t i = 0; i < networks_.size(); ++i) run_network(i);
    draw_reliability(arguments_.reliability, curves_, fmt::format("test: {} inputs", task_.test.size()),
                     context_.interrupt.token());
    if (prints_json()) print_result(results_);
  }

 private:
  [[nodiscard]] bool is_first() const { return context_.dealer == nullptr || context_.dealer->is_first(); }

  /// What people are told about it. Throws ArgumentError where the solver cannot do what is asked for.
  std::string choose_gp_solver(const GpArguments& arguments) {
    const int threads = threads_of(options_.inference.fit.threads, context_);
    const gp::MemoryRoom room = gp::MemoryRoom::here(threads);
    gp::Workload work = workload();
    const gp::SolverChoice choice = gp::choose_solver(arguments.fit.request.solver, work, room.left());
    options_.solver = choice.solver;
    options_.request.solver = choice.solver;
    options_.inference.fit.criterion = options_.request.chosen_by();
    if (context_.dealer != nullptr && choice.solver == gp::Solver::distributed)
      options_.inference.fit.threads = threads;
    else if (is_first())
      // It solves alone, with all of the machine's threads.
      numerics::require_room_for_threads(options_.inference.fit.threads);
    require_possible(choice);
    if (choice.solver == gp::Solver::distributed && !work.needs.against_distributed.empty())
      throw ArgumentError("--solver distributed: " + work.needs.against_distributed);
    if (context_.dealer != nullptr && arguments.store.part.parts > 1)
      throw ArgumentError(
          "--part is for processes that know nothing of each other; these deal out the tiles");
    if (context_.dealer != nullptr && arguments.store.folder.empty() &&
        choice.solver != gp::Solver::distributed)
      throw ArgumentError(fmt::format(
          "gp with several processes needs --store, in which they meet, or --solver distributed{}",
          work.needs.against_distributed.empty() ? "" : ": " + work.needs.against_distributed));
    // Ranks share the memory of machines that this one does not know.
    if (context_.dealer == nullptr) {
      set_choice(work, arguments);
      gp::require_resources("gp", gp::plan_resources(work, choice.solver, room), work);
    }
    return choice.text + amplitude_cost(choice.solver);
  }

  /// Throws ArgumentError for what is not shared by ranks, nor done without matrices in memory.
  void require_one_process() const {
    if (context_.dealer != nullptr && arguments_.search.is_asked())
      throw ArgumentError(
          "--search is for one process: search with widelimit fit or gp, then give the network");
    if (!options_.inference.refit) return;
    if (context_.dealer != nullptr)
      throw ArgumentError("--refit joins Gram matrices in one memory, not those of ranks: leave it out");
    const bool on_device = !device_in_full(options_.device).empty() && options_.gram_folder.empty();
    if (options_.solver == gp::Solver::conjugate_gradients && (on_device || !arguments_.store.folder.empty()))
      throw ArgumentError(
          fmt::format("--refit joins Gram matrices in memory, and conjugate gradients {} hold none: leave "
                      "out {}, or take "
                      "--solver cholesky",
                      on_device ? "on a device" : "with a store", on_device ? "--device" : "--store"));
  }

  /// All but how the regulariser is chosen, which follows from the solver.
  [[nodiscard]] gp::Workload workload() const {
    const gp::InferenceOptions& inference = options_.inference;
    // It throws for networks that do not fit. GCC 12 frees the texts of an unfinished aggregate twice then.
    const Plan plan = largest_plan();
    const std::size_t joined = inference.refit ? task_.validation->size() : 0;
    return {.needs = {.inputs = static_cast<Index>(task_.train.size() + joined),
                      .entry_bytes = sizeof(Scalar),
                      .kernels = inference.kernels,
                      .finite_times = !inference.times.empty(),
                      .in_store = !arguments_.store.folder.empty(),
                      .ranks = has_rank_solver() ? context_.dealer->solver()->ranks() : 1,
                      .against_distributed = against_distributed(),
                      .test = static_cast<Index>(task_.test.size()),
                      .outputs = task_.train.targets->cols(),
                      .chooses = options_.request.chooses(),
                      .candidates = static_cast<Index>(inference.fit.candidates.size()),
                      .flip = options_.flip},
            .plan = plan,
            .store_side = arguments_.store.tile_side};
  }

  void set_choice(gp::Workload& work, const GpArguments& arguments) const {
    const gp::Criterion by = options_.inference.fit.criterion;
    work.needs.by_densities =
        by == gp::Criterion::leave_one_out || by == gp::Criterion::negative_log_predictive_density;
    if (work.needs.chooses && gp::needs_validation(by) && arguments.fit.chooses_by_validation())
      work.needs.validation = static_cast<Index>(task_.validation->size());
  }

  /// Of the networks, which are computed one after the other, the one whose states and workspaces take most. All are
  /// planned: whatever is wrong with one shows here.
  [[nodiscard]] Plan largest_plan() const {
    const GramOptions options = gram_options(options_, context_);
    std::optional<Plan> largest;
    const auto bytes = [](const Plan& plan) {
      return plan.state_bytes * static_cast<double>(plan.replicates) + plan.threads * plan.workspace_bytes;
    };
    for (std::size_t i = 0; i < networks_.size(); ++i) {
      Plan plan = naming_errors(arguments_.networks[i], [&] {
        return explain<Scalar>(networks_[i], task_.train.inputs(), options, 0);
      });
      if (!largest || bytes(plan) > bytes(*largest)) largest = std::move(plan);
    }
    // Matrices that are kept are computed as such.
    if (!options_.gram_folder.empty()) largest->device_input_bytes = 0;
    return *largest;
  }

  /// Where conjugate gradients solve for every training input.
  [[nodiscard]] std::string amplitude_cost(gp::Solver solver) const {
    constexpr std::size_t together = 256;
    if (solver != gp::Solver::conjugate_gradients || options_.inference.kernels == Kernels::nngp ||
        options_.inference.fit.amplitude)
      return "";
    const std::size_t all = task_.train.size(),
                      seen = gp::representative_inputs(static_cast<Index>(all)).size();
    return fmt::format("; the NTK's amplitude solves for {} inputs, {} at a time: --amplitude A spares that",
                       seen == all ? fmt::format("all {}", all) : fmt::format("{} of {}", seen, all),
                       together);
  }

  [[nodiscard]] bool has_rank_solver() const {
    return context_.dealer != nullptr && context_.dealer->solver() != nullptr;
  }

  /// Why ranks cannot solve this together; empty where they can.
  [[nodiscard]] std::string against_distributed() const {
    if (context_.dealer == nullptr)
      return "the ranks of widelimit-mpi factorize together: mpirun -n N widelimit-mpi gp ...";
    if (!has_rank_solver())
      return "this widelimit-mpi was built without ScaLAPACK (Debian: libscalapack-openmpi-dev)";
    if (!options_.inference.times.empty()) return "it knows networks after training only, no --time";
    if (options_.flip) return "it takes the kernels of networks, no averages over flips (--flip)";
    if (task_.noise_variances.size() + task_.weights.size() > 0)
      return "it knows rows of equal noise only, no --weight and no --noise-variance";
    if (!task_.groups.empty()) return "it leaves rows out one by one, no --groups";
    if (std::string reason = context_.dealer->solver()->against_size(static_cast<Index>(task_.train.size()));
        !reason.empty())
      return reason;
    const auto by = arguments_.fit.options.criterion;
    if (by && *by == gp::Criterion::negative_log_predictive_density)
      return fmt::format(
          "it chooses regularisers by accuracy, mean squared error, leave-one-out or evidence, not by {}",
          criterion_title(*by));
    return "";
  }

  /// What the solver cannot do shows only now that it is known.
  void require_possible(const gp::SolverChoice& choice) {
    options_.request.inputs = static_cast<Index>(task_.train.size());
    options_.request.outputs = task_.train.targets->cols();
    options_.request.has_validation = task_.validation.has_value();
    if (const auto refusal = gp::fit_refusal(options_.request, gp::Door::program))
      throw ArgumentError(fmt::format("{}; {}", choice.text, refusal->reason));
  }

  void run_network(std::size_t i) {
    say("\n{}\n", visible_text(arguments_.networks[i]));
    flush_standard_output();
    GpOptions options = options_;
    if (!options.store.folder.empty()) {
      files::require_no_links(options.store.folder, places_[i]);
      options.store.folder /= places_[i];
    }
    networks_[i] = searched_network(networks_[i], arguments_.search, task_,
                                    model_options(arguments_.fit.options, options_, task_, context_),
                                    context_.interrupt);
    options.inference.fit.fits_tails = automatic_[i].has_value();
    if (automatic_[i]) options.inference.fit.transform = automatic_[i]->transform;
    std::optional<GpTask<Scalar>> mapped;
    if (automatic_[i]) mapped = mapped_task(task_, automatic_[i]->map);
    const GpTask<Scalar>& given = mapped ? *mapped : task_;
    const std::optional<LearnedTask<Scalar>> learned = learned_task(
        networks_[i], given, arguments_.fit.options.learning, options.inference, context_.interrupt);
    const GpTask<Scalar>& task = learned ? learned->task : given;
    if (learned) {
      networks_[i] = learned->inputs.network;
      say("{}", learned_text(learned->inputs, task_.channel_names));
    }
    const GpResult result = run_gp(networks_[i], task, options, context_);
    if (!is_first()) return;
    if (result.predictions.empty()) {
      say("part {} of {} is in the store, {:.2f} s; predictions come from a run without --part, when the "
          "others are\n",
          arguments_.store.part.number, arguments_.store.part.parts, result.gram_seconds);
      return;
    }
    const std::optional<TestQuality> quality = quality_with_baselines(result);
    const PredictionFacts info{.network = networks_[i],
                               .data = task_.description,
                               .kind = task_.kind,
                               .precision = arguments_.kernel.precision,
                               .names = task_.test.names,
                               .class_names = task_.class_names,
                               .preprocessing = task_.preprocessing,
                               .learned = learned ? &learned->inputs : nullptr,
                               .automatic = automatic_[i] ? &*automatic_[i] : nullptr,
                               .channels = &task_.channel_names,
                               .targets = &task_.target_names,
                               .quality = quality ? &*quality : nullptr,
                               .missing = task_.missing,
                               .unknown = task_.unknown,
                               .columns = task_.columns};
    if (!arguments_.reliability.empty())
      for (const GpPrediction& prediction : result.predictions)
        curves_.push_back(
            reliability_curve((networks_.size() > 1 ? arguments_.networks[i] + ", " : "") + prediction.name,
                              prediction.probabilities, *task_.test.targets));
    if (output_) output_->write(i, info, result, task_.test.targets);
    if (report_) {
      report_->add(arguments_.networks[i], info, result,
                   sample_prior(networks_[i], task, options_, result.predictions.front().amplitude(0),
                                context_.interrupt));
      output_->write_report(*report_);
    }
    say("{}", gp_table(result) + edge_notes(result, arguments_.kernel.precision == Precision::float64,
                                            task_.repeated_rows > 0));
    if (quality) say("{}", quality_text(*quality, task_.class_names));
    if (prints_json()) results_.push_back(nlohmann::json::parse(results_json(info, result)));
    flush_standard_output();
  }

  /// Nothing where the targets of the test inputs are not known.
  [[nodiscard]] std::optional<TestQuality> quality_with_baselines(const GpResult& result) {
    if (!task_.test.targets) return std::nullopt;
    TestQuality quality = quality_of(result, *task_.test.targets);
    // They are those of all networks.
    if (!baselines_) {
      baselines_.emplace();
      add_baselines(*baselines_, task_);
    }
    quality.baselines = baselines_->baselines;
    quality.note = baselines_->note;
    return quality;
  }

  const GpArguments& arguments_;
  const RunContext& context_;
  GpTask<Scalar> task_;
  std::vector<std::optional<gp::AutomaticNetwork>> automatic_;  ///< Of each network, where it was chosen.
  std::vector<Network> networks_;
  GpOptions options_;
  std::vector<std::string> places_;
  std::string solver_text_;
  std::optional<GpOutput> output_;
  std::optional<ReportPage> report_;
  std::vector<ReliabilityCurve> curves_;              ///< For --reliability.
  std::optional<TestQuality> baselines_;              ///< Once they were needed.
  nlohmann::json results_ = nlohmann::json::array();  ///< Of every network, for --json.
};

void fill_gp_command(CLI::App& command, const RunContext& context) {
  auto arguments = std::make_shared<GpArguments>();
  add_config_option(command);
  add_json_option(command);
  add_gp_options(command, *arguments);
  command.footer(
      "Prints a line for each kernel: regulariser and amplitude, accuracy and mean squared error of the "
      "test data, and seconds (the Gram matrices of both kernels are computed together). A second table has "
      "the scores of the test data: log loss, Brier score, area under the ROC curve (AUC) and calibration "
      "error (ECE) of classes; R2, negative log predictive density (NLPD) and coverage of intervals of "
      "numbers; and what class frequencies or the mean, and a logistic or linear regression, reach there. "
      "Variances are those of kernels times the amplitude.\n\n"
      "Examples:\n"
      "  widelimit gp --network struct --network conv-gap --data sample\n"
      "  widelimit gp --network conv-gap:depth=8 --data cifar10 --path cifar10 --train 2000 --test 1000 "
      "--size 8\n"
      "  widelimit gp --network imdb-struct --data imdb --path aclImdb --vectors vectors.txt --train 3200 "
      "--validation 1600 --test 1600\n"
      "  widelimit gp --network network.json --data npy --path arrays --regulariser 1e-3 --time 1,10 --out "
      "results");
  command.callback([arguments, &command, &context] {
    check_gp_usage(command, *arguments);
    arguments->data.split = split_choice(command, arguments->data);
    arguments->data.split.reads_validation = arguments->reads_validation();
    leave_out_unread_validation(command, arguments->data);
    numerics::require_room_for_threads(threads_of(arguments->kernel.threads, context));
    check_output_files({.read = files_read_by(*arguments),
                        .written = {{"--table", arguments->search.table},
                                    {"--plot", arguments->search.plot},
                                    {"--reliability", arguments->reliability}}});
    if (takes_double(command, arguments->networks)) arguments->kernel.precision = Precision::float64;
    if (arguments->kernel.precision == Precision::float32)
      NetworkPredictor<float>(*arguments, context).run();
    else
      NetworkPredictor<double>(*arguments, context).run();
  });
}

}  // namespace

const Command gp_command{"gp",
                         "Predicts with the kernels of a network: GP regression (NNGP) "
                         "and infinitely wide networks after training (NTK)",
                         fill_gp_command};

}  // namespace widelimit::cli

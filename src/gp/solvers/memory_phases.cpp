#include "gp/solvers/memory_phases.hpp"

#include <algorithm>
#include <utility>

#include "gp/solvers/band_form.hpp"
#include "store/tile_shares.hpp"
#include "widelimit/gp/leave_one_out.hpp"

namespace widelimit::gp {
namespace {

/// Rows of test inputs that are predicted together (for_each_row_block()).
constexpr double block_rows = 512;
constexpr double real = sizeof(double);
/// Up to so many inputs eigenvectors come from divide and conquer, whose workspace is two more matrices
/// (GradientFlow::fit()).
constexpr Index few_inputs = 1024;

/// The phases of one computation.
class Phases {
 public:
  Phases(const Workload& work, Solver solver)
      : work_{work},
        needs_{work.needs},
        solver_{solver},
        n_{static_cast<double>(needs_.inputs)},
        left_out_{static_cast<double>(representative_inputs(needs_.inputs).size())},
        entry_{static_cast<double>(needs_.entry_bytes)},
        square_{n_ * n_ * real} {}

  [[nodiscard]] MemoryPhase on_device() const {
    if (!multiplies_on_device()) return {};
    // Of training and test inputs; a vector and its product, and what the shares of a launch leave (DeviceProducts).
    constexpr double most_vectors = 64, sums = 64.0 * (1 << 20);
    const double others = static_cast<double>(std::max(needs_.validation, needs_.test));
    return {"products",
            {{"inputs and states", work_.plan->device_input_bytes * (n_ + others)},
             {"vectors", 2 * real * n_ * std::min(most_vectors, systems())},
             {"sums", sums}}};
  }

  std::vector<MemoryPhase> all() {
    if (work_.work == Work::new_inputs) {
      if (solver_ == Solver::conjugate_gradients)
        add_new_inputs_iteratively();
      else
        add_new_inputs();
      return std::move(phases_);
    }
    add("kernels", {{"states", states()}, {"workspaces", workspaces()}, {"mirror images", mirrored()}});
    if (work_.work == Work::kernels) return std::move(phases_);
    if (solver_ == Solver::distributed) {
      add("factorization", {{"factorization", 1.1 * square_ / needs_.ranks}});
      return std::move(phases_);
    }
    if (solver_ == Solver::conjugate_gradients) {
      add_iterations();
      return std::move(phases_);
    }
    if (work_.work == Work::model)
      add_model();
    else
      add_predictions();
    return std::move(phases_);
  }

 private:
  /// Adds what is there in every phase.
  void add(std::string name, std::vector<MemoryItem> items) {
    add_with(std::move(name), held(), std::move(items));
  }

  void add_with(std::string name, double kernels, std::vector<MemoryItem> items) {
    items.insert(items.begin(),
                 {{"kernels", kernels}, {"inputs", work_.input_bytes}, {"buffers", buffers()}});
    phases_.push_back({std::move(name), std::move(items)});
  }

  /// Of one kernel of so many rows with all training inputs, as it was computed.
  [[nodiscard]] double kernel(double rows) const { return entry_ * rows * n_; }
  [[nodiscard]] double cross() const {
    return kernel(static_cast<double>(needs_.validation) + static_cast<double>(needs_.test));
  }

  /// Kernels in memory while they are computed, and until a solver takes them.
  [[nodiscard]] double held() const {
    if (multiplies_on_device()) return 0;
    const double count = kernels_computed(work_);
    if (needs_.in_store) {
      const auto side = static_cast<double>(
          std::min(store_side(work_, needs_.inputs), std::max(needs_.inputs, work_.columns)));
      // A tile is computed and put together with what is there of it while the one before is being written, a kernel of
      // it as the bytes of a file.
      return (3 * count + 1) * entry_ * side * side;
    }
    const double columns =
        work_.work == Work::kernels && work_.columns > 0 ? static_cast<double>(work_.columns) : n_;
    const double whole = count * (entry_ * n_ * columns + (work_.work == Work::kernels ? 0 : cross()));
    // The means and squares of replicates, in double.
    const double replicated = work_.plan && work_.plan->replicates > 1 ? 1 + 2 * real / entry_ : 1;
    return whole * replicated / needs_.ranks;
  }

  /// Whether the matrix is nowhere: a device makes its tiles in every product.
  [[nodiscard]] bool multiplies_on_device() const {
    return solver_ == Solver::conjugate_gradients && work_.work != Work::kernels && !needs_.in_store &&
           !needs_.flip && work_.plan && work_.plan->device_input_bytes > 0;
  }

  [[nodiscard]] double states() const {
    if (!work_.plan) return 0;
    const double inputs = n_ + static_cast<double>(work_.columns) +
                          static_cast<double>(std::max(needs_.validation, needs_.test));
    return std::min(inputs * work_.plan->state_bytes, static_cast<double>(work_.plan->state_memory_bytes));
  }
  /// A part of the mean over mirror images beside their sum (FlipAverage).
  [[nodiscard]] double mirrored() const {
    const double rows = std::max(n_, static_cast<double>(std::max(needs_.validation, needs_.test)));
    return needs_.flip ? kernels_computed(work_) * kernel(rows) : 0;
  }
  [[nodiscard]] double threads() const { return work_.plan ? work_.plan->threads : 1; }
  [[nodiscard]] double workspaces() const { return work_.plan ? threads() * work_.plan->workspace_bytes : 0; }
  /// What BLAS touches of its buffers, and allocations of no great size.
  [[nodiscard]] double buffers() const {
    constexpr double of_a_thread = 6e6, others = 8e6;
    return others + of_a_thread * threads();
  }

  /// Right-hand sides, solutions and weights of all candidates, and the band with one factor.
  [[nodiscard]] double paths() const {
    const double columns = static_cast<double>(needs_.outputs * needs_.candidates);
    return n_ * real * (3 * columns + 5 * static_cast<double>(BandForm::default_bandwidth));
  }
  /// Columns of the basis for the inputs left out; all of them take the memory of the reduction.
  [[nodiscard]] double basis() const { return left_out_ < n_ ? n_ * left_out_ * real : 0; }
  [[nodiscard]] double blocks(double count) const { return count * std::min(block_rows, n_) * n_ * real; }
  [[nodiscard]] double validation(double kernels) const {
    return kernels * static_cast<double>(needs_.validation) * n_ * real;
  }

  void add_predictions() {
    const double crosses = kernels_computed(work_) * cross(), stored = needs_.in_store ? 0 : 1;
    const auto kernels = [&](double count) { return stored * (count * kernel(n_) + crosses); };
    const double all = kernels_computed(work_);
    if (needs_.kernels != Kernels::ntk) {
      const bool follow = needs_.kernels == Kernels::both;
      if (needs_.chooses)
        add_with("choice of the NNGP's regulariser", kernels(all),
                 {{"factorization", square_},
                  {"inputs left out", basis() + blocks(2)},
                  {"right-hand sides", paths() + validation(1)}});
      // The kernel's own memory serves, unless it is float and has to be widened or is needed again.
      const bool in_place = !follow && stored > 0 && entry_ == real;
      add_with("factorization of the NNGP", kernels(in_place ? all - 1 : all),
               {{"factorization", square_}, {"blocks of rows", blocks(2)}});
      add_with("predictions with the NNGP", kernels(follow ? all : 0),
               {{"factorization", square_}, {"test inputs", tests(1)}, {"blocks of rows", blocks(3)}});
    }
    if (needs_.kernels == Kernels::nngp) return;
    if (needs_.chooses) {
      const double factors = needs_.by_densities ? 2 : 1;
      add_with("choice of the NTK's regulariser", kernels(2),
               {{"factorization", factors * square_},
                {"inputs left out", needs_.by_densities ? basis() + blocks(4) : 0},
                {"right-hand sides", paths() + validation(factors)}});
    }
    const double left = entry_ == real ? 0 : 1;
    if (needs_.finite_times) {
      const double eigen = needs_.inputs <= few_inputs ? 3 : 2;
      add_with("eigenvectors of the NTK", kernels(1), {{"eigenvectors", eigen * square_}});
    }
    add_with("factorization of the NTK", kernels(left),
             {{"factorization", 2 * square_}, {"blocks of rows", blocks(1)}});
    add_with("predictions with the NTK", kernels(0),
             {{"factorization", 2 * square_}, {"test inputs", tests(2)}, {"blocks of rows", blocks(4)}});
  }

  [[nodiscard]] double tests(double kernels) const {
    return kernels * static_cast<double>(needs_.test) * n_ * real;
  }

  void add_model() {
    const double crosses = kernels_computed(work_) * kernel(static_cast<double>(needs_.validation));
    const bool bayesian = needs_.kernels == Kernels::nngp;
    const double held = kernels_computed(work_) * kernel(n_) + crosses,
                 factors = bayesian || !needs_.by_densities ? 1 : 2;
    if (needs_.chooses)
      add_with("choice of the regulariser", held,
               {{"factorization", factors * square_},
                {"inputs left out", basis() + blocks(bayesian ? 2 : 4)},
                {"right-hand sides", paths() + validation(factors)}});
    const double kept = entry_ == real ? crosses : held;
    const double eigen = needs_.inputs <= few_inputs ? 4 : 3;
    add_with(bayesian ? "factorization" : "eigenvectors", kept,
             {{"factorization", (bayesian ? 1 : eigen) * square_}, {"blocks of rows", blocks(3)}});
    add_with("saving", 0, {{"factorization", (bayesian ? 2 : 3) * square_}});
  }

  /// Solved for together while the regulariser is chosen.
  [[nodiscard]] double systems() const {
    return needs_.chooses ? static_cast<double>(needs_.outputs * needs_.candidates)
                          : static_cast<double>(needs_.outputs);
  }

  /// Of a model of conjugate gradients, which computes the kernels of its training inputs for variances.
  void add_new_inputs_iteratively() {
    add("kernels", {{"states", states()}, {"workspaces", workspaces()}, {"mirror images", mirrored()}});
    add_iterations();
    const auto count = static_cast<double>(needs_.test), outputs = static_cast<double>(needs_.outputs);
    const double square = count * count * real;
    if (work_.drawn.posterior > 0 && work_.drawn.jointly)
      add("covariance of new inputs", {{"covariances", 5 * square}, {"rows", 2 * real * count * n_}});
    if (work_.drawn.prior > 0) add_with("root of the prior covariance", 0, {{"covariances", 4 * square}});
    if (work_.drawn.posterior + work_.drawn.prior > 0)
      add("functions", {{"functions", 2 * static_cast<double>(work_.drawn.posterior + work_.drawn.prior) *
                                          count * outputs * real}});
  }

  /// Of a model: its matrices are in memory already, and the states of its training inputs stay once they are made.
  void add_new_inputs() {
    const bool bayesian = needs_.kernels == Kernels::nngp;
    const auto count = static_cast<double>(needs_.test), outputs = static_cast<double>(needs_.outputs);
    const double computed = kernels_computed(work_) * kernel(count),
                 widened = kernels_computed(work_) * real * count * n_;
    // Means, variances and deviations, class probabilities, and the files as texts.
    constexpr double numbers_of_output = 12, text_of_input = 512;
    const double results = count * (numbers_of_output * real * outputs + text_of_input);
    const auto add_step = [&](std::string name, double kernels, std::vector<MemoryItem> items) {
      items.push_back({"states", states()});
      items.push_back({"results", results});
      add_with(std::move(name), kernels, std::move(items));
    };
    add_step("kernels", computed,
             {{"workspaces", workspaces()}, {"mirror images", needs_.flip ? computed : 0}});
    add_step("kernels in double", computed + widened, {});
    const double rows = std::min(block_rows, count) * n_ * real;
    add_step("predictions", widened, {{"blocks of rows", (bayesian ? 2 : 4) * rows}});
    const double square = count * count * real;
    const auto parts = static_cast<double>(work_.posteriors);
    // What BLAS and LAPACK copy of matrices with a row or column for every input.
    constexpr double copied_rows = 640;
    const double copied = copied_rows * count * real;
    // An eigendecomposition: the matrix, and a workspace of two.
    const double root = 3 * square;
    const auto add_functions = [&](const char* name, Index functions) {
      // As they are drawn, and again in the order of the file.
      add_step(name, 0, {{"functions", 2 * static_cast<double>(functions) * count * outputs * real}});
    };
    if (work_.drawn.posterior > 0) {
      if (work_.drawn.jointly) {
        const double whitened = (bayesian ? 1 : 2) * widened / kernels_computed(work_);
        add_step("covariance of new inputs", widened,
                 {{"covariances", (bayesian ? 2 : 3) * square}, {"rows", whitened + copied}});
        add_step("root of their covariance", widened,
                 {{"covariances", square + root + (parts - 1) * square}, {"rows", copied}});
      }
      add_functions("functions of the posterior", work_.drawn.posterior);
    }
    if (work_.drawn.prior > 0) {
      add_step("root of the prior covariance", 0,
               {{"covariances", std::max(square + root, (2 + parts) * square)}, {"rows", copied}});
      add_functions("functions of the prior", work_.drawn.prior);
    }
  }

  void add_iterations() {
    constexpr double most_columns = 2000, right_hand_sides = 256;
    const double columns = std::min(std::floor(n_ / 10), most_columns);
    const double side =
        needs_.in_store ? std::min(n_, static_cast<double>(store_side(work_, needs_.inputs))) : 0;
    const double tiles = threads() * side * side * (real + entry_);
    const double matrices = needs_.in_store ? 0 : held();
    add_with("preconditioner", matrices,
             {{"preconditioner", real * (2 * n_ * columns + 4 * columns * columns)}, {"tiles", tiles}});
    const double together = std::max(systems(), std::min(right_hand_sides, n_));
    // Rows of validation and test inputs are read together, up to a block.
    const double rows = std::min(block_rows, static_cast<double>(std::max(needs_.validation, needs_.test)));
    // Of matrices in memory some rows are widened at a time, and those of test inputs as a whole.
    constexpr double widened_rows = 512;
    const double others = static_cast<double>(needs_.validation) + static_cast<double>(needs_.test);
    const double widened = needs_.in_store || entry_ == real || multiplies_on_device()
                               ? 0
                               : real * n_ * (widened_rows + kernels_computed(work_) * others);
    add_with("conjugate gradients", matrices,
             {{"preconditioner", real * n_ * columns},
              {"widened rows", widened},
              {"search directions", real * n_ * 9.5 * together},
              // As they are read, once more for the solver, the solutions of a part and of all, and products.
              {"blocks of rows", 5 * rows * n_ * real},
              {"tiles", tiles}});
  }

  const Workload& work_;
  const SolverNeeds& needs_;
  Solver solver_;
  double n_;
  double left_out_;
  double entry_;
  double square_;
  std::vector<MemoryPhase> phases_;
};

}  // namespace

double kernels_computed(const Workload& work) {
  if (work.work == Work::kernels) return work.needs.kernels == Kernels::both ? 2 : 1;
  return work.needs.kernels == Kernels::nngp ? 1 : 2;
}

Index store_side(const Workload& work, Index rows) {
  if (work.store_side > 0) return work.store_side;
  const Index grid = work.plan ? work.plan->grid : 1;
  return store::default_tile_side(rows, grid, work.plan ? work.plan->flops : 0);
}

MemoryPhase device_memory(const Workload& work, Solver solver) { return Phases(work, solver).on_device(); }

std::vector<MemoryPhase> memory_phases(const Workload& work, Solver solver) {
  return Phases(work, solver).all();
}

}  // namespace widelimit::gp

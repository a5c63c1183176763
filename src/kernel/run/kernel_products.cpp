#include "widelimit/kernel/kernel_products.hpp"

#include <fmt/format.h>

#include <cmath>
#include <optional>
#include <type_traits>
#include <utility>

#include "kernel/backends/device/device_choice.hpp"
#include "kernel/backends/device/device_products.hpp"
#include "kernel/backends/device/product_plan.hpp"
#include "kernel/backends/device/smooth_nonlinearities.hpp"
#include "kernel/backends/source_values.hpp"
#include "kernel/inputs/copied_inputs.hpp"
#include "kernel/inputs/require_inputs.hpp"
#include "kernel/run/gram_run.hpp"

namespace widelimit {
// Members of a public class have these types, so that their namespace has a name.
namespace kernel_products {

constexpr const char* where = "KernelProducts";

Wanted wanted_of(Kernels kernel) {
  if (kernel == Kernels::both)
    throw ArgumentError(fmt::format("{}: expected one kernel, nngp or ntk, got both", where));
  return kernel == Kernels::ntk ? Wanted::ntk : Wanted::nngp;
}

/// The plan of inputs whose products a device computes: states are made on the CPU, with its checks.
template <typename Scalar>
GramPlan plan_of(const Network& network, const GramTask& task, GramOptions options) {
  options.device = {};
  options.kernels = Kernels::both;
  return make_plan(network, task.shapes, size_of(task), sizeof(Scalar), options);
}

template <typename Scalar>
Inputs<Scalar> first_of(const Inputs<Scalar>& x) {
  const Inputs<Scalar> first = x.single(0);
  return copied_inputs<Scalar, Scalar>({&first});
}

void require_vectors(const GramPlan& plan) {
  if (plan.vectors_only) return;
  throw DeviceError(fmt::format(
      "{}: products without the matrix are for networks without positions; compute the matrix", where));
}

/// Products computed in a type, of inputs in another one.
template <typename Scalar, typename Result>
class Engine {
 public:
  Engine(GramPlan plan, std::shared_ptr<opencl::Session> session, const GramOptions& options)
      : plan_{std::move(plan)},
        session_{std::move(session)},
        options_{options},
        source_{checked_source()},
        smooth_{plan_.program,
                sizeof(Scalar) == sizeof(float) ? numerics::formula::Precision::narrow
                                                : numerics::formula::Precision::wide,
                Kernel::with_ntk} {}
  Engine(const Engine&) = delete;

  /// Copies inputs to the device. `own`: receives their own kernels, [input][NNGP, NTK].
  [[nodiscard]] PackedInputs<Scalar> packed(const GramPlan& plan, const Inputs<Result>& x, const char* name,
                                            std::vector<Scalar>* own) const {
    const OrderedInputs<Result> inputs(x, plan, name);
    PackedInputs<Scalar> packed(source_, *session_, x.size());
    opencl::Queue queue = session_->queue();
    std::vector<Scalar> numbers(static_cast<std::size_t>(packed.blocks() * side * source_.size()));
    ProgressCounter progress(options_, 0);
    GramComputation<Scalar, Result> computation(plan, options_, progress);
    for (Index begin = 0; begin < x.size(); begin += inputs_at_once) {
      const Index end = std::min(begin + inputs_at_once, x.size());
      const auto block = computation.make_states(inputs, begin, end);
      for (Index i = begin; i < end; ++i) {
        smooth_.require(plan.program, block.states[i]);
        Scalar* next = numbers.data() + i / side * (side * source_.size()) + i % side;
        for (const NodeId node : source_.sources())
          for (const Scalar number : vector_of(plan, node, block.states[i])) {
            *next = number;
            next += side;
          }
      }
    }
    std::vector<Scalar> kernels = packed.record(numbers, *smooth_.buffer(*session_), queue);
    if (own != nullptr) *own = std::move(kernels);
    return packed;
  }

  [[nodiscard]] const GramPlan& plan() const { return plan_; }
  [[nodiscard]] const MatrixFreeSource& source() const { return source_; }
  [[nodiscard]] opencl::Session& session() const { return *session_; }
  [[nodiscard]] DeviceProducts<Scalar> products() const {
    return {source_, *session_, smooth_.buffer(*session_), StopRequest(options_.stop)};
  }

 private:
  static constexpr Index side = MatrixFreeSource::side, inputs_at_once = 1 << 14;

  [[nodiscard]] MatrixFreeSource checked_source() const {
    const opencl::Device& device = session_->device();
    require_vectors(plan_);
    require_no_gaps(scalar_gaps(plan_.program), device.name);
    if (!device.has_double)
      throw DeviceError(fmt::format(
          "device: {} has no double precision, in which products are added up; choose the device cpu",
          device.name));
    MatrixFreeSource source = product_source_of(plan_, sizeof(Scalar));
    if (source.local_bytes() > device.local_memory)
      throw DeviceError(
          fmt::format("device: products need {} bytes of local memory, {} has {}; choose the device cpu",
                      source.local_bytes(), device.name, device.local_memory));
    return source;
  }

  GramPlan plan_;
  std::shared_ptr<opencl::Session> session_;
  GramOptions options_;
  MatrixFreeSource source_;
  mutable SmoothTables smooth_;
};

}  // namespace kernel_products

using namespace kernel_products;

/// What an object does, whatever type it computes in.
template <typename Scalar>
struct KernelProducts<Scalar>::Products {
  virtual ~Products() = default;
  [[nodiscard]] virtual Index size() const = 0;
  [[nodiscard]] virtual Matrix<double> multiply(Wanted wanted, const Matrix<double>& v) const = 0;
  [[nodiscard]] virtual Vector<double> diagonal(Wanted wanted) const = 0;
  [[nodiscard]] virtual Matrix<double> rows(Wanted wanted, std::span<const Index> inputs) const = 0;
  [[nodiscard]] virtual std::shared_ptr<const typename Rows::Inner> rows_of(
      const Inputs<Scalar>& x1) const = 0;

  template <typename Computed>
  class Of;
  [[nodiscard]] static std::shared_ptr<const Products> make(const Network& network, const Inputs<Scalar>& x,
                                                            const GramOptions& options);
};

template <typename Scalar>
struct KernelProducts<Scalar>::Rows::Inner {
  virtual ~Inner() = default;
  [[nodiscard]] virtual Index size() const = 0;
  [[nodiscard]] virtual Matrix<double> multiply(Wanted wanted, const Matrix<double>& v) const = 0;
  [[nodiscard]] virtual Matrix<double> entries(Wanted wanted, Index first, Index count) const = 0;
};

template <typename Scalar>
template <typename Computed>
class KernelProducts<Scalar>::Products::Of final : public Products,
                                                   public std::enable_shared_from_this<Of<Computed>> {
 public:
  Of(const Network& network, const Inputs<Scalar>& x, GramPlan plan, const GramOptions& options)
      : network_{network},
        like_{first_of(x)},
        engine_(std::move(plan), open_device(options.device, "products without the matrix"), options),
        inputs_{engine_.packed(engine_.plan(), x, "x", &own_)} {
    opencl::Queue queue = engine_.session().queue();
    inputs_.set_numbers_in_order(queue);
  }

  [[nodiscard]] Index size() const override { return inputs_.size(); }
  [[nodiscard]] Matrix<double> multiply(Wanted wanted, const Matrix<double>& v) const override {
    return engine_.products().multiply(wanted, inputs_, inputs_, v);
  }
  [[nodiscard]] Vector<double> diagonal(Wanted wanted) const override {
    Vector<double> diagonal(size());
    for (Index i = 0; i < size(); ++i)
      diagonal(i) =
          static_cast<double>(own_[static_cast<std::size_t>(2 * i + (wanted == Wanted::ntk ? 1 : 0))]);
    return diagonal;
  }
  [[nodiscard]] Matrix<double> rows(Wanted wanted, std::span<const Index> numbers) const override {
    const PackedInputs<Computed> chosen(engine_.source(), engine_.session(), inputs_, numbers);
    return engine_.products().entries(wanted, chosen, inputs_, 0, chosen.size());
  }

  [[nodiscard]] std::shared_ptr<const typename Rows::Inner> rows_of(const Inputs<Scalar>& x1) const override {
    check_finite(x1, "x1", 0);
    check_alike(x1, like_);
    const GramTask task = kept_task(network_, x1, like_);
    const GramPlan plan = plan_of<Scalar>(network_, task, {});
    task.check(plan.program.graph);
    return std::make_shared<const OtherRows>(this->shared_from_this(),
                                             engine_.packed(plan, x1, "x1", nullptr));
  }

 private:
  class OtherRows final : public Rows::Inner {
   public:
    OtherRows(std::shared_ptr<const Of> of, PackedInputs<Computed> inputs)
        : of_{std::move(of)}, inputs_{std::move(inputs)} {}
    [[nodiscard]] Index size() const override { return inputs_.size(); }
    [[nodiscard]] Matrix<double> multiply(Wanted wanted, const Matrix<double>& v) const override {
      return of_->engine_.products().multiply(wanted, inputs_, of_->inputs_, v);
    }
    [[nodiscard]] Matrix<double> entries(Wanted wanted, Index first, Index count) const override {
      return of_->engine_.products().entries(wanted, inputs_, of_->inputs_, first, count);
    }

   private:
    std::shared_ptr<const Of> of_;
    PackedInputs<Computed> inputs_;
  };

  Network network_;
  Inputs<Scalar> like_;
  std::vector<Computed> own_;
  Engine<Computed, Scalar> engine_;
  PackedInputs<Computed> inputs_;
};

template <typename Scalar>
std::shared_ptr<const typename KernelProducts<Scalar>::Products> KernelProducts<Scalar>::Products::make(
    const Network& network, const Inputs<Scalar>& x, const GramOptions& options) {
  if (is_cpu(options.device))
    throw DeviceError(
        fmt::format("{}: products without the matrix are computed on devices only, got the cpu", where));
  require_inputs(x, where, "x");
  check_finite(x, "x", options.threads);
  const GramTask task = symmetric_task(network, x);
  GramPlan plan = plan_of<Scalar>(network, task, options);
  task.check(plan.program.graph);
  // What the caller's options point to may not live as long as this does.
  GramOptions own;
  own.threads = options.threads;
  own.stop = options.stop;
  own.device = options.device;
  if (std::is_same_v<Scalar, float> && plan.in_double)
    return std::make_shared<const Of<double>>(network, x, std::move(plan), own);
  return std::make_shared<const Of<Scalar>>(network, x, std::move(plan), own);
}

template <typename Scalar>
KernelProducts<Scalar>::KernelProducts(const Network& network, const Inputs<Scalar>& x,
                                       const GramOptions& options)
    : products_{Products::make(network, x, options)} {}

template <typename Scalar>
bool KernelProducts<Scalar>::are_for(const Network& network, const Inputs<Scalar>& x) {
  return plan_of<Scalar>(network, symmetric_task(network, x), {}).vectors_only;
}

namespace {

void require_vectors_of(const Matrix<double>& v, Index columns) {
  if (v.rows() != columns)
    throw ArgumentError(
        fmt::format("{}: expected vectors as [{}, any], got [{}, {}]", where, columns, v.rows(), v.cols()));
}

}  // namespace

template <typename Scalar>
Index KernelProducts<Scalar>::size() const {
  return products_->size();
}

template <typename Scalar>
Matrix<double> KernelProducts<Scalar>::multiply(Kernels kernel, const Matrix<double>& v) const {
  require_vectors_of(v, size());
  return products_->multiply(wanted_of(kernel), v);
}

template <typename Scalar>
Vector<double> KernelProducts<Scalar>::diagonal(Kernels kernel) const {
  return products_->diagonal(wanted_of(kernel));
}

template <typename Scalar>
Matrix<double> KernelProducts<Scalar>::columns(Kernels kernel, std::span<const Index> inputs) const {
  for (const Index input : inputs)
    if (input < 0 || input >= size())
      throw ArgumentError(fmt::format("{}: expected inputs from 0 to {}, got {}", where, size() - 1, input));
  if (inputs.empty()) return Matrix<double>(size(), 0);
  // The matrix is symmetric.
  return products_->rows(wanted_of(kernel), inputs).transpose();
}

template <typename Scalar>
typename KernelProducts<Scalar>::Rows KernelProducts<Scalar>::rows_of(const Inputs<Scalar>& x1) const {
  require_inputs(x1, where, "x1");
  return Rows(products_->rows_of(x1));
}

template <typename Scalar>
Matrix<double> KernelProducts<Scalar>::multiply(Kernels kernel, const Rows& rows,
                                                const Matrix<double>& v) const {
  require_vectors_of(v, size());
  return rows.inner_->multiply(wanted_of(kernel), v);
}

template <typename Scalar>
Matrix<double> KernelProducts<Scalar>::entries(Kernels kernel, const Rows& rows, Index first,
                                               Index count) const {
  if (first < 0 || count < 0 || first + count > rows.size())
    throw ArgumentError(fmt::format("{}: expected rows within [0, {}), got [{}, {})", where, rows.size(),
                                    first, first + count));
  if (count == 0) return Matrix<double>(0, size());
  return rows.inner_->entries(wanted_of(kernel), first, count);
}

template <typename Scalar>
Index KernelProducts<Scalar>::Rows::size() const {
  return inner_->size();
}

template class KernelProducts<float>;
template class KernelProducts<double>;

}  // namespace widelimit

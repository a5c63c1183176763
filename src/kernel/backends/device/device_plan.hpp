#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "kernel/backends/device/device_steps.hpp"
#include "kernel/backends/device/form_choice.hpp"
#include "kernel/backends/device/product_source.hpp"
#include "kernel/backends/device/smooth_nonlinearities.hpp"
#include "kernel/backends/device/vector_source.hpp"
#include "opencl/session.hpp"

namespace widelimit {

struct GramPlan;

/// How a network without positions is computed.
struct DeviceVectorPlan {
  VectorSource source;
  std::vector<VectorSource::Source> inputs;
  std::string products;  ///< See product_source().
  Index group_side;      ///< Of those.
};

/// How the steps of pairs in some form are timed: see FormTrials.
struct StepTrials {
  std::function<double(const DevicePair&)> try_pair, measure;
};

/// How a plan is computed on a device, or on several equal ones: the sources of its steps. What comes after the
/// positions stays on the CPU, unless nothing has positions.
class DevicePlan {
 public:
  /// Throws DeviceError, naming the layers, if the device cannot compute the plan.
  /// `sessions`: of equal devices, which share the tiles. `pairs`: of the run.
  DevicePlan(std::vector<std::shared_ptr<opencl::Session>> sessions, const GramPlan& plan,
             std::size_t scalar_bytes, Index pairs);

  // The plan is that whose member this is: plans are moved while they are made.

  [[nodiscard]] opencl::Session& session(std::size_t device = 0) const { return *sessions_[device]; }
  [[nodiscard]] const std::vector<std::shared_ptr<opencl::Session>>& sessions() const { return sessions_; }
  [[nodiscard]] std::size_t devices() const { return sessions_.size(); }
  /// The number of a device for the next worker: they are dealt in turn.
  [[nodiscard]] std::size_t next_device() const { return dealt_++ % devices(); }
  /// The steps of pairs of inputs with these states.
  [[nodiscard]] const DevicePair& pair(const GramPlan& plan, const StateLayout& left,
                                       const StateLayout& right) const;
  /// The steps in which inputs of a shape record their states.
  [[nodiscard]] const DevicePair& records(const GramPlan& plan, const StateLayout& state) const;
  /// For plans of vectors only.
  [[nodiscard]] const DeviceVectorPlan& vectors() const { return vectors_.value(); }
  /// What nonlinearities by quadrature read.
  [[nodiscard]] SmoothTables& smooth() const { return *smooth_; }
  [[nodiscard]] Index group() const { return group_; }
  /// How chains are evaluated; where planes are too large for it, fewer are side by side.
  [[nodiscard]] DeviceForm form() const;
  /// The same for people, and where it comes from, or will.
  [[nodiscard]] std::string form_text(const GramPlan& plan) const;
  /// Whether the form is still to be chosen, on the first pairs.
  [[nodiscard]] bool chooses_form() const { return choice_.is_open(); }
  /// Chooses it, once, by trials of pairs of these states; other threads wait. What is measured is kept for later
  /// processes if the states are those of the largest inputs, by which it is found again.
  void choose_form(const GramPlan& plan, const StateLayout& left, const StateLayout& right,
                   const StepTrials& trials) const;
  /// Has the form measured, whatever is forced or remembered; of vectors there is none to measure.
  void measure_anew() const;
  /// How the form was chosen, once no thread computes.
  [[nodiscard]] const FormChoice& choice() const { return choice_; }
  /// The memory of `wanted` that states may take there: each half of it is a buffer. No more than other programs leave
  /// when it is first asked for. DeviceError if that is next to nothing.
  [[nodiscard]] std::size_t state_memory(std::size_t wanted) const;
  /// The side of a tile that keeps the device busy.
  [[nodiscard]] Index tile_side(const GramPlan& plan, const Shape& shape) const;

 private:
  [[nodiscard]] ChainSourceOptions source_options(Kernel kernel, const DeviceForm& form) const;
  [[nodiscard]] DevicePair steps_of(const GramPlan& plan, const StateLayout& left, const StateLayout& right,
                                    const DeviceForm& form) const;
  /// By what the form is found again: the largest inputs, in the usual form. Empty if no step has forms.
  [[nodiscard]] std::optional<FormKey> form_key(const GramPlan& plan) const;
  /// Throws DeviceError if a step needs more memory than there is.
  void require_memory(const DevicePair& pair) const;

  void make_vectors(const GramPlan& plan);

  std::vector<std::shared_ptr<opencl::Session>> sessions_;
  mutable std::atomic<std::size_t> dealt_ = 0;
  numerics::formula::Precision precision_;
  Index group_;
  mutable FormChoice choice_;  ///< By making_, once the plan is made.
  std::unique_ptr<SmoothTables> smooth_;
  std::optional<DeviceVectorPlan> vectors_;
  /// What was found to be free for states, and whether that was less than was wanted.
  struct Room {
    std::size_t bytes = 0;
    bool is_all = false;
  };
  mutable std::mutex asking_;
  mutable Room room_;
  mutable std::mutex making_;
  mutable std::map<std::tuple<Shape, Shape, std::string>, DevicePair> pairs_;  ///< [left, right, form]
  mutable std::map<Shape, DevicePair> records_;
};

}  // namespace widelimit

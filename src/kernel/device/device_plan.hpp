#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "kernel/device/run_source.hpp"
#include "opencl/session.hpp"

namespace widelimit {

struct GramPlan;

/// The runs of a program for pairs of inputs of some shapes, as sources for a device, and what launching them needs.
struct DevicePair {
  struct Step {
    NodeId readout;
    std::string source;
    std::vector<int> offsets;  ///< Of all axes, two numbers each.
    Index shares;              ///< Work-groups of a pair.
    double weight;             ///< Of the readout's sum.
  };
  std::vector<Step> steps;
};

/// How a plan is computed on a device: the sources of its runs. What comes after the positions stays on the CPU.
class DevicePlan {
 public:
  /// Throws DeviceError, naming the layers, if the device cannot compute the plan.
  DevicePlan(std::shared_ptr<opencl::Session> session, const GramPlan& plan, std::size_t scalar_bytes);

  // The plan is that whose member this is: plans are moved while they are made.

  [[nodiscard]] opencl::Session& session() const { return *session_; }
  /// The runs of pairs of inputs with these states.
  [[nodiscard]] const DevicePair& pair(const GramPlan& plan, const StateLayout& left,
                                       const StateLayout& right) const;
  /// Kernels of the runs in which inputs of a shape record their states, one for each step.
  [[nodiscard]] const std::vector<std::string>& records(const GramPlan& plan, const StateLayout& state) const;
  [[nodiscard]] Index group() const { return group_; }
  /// The memory of `wanted` that states may take there: each half of it is a buffer.
  [[nodiscard]] std::size_t state_memory(std::size_t wanted) const;
  /// The side of a tile that keeps the device busy.
  [[nodiscard]] Index tile_side(const GramPlan& plan, const Shape& shape) const;

 private:
  [[nodiscard]] RunSourceOptions source_options(const GramPlan& plan, bool records) const;
  void require_local_memory(const GramPlan& plan, const RunSource& source, const Run& run) const;

  std::shared_ptr<opencl::Session> session_;
  numerics::formula::Precision precision_;
  Index group_;
  mutable std::mutex making_;
  mutable std::map<std::pair<Shape, Shape>, DevicePair> pairs_;
  mutable std::map<Shape, std::vector<std::string>> records_;
};

}  // namespace widelimit

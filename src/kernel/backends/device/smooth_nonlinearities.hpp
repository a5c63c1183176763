#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "kernel/backends/cpu/planes/input_state.hpp"
#include "kernel/backends/device/smooth_table.hpp"
#include "kernel/plan/program.hpp"
#include "network/dual_attention_stage.hpp"
#include "opencl/session.hpp"
#include "widelimit/numerics/formula/row_formula.hpp"

namespace widelimit {

/// The nonlinearity of a row stage, or of attention weights, whose dual devices compute by quadrature; null for others.
[[nodiscard]] std::shared_ptr<const numerics::QuadratureActivation> smooth_nonlinearity(
    const RowStage& stage);
[[nodiscard]] std::shared_ptr<const numerics::QuadratureActivation> smooth_nonlinearity(
    const DualAttentionStage& stage);

/// Those of a program, each once, in the order of its nodes.
[[nodiscard]] std::vector<std::shared_ptr<const numerics::QuadratureActivation>> smooth_nonlinearities(
    const Program& program);

/// What devices compute of a stage: its own formula, or a call of smooth_dual() with the tables of `smooth`, an
/// argument of the kernel. Null if they cannot.
[[nodiscard]] numerics::formula::RowFormulaPointer device_formula(const Program& program,
                                                                  const RowStage& stage);
[[nodiscard]] numerics::formula::RowFormulaPointer device_formula(const Program& program,
                                                                  const DualAttentionStage& stage);

/// smooth_source() if a program has such nonlinearities; empty if not.
[[nodiscard]] std::string smooth_source_of(const Program& program, numerics::formula::Precision precision);

/// The tables of a program's nonlinearities by quadrature: [nonlinearity] where its SmoothTable begins, and these. They
/// grow by what the variances of inputs ask for.
class SmoothTables {
 public:
  /// ArgumentError, naming the layer, for an NTK that needs what is not to be had.
  SmoothTables(const Program& program, numerics::formula::Precision precision, Kernel kernel);

  /// Makes the tables that the variances of an input need, before its state or a pair of it is computed.
  template <typename Scalar>
  void require(const Program& program, const InputState<Scalar>& state);

  /// All of them in the memory of a device, whose kernels take it as `smooth`; of any size where there are none.
  [[nodiscard]] std::shared_ptr<const opencl::Buffer> buffer(const opencl::Session& session);

 private:
  struct OnDevice {
    std::shared_ptr<const opencl::Buffer> buffer;
    std::size_t version = 0;
  };
  [[nodiscard]] std::vector<double> numbers() const;

  std::vector<std::shared_ptr<const numerics::QuadratureActivation>> nonlinearities_;
  bool is_wide_;
  std::mutex changing_;
  std::vector<SmoothTable> tables_;  ///< [nonlinearity]
  std::size_t version_ = 1;
  std::map<const opencl::Session*, OnDevice> buffers_;
};

}  // namespace widelimit

#include <stdexcept>

#include "widelimit/network/pair_stage.hpp"
#include "widelimit/network/row_stage.hpp"

namespace widelimit {
namespace {

/// The engine asks whether a stage has a backward pass before it runs one, so that a call here is a mistake of the
/// library.
[[noreturn]] void throw_no_adjoint() {
  throw std::logic_error("kernel: the adjoint of a stage that has none was called");
}

}  // namespace

void RowStage::apply_adjoint(const numerics::AdjointRow<float>& /*row*/) const { throw_no_adjoint(); }
void RowStage::apply_adjoint(const numerics::AdjointRow<double>& /*row*/) const { throw_no_adjoint(); }
void RowStage::apply_self_adjoint(const numerics::AdjointRow<float>& /*row*/) const { throw_no_adjoint(); }
void RowStage::apply_self_adjoint(const numerics::AdjointRow<double>& /*row*/) const { throw_no_adjoint(); }

void PairStage::apply_adjoint(const PairView<float>& /*pair*/, const PairAdjoint<float>& /*adjoint*/) const {
  throw_no_adjoint();
}
void PairStage::apply_adjoint(const PairView<double>& /*pair*/,
                              const PairAdjoint<double>& /*adjoint*/) const {
  throw_no_adjoint();
}
/// By default a stage's state passes nothing back to the covariance of the input with itself.
void PairStage::prepare_adjoint(const SelfView<float>& /*input*/,
                                const SelfAdjoint<float>& /*adjoint*/) const {}
void PairStage::prepare_adjoint(const SelfView<double>& /*input*/,
                                const SelfAdjoint<double>& /*adjoint*/) const {}

}  // namespace widelimit

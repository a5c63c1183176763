#include "kernel/backends/device/product_plan.hpp"

#include "kernel/backends/source_values.hpp"

namespace widelimit {
namespace {

bool in_float(const GramPlan& plan, std::size_t scalar_bytes) {
  return scalar_bytes == sizeof(float) && !plan.in_double;
}

}  // namespace

MatrixFreeSource product_source_of(const GramPlan& plan, std::size_t scalar_bytes) {
  using numerics::formula::Precision;
  return {plan.program, plan.any_layout(), in_float(plan, scalar_bytes) ? Precision::narrow : Precision::wide,
          [&plan](NodeId node) { return vector_channels(plan, node); }};
}

double product_bytes_of_input(const GramPlan& plan, std::size_t scalar_bytes) {
  if (!plan.vectors_only || !scalar_gaps(plan.program).empty()) return 0;
  return static_cast<double>(product_source_of(plan, scalar_bytes).size()) *
         (in_float(plan, scalar_bytes) ? sizeof(float) : sizeof(double));
}

}  // namespace widelimit

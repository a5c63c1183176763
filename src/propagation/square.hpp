#pragma once

namespace widelimit::propagation {

inline double square(double x) { return x * x; }

}  // namespace widelimit::propagation

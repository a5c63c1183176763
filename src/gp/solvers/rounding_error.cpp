#include "gp/solvers/rounding_error.hpp"

#include <cmath>

#include "widelimit/numerics/random_stream.hpp"

namespace widelimit::gp {

// |K|_F^2 is the mean of |K s|^2 over vectors s of random signs.
double rounding_error(const KernelOperator& gram, double entry_epsilon) {
  constexpr Index products = 32;
  numerics::RandomStream stream(0);
  Matrix<double> signs(gram.size(), products);
  for (Index i = 0; i < signs.rows(); ++i)
    for (Index j = 0; j < products; ++j) signs(i, j) = stream.uniform() < 0.5 ? -1 : 1;
  const double norm = gram.multiply(signs).norm() / std::sqrt(static_cast<double>(products));
  return entry_epsilon * norm / std::sqrt(static_cast<double>(gram.size()));
}

double noise_floor(const KernelOperator& gram) {
  return signal_to_noise * rounding_error(gram, gram.epsilon()) / gram.diagonal().mean();
}

}  // namespace widelimit::gp

#include "widelimit/covariance_sde/outputs.hpp"

#include "covariance_sde/arguments.hpp"
#include "widelimit/covariance_sde/lower_root.hpp"
#include "widelimit/numerics/random_stream.hpp"

namespace widelimit::covariance_sde {

namespace {

// Apart from those of paths and networks.
constexpr std::uint64_t output_streams = std::uint64_t{7} << 60;

}  // namespace

Matrix<double> sampled_outputs(const Matrix<double>& v, Index count, std::uint64_t seed, Index path) {
  require_at_least("sampled_outputs", "count", count, 1);
  require_at_least("sampled_outputs", "path", path, 0);
  numerics::RandomStream stream(seed, output_streams + static_cast<std::uint64_t>(path));
  const Matrix<double> root = lower_root(v);
  Matrix<double> outputs(count, v.rows());
  for (Index unit = 0; unit < count; ++unit) {
    Vector<double> z(v.rows());
    for (double& one : z) one = stream.normal();
    outputs.row(unit) = (root * z).transpose();
  }
  return outputs;
}

}  // namespace widelimit::covariance_sde

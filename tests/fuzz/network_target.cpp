#include <algorithm>
#include <stdexcept>

#include "bounded_json.hpp"
#include "memory_file.hpp"
#include "widelimit/kernel/gram.hpp"
#include "widelimit/network/network_file.hpp"

namespace widelimit::fuzz {
namespace {

const std::vector<Shape>& shapes() {
  static const std::vector<Shape> list{{}, {3}, {3, 2}};
  return list;
}

/// The kernels of two tiny inputs.
void compute(const Network& network, const Shape& shape) {
  std::vector<Index> dimensions{2};
  dimensions.insert(dimensions.end(), shape.begin(), shape.end());
  dimensions.push_back(2);
  std::vector<double> values;
  for (Index i = 0; i < 4 * position_count(shape); ++i)
    values.push_back(static_cast<double>(i * 7 % 5) - 1.5);
  GramOptions options;
  options.threads = 1;
  static_cast<void>(gram(network, Inputs<double>(values.data(), std::move(dimensions)), options));
}

/// Where the network takes such inputs and is small enough.
void compute_if_small(const Network& network) {
  constexpr std::ptrdiff_t most_lines = 60;
  for (const Shape& shape : shapes())
    expect_our_errors([&] {
      const std::string lines = network.describe(shape);
      if (std::count(lines.begin(), lines.end(), '\n') <= most_lines) compute(network, shape);
    });
}

}  // namespace

void network_file(Bytes bytes) {
  const MemoryFile file(bytes);
  expect_our_errors([&] {
    const Network network = read_network(file.path());
    if (parse_network(to_json(network)) != network) throw std::logic_error("the round trip is exact");
  });
  // Repeats within repeats are short to write: bounded, or thousands of layers take all the time.
  expect_our_errors([&] { compute_if_small(parse_network(bounded_json(bytes).dump())); });
}

}  // namespace widelimit::fuzz

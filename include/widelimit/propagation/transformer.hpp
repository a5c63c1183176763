#pragma once

#include <optional>
#include <string>
#include <vector>

#include "widelimit/fields/config_reader.hpp"
#include "widelimit/network/network.hpp"
#include "widelimit/propagation/critical.hpp"
#include "widelimit/propagation/estimators.hpp"
#include "widelimit/propagation/sampled_block.hpp"

/// What the closed forms and their simulations are asked, read by the tables of fields.hpp. Readers take what the table
/// has and throw the errors of ConfigReader, which name the field.
namespace widelimit::propagation {

/// What `propagation network` takes, tokens and blocks.
inline constexpr Index most_block_tokens = 1 << 14, most_blocks = 1 << 16;

/// A transformer of the closed forms, with its depth and its mask.
struct Transformer {
  Parameters parameters;
  std::string activation = "tanh";  ///< The name of that of the parameters.
  double depth = 16;
  AttentionMask mask = AttentionMask::full;

  /// The depth as a count; only where the table asks for a whole one.
  [[nodiscard]] Index blocks() const { return static_cast<Index>(depth); }
  [[nodiscard]] ExponentOptions exponent_options() const;
  /// One block as layers for repeated_block.hpp, its attention sampled rather than averaged. A strength of 0 leaves
  /// its branch out, and its skip connection too where that changes nothing.
  [[nodiscard]] Network block() const;
};

[[nodiscard]] Transformer read_transformer(ConfigReader& fields);

/// Depth, mask, one_block and published. The printed formulas are refused under a causal mask.
[[nodiscard]] ExponentOptions read_exponent_options(ConfigReader& fields, const Transformer& transformer);

/// Where tokens start: q0 and c0, and the defaults of the table.
struct CosineStart {
  std::optional<double> q0;  ///< None: what the table says in words.
  double c0 = 0;

  /// Of q0, or of the norm that equal tokens keep.
  [[nodiscard]] double norm(const Parameters& parameters) const;
  /// Gaussian tokens, or equal ones where there is no q0.
  [[nodiscard]] TokenDistribution distribution(const Parameters& parameters) const;
};
[[nodiscard]] CosineStart read_start(ConfigReader& fields);

/// Two halves of tokens.
struct GroupStart {
  double q0 = 1, p_inside = 0.75, p_across = 0.5;

  [[nodiscard]] TokenDistribution distribution() const;
  /// [n, n], the first half before the second.
  [[nodiscard]] Matrix<double> gram(Index tokens) const;
};
[[nodiscard]] GroupStart read_groups(ConfigReader& fields);

/// Networks that are drawn, and where their tokens start.
template <typename Start>
struct Simulation {
  Transformer transformer;
  Start start;
  SampleOptions sampling;  ///< Width, networks, mask and seed; threads, progress and stop are the caller's.
};
[[nodiscard]] Simulation<CosineStart> read_simulation(ConfigReader& fields);
[[nodiscard]] Simulation<GroupStart> read_group_simulation(ConfigReader& fields);
[[nodiscard]] SampleOptions read_sampling(ConfigReader& fields, AttentionMask mask);

/// Exponents that are asked for.
struct ExponentTask {
  Transformer transformer;
  Formula formula = Formula::corrected;
  std::optional<Index> width = {};  ///< Of networks whose scatter about the exponents is asked for.
};
[[nodiscard]] ExponentTask read_exponents(ConfigReader& fields);

/// A repeated block of layers: where tokens of one norm and one cosine start, and the networks beside the theory.
struct BlockTask {
  Index tokens = 64, depth = 16;
  std::optional<double> q0 = {};  ///< None: 1, or the fixed point of exponents.
  double c0 = 0;
  bool has_networks = false;
  SampledBlockOptions sampling = {};

  /// Their Gram matrix. ArgumentError for a cosine below -1 / (tokens - 1), and for one of a single token.
  [[nodiscard]] Matrix<double> start() const;
};
[[nodiscard]] BlockTask read_block_task(ConfigReader& fields);

/// The words of `free`.
[[nodiscard]] std::vector<std::string> free_parameter_words();

/// A critical initialisation that is asked for.
struct CriticalTask {
  Transformer transformer;
  std::optional<FreeParameters> free = FreeParameters::strengths_and_gain;  ///< None: balanced.
  double tolerance = 0.1;
  std::optional<Index> width = {};  ///< As of exponents.

  [[nodiscard]] CriticalInitialisation found() const;
};
[[nodiscard]] CriticalTask read_critical(ConfigReader& fields);

}  // namespace widelimit::propagation

#pragma once

#include <functional>
#include <string>
#include <vector>

namespace widelimit::gp {

/// How the numbers between two bounds are spread.
enum class SearchScale { linear, logarithmic, integer };

/// A value to be chosen: lower <= value <= upper.
struct SearchParameter {
  std::string name;  ///< For messages.
  double lower;
  double upper;
  SearchScale scale = SearchScale::linear;
};

/// A choice of all values and its score: lower scores are better. NaN: it could not be computed.
struct Trial {
  std::vector<double> values;
  double score;
};

struct SearchOptions {
  int trials = 50;  ///< Different choices to try, at least 1.
  /// Choices of an earlier search for the same parameters, in any order: their scores are used instead of computed. A
  /// search is deterministic, so one that was stopped resumes where it was.
  std::vector<Trial> known = {};
  /// The derivatives of the score by the parameters; empty if there are none, in which case Subplex continues. With
  /// them, and without integers, the best choice is refined by L-BFGS within the bounds.
  std::function<std::vector<double>(const std::vector<double>&)> gradient = {};
};

/// Searches for the values with the lowest score: three fifths of the trials divide the whole box (DIRECT-L), the rest
/// refine the best choice among them, by L-BFGS with derivatives, else by Subplex, and also by Subplex if L-BFGS finds
/// no descent, as at a kink. Returns all trials in their order; there are fewer than requested if integers leave no
/// others, or if L-BFGS has finished.
///
/// Errors  ArgumentError for no parameters, bounds that are not finite or not in order, a logarithmic scale with a
///         bound that is not positive, integers with other bounds, trials < 1. Exceptions of `score` and
///         `gradient` end the search.
/// Source  Gablonsky & Kelley 2001, A locally-biased form of the DIRECT algorithm; Rowan 1990, Functional stability
///         analysis of numerical algorithms; Liu & Nocedal 1989, On the limited memory BFGS method; as in NLopt.
[[nodiscard]] std::vector<Trial> search(const std::vector<SearchParameter>& parameters,
                                        const std::function<double(const std::vector<double>&)>& score,
                                        const SearchOptions& options = {});

/// The trial with the lowest score. ArgumentError if no score is a number.
[[nodiscard]] const Trial& best_trial(const std::vector<Trial>& trials);

}  // namespace widelimit::gp

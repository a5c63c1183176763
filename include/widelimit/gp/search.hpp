#pragma once

#include <functional>
#include <string>
#include <vector>

namespace widelimit::gp {

/// How the numbers between two bounds are spread.
enum class SearchScale { linear, logarithmic, integer };

/// A number to be chosen: lower <= value <= upper.
struct SearchParameter {
  std::string name;  ///< For messages.
  double lower;
  double upper;
  SearchScale scale = SearchScale::linear;
};

/// A choice of all numbers and how it did: lower scores are better. NaN: it could not be computed.
struct Trial {
  std::vector<double> values;
  double score;
};

struct SearchOptions {
  int trials = 50;  ///< Different choices to try, at least 1.
  /// Choices of an earlier search for the same parameters, in any order: their scores are taken instead of computed. A
  /// search is deterministic, so one that was stopped goes on where it was.
  std::vector<Trial> known = {};
  /// The derivatives of the score by the parameters; empty where there are none, and Subplex goes on. With them, and
  /// without integers, the best choice is refined by L-BFGS within the bounds.
  std::function<std::vector<double>(const std::vector<double>&)> gradient = {};
};

/// Looks for the numbers with the lowest score: three fifths of the trials divide the whole box (DIRECT-L), the others
/// refine the best choice among them, without derivatives by Subplex, else by L-BFGS, and by Subplex where that finds
/// no way down, as at a kink. Returns all trials in their order; there are fewer than asked for where integers leave no
/// others, or L-BFGS has come to an end.
///
/// Errors  ArgumentError for no parameters, bounds that are not finite or not in order, a logarithmic scale with a
///         bound that is not positive, integers with bounds that are none, trials < 1. What `score` and
///         `gradient` throw ends the search.
/// Source  Gablonsky & Kelley 2001, A locally-biased form of the DIRECT algorithm; Rowan 1990, Functional stability
///         analysis of numerical algorithms; Liu & Nocedal 1989, On the limited memory BFGS method; as NLopt has them.
[[nodiscard]] std::vector<Trial> search(const std::vector<SearchParameter>& parameters,
                                        const std::function<double(const std::vector<double>&)>& score,
                                        const SearchOptions& options = {});

/// The trial with the lowest score. ArgumentError if no score is a number.
[[nodiscard]] const Trial& best_trial(const std::vector<Trial>& trials);

}  // namespace widelimit::gp

#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

#include "widelimit/data/labelled_images.hpp"
#include "widelimit/data/labelled_texts.hpp"

/// The Large Movie Review Dataset (aclImdb): a folder for each split with a file for each review,
/// SPLIT/pos/ID_RATING.txt and SPLIT/neg/ID_RATING.txt (or .txt.gz), as read_text() reads them. Files whose name begins
/// with a dot are ignored, and so is everything except pos and neg.
///
/// Every reader throws DataError naming folder or file: one that is missing, a folder without reviews, a file
/// of another name, and as read_text(). An empty file is an empty text.
///
/// Source  A. L. Maas, R. E. Daly, P. T. Pham, D. Huang, A. Y. Ng, C. Potts, "Learning Word Vectors for
///         Sentiment Analysis", ACL 2011.
namespace widelimit::data {

/// The place of a review, and the contents of its name.
struct ReviewFile {
  std::filesystem::path path;
  int label;   ///< 1: pos, 0: neg.
  int rating;  ///< 0 to 10.
};

/// The reviews of a split, e.g. aclImdb/train: neg, then pos, each by ID, then rating.
std::vector<ReviewFile> list_reviews(const std::filesystem::path& split_folder);

/// The texts of reviews, in their order; labels 0 (neg) and 1 (pos).
LabelledTexts read_reviews(std::span<const ReviewFile> files);

/// How many reviews to draw for each set.
struct ReviewCounts {
  std::size_t train = 0;
  std::size_t validation = 0;  ///< May be 0.
  std::size_t test = 0;
};

/// The result of read_imdb().
struct ReviewSets {
  LabelledTexts train;
  LabelledTexts validation;
  LabelledTexts test;
};

/// Disjoint random choices of reviews: training reviews from `folder`/train, test reviews from `folder`/test,
/// validation reviews from `folder`/val if there is such a folder, else from those of train that are not used for
/// training; see split_indices. Only chosen reviews are read.
///
/// Errors  as above; ArgumentError, naming the folder, if it has too few reviews.
ReviewSets read_imdb(const std::filesystem::path& folder, const ReviewCounts& counts, ClassBalance balance,
                     std::uint64_t seed);

}  // namespace widelimit::data

#include "widelimit/data/imdb.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <string>
#include <string_view>
#include <system_error>
#include <tuple>
#include <utility>

#include "widelimit/data/text_file.hpp"
#include "widelimit/error.hpp"

namespace widelimit::data {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t review_classes = 2;
constexpr std::uint64_t longest_review = std::uint64_t{16} << 20;
constexpr const char* class_folders[review_classes] = {"neg", "pos"};

struct NamedReview {
  std::uint64_t id;
  ReviewFile file;
};

/// Whether the whole text is one integer.
template <typename Integer>
bool read_integer(std::string_view text, Integer& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size();
}

/// The review a file of this name is: ID_RATING.txt.
NamedReview named_review(const fs::path& path, int label) {
  std::string name = path.filename().string();
  if (name.ends_with(".txt.gz")) name.resize(name.size() - std::string_view(".gz").size());
  const std::string_view stem = std::string_view(name).substr(0, name.rfind('.'));
  const std::size_t underscore = stem.find('_');
  NamedReview review{.id = 0, .file = {.path = path, .label = label, .rating = 0}};
  if (!name.ends_with(".txt") || underscore == std::string_view::npos ||
      !read_integer(stem.substr(0, underscore), review.id) ||
      !read_integer(stem.substr(underscore + 1), review.file.rating) || review.file.rating < 0 ||
      review.file.rating > 10) {
    throw DataError(fmt::format(
        "{}: expected the name of a review, ID_RATING.txt with a rating from 0 to 10; take other files away",
        path.string()));
  }
  return review;
}

void check_folder(const fs::path& folder, std::string_view what) {
  std::error_code ignored;
  if (!fs::is_directory(folder, ignored))
    throw DataError(fmt::format("{}: expected {}, found no such folder", folder.string(), what));
}

std::vector<NamedReview> list_class(const fs::path& folder, int label) {
  check_folder(folder, "a folder of reviews ID_RATING.txt");
  std::vector<NamedReview> reviews;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error))
    if (!entry->path().filename().string().starts_with('.')) {
      if (!fs::is_regular_file(entry->path(), error))
        throw DataError(fmt::format("{}: expected a review, found no regular file", entry->path().string()));
      reviews.push_back(named_review(entry->path(), label));
    }
  if (error) throw DataError(fmt::format("{}: cannot be listed: {}", folder.string(), error.message()));
  if (reviews.empty())
    throw DataError(fmt::format("{}: expected reviews ID_RATING.txt, found none", folder.string()));
  // The order of a folder's entries differs between file systems; random splits must not.
  const auto key = [](const NamedReview& review) {
    return std::tuple(review.id, review.file.rating, review.file.path);
  };
  std::sort(reviews.begin(), reviews.end(),
            [&](const NamedReview& left, const NamedReview& right) { return key(left) < key(right); });
  return reviews;
}

/// Random parts of a split's reviews, read.
std::vector<LabelledTexts> read_parts(const fs::path& folder, std::span<const std::size_t> counts,
                                      ClassBalance balance, std::uint64_t seed) {
  const auto files = list_reviews(folder);
  std::vector<int> labels;
  labels.reserve(files.size());
  for (const ReviewFile& file : files) labels.push_back(file.label);
  std::vector<std::vector<std::size_t>> parts;
  try {
    parts = split_indices(labels, review_classes, counts, balance, seed);
  } catch (const ArgumentError& error) {
    throw ArgumentError(fmt::format("{}: {}", folder.string(), error.what()));
  }
  std::vector<LabelledTexts> sets;
  for (const auto& part : parts) {
    std::vector<ReviewFile> chosen;
    chosen.reserve(part.size());
    for (const std::size_t index : part) chosen.push_back(files[index]);
    sets.push_back(read_reviews(chosen));
  }
  return sets;
}

}  // namespace

std::vector<ReviewFile> list_reviews(const fs::path& split_folder) {
  check_folder(split_folder, "a folder with pos and neg");
  std::vector<ReviewFile> files;
  for (std::size_t label = 0; label < review_classes; ++label)
    for (NamedReview& review : list_class(split_folder / class_folders[label], static_cast<int>(label)))
      files.push_back(std::move(review.file));
  return files;
}

LabelledTexts read_reviews(std::span<const ReviewFile> files) {
  LabelledTexts result;
  result.classes = review_classes;
  result.class_names.assign(std::begin(class_folders), std::end(class_folders));
  for (const ReviewFile& file : files) {
    result.texts.push_back(read_text(file.path, longest_review, "a review"));
    result.names.push_back(file.path.string());
    result.labels.push_back(file.label);
  }
  return result;
}

ReviewSets read_imdb(const fs::path& folder, const ReviewCounts& counts, ClassBalance balance,
                     std::uint64_t seed) {
  check_folder(folder, "a folder with train and test");
  const bool has_validation = fs::exists(folder / "val");
  // Without validation reviews of their own, they are a second part of the training reviews, which
  // leaves the first part as it is.
  std::vector<std::size_t> known{counts.train};
  if (!has_validation) known.push_back(counts.validation);
  auto train = read_parts(folder / "train", known, balance, seed);
  ReviewSets sets;
  sets.train = std::move(train[0]);
  sets.validation = has_validation ? read_parts(folder / "val", {{counts.validation}}, balance, seed)[0]
                                   : std::move(train[1]);
  sets.test = read_parts(folder / "test", {{counts.test}}, balance, seed)[0];
  return sets;
}

}  // namespace widelimit::data

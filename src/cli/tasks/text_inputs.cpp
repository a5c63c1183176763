#include "cli/tasks/text_inputs.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <sstream>

#include "cli/tasks/npy_inputs.hpp"
#include "widelimit/data/synthetic_reviews.hpp"
#include "widelimit/data/text_file.hpp"
#include "widelimit/data/word_sequences.hpp"
#include "widelimit/error.hpp"
#include "widelimit/json/read_json.hpp"
#include "widelimit/network/field_reader.hpp"
#include "widelimit/store/sha256.hpp"

namespace widelimit::cli {
namespace {

using Path = std::filesystem::path;

constexpr std::size_t longest_text = std::size_t{16} << 20;

data::LabelledTexts texts_in_folder(const Path& folder) {
  std::vector<Path> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    if (const std::string name = entry.path().filename(); name.ends_with(".txt") || name.ends_with(".txt.gz"))
      files.push_back(entry.path());
  if (files.empty()) fail_in(folder, "expected .txt or .txt.gz files, one a text, found none");
  std::ranges::sort(files);
  data::LabelledTexts texts;
  for (const Path& file : files) {
    texts.texts.push_back(data::read_text(file, longest_text, "a text"));
    texts.names.push_back(file.filename().string());
  }
  return texts;
}

data::LabelledTexts texts_in_lines(const Path& file) {
  constexpr std::size_t most_bytes = std::size_t{1} << 30, most_texts = 10'000'000;
  std::istringstream stream(data::read_text(file, most_bytes, "texts"));
  data::LabelledTexts texts;
  std::string line;
  for (std::size_t number = 1; std::getline(stream, line); ++number) {
    if (line.size() > longest_text)
      fail_in(file, "line {}: expected a text of at most {} bytes, got {}", number, longest_text,
              line.size());
    if (number > most_texts) fail_in(file, "expected at most {} lines, a text each, found more", most_texts);
    if (line.ends_with('\r')) line.pop_back();
    // Files that were put together have a mark at the beginning of each.
    if (line.starts_with(data::byte_order_mark)) line.erase(0, data::byte_order_mark.size());
    texts.texts.push_back(line);
    texts.names.push_back(fmt::format("{}:{}", file.filename().string(), number));
  }
  if (texts.texts.empty()) fail_in(file, "expected a text a line, the file is empty");
  return texts;
}

data::WordVectors vectors_of(const gp::Model& model, const Path& file) {
  const nlohmann::json prepared = preparation_of(model);
  FieldReader preparation(prepared, "preparation");
  const std::string source = preparation.text("word_vectors");
  if (source == "reviews") return data::synthetic_review_vectors();
  if (file.empty())
    throw DataError("--texts takes the word vectors that the model was fitted with: give --vectors FILE");
  const auto bad_lines =
      preparation.boolean("skip_bad_lines") ? data::BadLines::skip : data::BadLines::reject;
  const Index dimensions = preparation.integer("dimensions");
  const data::WordVectors vectors =
      data::read_word_vectors(file, bad_lines).vectors.leading(static_cast<std::size_t>(dimensions));
  const std::string expected = preparation.text("vectors_sha256"), found = vectors_sha256(vectors);
  if (found != expected)
    fail_in(file,
            "expected the word vectors that the model was fitted with (SHA-256 {}), these are others ({})",
            expected, found);
  return vectors;
}

std::vector<std::string> texts_without_vectors(const data::SequenceStatistics& statistics) {
  std::vector<std::string> names = statistics.without_words;
  names.insert(names.end(), statistics.without_known_words.begin(), statistics.without_known_words.end());
  return names;
}

void erase_named(data::LabelledTexts& texts, const std::vector<std::string>& names) {
  const std::set<std::string> all(names.begin(), names.end());
  std::vector<std::string> kept;
  for (std::size_t i = 0; i < texts.size(); ++i)
    if (!all.contains(texts.names[i])) kept.push_back(std::move(texts.texts[i]));
  texts.texts = std::move(kept);
}

}  // namespace

std::string vectors_sha256(const data::WordVectors& vectors) {
  store::Sha256 sum;
  for (std::size_t i = 0; i < vectors.size(); ++i) {
    const std::string& word = vectors.word(i);
    sum.add(word.c_str(), word.size() + 1);
    sum.add(vectors[i].data(), vectors[i].size_bytes());
  }
  return sum.digest();
}

ModelInputs text_inputs(const gp::Model& model, const Path& path, const Path& vectors_file,
                        UnknownInputs unknown) {
  const nlohmann::json prepared = preparation_of(model);
  if (!prepared.contains("word_vectors"))
    fail_in(path, "texts, but the model was not fitted to texts (fit --data imdb or reviews)");
  const data::WordVectors vectors = vectors_of(model, vectors_file);
  data::LabelledTexts texts =
      std::filesystem::is_directory(path) ? texts_in_folder(path) : texts_in_lines(path);
  texts.labels.assign(texts.size(), 0);
  texts.classes = 2;
  const Index longest = FieldReader(prepared, "preparation").integer("max_length");
  auto words = naming_errors(path.string(), [&] {
    return embed(texts, vectors, {.max_length = static_cast<std::size_t>(longest)});
  });
  const auto left_out = texts_without_vectors(words.statistics);
  // A text that is left out is a row without a prediction, which must be wanted.
  if (!left_out.empty() && unknown == UnknownInputs::error)
    fail_in(path,
            "{}: none of its words has a vector, so that nothing can be predicted; --unknown ignore leaves "
            "such texts out",
            fmt::join(left_out, ", "));
  erase_named(texts, left_out);
  ModelInputs inputs{.names = std::move(words.names), .texts = std::move(texts.texts)};
  for (xt::xarray<float>& sequence : words.inputs)
    inputs.sequences.emplace_back(xt::cast<double>(std::exchange(sequence, {})));
  inputs.notes.push_back(to_string(words.statistics));
  if (!left_out.empty())
    inputs.notes.push_back(fmt::format("left out (--unknown ignore), none of their words has a vector: {}",
                                       fmt::join(left_out, ", ")));
  return inputs;
}

}  // namespace widelimit::cli

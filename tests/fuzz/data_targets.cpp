#include <array>
#include <stdexcept>

#include "memory_file.hpp"
#include "widelimit/data/cifar10.hpp"
#include "widelimit/data/imdb.hpp"
#include "widelimit/data/mnist.hpp"
#include "widelimit/data/npy.hpp"
#include "widelimit/data/tokenizer.hpp"
#include "widelimit/data/word_vectors.hpp"
#include "widelimit/propagation/loss_predictor.hpp"

namespace widelimit::fuzz {
namespace {

void check(bool holds, const char* what) {
  if (!holds) throw std::logic_error(what);
}

template <typename T>
void read_as_stored(const std::filesystem::path& path) {
  expect_our_errors([&] { static_cast<void>(data::read_npy<T>(path)); });
}

void read_mnist(Bytes bytes) {
  const std::size_t images = take(bytes, 1).empty() ? 0 : bytes.size() / 2;
  const MemoryFile first(take(bytes, images)), second(bytes);
  expect_our_errors([&] {
    const data::LabelledImages set = data::read_mnist({first.path(), second.path()});
    check(set.images.shape(0) == set.labels.size(), "an image, a label");
  });
}

void read_cifar10(Bytes bytes) {
  const MemoryFile file(bytes);
  const std::array files{file.path()};
  expect_our_errors([&] {
    for (const int label : data::read_cifar10(files).labels) check(label >= 0 && label < 10, "a label");
  });
}

void read_labels_alone(Bytes bytes) {
  // A valid header of no images stands in front, so that all bytes go to the labels, plain or packed.
  static constexpr std::array<std::uint8_t, 16> no_images{0, 0, 8, 3, 0, 0, 0, 0, 0, 0, 0, 28, 0, 0, 0, 28};
  const MemoryFile images(no_images), labels(bytes);
  expect_our_errors([&] { static_cast<void>(data::read_mnist({images.path(), labels.path()})); });
}

}  // namespace

void npy(Bytes bytes) {
  const MemoryFile file(bytes);
  expect_our_errors([&] {
    const data::NpyHeader header = data::read_npy_header(file.path());
    check(data::read_npy_as<double>(file.path()).size() == header.size(),
          "as many values as the header says");
  });
  expect_our_errors([&] { static_cast<void>(data::read_npy_as<float>(file.path())); });
  read_as_stored<float>(file.path());
  read_as_stored<std::int64_t>(file.path());
  read_as_stored<std::uint8_t>(file.path());
}

void images(Bytes bytes) {
  const Bytes choice = take(bytes, 1);
  if (choice.empty()) return;
  switch (choice[0] % 3) {
    case 0:
      return read_cifar10(bytes);
    case 1:
      return read_mnist(bytes);
    default:
      return read_labels_alone(bytes);
  }
}

void texts(Bytes bytes) {
  const Bytes choice = take(bytes, 1);
  if (choice.empty()) return;
  const MemoryFile file(bytes);
  if (choice[0] % 4 == 3) {
    expect_our_errors([&] { static_cast<void>(propagation::read_training_outcomes(file.path())); });
    return;
  }
  if (choice[0] % 4 == 0) {
    const std::array reviews{data::ReviewFile{file.path(), 1, 7}};
    expect_our_errors([&] {
      for (const std::string& word : data::tokenize(data::read_reviews(reviews).texts.at(0)))
        check(!word.empty(), "words are not empty");
    });
    return;
  }
  const auto policy = choice[0] % 4 == 1 ? data::BadLines::reject : data::BadLines::skip;
  expect_our_errors([&] {
    const data::WordVectorFile vectors = data::read_word_vectors(file.path(), policy);
    for (std::size_t i = 0; i < vectors.vectors.size(); ++i)
      check(vectors.vectors.find(vectors.vectors.word(i)) == i, "every word is found");
  });
}

}  // namespace widelimit::fuzz

#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace widelimit::data {

/// Texts with one class label each, the result of every text reader and generator of this folder.
struct LabelledTexts {
  std::vector<std::string> texts;  ///< UTF-8.
  std::vector<std::string> names;  ///< Where each text comes from, for messages: a file, "review 7".
  std::vector<int> labels;         ///< Each in [0, classes).
  std::size_t classes = 0;
  std::vector<std::string> class_names = {};  ///< One for each class; readers fill it in.

  std::size_t size() const { return texts.size(); }
};

}  // namespace widelimit::data

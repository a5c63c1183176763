#pragma once

#include <fstream>
#include <string>

#include "cli/program.hpp"

namespace widelimit::testing {

/// CIFAR-10's files with 30 training and 30 test images, three of each class, and names of the classes by
/// name_of(class).
template <typename NameOf>
void write_cifar10(const TemporaryFolder& folder, const NameOf& name_of) {
  for (const char* file : {"data_batch_1.bin", "test_batch.bin"}) {
    std::ofstream stream(folder / file, std::ios::binary);
    for (int i = 0; i < 30; ++i) {
      stream.put(static_cast<char>(i % 10));
      for (int value = 0; value < 3072; ++value) stream.put(static_cast<char>((value * (i + 3)) % 251));
    }
  }
  std::ofstream names(folder / "batches.meta.txt");
  for (int c = 0; c < 10; ++c) names << name_of(c) << '\n';
}

}  // namespace widelimit::testing

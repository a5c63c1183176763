#pragma once

#include <chrono>
#include <exception>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "files/replacing_file.hpp"
#include "json/json_value.hpp"
#include "widelimit/json/read_json.hpp"
#include "widelimit/store/gram_store.hpp"

namespace widelimit::store {

/// How fast the pairs of a part are computed, over all its runs: each leaves what it took in a file. An estimate; a file
/// that cannot be read counts for nothing.
class Pace {
 public:
  explicit Pace(std::filesystem::path file) : file_{std::move(file)} {
    if (!std::filesystem::exists(file_)) return;
    try {
      const nlohmann::json document = read_json(file_);
      const JsonValue pace(document, file_.string());
      earlier_seconds_ = pace.at("seconds");
      earlier_pairs_ = pace.at("pairs");
    } catch (const std::exception&) {
      earlier_seconds_ = earlier_pairs_ = 0;
    }
  }

  [[nodiscard]] double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }

  /// `computed` pairs in this run, `left` to go.
  [[nodiscard]] double pairs_per_second(Index computed) const {
    const double pairs = earlier_pairs_ + static_cast<double>(computed);
    return pairs > 0 ? pairs / (earlier_seconds_ + seconds()) : 0;
  }
  [[nodiscard]] double seconds_left(Index computed, Index left) const {
    const double rate = pairs_per_second(computed);
    if (left == 0) return 0;
    return rate > 0 ? static_cast<double>(left) / rate : std::numeric_limits<double>::infinity();
  }

  /// Leaves what was taken so far; not more often than every few seconds unless it is the end.
  void keep(Index computed, bool is_end) {
    constexpr double interval = 5;
    if (computed == 0 || (!is_end && seconds() - kept_at_ < interval)) return;
    kept_at_ = seconds();
    const nlohmann::json document{{"seconds", earlier_seconds_ + seconds()},
                                  {"pairs", earlier_pairs_ + static_cast<double>(computed)}};
    files::replace_file(file_, document.dump() + "\n");
  }

 private:
  std::filesystem::path file_;
  double earlier_seconds_ = 0;
  double earlier_pairs_ = 0;
  double kept_at_ = 0;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

}  // namespace widelimit::store

#pragma once

#include <chrono>
#include <filesystem>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "files/process_identity.hpp"

namespace widelimit::store {

/// How often owners touch their claim files, and after which time without a touch a claim is free.
struct ClaimPulse {
  std::chrono::milliseconds interval = std::chrono::seconds(10);
  std::chrono::milliseconds abandoned_after = std::chrono::minutes(2);
};

/// Claims by files that are made exclusively, where the file system has no locks. Their owner touches them while it
/// lives; the claim of a process that has ended is free at once on its own machine, and on others when it was not
/// touched for minutes, as the file system's clock goes. In rare races a
/// claim has two owners: it spares work and guards nothing.
class ClaimFiles {
 public:
  /// Makes the folder, and removes what is nobody's from it. Throws DataError if it cannot be made.
  explicit ClaimFiles(std::filesystem::path folder, ClaimPulse pulse = {});
  ~ClaimFiles();
  ClaimFiles(const ClaimFiles&) = delete;
  ClaimFiles& operator=(const ClaimFiles&) = delete;

  /// False if somebody has it. Throws DataError if the file cannot be made.
  [[nodiscard]] bool take(const std::string& name);
  void release(const std::string& name);

  /// Names that others have and that begin so.
  [[nodiscard]] std::vector<std::string> taken_by_others(const std::string& beginning) const;
  /// The process that has the claim, if there is one.
  [[nodiscard]] std::optional<files::ProcessIdentity> holder(const std::string& name) const;

 private:
  [[nodiscard]] bool make(const std::string& name);
  [[nodiscard]] bool is_abandoned(const std::filesystem::path& file) const;
  void remove_abandoned(const std::filesystem::path& file) const;
  [[nodiscard]] std::filesystem::file_time_type now() const;
  void touch_held();

  std::filesystem::path folder_;
  ClaimPulse pulse_;
  std::string owner_;  ///< What stands in the files: this process, and a number for this object.
  mutable std::mutex mutex_;
  std::vector<std::string> held_;
  std::jthread toucher_;
};

}  // namespace widelimit::store

#pragma once

#include <cstdint>
#include <span>

/// What is fuzzed: a function for every reader, which gives it any bytes as a file. A reader may refuse them
/// with an error of this library; whatever else comes out (a crash, another exception, a wrong memory access,
/// a hang) is a finding.
namespace widelimit::fuzz {

using Bytes = std::span<const std::uint8_t>;

void network_file(Bytes bytes);
void npy(Bytes bytes);
void images(Bytes bytes);
void texts(Bytes bytes);
void sde_config(Bytes bytes);
void heads_config(Bytes bytes);
void reference_file(Bytes bytes);
void table(Bytes bytes);

/// Folders that are whole but for one file, which the bytes replace.
void model_folder(Bytes bytes);
void gram_store(Bytes bytes);
void graph_folder(Bytes bytes);
/// run.json of a folder into which another run writes.
void run_record(Bytes bytes);

/// No reader: texts of others on their way to gnuplot, HTML, CSV, JSON, a shell and a terminal.
void shown_text(Bytes bytes);

struct Target {
  const char* name;  ///< Also that of the folder of its corpus.
  void (*run)(Bytes);
};

inline constexpr Target targets[] = {{"network_file", network_file},
                                     {"npy", npy},
                                     {"images", images},
                                     {"texts", texts},
                                     {"sde_config", sde_config},
                                     {"heads_config", heads_config},
                                     {"reference_file", reference_file},
                                     {"table", table},
                                     {"model_folder", model_folder},
                                     {"gram_store", gram_store},
                                     {"graph_folder", graph_folder},
                                     {"run_record", run_record},
                                     {"shown_text", shown_text}};

}  // namespace widelimit::fuzz

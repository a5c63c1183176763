#include "data/file_kind.hpp"

#include <algorithm>
#include <cctype>
#include <string>

namespace widelimit::data {
namespace {

using namespace std::literals;

constexpr std::string_view save_as_csv = "save its table as CSV in UTF-8";
constexpr std::string_view with_pandas =
    "save it as CSV in UTF-8, as pandas does: pandas.read_...(FILE).to_csv(\"table.csv\", index=False)";
constexpr std::string_view from_r =
    "save it as CSV, in R: write.csv(readRDS(FILE), \"table.csv\", row.names=FALSE)";
constexpr std::string_view unpack_it = "unpack it, and give the file that was in it";
constexpr std::string_view save_arrays =
    "arrays are read by --data npy and --x; a table is saved as CSV in UTF-8";

struct Signature {
  std::size_t offset;
  std::string_view bytes;
  FileKind kind;
};

/// Those of letters alone go on with bytes that no text has.
constexpr Signature signatures[] = {
    {0, "PAR1\x15"sv, {"a Parquet file", with_pandas}},
    {0, "PARE\x15"sv, {"an encrypted Parquet file", with_pandas}},
    {0, "ARROW1\0\0"sv, {"an Arrow or Feather file", with_pandas}},
    {0, "FEA1\0"sv, {"a Feather file", with_pandas}},
    {0, "\xff\xff\xff\xff"sv, {"a stream of Arrow", with_pandas}},
    {0, "Obj\x01"sv, {"an Avro file", save_as_csv}},
    {0, "ORC\x08"sv, {"an ORC file", with_pandas}},
    {0,
     "\x89HDF\r\n\x1a\n"sv,
     {"an HDF5 file", "save its table as CSV in UTF-8, its arrays as .npy (h5py, numpy.save)"}},
    {0, "CDF\x01"sv, {"a NetCDF file", save_as_csv}},
    {0, "CDF\x02"sv, {"a NetCDF file", save_as_csv}},
    {124, "\0\x01IM"sv, {"a file of MATLAB", "save its table as CSV in UTF-8 (writetable)"}},
    {124, "\x01\0MI"sv, {"a file of MATLAB", "save its table as CSV in UTF-8 (writetable)"}},
    {0, "X\n\0\0"sv, {"an R object (.rds)", from_r}},
    {0, "A\n2\n"sv, {"an R object (.rds)", from_r}},
    {0, "A\n3\n"sv, {"an R object (.rds)", from_r}},
    {0, "RDX2\n"sv, {"an R workspace (.RData)", "save its table as CSV, in R: load(FILE), then write.csv"}},
    {0, "RDX3\n"sv, {"an R workspace (.RData)", "save its table as CSV, in R: load(FILE), then write.csv"}},
    {0,
     "\xfd"
     "7zXZ\0"sv,
     {"xz data", "unpack it (unxz)"}},
    {0, "\x28\xb5\x2f\xfd"sv, {"Zstandard data", "unpack it (unzstd)"}},
    {0, "\x04\x22\x4d\x18"sv, {"LZ4 data", "unpack it (unlz4)"}},
    {0, "]\0\0\x80\0"sv, {"LZMA data", "unpack it (unlzma)"}},
    {0, "\x1f\x9d"sv, {"data of compress (.Z)", "unpack it (uncompress)"}},
    {0, "7z\xbc\xaf\x27\x1c"sv, {"a 7z archive", unpack_it}},
    {0, "Rar!\x1a\x07"sv, {"a RAR archive", unpack_it}},
    {257, "ustar"sv, {"a tar archive", unpack_it}},
    {0,
     "SQLite format 3\0"sv,
     {"an SQLite database",
      "save its table as CSV: sqlite3 -csv -header FILE 'select * from TABLE' > table.csv"}},
    {0,
     "\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"sv,
     {"an old Excel or Word file (.xls, .doc)", "save the sheet as CSV UTF-8"}},
    {0, "\x93NUMPY"sv, {"an array of NumPy (.npy)", save_arrays}},
    {0, "\xba\x16\x4f\x2f"sv, {"a model of fastText (.bin)", "take the .vec file of the same vectors"}},
    {0, "$FL2@(#)"sv, {"an SPSS file (.sav)", save_as_csv}},
    {0, "$FL3@(#)"sv, {"an SPSS file (.sav)", save_as_csv}},
    {0, "\0\0\0\0\0\0\0\0\0\0\0\0\xc2\xea\x81\x60"sv, {"a SAS data set (.sas7bdat)", save_as_csv}},
    {0, "\x89PNG\r\n\x1a\n"sv, {"a PNG image", "give a text"}},
    {0, "\xff\xd8\xff"sv, {"a JPEG image", "give a text"}},
    {0,
     "\x7f"
     "ELF"sv,
     {"a program", "give a text"}},
    {0, "\xff\xfe\0\0"sv, {"UTF-32", "save it as UTF-8"}},
    {0, "\0\0\xfe\xff"sv, {"UTF-32", "save it as UTF-8"}},
};

/// bzip2 says its block size, 1 to 9, where the signature has an X; an empty file has no block.
bool is_bzip2(std::string_view start) {
  constexpr std::string_view block = "\x31\x41\x59\x26\x53\x59"sv, end = "\x17\x72\x45\x38\x50\x90"sv;
  return start.starts_with("BZh") && start.size() >= 10 && start[3] >= '1' && start[3] <= '9' &&
         (start.substr(4, 6) == block || start.substr(4, 6) == end);
}

/// Protocols 2 to 5. Whoever unpickles a stranger's file runs their program.
bool is_pickle(std::string_view start) {
  return start.size() >= 2 && start[0] == '\x80' && start[1] >= 2 && start[1] <= 5;
}

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

FileKind zip_kind(std::string_view start) {
  if (contains(start, "[Content_Types].xml") || contains(start, "xl/") || contains(start, "_rels/"))
    return {"an Excel workbook or another Office file", "save the sheet as CSV UTF-8 (in Excel: Save As)"};
  if (contains(start, "opendocument")) return {"an OpenDocument file", "save the sheet as CSV in UTF-8"};
  if (contains(start, ".npy"))
    return {"a NumPy archive (.npz)", "save its arrays one by one (numpy.save), a table as CSV in UTF-8"};
  if (contains(start, "/data.pkl")) return {"a file of PyTorch", "save its arrays as .npy (numpy.save)"};
  return {"a zip archive", unpack_it};
}

std::string lower_case_start(std::string_view text, std::size_t count) {
  std::string start(text.substr(0, count));
  std::ranges::transform(start, start.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return start;
}

/// Passes over blank lines and the comments of ARFF.
std::string_view without_comments(std::string_view text) {
  while (!text.empty() && (text[0] == '%' || std::isspace(static_cast<unsigned char>(text[0])) != 0))
    text.remove_prefix(text[0] == '%' ? std::min(text.find('\n'), text.size()) : 1);
  return text;
}

}  // namespace

std::optional<FileKind> binary_file_kind(std::string_view start) {
  if (start.starts_with("PK\x03\x04"sv) || start.starts_with("PK\x05\x06"sv)) return zip_kind(start);
  if (is_bzip2(start)) return FileKind{"bzip2 data", "unpack it (bunzip2)"};
  if (is_pickle(start))
    return FileKind{"a pickle of Python",
                    "load it in Python, and save its table as CSV or its arrays as .npy"};
  for (const Signature& signature : signatures)
    if (start.size() >= signature.offset && start.substr(signature.offset).starts_with(signature.bytes))
      return signature.kind;
  return std::nullopt;
}

std::optional<FileKind> marked_up_file_kind(std::string_view text) {
  constexpr std::size_t longest = 16;
  const std::string start = lower_case_start(without_comments(text), longest);
  const auto begins = [&](std::string_view word) { return start.starts_with(word); };
  if (begins("@relation") || begins("@attribute"))
    return FileKind{"an ARFF file", "save it as CSV: names of columns in the first line, no lines with @"};
  if (begins("<!doctype html") || begins("<html"))
    return FileKind{"a page of the web", "download the file itself"};
  if (begins("<?xml")) return FileKind{"an XML file", save_as_csv};
  if (begins("<stata_dta>")) return FileKind{"a Stata file (.dta)", with_pandas};
  if (begins("%pdf-") || lower_case_start(text, 5) == "%pdf-") return FileKind{"a PDF", save_as_csv};
  if (begins("{\\rtf"))
    return FileKind{"a file of a word processor (.rtf)", "save it as plain text in UTF-8"};
  if (lower_case_start(text, 23) == "version https://git-lfs")
    return FileKind{"a pointer of Git LFS", "fetch the file itself (git lfs pull)"};
  return std::nullopt;
}

}  // namespace widelimit::data

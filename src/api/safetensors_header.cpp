// {"w":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]}} and what must hold of it.
#include "src/api/safetensors_header.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <tuple>

#include "ir/graph/sizes.h"
#include "ir/text/json_document.h"
#include "tenon/error.h"
#include "tenon/shape.h"

namespace tenon::src {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kLengthBytes = 8;
constexpr std::string_view kMetadata = "__metadata__";

struct Spelling {
  std::string_view text;
  DType dtype;
};
constexpr Spelling kSpellings[] = {{"F64", DType::f64},    {"F32", DType::f32},        {"F16", DType::f16},
                                   {"BF16", DType::bf16},  {"I64", DType::i64},        {"I32", DType::i32},
                                   {"I16", DType::i16},    {"I8", DType::i8},          {"U8", DType::u8},
                                   {"BOOL", DType::bool_}, {"F8_E4M3", DType::f8e4m3}, {"F8_E5M2", DType::f8e5m2}};

[[noreturn]] void refuse(const std::string& file, const std::string& message, const std::string& remedy) {
  Place place;
  place.file = file;
  throw Error(ErrorKind::io, message, place, remedy);
}

// Reads one tensor of the header.
class EntryReader {
 public:
  EntryReader(const std::string& name, const Json& json, const std::string& file)
      : name_(name), json_(json), file_(file) {}

  SafetensorsEntry read(std::size_t data, std::size_t size) const {
    if (!json_.is_object()) fail("is no object");
    for (const auto& [key, value] : json_.items())
      if (key != "dtype" && key != "shape" && key != "data_offsets")
        fail(fmt::format("has another key than dtype, shape and data_offsets: {}", ir::display(key)));
    SafetensorsEntry entry{name_, dtype(), shape(), 0, 0};
    const std::vector<std::int64_t> offsets = numbers("data_offsets", 2);
    if (offsets.size() != 2) fail("has not two data_offsets");
    const auto begin = static_cast<std::uint64_t>(offsets[0]), end = static_cast<std::uint64_t>(offsets[1]);
    if (begin > end || end > size)
      fail(fmt::format("lies at bytes {} to {} of {}", offsets[0], offsets[1], size), "copy the whole file");
    check_size(entry, end - begin);
    entry.begin = data + begin;
    entry.end = data + end;
    return entry;
  }

 private:
  [[noreturn]] void fail(const std::string& what,
                         const std::string& remedy = "write the file with the safetensors library") const {
    refuse(file_, fmt::format("tensor {} {}", ir::display(name_), what), remedy);
  }
  const Json& field(const char* key) const {
    if (!json_.contains(key)) fail(fmt::format("has no {}", key));
    return json_[key];
  }
  DType dtype() const {
    const Json& given = field("dtype");
    if (!given.is_string()) fail("has a dtype that is no string");
    const std::string& text = given.get_ref<const std::string&>();
    for (const Spelling& spelling : kSpellings)
      if (spelling.text == text) return spelling.dtype;
    fail(fmt::format("has elements of the dtype {}, which Tenon has not", ir::display(text)),
         "convert it before saving, or leave it out");
  }
  std::vector<std::int64_t> shape() const { return numbers("shape", static_cast<std::size_t>(kMaxRank)); }
  std::vector<std::int64_t> numbers(const char* key, std::size_t most) const {
    const Json& list = field(key);
    if (!list.is_array()) fail(fmt::format("has a {} that is no list", key));
    if (list.size() > most) fail(fmt::format("has a {} of more than {} numbers", key, most));
    std::vector<std::int64_t> result;
    for (const Json& number : list) {
      constexpr auto kMost = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
      if (!number.is_number_unsigned() || number.get<std::uint64_t>() > kMost)
        fail(fmt::format("has a {} that is no list of whole numbers", key));
      result.push_back(number.get<std::int64_t>());
    }
    return result;
  }
  void check_size(const SafetensorsEntry& entry, std::uint64_t given) const {
    const auto wanted = ir::byte_count(entry.dtype, entry.shape);
    if (wanted && static_cast<std::uint64_t>(*wanted) == given) return;
    fail(fmt::format("has {} bytes, {}[{}] needs {}", given, name_of(entry.dtype), fmt::join(entry.shape, ", "),
                     wanted ? std::to_string(*wanted) : "more than 2^50"));
  }

  const std::string& name_;
  const Json& json_;
  const std::string& file_;
};

Json read_json(std::string_view text, const std::string& file) {
  if (text.substr(0, 1) != "{") refuse(file, "the header does not begin with '{'", "name a .safetensors file");
  try {
    return ir::read_json_document(text, file);
  } catch (const Error& error) {
    Place place = error.place();
    place.file = file;
    throw Error(ErrorKind::io, "the header is no JSON object: " + error.message(), place,
                "write the file with the safetensors library");
  }
}

// Where the elements begin.
std::size_t read_length(std::string_view bytes, const std::string& file) {
  if (bytes.size() < kLengthBytes)
    refuse(file, fmt::format("a file of {} bytes is no .safetensors file", bytes.size()), "copy the whole file");
  std::uint64_t length = 0;
  for (std::size_t i = kLengthBytes; i-- > 0;) length = length << 8 | static_cast<unsigned char>(bytes[i]);
  if (length > kSafetensorsMaxHeader)
    refuse(file, fmt::format("a header of {} bytes", length),
           fmt::format("it has at most {}: name a .safetensors file", kSafetensorsMaxHeader));
  if (length > bytes.size() - kLengthBytes)
    refuse(file, fmt::format("a header of {} bytes in a file of {}", length, bytes.size()), "copy the whole file");
  return kLengthBytes + static_cast<std::size_t>(length);
}

// Each tensor begins where the one before ends.
void check_cover(const std::vector<SafetensorsEntry>& entries, std::size_t data, std::size_t end,
                 const std::string& file) {
  std::size_t at = data;
  for (const SafetensorsEntry& entry : entries) {
    if (entry.begin != at)
      refuse(file,
             fmt::format("tensor {} begins at byte {} of the elements, where what is before ends at {}",
                         ir::display(entry.name), entry.begin - data, at - data),
             "tensors follow each other without holes: write the file with the safetensors library");
    at = entry.end;
  }
  if (at != end)
    refuse(file, fmt::format("the tensors end at byte {} of the elements, the file at {}", at - data, end - data),
           "copy the whole file");
}

void check_bools(std::string_view bytes, const SafetensorsEntry& entry, const std::string& file) {
  if (entry.dtype != DType::bool_) return;
  const std::string_view flags = bytes.substr(entry.begin, entry.end - entry.begin);
  const auto wrong = std::find_if(flags.begin(), flags.end(), [](char flag) { return flag != 0 && flag != 1; });
  if (wrong != flags.end())
    refuse(file,
           fmt::format("bool {} of tensor {} is {}", wrong - flags.begin(), ir::display(entry.name),
                       static_cast<int>(static_cast<unsigned char>(*wrong))),
           "bools are 0 or 1");
}

std::string quoted(const std::string& name) {
  if (name == kMetadata)
    throw Error(ErrorKind::argument, fmt::format("a tensor called {}", ir::display(name)), {},
                "a .safetensors file has that name for another thing: choose another one");
  try {
    return Json(name).dump();
  } catch (const Json::exception&) {
    throw Error(ErrorKind::argument, fmt::format("the name {} is not UTF-8", ir::display(name)), {},
                "give the array another name");
  }
}

std::string_view spelling_of(DType dtype) {
  return std::find_if(std::begin(kSpellings), std::end(kSpellings), [&](const Spelling& s) { return s.dtype == dtype; })
      ->text;
}

}  // namespace

std::vector<SafetensorsEntry> read_safetensors_header(std::string_view bytes, const std::string& file) {
  const std::size_t data = read_length(bytes, file);
  const Json header = read_json(bytes.substr(kLengthBytes, data - kLengthBytes), file);
  std::vector<SafetensorsEntry> entries;
  for (const auto& [name, tensor] : header.items())
    if (name != kMetadata) entries.push_back(EntryReader(name, tensor, file).read(data, bytes.size() - data));
  std::stable_sort(entries.begin(), entries.end(), [](const SafetensorsEntry& a, const SafetensorsEntry& b) {
    return std::tie(a.begin, a.end) < std::tie(b.begin, b.end);
  });
  check_cover(entries, data, bytes.size(), file);
  for (const SafetensorsEntry& entry : entries) check_bools(bytes, entry, file);
  return entries;
}

std::string safetensors_head(const std::vector<SafetensorsEntry>& tensors, std::size_t alignment) {
  std::string json;
  for (const SafetensorsEntry& tensor : tensors)
    json += fmt::format(R"({}{}:{{"dtype":"{}","shape":[{}],"data_offsets":[{},{}]}})", json.empty() ? "{" : ",",
                        quoted(tensor.name), spelling_of(tensor.dtype), fmt::join(tensor.shape, ","), tensor.begin,
                        tensor.end);
  json += json.empty() ? "{}" : "}";
  json.append((alignment - (kLengthBytes + json.size()) % alignment) % alignment, ' ');
  if (json.size() > kSafetensorsMaxHeader)
    throw Error(ErrorKind::argument, fmt::format("a header of {} bytes", json.size()), {},
                fmt::format("a .safetensors file has at most {}: write several files", kSafetensorsMaxHeader));
  std::string head;
  for (std::size_t i = 0; i < kLengthBytes; ++i) head += static_cast<char>(json.size() >> (8 * i) & 0xff);
  return head + json;
}

}  // namespace tenon::src

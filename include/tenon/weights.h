// A model's weights: arrays by name, from .safetensors and .npz files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tenon/array.h"
#include "tenon/dtype.h"

namespace tenon {

/// A dense row-major array in host memory that somebody else owns, to read: one of a Weights. Plain data.
struct WeightView {
  DType dtype = DType::f32;
  std::vector<std::int64_t> shape;
  const std::byte* data = nullptr;  ///< elements in storage format, at any address; null when there are none

  std::size_t byte_size() const;  ///< of the elements
  std::span<const std::byte> bytes() const { return {data, byte_size()}; }
  Array array() const;  ///< a copy
};

/// Arrays by name, in an order. Cheap to copy: copies share the arrays, which never change.
class Weights {
 public:
  struct Entry {
    std::string name;
    WeightView view;
    std::shared_ptr<const void> memory;  ///< what keeps the view's data: a mapped file, or bytes
  };

  Weights() = default;
  /// `{{"w", w}, {"b", b}}`; Error(argument) for a name that stands twice.
  Weights(std::initializer_list<std::pair<std::string, Array>> arrays);

  /// Appends an array. Error(argument) when the name is taken, or the array has not as many bytes as its shape says.
  void add(std::string name, Array array);
  /// Appends a view of `memory`, which is kept as long as this and its copies. Error(argument) when the name is taken.
  void add(std::string name, WeightView view, std::shared_ptr<const void> memory);

  bool empty() const { return entries_.empty(); }
  std::size_t size() const { return entries_.size(); }
  std::vector<Entry>::const_iterator begin() const { return entries_.begin(); }
  std::vector<Entry>::const_iterator end() const { return entries_.end(); }
  bool contains(std::string_view name) const { return find(name) != nullptr; }
  /// The entry called `name`, or null.
  const Entry* find(std::string_view name) const;
  /// The array called `name`: good as long as this, or a copy. Error(argument) where there is none, with names like it.
  const WeightView& operator[](std::string_view name) const;

 private:
  std::vector<Entry> entries_;
  std::map<std::string, std::size_t, std::less<>> places_;
};

/// The tensors of a .safetensors file, in the order in which they lie there. The file is mapped, not read: a page comes
/// when it is first needed, and the file must not change as long as the weights are used. `__metadata__` is ignored.
/// Error(io) for a file that cannot be read or is malformed, with the tensor's name; for a dtype that Tenon has not.
Weights load_safetensors(const std::string& path);

/// Writes a .safetensors file, whole or not at all. What takes a multiple of 16 bytes comes first, so that a target on
/// the host finds it aligned in the mapped file. Error(io) where writing fails, Error(argument) for a name that is not
/// UTF-8, or is `__metadata__`.
void save_safetensors(const std::string& path, const Weights& weights);

/// The arrays of a .npz file, as numpy.savez and numpy.savez_compressed write it, in the order of the file: each as
/// load_npy reads it, with the dtype that `wanted` has for its name. Error(io) as load_npy, and for anything in the
/// file that is no .npy; Error(unsupported) for a build without libzip.
Weights load_npz(const std::string& path, const std::map<std::string, DType>& wanted = {});

/// Writes a .npz file that is not compressed, whole or not at all. Error(io) where that fails; Error(unsupported) for a
/// build without libzip.
void save_npz(const std::string& path, const Weights& weights);

}  // namespace tenon

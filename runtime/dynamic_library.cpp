// Opening shared libraries, and what can be asked of one that is open: its path and its build id.
#include "runtime/dynamic_library.h"

#include <dlfcn.h>
#include <link.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace tenon::runtime {
namespace {

constexpr std::size_t note_align = 4;

std::size_t aligned(std::size_t size) { return (size + note_align - 1) / note_align * note_align; }

std::string hex(const unsigned char* bytes, std::size_t count) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string text;
  for (std::size_t i = 0; i < count; ++i) {
    text += digits[bytes[i] >> 4];
    text += digits[bytes[i] & 15];
  }
  return text;
}

// One PT_NOTE segment is a row of records {name size, descriptor size, type, name, descriptor}, each part padded to 4.
std::string build_id_in_notes(const unsigned char* segment, std::size_t size) {
  std::size_t at = 0;
  while (at + sizeof(ElfW(Nhdr)) <= size) {
    ElfW(Nhdr) note;
    std::memcpy(&note, segment + at, sizeof note);
    const std::size_t name = at + sizeof note;
    const std::size_t descriptor = name + aligned(note.n_namesz);
    if (descriptor + note.n_descsz > size) break;
    const bool gnu = note.n_namesz == 4 && std::memcmp(segment + name, "GNU", 4) == 0;
    if (gnu && note.n_type == NT_GNU_BUILD_ID) return hex(segment + descriptor, note.n_descsz);
    at = descriptor + aligned(note.n_descsz);
  }
  return {};
}

struct BuildIdSearch {
  std::uintptr_t address;
  std::string build_id;
};

bool holds(const dl_phdr_info& object, std::uintptr_t address) {
  for (int i = 0; i < object.dlpi_phnum; ++i) {
    const auto& segment = object.dlpi_phdr[i];
    const std::uintptr_t begin = object.dlpi_addr + segment.p_vaddr;
    if (segment.p_type == PT_LOAD && address >= begin && address < begin + segment.p_memsz) return true;
  }
  return false;
}

int visit_object(dl_phdr_info* object, std::size_t, void* data) {
  auto& search = *static_cast<BuildIdSearch*>(data);
  if (!holds(*object, search.address)) return 0;
  for (int i = 0; i < object->dlpi_phnum && search.build_id.empty(); ++i) {
    const auto& segment = object->dlpi_phdr[i];
    if (segment.p_type != PT_NOTE) continue;
    const auto* notes = reinterpret_cast<const unsigned char*>(object->dlpi_addr + segment.p_vaddr);
    search.build_id = build_id_in_notes(notes, segment.p_memsz);
  }
  return 1;
}

using Handle = std::unique_ptr<void, int (*)(void*)>;

// The file that this code lies in; its RUNPATH is what the loader goes by.
Handle own_file() {
  Dl_info info{};
  link_map* map = nullptr;
  const auto* here = reinterpret_cast<const void*>(&own_file);
  const bool found = dladdr1(here, &info, reinterpret_cast<void**>(&map), RTLD_DL_LINKMAP) != 0 && map != nullptr;
  const bool is_program = !found || map->l_name == nullptr || *map->l_name == '\0';
  return {dlopen(is_program ? nullptr : map->l_name, RTLD_LAZY | RTLD_NOLOAD), dlclose};
}

// Where the loader looks for a name without a folder: LD_LIBRARY_PATH, RUNPATH and the system's folders, in its order.
std::vector<std::string> searched_folders() {
  const Handle own = own_file();
  Dl_serinfo head{};
  if (!own || dlinfo(own.get(), RTLD_DI_SERINFOSIZE, &head) != 0) return {};
  std::vector<std::max_align_t> memory(head.dls_size / sizeof(std::max_align_t) + 1);
  auto* list = reinterpret_cast<Dl_serinfo*>(memory.data());
  *list = head;
  if (dlinfo(own.get(), RTLD_DI_SERINFO, list) != 0) return {};
  std::vector<std::string> folders;
  for (unsigned i = 0; i < list->dls_cnt; ++i) folders.emplace_back(list->dls_serpath[i].dls_name);
  return folders;
}

// What to open for a name without a folder: the name, unless it lies in a folder that is relative to the current one.
// Who can write there would choose the code that runs; then the first absolute folder that holds it counts, or nothing.
std::string trusted_path(const std::string& name) {
  bool in_current = false;
  std::string absolute;
  for (const std::string& folder : searched_folders()) {
    std::error_code ignored;
    const std::string path = folder + "/" + name;
    if (!std::filesystem::exists(path, ignored)) continue;
    if (!folder.starts_with('/')) in_current = true;
    if (folder.starts_with('/') && absolute.empty()) absolute = path;
  }
  return in_current ? absolute : name;
}

}  // namespace

std::optional<DynamicLibrary> DynamicLibrary::open(const std::string& name, Lifetime lifetime, std::string* failure) {
  const int keep = lifetime == Lifetime::process ? RTLD_NODELETE : 0;
  const std::string path = name.find('/') == std::string::npos ? trusted_path(name) : name;
  if (path.empty()) {
    if (failure != nullptr) *failure = name + ": lies in the current folder alone, which LD_LIBRARY_PATH names";
    return std::nullopt;
  }
  void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL | keep);
  if (handle != nullptr) return DynamicLibrary(handle, lifetime);
  if (failure != nullptr) {
    const char* reason = dlerror();
    *failure = reason != nullptr ? reason : name + ": cannot be opened";
  }
  return std::nullopt;
}

std::optional<DynamicLibrary> DynamicLibrary::find_loaded(const std::string& soname, Lifetime lifetime) {
  void* handle = dlopen(soname.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
  if (handle == nullptr) return std::nullopt;
  return DynamicLibrary(handle, lifetime);
}

DynamicLibrary::DynamicLibrary(DynamicLibrary&& other) noexcept
    : handle_(std::exchange(other.handle_, nullptr)), lifetime_(other.lifetime_) {}

DynamicLibrary& DynamicLibrary::operator=(DynamicLibrary&& other) noexcept {
  std::swap(handle_, other.handle_);
  std::swap(lifetime_, other.lifetime_);
  return *this;
}

DynamicLibrary::~DynamicLibrary() {
  if (handle_ != nullptr && lifetime_ == Lifetime::scoped) dlclose(handle_);
}

void* DynamicLibrary::address(const char* name) const { return dlsym(handle_, name); }

std::string file_of_address(const void* address) {
  Dl_info info{};
  if (dladdr(address, &info) == 0 || info.dli_fname == nullptr) return {};
  const std::unique_ptr<char, void (*)(void*)> resolved(realpath(info.dli_fname, nullptr), std::free);
  return resolved ? resolved.get() : info.dli_fname;
}

std::string build_id_of_address(const void* address) {
  BuildIdSearch search{reinterpret_cast<std::uintptr_t>(address), {}};
  dl_iterate_phdr(visit_object, &search);
  return search.build_id;
}

}  // namespace tenon::runtime

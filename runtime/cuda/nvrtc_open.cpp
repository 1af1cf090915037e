// Finds and opens NVRTC: turns an NvrtcSearch into candidate names, tries each in order, binds the first that works.
// Relies on the folder layouts of NVIDIA's wheels (nvidia/cu13/lib, nvidia/cuda_nvrtc/lib), of conda and of the
// toolkit.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>

#include "runtime/cuda/nvrtc.h"
#include "runtime/dynamic_library.h"
#include "tenon/error.h"

namespace tenon::runtime::cuda {
namespace {

namespace fs = std::filesystem;

constexpr const char* sonames[] = {"libnvrtc.so.13", "libnvrtc.so.12"};
constexpr const char* remedy =
    "install it with `pip install nvidia-cuda-nvrtc` (or nvidia-cuda-nvrtc-cu12) or the CUDA toolkit, or name the "
    "library in TENON_NVRTC_PATH";
constexpr auto forever = DynamicLibrary::Lifetime::process;

bool is_present(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

// Subfolders of `folder` whose name begins with `prefix`, in reverse order: the newest python first.
std::vector<fs::path> subfolders(const fs::path& folder, const std::string& prefix) {
  std::vector<fs::path> found;
  std::error_code failure;
  for (fs::directory_iterator entry(folder, failure), end; !failure && entry != end; entry.increment(failure)) {
    if (entry->path().filename().string().starts_with(prefix)) found.push_back(entry->path());
  }
  std::sort(found.rbegin(), found.rend());
  return found;
}

std::vector<fs::path> wheel_folders(const std::vector<std::string>& python_prefixes) {
  std::vector<fs::path> folders;
  for (const auto& prefix : python_prefixes) {
    for (const auto& python : subfolders(fs::path(prefix) / "lib", "python3")) {
      for (const char* packages : {"site-packages", "dist-packages"}) {
        folders.push_back(python / packages / "nvidia/cu13/lib");
        folders.push_back(python / packages / "nvidia/cuda_nvrtc/lib");
      }
    }
  }
  return folders;
}

void add_libraries_in(const fs::path& folder, std::vector<std::string>& candidates) {
  for (const char* soname : sonames) {
    if (is_present(folder / soname)) candidates.push_back((folder / soname).string());
  }
}

void add_libraries_below(const fs::path& root, std::vector<std::string>& candidates) {
  for (const char* folder : {"lib64", "lib", "targets/x86_64-linux/lib", "targets/sbsa-linux/lib"}) {
    add_libraries_in(root / folder, candidates);
  }
}

std::vector<std::string> candidates_before_loader(const NvrtcSearch& search) {
  std::vector<std::string> candidates;
  for (const auto& folder : search.extra_folders) add_libraries_in(folder, candidates);
  for (const auto& folder : wheel_folders(search.python_prefixes)) add_libraries_in(folder, candidates);
  if (!search.conda_prefix.empty()) add_libraries_below(search.conda_prefix, candidates);
  return candidates;
}

std::vector<std::string> candidates_after_loader(const NvrtcSearch& search) {
  std::vector<std::string> candidates;
  for (const auto& root : search.toolkit_folders) add_libraries_below(root, candidates);
  return candidates;
}

// Binds each entry point and remembers the first that is missing.
class Binder {
 public:
  explicit Binder(const DynamicLibrary& library) : library_(library) {}

  template <typename Function>
  void operator()(Function& function, const char* name) {
    function = library_.symbol<Function>(name);
    if (function == nullptr && missing_.empty()) missing_ = name;
  }
  const std::string& missing() const { return missing_; }

 private:
  const DynamicLibrary& library_;
  std::string missing_;
};

void bind_compiler(Binder& bind, Nvrtc& nvrtc) {
  bind(nvrtc.create_program, "nvrtcCreateProgram");
  bind(nvrtc.destroy_program, "nvrtcDestroyProgram");
  bind(nvrtc.compile_program, "nvrtcCompileProgram");
  bind(nvrtc.get_cubin_size, "nvrtcGetCUBINSize");
  bind(nvrtc.get_cubin, "nvrtcGetCUBIN");
  bind(nvrtc.get_ptx_size, "nvrtcGetPTXSize");
  bind(nvrtc.get_ptx, "nvrtcGetPTX");
  bind(nvrtc.get_program_log_size, "nvrtcGetProgramLogSize");
  bind(nvrtc.get_program_log, "nvrtcGetProgramLog");
  bind(nvrtc.get_error_string, "nvrtcGetErrorString");
}

// What tells one build of NVRTC from another; where the file has no build id, its size and time stand in.
std::string build_identity(const void* address, const std::string& path) {
  std::string id = build_id_of_address(address);
  if (!id.empty()) return id;
  std::error_code ignored;
  return fmt::format("size {} time {}", fs::file_size(path, ignored),
                     fs::last_write_time(path, ignored).time_since_epoch().count());
}

// The identity and entry points of an open library; `failure` says why there are none.
std::optional<Nvrtc> bind_library(const DynamicLibrary& library, std::string& failure) {
  Nvrtc nvrtc;
  Binder bind(library);
  int (*version)(int*, int*) = nullptr;
  int (*architecture_count)(int*) = nullptr;
  int (*architectures)(int*) = nullptr;
  bind(version, "nvrtcVersion");
  bind(architecture_count, "nvrtcGetNumSupportedArchs");
  bind(architectures, "nvrtcGetSupportedArchs");
  bind_compiler(bind, nvrtc);
  if (!bind.missing().empty()) {
    failure = "does not export " + bind.missing();
    return std::nullopt;
  }
  int count = 0;
  if (version(&nvrtc.major, &nvrtc.minor) != 0 || nvrtc.major < 12 || architecture_count(&count) != 0 || count <= 0) {
    failure = fmt::format("is version {}.{}; 12.0 or later is needed", nvrtc.major, nvrtc.minor);
    return std::nullopt;
  }
  nvrtc.architectures.resize(static_cast<std::size_t>(count));
  architectures(nvrtc.architectures.data());
  std::sort(nvrtc.architectures.begin(), nvrtc.architectures.end());
  const auto* inside = reinterpret_cast<const void*>(version);
  nvrtc.path = file_of_address(inside);
  nvrtc.build_id = build_identity(inside, nvrtc.path);
  return nvrtc;
}

// NVRTC asks the loader for "libnvrtc-builtins.so.13.0" at its first compile, and fails where that folder is not on the
// loader's path. One that is open already under that name is taken, so it is opened here from NVRTC's own folder.
void open_builtins(const Nvrtc& nvrtc) {
  const auto name = fmt::format("libnvrtc-builtins.so.{}.{}", nvrtc.major, nvrtc.minor);
  const auto beside = fs::path(nvrtc.path).parent_path() / name;
  if (is_present(beside)) (void)DynamicLibrary::open(beside.string(), forever);
}

class Finder {
 public:
  std::optional<Nvrtc> open(const std::string& candidate) {
    std::string failure;
    const auto library = DynamicLibrary::open(candidate, forever, &failure);
    return library ? bind(*library, candidate) : refuse(candidate, failure);
  }

  std::optional<Nvrtc> open_first(const std::vector<std::string>& candidates) {
    for (const auto& candidate : candidates) {
      if (auto nvrtc = open(candidate)) return nvrtc;
    }
    return std::nullopt;
  }

  std::optional<Nvrtc> already_loaded() {
    for (const char* soname : sonames) {
      const auto library = DynamicLibrary::find_loaded(soname, forever);
      if (!library) continue;
      if (auto nvrtc = bind(*library, fmt::format("{} (already loaded)", soname))) return nvrtc;
    }
    return std::nullopt;
  }

  const std::vector<NvrtcAttempt>& attempts() const { return attempts_; }

 private:
  std::optional<Nvrtc> bind(const DynamicLibrary& library, const std::string& where) {
    std::string failure;
    auto nvrtc = bind_library(library, failure);
    if (!nvrtc) return refuse(where, failure);
    open_builtins(*nvrtc);
    attempts_.push_back({where, "opened"});
    return nvrtc;
  }

  std::optional<Nvrtc> refuse(const std::string& where, const std::string& why) {
    attempts_.push_back({where, why});
    return std::nullopt;
  }

  std::vector<NvrtcAttempt> attempts_;
};

std::optional<Nvrtc> find(const NvrtcSearch& search, Finder& finder) {
  if (!search.path.empty()) {
    std::error_code ignored;
    if (!fs::is_directory(search.path, ignored)) return finder.open(search.path);
    std::vector<std::string> inside;
    add_libraries_in(search.path, inside);
    return finder.open_first(inside);
  }
  if (auto nvrtc = finder.already_loaded()) return nvrtc;
  if (auto nvrtc = finder.open_first(candidates_before_loader(search))) return nvrtc;
  if (auto nvrtc = finder.open_first({std::begin(sonames), std::end(sonames)})) return nvrtc;
  return finder.open_first(candidates_after_loader(search));
}

std::string not_found_message(const NvrtcSearch& search, const std::vector<NvrtcAttempt>& attempts) {
  std::string message = search.path.empty() ? "no usable NVRTC" : "no usable NVRTC at " + search.path;
  for (const auto& attempt : attempts) message += fmt::format("\n  tried {}: {}", attempt.where, attempt.outcome);
  return message;
}

// NVRTC takes some 10 MB for each compilation and frees them at its end. glibc would return them to the system and
// fault them in again for the next one, a sixth of a small kernel's time. It keeps as much as the largest block of its
// own that the process ever freed (mallopt(3), M_MMAP_THRESHOLD, which grows that way up to 32 MB): one block is freed.
void keep_freed_memory() {
#ifdef __GLIBC__
  void* volatile block = std::malloc(std::size_t{31} << 20);  // volatile: the pair is not to be optimised away
  std::free(block);
#endif
}

}  // namespace

std::shared_ptr<const Nvrtc> open_nvrtc(const NvrtcSearch& search, std::vector<NvrtcAttempt>* attempts) {
  Finder finder;
  auto nvrtc = find(search, finder);
  if (attempts != nullptr) *attempts = finder.attempts();
  if (!nvrtc) throw Error(ErrorKind::no_device, not_found_message(search, finder.attempts()), {}, remedy);
  keep_freed_memory();
  return std::make_shared<const Nvrtc>(std::move(*nvrtc));
}

}  // namespace tenon::runtime::cuda

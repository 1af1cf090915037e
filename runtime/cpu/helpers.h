// What generated code may call: SLEEF's vector routines, the C library's remainders, and a thread's scratch memory.
#pragma once

#include <span>

namespace tenon::runtime::cpu {

struct Helper {
  const char* name;
  void* address;
};

std::span<const Helper> helpers();

}  // namespace tenon::runtime::cpu

// What the C++ API says of a mistake: the whole message.
#pragma once

#include <functional>
#include <string>

#include "tenon/tenon.h"

namespace tenon {

/// The whole message of what `mistake` throws; the caller's `file` is "HERE" in it, its line is not shown.
inline std::string message_of(const std::string& file, const std::function<void()>& mistake) {
  std::string text = "no error";
  try {
    mistake();
  } catch (const Error& error) {
    text = error.what();
  }
  const std::size_t at = text.find(file);
  if (at == std::string::npos) return text;
  std::size_t end = at + file.size() + 1;
  while (end < text.size() && text[end] >= '0' && text[end] <= '9') ++end;
  return text.replace(at, end - at, "HERE");
}

}  // namespace tenon

#define MESSAGE_OF(expression) message_of(__FILE__, [&] { (void)(expression); })

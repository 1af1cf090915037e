// Variables of the environment: what each spelling sets, and that no other is taken for one.
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "tenon/tenon.h"

namespace tenon {
namespace {

// default_options() with one variable set, which is as it was afterwards.
Options options_with(const char* name, const std::string& value) {
  const char* old = std::getenv(name);
  const std::string before = old == nullptr ? "" : old;
  ::setenv(name, value.c_str(), 1);
  struct Restore {
    const char* name;
    const std::string* value;
    ~Restore() { value == nullptr ? ::unsetenv(name) : ::setenv(name, value->c_str(), 1); }
  } const restore{name, old == nullptr ? nullptr : &before};
  return default_options();
}

std::string refusal_of(const char* name, const std::string& value) {
  try {
    options_with(name, value);
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(Options, SwitchesTakeTheWordsForOnAndOff) {
  for (const char* on : {"1", "on", "true", "yes", "On", "TRUE"}) {
    EXPECT_TRUE(options_with("TENON_TUNE", on).tune) << on;
    EXPECT_TRUE(options_with("TENON_REPLAY", on).replay) << on;
    EXPECT_TRUE(options_with("TENON_CACHE", on).cache) << on;
  }
  for (const char* off : {"0", "off", "false", "no", "No"}) {
    EXPECT_FALSE(options_with("TENON_TUNE", off).tune) << off;
    EXPECT_FALSE(options_with("TENON_REPLAY", off).replay) << off;
    EXPECT_FALSE(options_with("TENON_CACHE", off).cache) << off;
  }
  EXPECT_FALSE(options_with("TENON_TUNE", "").tune);  // as if it were unset
  EXPECT_FALSE(options_with("TENON_REPLAY", "").replay);
  EXPECT_TRUE(options_with("TENON_CACHE", "").cache);
}

TEST(Options, AnotherWordIsAnErrorThatNamesTheVariable) {
  for (const char* name : {"TENON_TUNE", "TENON_REPLAY", "TENON_CACHE"})
    for (const char* value : {"maybe", "2", "-1", " 1", "0x1"})
      EXPECT_EQ(refusal_of(name, value), "argument error: " + std::string(name) + "='" + value +
                                             "' is not understood\n  help: " + name +
                                             " takes 1, on, true or yes, and 0, off, false or no");
}

TEST(Options, NumbersHaveBounds) {
  EXPECT_EQ(options_with("TENON_THREADS", "3").threads, 3);
  EXPECT_EQ(options_with("TENON_CACHE_BYTES", "5000000000").cache_bytes, 5000000000U);
  for (const char* value : {"-3", "4097", "99999999999", "many", "2 "})
    EXPECT_EQ(refusal_of("TENON_THREADS", value), "argument error: TENON_THREADS='" + std::string(value) +
                                                      "' is not understood\n  help: TENON_THREADS takes a whole number "
                                                      "from 0 to 4096");
  EXPECT_EQ(refusal_of("TENON_DEVICE", "-1"),
            "argument error: TENON_DEVICE='-1' is not understood\n  help: TENON_DEVICE takes a whole number from 0 to "
            "1024");
  EXPECT_EQ(refusal_of("TENON_CACHE_BYTES", "1G"),
            "argument error: TENON_CACHE_BYTES='1G' is not understood\n  help: TENON_CACHE_BYTES takes a whole number "
            "from 0 to 18446744073709551615");
}

TEST(Options, NamesAreThoseThatAreKnown) {
  EXPECT_EQ(options_with("TENON_DISABLE", "tuned,nvtx").disable, (std::set<std::string>{"tuned", "nvtx"}));
  EXPECT_NE(refusal_of("TENON_DISABLE", "tunde").find("did you mean 'tuned'?"), std::string::npos);
  EXPECT_EQ(refusal_of("TENON_PRINT", "kernels"),
            "argument error: 'kernels' is nothing that can be printed\n  help: did you mean 'kernel'? Options::print "
            "(TENON_PRINT) takes graph, plan, schedule, kernel, source");
}

}  // namespace
}  // namespace tenon

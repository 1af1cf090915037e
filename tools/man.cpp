// tenon man: the manual page, as roff, from the commands and options that there are.
#include <fmt/format.h>

#include "src/driver/pipeline.h"
#include "tenon_build.h"
#include "tools/command.h"

namespace tenon::tools {
namespace {

// Text as roff takes it: its own characters are escaped, and no line begins with a request.
std::string escaped(const std::string& text) {
  std::string result;
  for (const char c : text) {
    if ((c == '.' || c == '\'') && (result.empty() || result.back() == '\n')) result += "\\&";
    if (c == '-' || c == '\\') result += '\\';
    result += c == '\\' ? "e" : std::string(1, c);
  }
  return result;
}

std::string paragraph(const std::string& tag, const std::string& text) {
  return fmt::format(".TP\n\\fB{}\\fR\n{}\n", escaped(tag), escaped(text));
}

// "-o,--output TEXT": the names of an option, or of an argument that has none.
std::string names_of(const CLI::Option& option) {
  return option.get_positional() ? option.get_name(true) : option.get_name(false, true);
}

std::string default_of(const CLI::Option& option) {
  const std::string value = option.get_default_str();
  return value.empty() ? "" : fmt::format(" (default: {})", value);
}

// The section of a command, and of the commands below it.
std::string described(const CLI::App& command, const std::string& path) {
  std::string usage = path, options;
  for (const CLI::Option* option : command.get_options()) {
    if (option == command.get_help_ptr()) continue;
    if (option->get_positional())
      usage += fmt::format(fmt::runtime(option->get_required() ? " {}{}" : " [{}{}]"), option->get_name(),
                           option->get_expected_max() > 1 ? "…" : "");
    options += paragraph(names_of(*option), option->get_description() + default_of(*option));
  }
  const auto below = command.get_subcommands([](const CLI::App*) { return true; });
  std::string text;
  if (below.empty()) text = fmt::format(".SS {}\n{}.\n{}", escaped(usage), escaped(command.get_description()), options);
  for (const CLI::App* inner : below) text += described(*inner, path + " " + inner->get_name());
  return text;
}

std::string page(const CLI::App& app) {
  std::string text = fmt::format(
      ".TH TENON 1 \"\" \"tenon {}\" \"User Commands\"\n.SH NAME\ntenon \\- {}\n.SH SYNOPSIS\n\\fBtenon\\fR "
      "\\fICOMMAND\\fR [\\fIOPTIONS\\fR]\n.SH DESCRIPTION\n{}\n.SH COMMANDS\n",
      TENON_VERSION, escaped(app.get_description()), escaped(app.get_footer()));
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; }))
    text += described(*command, command->get_name());
  text += ".SH ENVIRONMENT\n";
  for (const EnvironmentVariable& variable : environment()) text += paragraph(variable.name, variable.doc);
  return text + ".SH SEE ALSO\nThe pages in share/doc/tenon; \\fBtenon COMMAND \\-\\-help\\fR.\n";
}

}  // namespace

void add_man(CLI::App& app, Action& action) {
  app.add_subcommand("man", "Print the manual page: tenon man | man -l -")->callback([&app, &action] {
    action = [&app] {
      print(page(app));
      return fine;
    };
  });
}

}  // namespace tenon::tools

// tenon completion: what a shell offers behind `tenon`, written from the commands and options that there are.
#include <fmt/format.h>

#include "tools/command.h"

namespace tenon::tools {
namespace {

using Commands = std::vector<const CLI::App*>;

Commands commands_of(const CLI::App& app) {
  return app.get_subcommands([](const CLI::App*) { return true; });
}

struct Flag {
  std::string name, description;  ///< "--target" or "-o"
  bool takes_value = false;
};

std::vector<Flag> flags_of(const CLI::App& command) {
  std::vector<Flag> flags;
  for (const CLI::Option* option : command.get_options()) {
    for (const std::string& name : option->get_snames())
      flags.push_back({"-" + name, option->get_description(), option->get_expected_max() > 0});
    for (const std::string& name : option->get_lnames())
      flags.push_back({"--" + name, option->get_description(), option->get_expected_max() > 0});
  }
  return flags;
}

// What may stand behind a command: its flags, and its own commands.
std::string words_of(const CLI::App& command) {
  std::string words;
  for (const CLI::App* below : commands_of(command)) words += (words.empty() ? "" : " ") + below->get_name();
  for (const Flag& flag : flags_of(command)) words += (words.empty() ? "" : " ") + flag.name;
  return words;
}

// Within single quotes of a shell, without what its completion takes for its own: brackets and colons.
std::string plain(const std::string& text) {
  std::string result;
  for (const char c : text)
    if (c == '\'')
      result += "'\\''";
    else
      result += c == '[' || c == ']' || c == ':' ? ' ' : c;
  return result;
}

std::string bash(const CLI::App& app) {
  std::string text =
      "_tenon() {\n  local words current=${COMP_WORDS[COMP_CWORD]}\n"
      "  case ${COMP_CWORD}:${COMP_WORDS[1]} in\n";
  text += fmt::format("    1:*) words='{} help' ;;\n", words_of(app));
  for (const CLI::App* command : commands_of(app))
    text += fmt::format("    *:{}) words='{}' ;;\n", command->get_name(), words_of(*command));
  return text +
         "    *) words='' ;;\n  esac\n  COMPREPLY=($(compgen -W \"$words\" -- \"$current\"))\n"
         "  [ ${COMP_CWORD} -gt 1 ] && [[ $current != -* ]] && COMPREPLY+=($(compgen -f -- \"$current\"))\n"
         "  return 0\n}\ncomplete -o filenames -F _tenon tenon\n";
}

std::string zsh(const CLI::App& app) {
  std::string text = "#compdef tenon\n_tenon() {\n  local -a commands=(\n";
  for (const CLI::App* command : commands_of(app))
    text += fmt::format("    '{}:{}'\n", command->get_name(), plain(command->get_description()));
  text += "  )\n  if (( CURRENT == 2 )); then\n    _describe command commands\n    return\n  fi\n  case $words[2] in\n";
  for (const CLI::App* command : commands_of(app)) {
    text += fmt::format("    {})\n      _arguments", command->get_name());
    for (const Flag& flag : flags_of(*command))
      text += fmt::format(" \\\n        '{}[{}]{}'", flag.name, plain(flag.description),
                          flag.takes_value ? ":value:_files" : "");
    text += " \\\n        '*:file:_files'\n      ;;\n";
  }
  return text + "  esac\n}\ncompdef _tenon tenon\n";
}

std::string fish(const CLI::App& app) {
  std::string text;
  for (const CLI::App* command : commands_of(app)) {
    text += fmt::format("complete -c tenon -n __fish_use_subcommand -a {} -d '{}'\n", command->get_name(),
                        plain(command->get_description()));
    for (const Flag& flag : flags_of(*command)) {
      const bool is_long = flag.name.starts_with("--");
      text += fmt::format("complete -c tenon -n '__fish_seen_subcommand_from {}' -{} {} -d '{}'{}\n",
                          command->get_name(), is_long ? "l" : "s", flag.name.substr(is_long ? 2 : 1),
                          plain(flag.description), flag.takes_value ? " -r" : "");
    }
  }
  return text;
}

int completion(const CLI::App& app, const std::string& shell) {
  if (shell == "bash") print(bash(app));
  if (shell == "zsh") print(zsh(app));
  if (shell == "fish") print(fish(app));
  return fine;
}

}  // namespace

void add_completion(CLI::App& app, Action& action) {
  const auto shell = std::make_shared<std::string>();
  CLI::App* command =
      app.add_subcommand("completion", "Print what a shell completes behind tenon: source <(tenon completion bash)");
  command->add_option("SHELL", *shell, "bash, zsh or fish")
      ->required()
      ->check(CLI::IsMember(std::vector<std::string>{"bash", "zsh", "fish"}));
  command->callback([shell, &app, &action] { action = [shell, &app] { return completion(app, *shell); }; });
}

}  // namespace tenon::tools

// One script per shell, all from the same tree. Each script finds the command
// that the words before the cursor name ("/cache/show"), then completes an option's value, an
// option or another word that the command takes.
#include "compiler/driver/command_tree.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

namespace cinch::driver {

namespace {

using Visitor = std::function<void(const CommandShape&, const std::string& path)>;

// `path` of the root is "".
void visit(const CommandShape& command, const std::string& path, const Visitor& visitor) {
  visitor(command, path);
  for (const CommandShape& inner : command.commands) {
    visit(inner, path + "/" + inner.name, visitor);
  }
}

std::string replaced(std::string text, const std::string& what, const std::string& with) {
  for (std::size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += with.size()) {
    text.replace(at, what.size(), with);
  }
  return text;
}

// In single quotes for bash and zsh.
std::string quoted(const std::string& text) {
  return "'" + replaced(text, "'", "'\\''") + "'";
}

std::string paths_of_commands(const CommandShape& root) {
  std::string paths;
  visit(root, "", [&](const CommandShape&, const std::string& path) {
    if (!path.empty()) paths += (paths.empty() ? "" : " | ") + path;
  });
  return paths;
}

// Words without dashes: sub-commands, and the values of positionals.
struct Operands {
  std::vector<std::string> words;
  bool takes_files = false;
};

Operands operands_of(const CommandShape& command) {
  Operands operands;
  for (const CommandShape& inner : command.commands) operands.words.push_back(inner.name);
  for (const OptionShape& option : command.options) {
    if (!option.names.empty()) continue;
    operands.words.insert(operands.words.end(), option.words.begin(), option.words.end());
    operands.takes_files |= option.takes_files;
  }
  return operands;
}

CommandShape names_alone(const CommandShape& command) {
  CommandShape names{command.name, command.description, {}, {}, {}};
  for (const CommandShape& inner : command.commands) names.commands.push_back(names_alone(inner));
  return names;
}

// `cinch help` takes names of commands as words, one after the other, as the command line does:
// they are presented as its sub-commands.
CommandShape with_commands_of_help(CommandShape root) {
  const std::vector<CommandShape> commands = root.commands;
  for (CommandShape& command : root.commands) {
    const auto takes_commands = [](const OptionShape& option) {
      return option.value_name == "COMMAND";
    };
    const auto option = std::ranges::find_if(command.options, takes_commands);
    if (option == command.options.end()) continue;
    for (const std::string& word : option->words) {
      const auto known = std::ranges::find(commands, word, &CommandShape::name);
      command.commands.push_back(known == commands.end() ? CommandShape{word, {}, {}, {}, {}}
                                                         : names_alone(*known));
    }
    command.options.erase(option);
  }
  return root;
}

// --- bash

std::string bash_assignments(const std::vector<std::string>& words, bool takes_files) {
  std::string text;
  if (!words.empty()) text += " words=" + quoted(fmt::format("{}", fmt::join(words, " ")));
  return text + (takes_files ? " files=yes" : "");
}

constexpr const char* kBash = R"(# Completion of cinch for bash, made by `cinch completion bash`.
_cinch() {{
  local current=${{COMP_WORDS[COMP_CWORD]}} option=${{COMP_WORDS[COMP_CWORD - 1]}}
  local path= words= files= name= is_value=yes i
  for ((i = 1; i < COMP_CWORD; i++)); do
    case "$path/${{COMP_WORDS[i]}}" in
    {paths}) path+=/${{COMP_WORDS[i]}} ;;
    esac
  done
  # bash makes three words of --option=value, and of name=value.
  i=1
  if [[ $current == = ]]; then
    current=
  elif [[ $option == = ]]; then
    i=2
    option=${{COMP_WORDS[COMP_CWORD - 2]}}
  fi
  if [[ ${{COMP_WORDS[COMP_CWORD - i + 1]}} == = && $option != -* ]]; then
    name=$option=
    option=${{COMP_WORDS[COMP_CWORD - i - 1]}}
    if [[ $option == = ]]; then option=${{COMP_WORDS[COMP_CWORD - i - 2]}}; fi
  fi
  case "$path $option" in
{values}    *) is_value= ;;
  esac
  if [[ -z $is_value && $current == -* ]]; then
    case $path in
{options}    esac
  elif [[ -z $is_value ]]; then
    case $path in
{operands}    esac
  fi
  mapfile -t COMPREPLY < <(
    compgen -W "$words" -- "$name$current"
    if [[ -n $files ]]; then compgen -f -- "$current"; fi
  )
  COMPREPLY=("${{COMPREPLY[@]#"$name"}}")
  if [[ -n $files ]]; then compopt -o filenames 2>/dev/null; fi
  if [[ ${{COMPREPLY[0]}} == *= ]]; then compopt -o nospace 2>/dev/null; fi
}}
complete -F _cinch cinch
)";

std::string bash_script(const CommandShape& root) {
  constexpr const char* kCase = "    {}){} ;;\n";
  std::string values, options, operands;
  visit(root, "", [&](const CommandShape& command, const std::string& path) {
    std::vector<std::string> names;
    for (const OptionShape& option : command.options) {
      names.insert(names.end(), option.names.begin(), option.names.end());
      if (option.value_name.empty()) continue;
      const std::string assignments = bash_assignments(option.words, option.takes_files);
      for (const std::string& name : option.names) {
        values += fmt::format(kCase, quoted(fmt::format("{} {}", path, name)), assignments);
      }
    }
    options += fmt::format(kCase, quoted(path), bash_assignments(names, false));
    const Operands given = operands_of(command);
    operands += fmt::format(kCase, quoted(path), bash_assignments(given.words, given.takes_files));
  });
  return fmt::format(kBash, fmt::arg("paths", paths_of_commands(root)), fmt::arg("values", values),
                     fmt::arg("options", options), fmt::arg("operands", operands));
}

// --- zsh: one function per command, each a call of _arguments.

std::string zsh_function(const std::string& path) {
  return "_cinch" + replaced(path, "/", "_");
}

// Names of parameters end with "=", after which the value follows without a blank.
std::string zsh_settings(const std::vector<std::string>& words) {
  std::string names, whole;
  for (const std::string& word : words) (word.ends_with('=') ? names : whole) += " " + word;
  return "{ compadd -S \"\" --" + names + "; compadd --" + whole + " }";
}

// "message:action" of _arguments.
std::string zsh_value(const OptionShape& option) {
  const std::string words = fmt::format("{}", fmt::join(option.words, " "));
  const bool has_settings = std::ranges::any_of(
      option.words, [](const std::string& word) { return word.ends_with('='); });
  const std::string action = option.words.empty() ? (option.takes_files ? "_files" : " ")
                             : option.takes_files ? "{ compadd -- " + words + "; _files }"
                             : has_settings       ? zsh_settings(option.words)
                                                  : "(" + words + ")";
  return replaced(option.value_name, ":", "\\:") + ":" + action;
}

// A list of values ends at the next option.
std::string zsh_option(const OptionShape& option, const std::string& name) {
  const std::string text = replaced(replaced(option.description, "[", "\\["), "]", "\\]");
  if (option.value_name.empty()) return name + "[" + text + "]";
  return fmt::format("{}{}{}[{}]:{}{}", option.is_repeatable ? "*" : "", name,
                     option.takes_several ? "" : "=", text, option.takes_several ? "*--*:" : "",
                     zsh_value(option));
}

std::string zsh_arguments(const CommandShape& command) {
  std::string specs;
  int place = 0;
  const auto add = [&](const std::string& spec) { specs += " \\\n    " + quoted(spec); };
  for (const OptionShape& option : command.options) {
    for (const std::string& name : option.names) add(zsh_option(option, name));
    if (!option.names.empty()) continue;
    add((option.is_repeatable ? "*" : std::to_string(++place)) + ":" + zsh_value(option));
  }
  return specs;
}

std::string zsh_commands(const CommandShape& command, const std::string& path) {
  std::string names, calls;
  for (const CommandShape& inner : command.commands) {
    names += "\n        " + quoted(inner.name + ":" + replaced(inner.description, ":", "\\:"));
    calls += fmt::format("\n        {}) {} ;;", inner.name, zsh_function(path + "/" + inner.name));
  }
  return fmt::format(R"(
  case $state in
    command)
      local -a commands
      commands=({}
      )
      _describe command commands
      ;;
    argument)
      case $words[1] in{}
      esac
      ;;
  esac
)",
                     names, calls);
}

std::string zsh_script(const CommandShape& root) {
  std::string text =
      "#compdef cinch\n# Completion of cinch for zsh, made by `cinch completion zsh`.\n";
  visit(root, "", [&](const CommandShape& command, const std::string& path) {
    const bool has_commands = !command.commands.empty();
    text += fmt::format("\n{}() {{\n", zsh_function(path));
    if (!has_commands && command.options.empty()) {
      text += "  return 1\n}\n";  // _arguments needs at least one
      return;
    }
    if (has_commands) text += "  local curcontext=$curcontext state line\n";
    text += std::string("  _arguments ") + (has_commands ? "-C" : "-s") + zsh_arguments(command);
    text += has_commands ? " \\\n    '1:command:->command' \\\n    '*::argument:->argument'" +
                               zsh_commands(command, path)
                         : "\n";
    text += "}\n";
  });
  return text + "\nif [[ $funcstack[1] == _cinch ]]; then\n  _cinch \"$@\"\nelse\n" +
         "  compdef _cinch cinch\nfi\n";
}

// --- fish: one line per option of a command.

std::string fish_quoted(const std::string& text) {
  return "'" + replaced(replaced(text, "\\", "\\\\"), "'", "\\'") + "'";
}

std::string fish_words(const std::vector<std::string>& words, bool takes_files) {
  std::string text = takes_files ? " -F" : "";
  if (!words.empty()) text += " -a " + fish_quoted(fmt::format("{}", fmt::join(words, " ")));
  return text;
}

std::string fish_option(const std::string& at, const OptionShape& option) {
  std::string text = at;
  for (const std::string& name : option.names) {
    text += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
  }
  if (!option.value_name.empty()) {
    text += (option.takes_files ? " -r" : " -x") + fish_words(option.words, option.takes_files);
  }
  return text + " -d " + fish_quoted(option.description) + "\n";
}

constexpr const char* kFish = R"(# Completion of cinch for fish, made by `cinch completion fish`.
function __cinch_at
    set -l path
    for word in (commandline -opc)[2..]
        if contains -- "$path/$word" {paths}
            set path "$path/$word"
        end
    end
    test "$path" = "$argv[1]"
end
complete -c cinch -f
)";

std::string fish_script(const CommandShape& root) {
  std::string text =
      fmt::format(kFish, fmt::arg("paths", replaced(paths_of_commands(root), " | ", " ")));
  visit(root, "", [&](const CommandShape& command, const std::string& path) {
    const std::string at = "complete -c cinch -n '__cinch_at \"" + path + "\"'";
    for (const CommandShape& inner : command.commands) {
      text += at + " -a " + inner.name + " -d " + fish_quoted(inner.description) + "\n";
    }
    for (const OptionShape& option : command.options) {
      text += option.names.empty() ? at + fish_words(option.words, option.takes_files) + "\n"
                                   : fish_option(at, option);
    }
  });
  return text;
}

}  // namespace

std::string completion_script(const CommandShape& root, const std::string& shell) {
  const CommandShape whole = with_commands_of_help(root);
  if (shell == "bash") return bash_script(whole);
  return shell == "zsh" ? zsh_script(whole) : fish_script(whole);
}

}  // namespace cinch::driver

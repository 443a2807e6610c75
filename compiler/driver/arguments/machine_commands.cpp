// Commands about what is installed, and for shells and editors.
#include <fmt/format.h>

#include <memory>

#include "compiler/driver/arguments/add_commands.h"
#include "compiler/driver/command_tree.h"
#include "compiler/driver/commands/commands.h"

namespace cinch::driver {

void add_list(Registry& registry) {
  auto list = std::make_shared<ListOptions>();
  list->words = registry.words;
  CLI::App* command =
      registry.add("list", "lists the standard library, or shows all about some of its compressors",
                   run_list, list);
  command
      ->add_option("names", list->names,
                   "compressors to show; without names, one line for each compressor")
      ->type_name("COMPRESSOR");
  command->add_option("--sort", list->sort, "sorts by family, by name, or by the bits of a payload")
      ->check(one_of({"family", "name", "bits"}))
      ->capture_default_str();
  add_json(command, list->json);
  command->footer("Example: cinch list topk error_feedback");
}

void add_doctor(Registry& registry) {
  auto doctor = std::make_shared<DoctorOptions>();
  CLI::App* command = registry.add(
      "doctor", "shows which compilers, GPUs and libraries this machine has, and where", run_doctor,
      doctor);
  add_json(command, doctor->json);
  command->footer("Example: cinch doctor");
}

void add_cache(Registry& registry) {
  CLI::App* cache = registry.app.add_subcommand(
      "cache", "shows, clears and fills the cache of compiled programs");
  cache->require_subcommand(1);
  Registry inner{*cache, registry.action, registry.words};
  auto options = std::make_shared<CacheOptions>();
  CLI::App* command =
      inner.add("show", "shows where the cache is and what it holds", run_cache_show, options);
  add_json(command, options->json);
  inner.add("clear", "removes all entries", run_cache_clear, options);
  inner.add("pack",
            "compresses the entries to a fifth, for a folder that others read (CINCH_CACHE_SHARED)",
            run_cache_pack, options);
  command = inner.add("warm", "compiles programs before they are needed", run_cache_warm, options);
  add_library_programs(command, *options);
  command
      ->add_option("--cpu,--target", options->targets,
                   "what to compile for: native, x86-64-v3, cpu:x86-64, cuda:sm_90, cuda:ptx and "
                   "others, separated by commas")
      ->type_name("TARGET")
      ->delimiter(',')
      ->allow_extra_args(false);
  inner
      .add("improve", "compiles again what was compiled quickly; Cinch starts it",
           run_cache_improve, options)
      ->group("");
  cache->footer(
      "Example: CINCH_CACHE_DIR=kernels cinch cache warm --cpu x86-64-v3 --target cuda:sm_90");
}

void add_lsp(Registry& registry) {
  auto options = std::make_shared<LspOptions>();
  CLI::App* command = registry.add(
      "lsp", "serves editors over standard input and output (Language Server Protocol)", run_lsp,
      options);
  add_headers(command, options->headers);
  // Some editors pass the transport, even if the server has only one.
  command->add_flag("--stdio", options->is_stdio,
                    "over standard input and output, as without this flag");
  command->footer("Example: cinch lsp -I include");
}

void add_completion(Registry& registry) {
  auto options = std::make_shared<CompletionOptions>();
  CLI::App* command =
      registry.app.add_subcommand("completion", "prints the completion script for a shell");
  command->add_option("shell", options->shell, "the shell that reads the script")
      ->required()
      ->check(one_of({"bash", "zsh", "fish"}));
  command->callback([root = &registry.app, action = &registry.action, options] {
    *action = [root, options] {
      fmt::print("{}", completion_script(shape_of(*root), options->shell));
      return ExitCode::Done;
    };
  });
  command->footer("Example: source <(cinch completion bash)");
}

}  // namespace cinch::driver

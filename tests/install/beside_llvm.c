/* beside_llvm LIBRARY: uses the LLVM of a shared library whose names all later libraries see,
 * compiles with Cinch, and uses that LLVM again. C11. */
#include <cinch.h>
#include <dlfcn.h>
#include <stdio.h>

static void* llvm;

static int use_llvm(void) {
  void* (*create)(void) = (void* (*)(void))dlsym(llvm, "LLVMContextCreate");
  void* (*module)(const char*, void*) =
      (void* (*)(const char*, void*))dlsym(llvm, "LLVMModuleCreateWithNameInContext");
  void (*initialize)(void) = (void (*)(void))dlsym(llvm, "LLVMInitializeX86Target");
  if (create == NULL || module == NULL || initialize == NULL) return 0;
  initialize();
  return module("theirs", create()) != NULL;
}

int main(int argc, char** argv) {
  llvm = argc > 1 ? dlopen(argv[1], RTLD_NOW | RTLD_GLOBAL) : NULL;
  if (llvm == NULL || !use_llvm()) return 2;
  cinch_error error = {.struct_size = sizeof error};
  cinch_compile_options options = {.struct_size = sizeof options, .program = "dgc"};
  cinch_program* program = NULL;
  if (cinch_program_compile(&options, &program, &error) != CINCH_OK) {
    fprintf(stderr, "%s\n", error.message);
    return 1;
  }
  cinch_program_release(program);
  return use_llvm() ? 0 : 2;
}

//===- Compiler.h - The compiler for C ----------------------------*- C -*-===//
//
// The compiler in a shared library, shardc-compiler.so, for programs that do
// not start a process: the module `shardc` of Python opens it. It exports the
// functions below, and nothing of LLVM and MLIR.
//
// Each function returns an object with its results, which the caller frees with
// `shardc_output_free`. Texts are borrowed from the object. Names and values of
// options are those of the command line, without dashes: {"partition",
// "cheapest"}, and "1" for a flag.
//
// Thread-safety: functions may be called at the same time. Nothing is global,
// but LLVM's own tables.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_C_COMPILER_H
#define SHARDC_C_COMPILER_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define SHARDC_COMPILER_API __attribute__((visibility("default")))

typedef struct shardc_output shardc_output;

/// An option by its name. Both are texts that end in a zero byte.
typedef struct shardc_option {
  const char *name;
  const char *value;
} shardc_option;

/// Bytes that are borrowed. They end in a zero byte, which does not count.
typedef struct shardc_bytes {
  const char *data;
  size_t size;
} shardc_bytes;

/// Compiles the text of a model; `name` stands for its file in places. With
/// `explain`, fix-its are searched for each collective.
SHARDC_COMPILER_API shardc_output *shardc_compile(const char *model,
                                                  size_t size, const char *name,
                                                  const shardc_option *options,
                                                  size_t num_options,
                                                  int32_t explain);

/// The report of a plan that has been compiled before.
SHARDC_COMPILER_API shardc_output *shardc_describe_plan(const char *plan,
                                                        size_t size);

/// Writes the model of a multi-layer perceptron, as shardc-gen does.
SHARDC_COMPILER_API shardc_output *
shardc_write_mlp(const shardc_option *options, size_t num_options);

/// The compile options, and those of `shardc_write_mlp`, as JSON: an object of
/// two lists, "compile" and "mlp". A compile option has a "name", a "type"
/// ("bool", "int", "float" or "str"), a placeholder "value", a "default" and a
/// "help".
SHARDC_COMPILER_API shardc_output *shardc_list_options(void);

/// An exit code of the command line: 0 if all is well (docs/CommandLine.md).
SHARDC_COMPILER_API int32_t shardc_output_code(const shardc_output *output);

/// The plan, the text of the model, or the list of options.
SHARDC_COMPILER_API shardc_bytes
shardc_output_bytes(const shardc_output *output);

/// The report of the plan: what `shardc-compile --json --explain` and `--json`
/// print, in one JSON object.
SHARDC_COMPILER_API shardc_bytes
shardc_output_report(const shardc_output *output);

/// Errors, warnings and remarks as the command line prints them.
SHARDC_COMPILER_API shardc_bytes
shardc_output_diagnostics(const shardc_output *output);

/// The same as a JSON list of objects with "severity", "file", "line",
/// "column", "text" and "notes", a list of such objects. A file "" and a line 0
/// stand for no place.
SHARDC_COMPILER_API shardc_bytes
shardc_output_messages(const shardc_output *output);

/// The explanation of the plan's communication, for people.
SHARDC_COMPILER_API shardc_bytes
shardc_output_explanation(const shardc_output *output);

SHARDC_COMPILER_API void shardc_output_free(shardc_output *output);

#ifdef __cplusplus
}
#endif

#endif // SHARDC_C_COMPILER_H

//===- Compiler.cpp - The compiler for C ----------------------------------===//

#include "shardc-c/Compiler.h"

#include "shardc/Driver/Compile.h"
#include "shardc/Driver/NamedOptions.h"
#include "shardc/Models/MlpOptions.h"
#include "shardc/Target/Plan/Report.h"

#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/raw_ostream.h"

using namespace shardc;

struct shardc_output {
  ExitCode code = ExitCode::Ok;
  std::string bytes, report, diagnostics, messages, explanation;
};

static llvm::json::Value toJson(const CompileMessage &message) {
  llvm::json::Array notes;
  for (const CompileMessage &note : message.notes)
    notes.push_back(toJson(note));
  return llvm::json::Object{{"severity", toString(message.severity)},
                            {"file", llvm::json::fixUTF8(message.file)},
                            {"line", message.line},
                            {"column", message.column},
                            {"text", llvm::json::fixUTF8(message.text)},
                            {"notes", std::move(notes)}};
}

static std::string print(llvm::json::Value value) {
  return llvm::formatv("{0}", value).str();
}

static void setMessages(const std::vector<CompileMessage> &messages,
                        shardc_output &output) {
  llvm::json::Array list;
  for (const CompileMessage &message : messages)
    list.push_back(toJson(message));
  output.messages = print(std::move(list));
}

/// Makes `output` the error `text`, without a place.
static void fail(ExitCode code, const std::string &text,
                 shardc_output &output) {
  CompileMessage message;
  message.text = text;
  output.code = code;
  output.diagnostics = "error: " + text + "\n";
  setMessages({message}, output);
}

/// Adds the reports of the plan in `output`.
static void addReports(llvm::json::Object given, shardc_output &output) {
  ReportKinds kinds;
  kinds.communication = kinds.memory = kinds.shardings = true;
  // The text of an explanation, and its list in JSON, where the plan has one.
  if (llvm::Expected<Explanation> found = readExplanation(output.bytes)) {
    kinds.explanation = true;
  } else {
    llvm::consumeError(found.takeError());
  }
  llvm::raw_string_ostream json(output.report), text(output.explanation);
  llvm::Error error =
      printJsonReports(output.bytes, kinds, std::move(given), json);
  if (!error && kinds.explanation) {
    ReportKinds alone;
    alone.explanation = true;
    error = printReports(output.bytes, alone, text);
  }
  if (error)
    fail(ExitCode::InvalidInput, llvm::toString(std::move(error)), output);
}

static NamedOptions toNamed(const shardc_option *options, size_t number) {
  NamedOptions named;
  for (size_t i = 0; i < number; ++i)
    named.emplace_back(options[i].name, options[i].value);
  return named;
}

shardc_output *shardc_compile(const char *model, size_t size, const char *name,
                              const shardc_option *named, size_t number,
                              int32_t explain) {
  auto *output = new shardc_output;
  CompileOptions options;
  std::vector<const CompileOption *> given;
  std::string error = setOptions(toNamed(named, number), options, given);
  if (error.empty())
    error = checkOptions(options);
  if (error.empty())
    error = checkOutputs({{"the model", name}}, {}, options);
  if (!error.empty()) {
    fail(ExitCode::Usage, error, *output);
    return output;
  }
  options.findFixIts = explain != 0;
  options.compareCheapest = true;
  CompileResult result = compileSource(std::string(model, size), name, options);
  output->code = result.code;
  output->bytes = std::move(result.plan);
  output->diagnostics = std::move(result.diagnostics);
  setMessages(result.messages, *output);
  if (output->code == ExitCode::Ok)
    addReports(toJson(given, options), *output);
  return output;
}

shardc_output *shardc_describe_plan(const char *plan, size_t size) {
  auto *output = new shardc_output;
  output->bytes.assign(plan, size);
  setMessages({}, *output);
  addReports({}, *output);
  return output;
}

shardc_output *shardc_write_mlp(const shardc_option *named, size_t number) {
  auto *output = new shardc_output;
  setMessages({}, *output);
  MlpSpec spec;
  std::string error;
  for (const auto &[name, value] : toNamed(named, number))
    if (error.empty())
      error = setMlpOption(name, value, spec);
  if (error.empty())
    error = checkMlp(spec);
  if (error.empty())
    output->bytes = printMlp(spec);
  else
    fail(ExitCode::Usage, error, *output);
  return output;
}

shardc_output *shardc_list_options(void) {
  const char *const types[] = {"bool", "int", "float", "str"};
  llvm::json::Array compile, mlp;
  for (const CompileOption &option : getCompileOptions())
    compile.push_back(llvm::json::Object{{"name", option.name},
                                         {"type", types[option.member.index()]},
                                         {"value", option.value},
                                         {"default", describeDefault(option)},
                                         {"help", option.help}});
  for (const std::string &name : getMlpOptionNames())
    mlp.push_back(name);
  auto *output = new shardc_output;
  setMessages({}, *output);
  output->bytes = print(llvm::json::Object{{"compile", std::move(compile)},
                                           {"mlp", std::move(mlp)}});
  return output;
}

int32_t shardc_output_code(const shardc_output *output) {
  return static_cast<int32_t>(output->code);
}

static shardc_bytes borrow(const std::string &text) {
  return {text.c_str(), text.size()};
}

shardc_bytes shardc_output_bytes(const shardc_output *output) {
  return borrow(output->bytes);
}

shardc_bytes shardc_output_report(const shardc_output *output) {
  return borrow(output->report);
}

shardc_bytes shardc_output_diagnostics(const shardc_output *output) {
  return borrow(output->diagnostics);
}

shardc_bytes shardc_output_messages(const shardc_output *output) {
  return borrow(output->messages);
}

shardc_bytes shardc_output_explanation(const shardc_output *output) {
  return borrow(output->explanation);
}

void shardc_output_free(shardc_output *output) { delete output; }

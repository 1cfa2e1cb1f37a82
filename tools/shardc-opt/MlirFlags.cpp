//===- MlirFlags.cpp - The flags that shardc-opt shares with mlir-opt -----===//

#include "MlirFlags.h"

#include "shardc/Support/CaptureStream.h"
#include "shardc/Support/Printable.h"
#include "shardc/Support/Suggest.h"

#include "mlir/IR/AsmState.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Support/Timing.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Regex.h"

#include <unistd.h>

using namespace mlir;
using namespace shardc;
namespace cl = llvm::cl;

/// The flags that MLIR registers and shardc-opt has.
static const struct {
  const char *name, *help;
} mlirFlags[] = {
    {"pass-pipeline",
     "Run these passes: builtin.module(PASS{OPTION=VALUE ...},...)"},
    {"mlir-disable-threading", "Run on one thread"},
    {"mlir-elide-elementsattrs-if-larger",
     "Print constants of more elements as \"...\""},
    {"mlir-print-debuginfo", "Print locations"},
    {"mlir-print-ir-after", "Print the IR after these passes: PASS,..."},
    {"mlir-print-ir-after-all", "Print the IR after every pass"},
    {"mlir-print-ir-after-change",
     "Print the IR after a pass only if the pass changed it"},
    {"mlir-print-ir-after-failure",
     "Print the IR after a pass only if the pass failed"},
    {"mlir-print-ir-before", "Print the IR before these passes: PASS,..."},
    {"mlir-print-ir-before-all", "Print the IR before every pass"},
    {"mlir-print-ir-module-scope",
     "Print the whole module around passes; with --mlir-disable-threading"},
    {"mlir-print-local-scope", "Print attributes in full in place of aliases"},
    {"mlir-print-op-generic", "Print ops in the generic form"},
    {"mlir-print-op-on-diagnostic", "Print the op with its diagnostic"},
    {"mlir-print-stacktrace-on-diagnostic",
     "Print the stack trace with a diagnostic"},
    {"mlir-print-value-users", "Print the users of values as comments"},
    {"mlir-timing", "Print the time that each pass takes"},
};

/// MLIR's registrations; the flags among them that `mlirFlags` lacks stay
/// without the category of the tool, which makes them unknown.
static void registerMlirFlags(cl::OptionCategory &category) {
  registerAsmPrinterCLOptions();
  registerMLIRContextCLOptions();
  registerPassManagerCLOptions();
  registerDefaultTimingManagerCLOptions();
  const llvm::StringMap<cl::Option *> &options = cl::getRegisteredOptions();
  for (const auto &flag : mlirFlags)
    if (cl::Option *option = options.lookup(flag.name)) {
      option->setDescription(flag.help);
      option->setHiddenFlag(cl::NotHidden);
      option->addCategory(category);
    }
  // The op of an error of the module is the whole text.
  static_cast<cl::opt<bool> *>(options.lookup("mlir-print-op-on-diagnostic"))
      ->setInitialValue(false);
  // One option has the names of all passes.
  options.lookup("cse")->addCategory(category);
}

MlirFlags::MlirFlags(cl::OptionCategory &category)
    : passes("", "Passes to run, in this order"),
      splitInput("split-input-file", cl::cat(category),
                 cl::desc("Take the parts of the input between lines of "
                          "// ----- each for itself")),
      verifyDiagnostics("verify-diagnostics", cl::cat(category),
                        cl::desc("Compare the diagnostics with the comments "
                                 "expected-error and so on of the input")),
      verifyEach("verify-each", cl::cat(category), cl::init(true),
                 cl::desc("Verify the IR after every pass (default: true)")),
      allowUnregistered("allow-unregistered-dialect", cl::cat(category),
                        cl::desc("Accept ops of unknown dialects")),
      dumpPipeline("dump-pass-pipeline", cl::cat(category),
                   cl::desc("Print the passes that will run to standard "
                            "error")) {
  registerMlirFlags(category);
}

/// An error if `text` holds control characters, or brackets or quotes that are
/// not closed, at some of which MLIR's parser of lists never ends.
static std::string checkText(StringRef text) {
  std::string open;
  for (size_t i = 0; i < text.size();) {
    size_t bytes = getCharacterBytes(text.substr(i));
    if (bytes == 0)
      return "'" + text.str() + "' is not text";
    char c = text[i];
    i += bytes;
    bool isInQuotes =
        !open.empty() && (open.back() == '\'' || open.back() == '"');
    if (!open.empty() && c == open.back())
      open.pop_back();
    else if (isInQuotes)
      continue;
    else if (c == '\'' || c == '"')
      open += c;
    else if (c == '{' || c == '[')
      open += c + 2; // The closing one in ASCII.
    else if (c == '(')
      open += ')';
    else if (c == ')' || c == ']' || c == '}')
      return std::string("'") + c + "' closes nothing in '" + text.str() + "'";
  }
  return open.empty() ? ""
                      : std::string("expected '") + open.back() +
                            "' at the end of '" + text.str() + "'";
}

static std::vector<std::string> getPassNames() {
  std::vector<std::string> names;
  for (const auto &entry : cl::getRegisteredOptions())
    if (PassInfo::lookup(entry.first()))
      names.push_back(entry.first().str());
  llvm::sort(names);
  return names;
}

/// The names of the options of a pass.
static std::vector<std::string> getOptionNames(const PassInfo &pass) {
  OpPassManager manager;
  std::vector<std::string> names;
  auto ignore = [](const Twine &) { return failure(); };
  if (failed(pass.addToPipeline(manager, "", ignore)))
    return names;
  // any(PASS{OPTION=VALUE OPTION=VALUE})
  std::string text;
  llvm::raw_string_ostream os(text);
  manager.printAsTextualPipeline(os);
  llvm::Regex option("[{ ]([a-z-]+)=");
  StringRef rest = text;
  for (SmallVector<StringRef> found; option.match(rest, &found);) {
    names.push_back(found[1].str());
    rest = rest.drop_front(found[0].end() - rest.begin());
  }
  return names;
}

/// An error in the options of `pass`, found in the texts of LLVM and MLIR; the
/// first line of `text` if it is none of them.
static std::string reword(StringRef text, const PassInfo *pass) {
  SmallVector<StringRef> found;
  auto matches = [&](const char *pattern) {
    return llvm::Regex(pattern, llvm::Regex::Newline).match(text, &found);
  };
  if (matches("'(.*)' does not refer to a registered pass"))
    return "unknown pass '" + found[1].str() + "'" +
           suggest(found[1].str(), getPassNames());
  if (matches("Pass-Options-Parser>: no such option (.*)")) {
    std::vector<std::string> names;
    if (pass)
      names = getOptionNames(*pass);
    return "unknown option '" + found[1].str() + "'" +
           (names.empty() ? "; expected none" : suggest(found[1].str(), names));
  }
  if (matches("for the --(.*) option: requires a value"))
    return found[1].str() + ": expected a value, found none";
  static const struct {
    const char *phrase, *words;
  } kinds[] = {{"value invalid for floating point", "is not a number"},
               {"value invalid for", "is not an integer of 64 bits"},
               {"is invalid value for boolean", "is not true or false"}};
  for (const auto &kind : kinds)
    if (matches(("for the --(.*) option: ('.*') " + std::string(kind.phrase))
                    .c_str()))
      return (found[1] + ": " + found[2] + " " + kind.words).str();
  if (matches("for the --(.*) option: Cannot find option named ('.*')"))
    return (found[1] + ": unknown value " + found[2]).str();
  if (matches("Can't add pass .* restricted to ('.*') on a PassManager "
              "intended to run on ('[^']*')"))
    return ("runs on " + found[1] + ", not on " + found[2]).str();
  if (matches("Parser:[0-9]+:[0-9]+: error: (.*)"))
    return found[1].str();
  return text.trim().split('\n').first.str();
}

/// The error of `add`, which adds passes to a manager and writes errors to the
/// stream that it gets, and to standard error; "" if there is none.
static std::string
tryToAdd(llvm::function_ref<LogicalResult(llvm::raw_ostream &)> add,
         const PassInfo *pass) {
  std::string text;
  LogicalResult result = success();
  std::string printed = captureStream(STDERR_FILENO, [&] {
    llvm::raw_string_ostream os(text);
    result = add(os);
  });
  if (succeeded(result))
    return "";
  text = printed + text;
  // MLIR names the pass of a pipeline behind the error.
  SmallVector<StringRef> found;
  std::string name;
  if (!pass &&
      llvm::Regex("failed to add `([^`]*)` with").match(text, &found)) {
    pass = PassInfo::lookup(found[1]);
    name = found[1].str() + ": ";
  }
  return name + reword(text, pass);
}

/// The error in the options of a pass, or "".
static std::string checkPass(const PassInfo &pass, StringRef options) {
  if (std::string error = checkText(options); !error.empty())
    return error;
  return tryToAdd(
      [&](llvm::raw_ostream &os) {
        OpPassManager manager;
        return pass.addToPipeline(manager, options, [&](const Twine &error) {
          os << error;
          return failure();
        });
      },
      &pass);
}

/// The error in --pass-pipeline, or "".
static std::string checkPipeline(StringRef pipeline) {
  if (std::string error = checkText(pipeline); !error.empty())
    return error;
  StringRef passes = pipeline.trim();
  if (!(passes.consume_front("builtin.module(") ||
        passes.consume_front("any(")) ||
      !passes.consume_back(")"))
    return "expected builtin.module(PASS,...), found '" + pipeline.str() + "'";
  return tryToAdd(
      [&](llvm::raw_ostream &os) {
        OpPassManager manager(ModuleOp::getOperationName());
        return parsePassPipeline(passes, manager, os);
      },
      nullptr);
}

/// The first of the names between commas that is no pass, as an error, or "".
static std::string checkPassNames(StringRef names) {
  if (names.empty())
    return "expected names of passes, found none";
  SmallVector<StringRef> parts;
  names.split(parts, ',');
  for (StringRef name : parts)
    if (!PassInfo::lookup(name))
      return "unknown pass '" + name.str() + "'" +
             suggest(name.str(), getPassNames());
  return "";
}

std::string MlirFlags::checkValue(StringRef flag, StringRef value) const {
  std::string error;
  unsigned number;
  if (const PassInfo *pass = PassInfo::lookup(flag))
    error = checkPass(*pass, value);
  else if (flag == "pass-pipeline")
    error = checkPipeline(value);
  else if (flag == "mlir-print-ir-after" || flag == "mlir-print-ir-before")
    error = checkPassNames(value);
  else if (flag == "mlir-elide-elementsattrs-if-larger" &&
           value.getAsInteger(10, number))
    error = "'" + value.str() + "' is not an integer from 0 to 4294967295";
  return error.empty() ? "" : "--" + flag.str() + ": " + error;
}

std::string MlirFlags::check() const {
  const llvm::StringMap<cl::Option *> &options = cl::getRegisteredOptions();
  auto isGiven = [&](StringRef flag) {
    return options.lookup(flag)->getNumOccurrences() > 0;
  };
  if (isGiven("pass-pipeline") && isGiven("cse"))
    return "--pass-pipeline: expected no flags of passes beside it";
  if (isGiven("mlir-print-ir-module-scope") &&
      !isGiven("mlir-disable-threading"))
    return "--mlir-print-ir-module-scope: expected --mlir-disable-threading "
           "beside it";
  return "";
}

MlirOptMainConfig MlirFlags::getConfig() const {
  MlirOptMainConfig config;
  if (splitInput)
    config.splitInputFile();
  return config.verifyDiagnostics(verifyDiagnostics)
      .verifyPasses(verifyEach)
      .allowUnregisteredDialects(allowUnregistered);
}

LogicalResult MlirFlags::addPasses(PassManager &manager) const {
  auto fail = [&](const Twine &message) -> LogicalResult {
    return emitError(UnknownLoc::get(manager.getContext())) << message;
  };
  if (failed(passes.addToPipeline(manager, fail)))
    return failure();
  if (dumpPipeline) {
    manager.printAsTextualPipeline(llvm::errs());
    llvm::errs() << '\n';
  }
  return success();
}

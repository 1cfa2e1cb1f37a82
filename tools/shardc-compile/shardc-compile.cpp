//===- shardc-compile.cpp - From a model to a plan ------------------------===//
//
// Compiles a model file, writes the plan, and reports its costs. Given a plan,
// it reports on that.
//
//===----------------------------------------------------------------------===//

#include "shardc/Driver/CommandLine.h"
#include "shardc/Driver/Compile.h"
#include "shardc/Driver/DebugOnly.h"
#include "shardc/Driver/NamedOptions.h"
#include "shardc/Report/ExplanationDiff.h"
#include "shardc/Report/Html/HtmlReport.h"
#include "shardc/Support/Arguments.h"
#include "shardc/Support/InputBytes.h"
#include "shardc/Support/JsonReader.h"
#include "shardc/Support/Printable.h"
#include "shardc/Support/ReadFile.h"
#include "shardc/Support/Suggest.h"
#include "shardc/Support/WriteErrors.h"
#include "shardc/Support/WriteFile.h"
#include "shardc/Target/CUDA/AssemblePtx.h"
#include "shardc/Target/Plan/Report.h"

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/MemoryBuffer.h"

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <malloc.h>

using namespace shardc;
namespace cl = llvm::cl;

static cl::OptionCategory category("shardc-compile options");

static cl::opt<std::string> input(cl::Positional, cl::cat(category),
                                  cl::init("-"),
                                  cl::desc("<model.mlir or plan.shardc>"));
static cl::opt<std::string>
    output("o", cl::cat(category), cl::value_desc("file"),
           cl::desc("File for the plan, or for the IR "
                    "with --compile-to, or for the page "
                    "with --report=html"));
static cl::list<std::string> reports("report", cl::CommaSeparated,
                                     cl::cat(category),
                                     cl::value_desc("comm,pipeline,memory,"
                                                    "shardings,html"),
                                     cl::desc("Reports on standard output; "
                                              "html is a page, written to -o"));
static cl::opt<std::string> svg(
    "svg", cl::cat(category), cl::value_desc("directory"),
    cl::desc("With --report=shardings: also write pictures of the mesh, the "
             "tensors and their moves into this directory"));
static cl::opt<std::string>
    metrics("metrics", cl::cat(category), cl::value_desc("file"),
            cl::desc("With --report=html: also show the metrics of a run, as "
                     "shardc-run --metrics writes them"));
static cl::opt<std::string>
    trace("trace", cl::cat(category), cl::value_desc("file"),
          cl::desc("With --report=html: also lay the trace of a run over the "
                   "estimates, as shardc-run --trace writes it"));
static cl::opt<bool> json("json", cl::cat(category),
                          cl::desc("Report as one JSON object"));
static cl::opt<bool>
    explain("explain", cl::cat(category),
            cl::desc("Print the cause of each collective, and a fix-it that "
                     "removes it"));
static cl::opt<std::string> explainDiff(
    "explain-diff", cl::cat(category), cl::value_desc("other"),
    cl::desc("Compare the communication with that of another model, "
             "compiled with the same options, or of a plan"));
static cl::opt<std::string>
    compileTo("compile-to", cl::cat(category), cl::value_desc("phase"),
              cl::desc("Stop after this phase and write the IR"));

static cl::opt<std::string>
    compileFrom("compile-from", cl::cat(category), cl::value_desc("phase"),
                cl::desc("The input is IR of this phase, as --compile-to "
                         "writes it"));
static cl::opt<std::string>
    ptxas("ptxas", cl::cat(category), cl::value_desc("file"),
          cl::desc("NVIDIA's assembler, which adds machine code to plans for "
                   "GPUs; empty for none (default: SHARDC_PTXAS, else ptxas if "
                   "it is there)"));

static int fail(ExitCode code, const std::string &message) {
  llvm::errs() << "shardc-compile: error: " << makePrintable(message) << '\n';
  return static_cast<int>(code);
}

/// Prints the diagnostics of the compiler.
static void printDiagnostics(const std::string &diagnostics) {
  bool hasPlace = !llvm::StringRef(diagnostics).starts_with("error: ");
  llvm::errs() << (hasPlace ? "" : "shardc-compile: ")
               << makePrintable(diagnostics);
}

/// Whether --report=html is given: a page, beside the reports on standard
/// output.
static bool wantsPage() { return llvm::is_contained(reports, "html"); }

/// Reads --report into `kinds`; returns an error, or "". With --json and no
/// report of text everything is reported.
static std::string readReports(ReportKinds &kinds) {
  for (const std::string &name : reports) {
    if (name == "comm")
      kinds.communication = true;
    else if (name == "pipeline")
      kinds.pipeline = true;
    else if (name == "memory")
      kinds.memory = true;
    else if (name == "shardings")
      kinds.shardings = true;
    else if (name != "html")
      return "--report: unknown report '" + name + "'" +
             suggest(name, {"comm", "pipeline", "memory", "shardings", "html"});
  }
  kinds.explanation = explain;
  if (reports.size() == size_t(wantsPage()) && json && !explain)
    kinds = {true, true, true};
  if (wantsPage() && output.empty())
    return "--report=html is a file: expected -o FILE beside it";
  if (!metrics.empty() && !wantsPage())
    return "--metrics is shown on a page: expected --report=html beside it";
  if (!trace.empty() && !wantsPage())
    return "--trace is shown on a page: expected --report=html beside it";
  if (!svg.empty() && !kinds.shardings)
    return "--svg writes pictures of shardings: expected --report=shardings "
           "beside it";
  if (!explainDiff.empty() && (explain || !reports.empty()))
    return "--explain-diff is a report of its own: expected no --report and no "
           "--explain beside it";
  return "";
}

/// Writes an output; returns the exit code.
static int writeOutput(const std::string &path, llvm::StringRef bytes) {
  std::string message = writeFile(path, bytes);
  return message.empty() ? 0 : fail(ExitCode::Usage, message);
}

/// The records of the file of `shardc-run --metrics`, a JSON object on each
/// line.
static llvm::Expected<llvm::json::Array> readMetrics(const std::string &path) {
  auto buffer = readFile(path);
  if (!buffer)
    return buffer.takeError();
  llvm::json::Array records;
  llvm::SmallVector<llvm::StringRef> lines;
  (*buffer)->getBuffer().split(lines, '\n');
  for (auto [number, line] : llvm::enumerate(lines)) {
    if (line.trim().empty())
      continue;
    std::string place = path + ":" + std::to_string(number + 1);
    llvm::Expected<llvm::json::Value> record = parseJson(line, place);
    if (!record)
      return record.takeError();
    const llvm::json::Object *object = record->getAsObject();
    if (!object || !std::isfinite(object->getNumber("step").value_or(NAN)))
      return llvm::createStringError(
          place + ": expected an object with the number 'step', as "
                  "shardc-run --metrics writes");
    for (const auto &[field, value] : *object)
      if (!value.getAsNumber() && !value.getAsNull())
        return llvm::createStringError(place + ": '" + field.str() +
                                       "': expected a number, or null where it "
                                       "is not finite");
    records.push_back(std::move(*record));
  }
  if (records.empty())
    return llvm::createStringError("'" + path + "' has no metrics");
  return records;
}

/// All reports of the plan in `bytes`, and its explanation, if it holds one.
static llvm::Expected<llvm::json::Object>
getAllReports(llvm::StringRef bytes, llvm::json::Object given,
              std::optional<Explanation> &explanation) {
  ReportKinds kinds{true, true, true, false, true};
  llvm::Expected<llvm::json::Object> report =
      getJsonReports(bytes, kinds, std::move(given));
  if (!report)
    return report;
  if (llvm::Expected<Explanation> read = readExplanation(bytes))
    explanation = std::move(*read);
  else
    llvm::consumeError(read.takeError());
  return report;
}

/// Whether the file is a plan: by its name, or by its first bytes. A pipe can
/// be read once, by the compiler.
static bool isPlan(const std::string &path) {
  if (llvm::StringRef(path).ends_with(".shardc"))
    return true;
  if (!llvm::sys::fs::is_regular_file(path))
    return false;
  char bytes[8] = {};
  std::ifstream file(path, std::ios::binary);
  return file.read(bytes, sizeof bytes) &&
         beginsAsPlan(llvm::StringRef(bytes, sizeof bytes));
}

/// The memory of the same model with other choices, where it has them: weights
/// gathered again or not, nothing recomputed, one microbatch. Needs a file that
/// can be read again. What does not compile is no choice.
static std::vector<OtherPlan> compileOthers(const std::string &path,
                                            const CompileOptions &options,
                                            const llvm::json::Object &report) {
  if (path == "-" || isPlan(path) || report.getObject("pipeline"))
    return {};
  std::vector<std::pair<std::string, CompileOptions>> choices;
  auto add = [&](const std::string &name) -> CompileOptions & {
    CompileOptions &changed = choices.emplace_back(name, options).second;
    changed.findFixIts = changed.compareCheapest = false;
    changed.ignoreExpectations = true;
    changed.deviceMemory = 0;
    // Its memory is shown: code for one CPU is enough.
    if (changed.target == "cpu")
      changed.target = "cpu:x86-64-v3";
    return changed;
  };
  if (report.getObject("regather"))
    add(options.regather ? "without --regather" : "with --regather").regather =
        !options.regather;
  if (report.getObject("recompute"))
    add("without --recompute").recompute = "none";
  if (options.microbatches != 1)
    add("with --microbatches=1").microbatches = 1;
  std::vector<OtherPlan> others;
  for (const auto &[name, changed] : choices) {
    CompileResult result = compileFile(path, changed);
    if (result.code != ExitCode::Ok)
      continue;
    ReportKinds kinds;
    kinds.memory = true;
    llvm::Expected<llvm::json::Object> other =
        getJsonReports(result.plan, kinds, {});
    if (!other)
      llvm::consumeError(other.takeError());
    else if (*other->get("memory") != *report.get("memory"))
      others.push_back({name, std::move(*other)});
  }
  return others;
}

/// What is known of a run of the plan, for the page.
struct RunFiles {
  std::optional<llvm::json::Array> metrics;
  std::optional<RunTrace> trace;
  /// Of `trace`.
  std::string tracePath;
};

/// Reads --metrics and --trace.
static llvm::Expected<RunFiles> readRunFiles() {
  RunFiles files;
  files.tracePath = trace;
  if (!metrics.empty()) {
    llvm::Expected<llvm::json::Array> read = readMetrics(metrics);
    if (!read)
      return read.takeError();
    files.metrics = std::move(*read);
  }
  if (!trace.empty()) {
    llvm::Expected<RunTrace> read = readRunTrace(trace);
    if (!read)
      return read.takeError();
    files.trace = std::move(*read);
  }
  return files;
}

/// Writes the page and the pictures that were asked for, of the plan in
/// `bytes`.
static int writePictures(llvm::StringRef bytes, const std::string &inputPath,
                         const std::string &page, const std::string &folder,
                         const RunFiles &run, llvm::json::Object given,
                         const CompileOptions &options) {
  std::optional<Explanation> explanation;
  llvm::Expected<llvm::json::Object> report =
      getAllReports(bytes, std::move(given), explanation);
  if (!report)
    return fail(ExitCode::InvalidInput,
                inputPath + ": " + llvm::toString(report.takeError()));
  if (run.trace)
    if (std::string error = checkPlanOf(*run.trace, *report); !error.empty())
      return fail(ExitCode::InvalidInput, run.tracePath + ": " + error);
  HtmlReportInput content{*report, explanation ? &*explanation : nullptr,
                          run.metrics ? &*run.metrics : nullptr,
                          run.trace ? &*run.trace : nullptr};
  std::vector<OtherPlan> others;
  if (!page.empty())
    others = compileOthers(inputPath, options, *report);
  content.others = others;
  if (!page.empty()) {
    std::string text;
    llvm::raw_string_ostream os(text);
    writeHtmlReport(content, os);
    if (int code = writeOutput(page, text))
      return code;
  }
  if (folder.empty())
    return 0;
  if (std::error_code error = llvm::sys::fs::create_directories(folder))
    return fail(ExitCode::Usage,
                "cannot write '" + folder + "': " + error.message());
  for (const ReportPicture &picture : drawShardings(content))
    if (int code = writeOutput(folder + "/" + picture.fileName, picture.svg))
      return code;
  return 0;
}

/// The bytes of the file if it is a plan, else compiles it.
static CompileResult getPlan(const std::string &path,
                             const CompileOptions &options) {
  CompileResult result;
  if (!isPlan(path))
    return compileFrom.empty()
               ? compileFile(path, options)
               : compileFileFromTo(path, compileFrom, "plan", options);
  if (options.verifyPartition) {
    result.code = ExitCode::Usage;
    result.diagnostics =
        "error: --verify-partition is for models; '" + path + "' is compiled\n";
    return result;
  }
  auto buffer = readFile(path);
  if (!buffer) {
    result.code = ExitCode::InvalidInput;
    result.diagnostics = "error: " + llvm::toString(buffer.takeError()) + "\n";
    return result;
  }
  if (llvm::Error error = checkPlan((*buffer)->getBuffer())) {
    result.code = ExitCode::InvalidInput;
    result.diagnostics =
        "error: " + path + ": " + llvm::toString(std::move(error)) + "\n";
    return result;
  }
  result.plan = (*buffer)->getBuffer().str();
  return result;
}

/// Prints the differences between the plan of the input and that of
/// `otherPath`.
static int printDiff(llvm::StringRef plan, const std::string &otherPath,
                     const CompileOptions &options, bool asJson) {
  CompileResult result = getPlan(otherPath, options);
  printDiagnostics(result.diagnostics);
  if (result.code != ExitCode::Ok)
    return static_cast<int>(result.code);
  llvm::Expected<Explanation> here = readExplanation(plan);
  if (!here)
    return fail(ExitCode::InvalidInput, llvm::toString(here.takeError()));
  llvm::Expected<Explanation> other = readExplanation(result.plan);
  if (!other)
    return fail(ExitCode::InvalidInput,
                otherPath + ": " + llvm::toString(other.takeError()));
  ExplanationDiff diff = compare(*here, *other);
  if (asJson)
    llvm::outs() << llvm::formatv("{0:2}", toJSON(diff)) << '\n';
  else
    print(diff, otherPath, llvm::outs());
  if (std::string message = finishOutput(llvm::outs(), "-"); !message.empty())
    return fail(ExitCode::Usage, message);
  return 0;
}

/// Makes malloc ask for memory in large pieces and keep freed memory, which is
/// needed again at once: that saves a twentieth of compiling four layers.
/// (glibc)
static void keepFreedMemory() {
  constexpr int piece = 16 << 20, kept = 256 << 20;
  mallopt(M_TOP_PAD, piece);
  mallopt(M_TRIM_THRESHOLD, kept);
  mallopt(M_MMAP_THRESHOLD, kept);
}

int main(int argc, char **argv) {
  keepFreedMemory();
  // A reader that goes away ends the tool as it ends others: SIGPIPE.
  llvm::InitLLVM initLLVM(argc, argv, /*InstallPipeSignalExitHandler=*/false);
  ignoreSizeSignal();
  CompileOptionsFlags flags(category);
  registerDebugOnlyFlag(category);
  if (std::optional<int> code =
          readArguments(argc, argv,
                        {"shardc-compile", SHARDC_VERSION,
                         "Compiles a model to an executable plan\n",
                         /*mostInputs=*/1, category, /*checkValue=*/nullptr,
                         /*mayBeEmpty=*/{"ptxas"}}))
    return *code;

  ReportKinds kinds;
  std::string error = flags.check();
  if (error.empty() && (explain || wantsPage()) && !compileFrom.empty())
    error = std::string(explain ? "--explain" : "--report=html") +
            " tries changes of the model: expected no --compile-from beside it";
  if (error.empty())
    error = readReports(kinds);
  if (std::string target = flags.get().target;
      error.empty() && ptxas.getNumOccurrences() && !isPlan(input) &&
      compileFrom.empty() && !llvm::StringRef(target).starts_with("cuda:"))
    error = "--ptxas is for GPUs: expected --target=cuda:… beside it, found "
            "--target=" +
            target;
  std::string forModels = ptxas.getNumOccurrences()         ? "ptxas"
                          : compileFrom.getNumOccurrences() ? "compile-from"
                          : flags.getGiven().empty()
                              ? ""
                              : flags.getGiven().front()->name;
  if (isPlan(input) && !forModels.empty())
    error = "--" + forModels + " is for models; '" + input + "' is compiled";
  if (!error.empty())
    return fail(ExitCode::Usage, error);
  CompileOptions options = flags.get();
  error =
      checkOutputs({{isPlan(input) ? "the plan" : "the model", input},
                    {"--explain-diff", explainDiff},
                    {"--metrics", metrics},
                    {"--trace", trace},
                    {"--ptxas", ptxas}},
                   {{"-o " + output, output}, {"--svg=" + svg, svg}}, options);
  if (!error.empty())
    return fail(ExitCode::Usage, error);
  llvm::Expected<RunFiles> run = readRunFiles();
  if (!run)
    return fail(ExitCode::InvalidInput, llvm::toString(run.takeError()));
  options.findFixIts = explain || wantsPage();
  options.compareCheapest = compileFrom.empty();
  options.ptxas = ptxas.getNumOccurrences() ? ptxas : findPtxas();
  // An assembler found by chance may be too old for the target.
  options.needsCubin = ptxas.getNumOccurrences() || std::getenv("SHARDC_PTXAS");

  if (!compileTo.empty()) {
    if (json || explain || !reports.empty() || !explainDiff.empty())
      return fail(
          ExitCode::Usage,
          "--compile-to stops before the plan that --report, --explain, "
          "--explain-diff and --json read");
    CompileResult result =
        compileFrom.empty()
            ? compileFileTo(input, compileTo, options)
            : compileFileFromTo(input, compileFrom, compileTo, options);
    printDiagnostics(result.diagnostics);
    if (result.code != ExitCode::Ok)
      return static_cast<int>(result.code);
    return writeOutput(output.empty() ? std::string("-") : output, result.plan);
  }
  if (output.empty() && reports.empty() && !json && !explain &&
      explainDiff.empty() && !options.verifyPartition)
    return fail(ExitCode::Usage,
                "nothing to do: expected -o FILE, --report, --explain, "
                "--explain-diff, --json, --verify-partition or --compile-to");

  // Linking the kernels runs lld, which resets LLVM's flags of the process:
  // later uses need a copy.
  const std::string inputPath = input, outputPath = output,
                    otherPath = explainDiff;
  const std::string picturesPath = svg;
  const bool asJson = json, asPage = wantsPage();
  llvm::json::Object given = toJson(flags.getGiven(), options);
  CompileResult result = getPlan(inputPath, options);
  printDiagnostics(result.diagnostics);
  if (result.code != ExitCode::Ok)
    return static_cast<int>(result.code);
  if (asPage || !picturesPath.empty())
    if (int code =
            writePictures(result.plan, inputPath, asPage ? outputPath : "",
                          picturesPath, *run, given, options))
      return code;
  if (!asPage && !outputPath.empty())
    if (int code = writeOutput(outputPath, result.plan))
      return code;
  if (!otherPath.empty())
    return printDiff(result.plan, otherPath, options, asJson);
  llvm::Error failure =
      asJson
          ? printJsonReports(result.plan, kinds, std::move(given), llvm::outs())
          : printReports(result.plan, kinds, llvm::outs());
  if (failure)
    return fail(ExitCode::InvalidInput,
                inputPath + ": " + llvm::toString(std::move(failure)));
  if (std::string message = finishOutput(llvm::outs(), "-"); !message.empty())
    return fail(ExitCode::Usage, message);
  return 0;
}

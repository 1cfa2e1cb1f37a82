//===- HtmlReport.cpp - A report to look at -------------------------------===//

#include "shardc/Report/Html/HtmlReport.h"

#include "Assets.h"
#include "Views.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Base64.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/SHA256.h"

using namespace llvm;
using namespace shardc;

/// The source of a Content-Security-Policy that allows this text alone.
static std::string getHashSource(StringRef text) {
  return "'sha256-" + encodeBase64(SHA256::hash(arrayRefFromStringRef(text))) +
         "'";
}

static void addNavigation(Markup &markup, bool hasRun) {
  static constexpr std::pair<StringLiteral, StringLiteral> sections[] = {
      {"overview", "Overview"}, {"shardings", "Shardings"},
      {"memory", "Memory"},     {"communication", "Communication"},
      {"time", "Time"},         {"run", "Run"}};
  markup.open("nav", {{"aria-label", "Sections"}}).open("ul");
  for (const auto &[id, name] : sections)
    if (id != "run" || hasRun)
      markup.open("li").element("a", {{"href", "#" + id.str()}}, name).close();
  markup.close().close();
}

void shardc::writeHtmlReport(const HtmlReportInput &input, raw_ostream &os) {
  std::string style = (pictureStyle + pageStyle).str();
  // Whatever a name might smuggle in: nothing is loaded, sent or run but the
  // style and the script of the page.
  std::string policy =
      formatv("default-src 'none'; style-src {0}; script-src {1}; base-uri "
              "'none'; form-action 'none'",
              getHashSource(style), getHashSource(pageScript));
  std::string model = getString(input.report, "model");
  json::Object data;
  os << "<!DOCTYPE html>\n";
  Markup markup(os);
  markup.open("html", {{"lang", "en"}}).open("head");
  markup.empty("meta", {{"charset", "utf-8"}});
  markup.empty(
      "meta", {{"http-equiv", "Content-Security-Policy"}, {"content", policy}});
  markup.empty("meta", {{"name", "viewport"},
                        {"content", "width=device-width, initial-scale=1"}});
  markup.element("title", {}, "shardc: " + shorten(model, 80));
  markup.open("style").raw(style).close();
  markup.close().raw("\n").open("body").open("header");
  markup.element("h1", {}, model);
  markup.element("p", {},
                 "on mesh " + getMeshText(getMeshAxes(input.report)) +
                     ", a report of shardc. " +
                     (input.trace || input.metrics
                          ? "What is measured is called so; all other numbers "
                            "are known before the run. Bytes"
                          : "All numbers are known before the run; bytes") +
                     " and times are those of one device and one "
                     "step unless they say otherwise.");
  markup.close();
  addNavigation(markup, input.metrics != nullptr);
  markup.open("main");
  addOverview(input, markup);
  markup.raw("\n");
  addShardings(input, markup, data);
  markup.raw("\n");
  addMemory(input, markup, data);
  markup.raw("\n");
  addCommunication(input, markup);
  markup.raw("\n");
  addTime(input, markup);
  if (input.metrics) {
    markup.raw("\n");
    addRun(input, markup);
  }
  markup.close().raw("\n");
  markup.open("div", {{"id", "tip"}, {"role", "status"}, {"hidden", "hidden"}})
      .close();
  markup.open("script", {{"type", "application/json"}, {"id", "data"}})
      .raw(escapeScriptData(formatv("{0}", json::Value(std::move(data))).str()))
      .close();
  markup.open("script").raw(pageScript).close();
  markup.close().close();
  os << '\n';
}

// THE table of this component's formats.
#include "src/profile/formats.h"

#include <iterator>

#include "perfkit/exporters.h"

namespace perfkit {
namespace {

constexpr ProfileFormat kFormats[] = {
    {"pprof", {".pb.gz", ".pprof"}, "go tool pprof", WritePprof},
    {"perfetto", {".pftrace", ".perfetto-trace"}, "ui.perfetto.dev", WritePerfetto, {}, WriteSlowFramePerfetto},
    {"firefox", {".json.gz"}, "profiler.firefox.com", WriteFirefox},
    {"chrome", {".chrome.json"}, "DevTools' panel Performance, profiler.firefox.com", WriteChrome},
    {"html", {".html"}, "any browser", WriteHtml, {}, WriteSlowFrameHtml, WriteDifferenceHtml},
};

}  // namespace

extern const ExporterFormats ExporterFormatTable;
const ExporterFormats ExporterFormatTable = {kFormats, std::size(kFormats)};

}  // namespace perfkit

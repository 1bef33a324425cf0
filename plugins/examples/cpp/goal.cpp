// A rule library in C++17: proposes tools whose keywords stand in what the agent says it is after.
//
// It shows how to keep exceptions from crossing the boundary, and how to read the catalog into containers of one's own.
#include "almanac_plugin.h"

#include <algorithm>
#include <cstddef>
#include <exception>
#include <new>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#define ID "dev.almanac.examples.goal"
#define VERSION "1.0.0"

ALMANAC_PLUGIN_NOTE(ID, VERSION);

namespace {

// So many tools that fit are enough.
constexpr std::size_t most = 5;

std::string_view view(almanac_str text) {
    return {text.len > 0 ? text.data : "", text.len};
}

almanac_str borrow(std::string_view text) {
    return {text.data(), text.size()};
}

template <typename T> const T &at(const almanac_array &array, std::size_t index) {
    return *reinterpret_cast<const T *>(static_cast<const char *>(array.data) + index * array.stride);
}

// Words of ASCII letters and digits in lower case; bytes of other characters count as letters.
std::unordered_set<std::string> words_of(std::string_view text) {
    std::unordered_set<std::string> words;
    std::string word;
    auto end = [&] {
        if (!word.empty()) {
            words.insert(std::move(word));
            word.clear();
        }
    };
    for (char c : text) {
        if (c >= 'A' && c <= 'Z') {
            word += static_cast<char>(c - 'A' + 'a');
        } else if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || static_cast<unsigned char>(c) >= 0x80) {
            word += c;
        } else {
            end();
        }
    }
    end();
    return words;
}

class Goal {
  public:
    explicit Goal(const almanac_host *host) : host_(host) {}

    void on_snapshot(const almanac_snapshot &snapshot) {
        // Built aside, so that an exception leaves the old ones.
        std::unordered_map<std::string, std::vector<std::string>> tools_by_keyword;
        for (std::size_t i = 0; i < snapshot.tools.len; i++) {
            const auto &tool = at<almanac_tool>(snapshot.tools, i);
            for (std::size_t k = 0; k < tool.keywords.len; k++) {
                tools_by_keyword[std::string(view(at<almanac_str>(tool.keywords, k)))].emplace_back(view(tool.name));
            }
        }
        tools_by_keyword_ = std::move(tools_by_keyword);
    }

    void suggest(const almanac_request &request, const almanac_sink &sink) const {
        std::unordered_map<std::string_view, std::vector<std::string_view>> hits;
        for (const std::string &word : words_of(view(request.goal))) {
            auto found = tools_by_keyword_.find(word);
            if (found == tools_by_keyword_.end()) {
                continue;
            }
            for (const std::string &tool : found->second) {
                if (tool != view(request.tool)) {
                    hits[tool].push_back(found->first);
                }
            }
        }

        std::vector<std::pair<std::string_view, std::vector<std::string_view>>> best(hits.begin(), hits.end());
        std::sort(best.begin(), best.end(), [](const auto &a, const auto &b) {
            return a.second.size() != b.second.size() ? a.second.size() > b.second.size() : a.first < b.first;
        });
        best.resize(std::min(best.size(), most));
        for (auto &[tool, keywords] : best) {
            if (!push(sink, tool, keywords)) {
                return;
            }
        }
    }

    void fail(const char *why) const noexcept {
        host_->log(host_, ALMANAC_LOG_ERROR, {why, std::char_traits<char>::length(why)});
    }

  private:
    // Whether more is wanted.
    static bool push(const almanac_sink &sink, std::string_view tool, std::vector<std::string_view> &keywords) {
        std::sort(keywords.begin(), keywords.end());
        std::string reason = "The goal speaks of ";
        for (std::size_t i = 0; i < keywords.size(); i++) {
            reason += i == 0 ? "" : i + 1 < keywords.size() ? ", " : " and ";
            reason += keywords[i];
        }
        almanac_suggestion suggestion{};
        suggestion.struct_size = sizeof suggestion;
        suggestion.tool = borrow(tool);
        suggestion.reason = borrow(reason);
        suggestion.score = std::min(0.2 * static_cast<double>(keywords.size()), 0.8);
        return sink.push(&sink, &suggestion) != ALMANAC_STOP;
    }

    const almanac_host *host_;
    std::unordered_map<std::string, std::vector<std::string>> tools_by_keyword_;
};

// Runs a call; an exception must not leave the library.
template <typename Call> int32_t guarded(const Goal &goal, Call call) noexcept {
    try {
        call();
        return ALMANAC_OK;
    } catch (const std::exception &error) {
        goal.fail(error.what());
    } catch (...) {
        goal.fail("an exception that is no std::exception");
    }
    return ALMANAC_E_INTERNAL;
}

} // namespace

extern "C" {

static int32_t create(const almanac_host *host, almanac_str, void **instance) {
    auto *goal = new (std::nothrow) Goal(host);
    if (!goal) {
        return ALMANAC_E_INTERNAL;
    }
    *instance = goal;
    return ALMANAC_OK;
}

static void destroy(void *instance) {
    delete static_cast<Goal *>(instance);
}

static int32_t on_snapshot(void *instance, const almanac_snapshot *snapshot) {
    auto &goal = *static_cast<Goal *>(instance);
    return guarded(goal, [&] { goal.on_snapshot(*snapshot); });
}

static int32_t suggest(void *instance, const almanac_request *request, const almanac_sink *sink) {
    const auto &goal = *static_cast<Goal *>(instance);
    return guarded(goal, [&] { goal.suggest(*request, *sink); });
}

ALMANAC_EXPORT const almanac_plugin_descriptor *almanac_plugin_entry_v1(void) {
    static const almanac_plugin_vtable vtable = {sizeof vtable, 0, create, destroy, on_snapshot, suggest, nullptr};
    static const almanac_plugin_descriptor descriptor = {
        sizeof descriptor,        ALMANAC_ABI_MINOR, 0,
        ALMANAC_STR(ID),          ALMANAC_STR("Goal"), ALMANAC_STR(VERSION),
        ALMANAC_STR("The Almanac authors"), ALMANAC_STR(""), ALMANAC_STR(""),
        &vtable,
    };
    return &descriptor;
}
}

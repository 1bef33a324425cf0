/* A rule library in C: when an agent calls one tool again and again, it names others of that category that can do the
 * same.
 *
 * It shows how to copy what is kept of a snapshot, how to walk arrays by their stride, and how to return a text that
 * was put together. */
#include "almanac_plugin.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ID "dev.almanac.examples.stuck"
#define VERSION "1.0.0"

/* So many calls in a row are no progress any more. */
#define TOO_OFTEN 3
/* So many ways out are enough. */
#define MOST 3

ALMANAC_PLUGIN_NOTE(ID, VERSION);

/* A tool of the catalog, as far as it is kept; all texts lie in the stuck's `text`. */
struct tool {
    almanac_str name;
    almanac_str category;
    const almanac_str *capabilities;
    size_t capability_count;
};

struct stuck {
    const almanac_host *host;
    struct tool *tools;
    size_t tool_count;
    almanac_str *capabilities; /* of all tools */
    char *text;                /* of all tools */
};

static const void *at(const almanac_array *array, size_t index) {
    return (const char *)array->data + index * array->stride;
}

static int equal(almanac_str a, almanac_str b) {
    return a.len == b.len && (a.len == 0 || memcmp(a.data, b.data, a.len) == 0);
}

static int32_t fail(const struct stuck *stuck, const char *why) {
    almanac_str message = {why, strlen(why)};
    stuck->host->log(stuck->host, ALMANAC_LOG_ERROR, message);
    return ALMANAC_E_INTERNAL;
}

/* ---- The catalog ---- */

static void forget(struct stuck *stuck) {
    free(stuck->tools);
    free(stuck->capabilities);
    free(stuck->text);
    stuck->tools = NULL;
    stuck->capabilities = NULL;
    stuck->text = NULL;
    stuck->tool_count = 0;
}

/* Copies `source` to `*end`, and moves that on. */
static almanac_str keep(almanac_str source, char **end) {
    almanac_str kept = {*end, source.len};
    if (source.len > 0) {
        memcpy(*end, source.data, source.len);
    }
    *end += source.len;
    return kept;
}

static int32_t on_snapshot(void *instance, const almanac_snapshot *snapshot) {
    struct stuck *stuck = instance;
    size_t bytes = 0, capabilities = 0;
    for (size_t i = 0; i < snapshot->tools.len; i++) {
        const almanac_tool *tool = at(&snapshot->tools, i);
        bytes += tool->name.len + tool->category.len;
        capabilities += tool->capabilities.len;
        for (size_t k = 0; k < tool->capabilities.len; k++) {
            bytes += ((const almanac_str *)at(&tool->capabilities, k))->len;
        }
    }

    forget(stuck);
    /* One more than needed, as nothing may be NULL on success. */
    stuck->tools = calloc(snapshot->tools.len + 1, sizeof *stuck->tools);
    stuck->capabilities = calloc(capabilities + 1, sizeof *stuck->capabilities);
    stuck->text = malloc(bytes + 1);
    if (!stuck->tools || !stuck->capabilities || !stuck->text) {
        forget(stuck);
        return fail(stuck, "no memory for the catalog");
    }

    char *end = stuck->text;
    almanac_str *next = stuck->capabilities;
    for (size_t i = 0; i < snapshot->tools.len; i++) {
        const almanac_tool *source = at(&snapshot->tools, i);
        struct tool *kept = &stuck->tools[i];
        kept->name = keep(source->name, &end);
        kept->category = keep(source->category, &end);
        kept->capabilities = next;
        kept->capability_count = source->capabilities.len;
        for (size_t k = 0; k < source->capabilities.len; k++) {
            *next++ = keep(*(const almanac_str *)at(&source->capabilities, k), &end);
        }
    }
    stuck->tool_count = snapshot->tools.len;
    return ALMANAC_OK;
}

/* The tools are ordered by name. */
static const struct tool *find(const struct stuck *stuck, almanac_str name) {
    size_t low = 0, high = stuck->tool_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        almanac_str other = stuck->tools[middle].name;
        size_t shorter = other.len < name.len ? other.len : name.len;
        int order = shorter > 0 ? memcmp(other.data, name.data, shorter) : 0;
        if (order == 0 && other.len == name.len) {
            return &stuck->tools[middle];
        }
        if (order < 0 || (order == 0 && other.len < name.len)) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return NULL;
}

/* ---- The rule ---- */

/* How many times in a row the tool was called last. */
static size_t run_length(const almanac_request *request) {
    size_t count = 0;
    while (count < request->history.len &&
           equal(*(const almanac_str *)at(&request->history, request->history.len - 1 - count), request->tool)) {
        count++;
    }
    return count;
}

/* A capability that both have, or one without `data`. */
static almanac_str shared(const struct tool *a, const struct tool *b) {
    for (size_t i = 0; i < a->capability_count; i++) {
        for (size_t k = 0; k < b->capability_count; k++) {
            if (equal(a->capabilities[i], b->capabilities[k])) {
                return a->capabilities[i];
            }
        }
    }
    almanac_str none = {NULL, 0};
    return none;
}

static int32_t suggest(void *instance, const almanac_request *request, const almanac_sink *sink) {
    const struct stuck *stuck = instance;
    size_t times = run_length(request);
    const struct tool *repeated = times >= TOO_OFTEN ? find(stuck, request->tool) : NULL;
    if (!repeated) {
        return ALMANAC_OK;
    }
    int pushed = 0;
    for (size_t i = 0; i < stuck->tool_count && pushed < MOST; i++) {
        const struct tool *other = &stuck->tools[i];
        if (other == repeated || !equal(other->category, repeated->category)) {
            continue;
        }
        almanac_str capability = shared(repeated, other);
        if (!capability.data || capability.len > 100) {
            continue;
        }
        char reason[256];
        int len = snprintf(reason, sizeof reason, "%zu calls in a row: try another tool with %.*s", times,
                           (int)capability.len, capability.data);
        almanac_suggestion suggestion = {.struct_size = sizeof suggestion,
                                         .tool = other->name,
                                         .reason = {reason, (size_t)len},
                                         .score = 0.6 - 0.1 * pushed};
        if (sink->push(sink, &suggestion) == ALMANAC_STOP) {
            break;
        }
        pushed++;
    }
    return ALMANAC_OK;
}

/* ---- The library ---- */

static int32_t create(const almanac_host *host, almanac_str config, void **instance) {
    (void)config;
    struct stuck *stuck = calloc(1, sizeof *stuck);
    if (!stuck) {
        return ALMANAC_E_INTERNAL;
    }
    stuck->host = host;
    *instance = stuck;
    return ALMANAC_OK;
}

static void destroy(void *instance) {
    forget(instance);
    free(instance);
}

static const almanac_plugin_vtable VTABLE = {
    .struct_size = sizeof VTABLE,
    .create = create,
    .destroy = destroy,
    .on_snapshot = on_snapshot,
    .suggest = suggest,
};

static const almanac_plugin_descriptor DESCRIPTOR = {
    .struct_size = sizeof DESCRIPTOR,
    .abi_minor = ALMANAC_ABI_MINOR,
    .id = ALMANAC_STR(ID),
    .name = ALMANAC_STR("Stuck"),
    .version = ALMANAC_STR(VERSION),
    .vendor = ALMANAC_STR("The Almanac authors"),
    .url = ALMANAC_STR(""),
    .config_schema = ALMANAC_STR(""),
    .vtable = &VTABLE,
};

const almanac_plugin_descriptor *almanac_plugin_entry_v1(void) {
    return &DESCRIPTOR;
}

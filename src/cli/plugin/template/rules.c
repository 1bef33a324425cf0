/* What to call next, in the words of this library. */
#include "almanac_plugin.h"

#include <stdlib.h>

#define ID "org.example.{{name}}"
#define VERSION "0.1.0"

ALMANAC_PLUGIN_NOTE(ID, VERSION);

/* What has to be remembered between calls. */
struct rules {
    const almanac_host *host;
};

static int32_t create(const almanac_host *host, almanac_str config, void **instance) {
    (void)config;
    struct rules *rules = calloc(1, sizeof *rules);
    if (!rules) {
        return ALMANAC_E_INTERNAL;
    }
    rules->host = host;
    *instance = rules;
    return ALMANAC_OK;
}

static void destroy(void *instance) {
    free(instance);
}

static int32_t suggest(void *instance, const almanac_request *request, const almanac_sink *sink) {
    (void)instance;
    /* After a tool with several results, somebody has to decide between them. */
    if (request->num_outputs > 1) {
        almanac_suggestion suggestion = {.struct_size = sizeof suggestion,
                                         .tool = ALMANAC_STR("reasoning_decision"),
                                         .reason = ALMANAC_STR("There is more than one result to choose from"),
                                         .score = 0.6};
        sink->push(sink, &suggestion);
    }
    return ALMANAC_OK;
}

static const almanac_plugin_vtable VTABLE = {
    .struct_size = sizeof VTABLE, .create = create, .destroy = destroy, .suggest = suggest};

static const almanac_plugin_descriptor DESCRIPTOR = {.struct_size = sizeof DESCRIPTOR,
                                                     .abi_minor = ALMANAC_ABI_MINOR,
                                                     .id = ALMANAC_STR(ID),
                                                     .name = ALMANAC_STR("{{name}}"),
                                                     .version = ALMANAC_STR(VERSION),
                                                     .vendor = ALMANAC_STR(""),
                                                     .url = ALMANAC_STR(""),
                                                     .config_schema = ALMANAC_STR(""),
                                                     .vtable = &VTABLE};

const almanac_plugin_descriptor *almanac_plugin_entry_v1(void) {
    return &DESCRIPTOR;
}

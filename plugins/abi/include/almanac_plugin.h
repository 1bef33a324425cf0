/* The interface between Almanac and its rule libraries, version 1.0.
 *
 * A rule library is a shared object that proposes which tools to call next, given what has just happened and which
 * tools there are. It is a pure function of its inputs: it opens no files and no sockets, and starts no threads that
 * outlive a call. By default it runs in a process of its own, behind a sandbox that denies all of that.
 *
 * How long a tool takes is no business of a rule library: durations come from what Almanac has measured.
 *
 * Promises of this header:
 *   - It is C11 and C++17, for 64-bit ELF targets, and needs nothing but the two headers it includes.
 *   - Fields are only ever appended. A struct that carries its own size (`struct_size`) may be longer or, if it comes
 *     from an older party, shorter than yours: read a field only if the size covers it (ALMANAC_COVERS). Elements of
 *     arrays are found by the array's stride, which is their size.
 *   - Reserved fields are 0 and are ignored by whoever reads them.
 *   - Enums travel as int32_t. A value that you don't know is data, not an error.
 *   - The major version is in the name of the entry function. Within it, a host runs every library of its own or a
 *     lower minor.
 *
 * Thread tags, on every function:
 *   [exclusive]      no other function of the library runs at the same time
 *   [one-at-a-time]  never twice at the same time for one instance, but on any thread
 *   [thread-safe]    at any time, on any thread
 *
 * Licence: Apache-2.0
 */
#ifndef ALMANAC_PLUGIN_H
#define ALMANAC_PLUGIN_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The version of this header. The major is also in the entry's name. */
#define ALMANAC_ABI_MAJOR 1
#define ALMANAC_ABI_MINOR 0

/* Before the definition of the entry function; everything else is best hidden (-fvisibility=hidden). */
#define ALMANAC_EXPORT __attribute__((visibility("default")))

/* Whether the struct behind `pointer`, as large as it says it is, has `field`. */
#define ALMANAC_COVERS(pointer, type, field) \
    ((pointer)->struct_size >= offsetof(type, field) + sizeof(((type *)0)->field))

/* ---- Data ---- */

/* Text: UTF-8, not terminated. `data` is NULL if the text is absent; a text that is there and empty has length 0 and
 * another `data`.
 *
 * Borrow rule: text and arrays in arguments are valid until the call returns, and not longer. Copy what you keep. Text
 * that a library returns through its descriptor is static. */
typedef struct almanac_str {
    const char *data;
    size_t len; /* bytes */
} almanac_str;

/* `len` elements, `stride` bytes apart: element i is at (const char *)data + i * stride. The stride is a multiple of 8
 * and at least the element's size in version 1.0; newer hosts may have longer elements. `data` may be NULL if `len` is
 * 0. */
typedef struct almanac_array {
    const void *data;
    size_t len;    /* elements */
    size_t stride; /* bytes */
} almanac_array;

/* A key and its value. */
typedef struct almanac_pair {
    almanac_str key;
    almanac_str value;
} almanac_pair;

/* What functions return: 0 or more is success, less than 0 is failure. */
enum {
    ALMANAC_OK = 0,
    ALMANAC_STOP = 1,            /* from a sink: taken, or dropped, and no more is wanted */
    ALMANAC_E_INVALID = -1,      /* an argument breaks a rule of this header */
    ALMANAC_E_UNSUPPORTED = -2,  /* the other side is too old, or has no such thing */
    ALMANAC_E_CONFIG = -3,       /* the configuration is wrong */
    ALMANAC_E_INTERNAL = -4,     /* the library failed */
    ALMANAC_E_PANICKED = -5,     /* the library failed for good: the instance answers nothing but this */
    ALMANAC_E_CANCELLED = -6     /* it gave up since the call was cancelled */
};

/* Severity of a log message. */
enum {
    ALMANAC_LOG_ERROR = 1,
    ALMANAC_LOG_WARN = 2,
    ALMANAC_LOG_INFO = 3,
    ALMANAC_LOG_DEBUG = 4,
    ALMANAC_LOG_TRACE = 5
};

/* How complex a result was, as its tool judged it. */
enum {
    ALMANAC_COMPLEXITY_ABSENT = 0, /* nobody said */
    ALMANAC_COMPLEXITY_SIMPLE = 1,
    ALMANAC_COMPLEXITY_MODERATE = 2,
    ALMANAC_COMPLEXITY_COMPLEX = 3
};

/* ---- What the host gives ---- */

/* Services of the host. Valid from the call of `create` until `destroy` returns. Of its functions only `get_extension`
 * may be NULL. */
typedef struct almanac_host almanac_host;
struct almanac_host {
    uint32_t struct_size;
    uint32_t abi_minor;  /* of the host */
    void *context;       /* the host's own */
    almanac_str name;    /* "almanacd" */
    almanac_str version; /* of the host, such as "0.1.0" */

    /* Writes a message to the host's log. `level` is one of ALMANAC_LOG_*. The host cuts long messages and drops
     * floods. A library that fails says why at ALMANAC_LOG_ERROR: the last such message is shown as the reason.
     * [thread-safe] */
    void (*log)(const almanac_host *host, int32_t level, almanac_str message);

    /* Nanoseconds on a clock that never goes back; its zero means nothing.
     * [thread-safe] */
    uint64_t (*now_ns)(const almanac_host *host);

    /* 1 if nobody waits for the current call any more, else 0. Worth asking in long loops.
     * [thread-safe] */
    int32_t (*is_cancelled)(const almanac_host *host);

    /* A table of further functions by its name, or NULL. Valid as long as the host. Version 1.0 has none.
     * [thread-safe] */
    const void *(*get_extension)(const almanac_host *host, almanac_str id);
};

/* A tool of the catalog. */
typedef struct almanac_tool {
    almanac_str name;
    almanac_str category;       /* may be empty */
    almanac_array capabilities; /* of almanac_str */
    almanac_array keywords;     /* of almanac_str */
} almanac_tool;

/* All tools of one generation of the catalog, ordered by name, byte by byte. */
typedef struct almanac_snapshot {
    uint32_t struct_size;
    uint32_t reserved;
    uint64_t generation; /* grows with every change of the catalog */
    almanac_array tools; /* of almanac_tool */
} almanac_snapshot;

/* What has happened, and what is known about it. */
typedef struct almanac_request {
    uint32_t struct_size;
    int32_t complexity;       /* of the result: one of ALMANAC_COMPLEXITY_* */
    uint64_t generation;      /* of the catalog; its snapshot has been delivered before */
    almanac_str tool;         /* the tool that was called */
    almanac_str mode;         /* the mode it ran in, or absent */
    almanac_str session_id;   /* or absent */
    almanac_str goal;         /* what the agent is after, in words, or absent */
    uint64_t num_outputs;     /* how many results it gave; 0 if nobody said */
    int32_t has_branches;     /* 1 if the result has open branches, else 0 */
    uint32_t reserved;
    almanac_array history;    /* of almanac_str: tools called recently, the oldest first, repeats kept; whether the call
                                 itself is the last of them is up to whoever asks */
    almanac_array context;    /* of almanac_pair: further facts about the result, ordered by key */
    uint64_t deadline_ns;     /* when the answer goes out without this library, on the clock of now_ns; 0 for never */
} almanac_request;

/* A tool to call next. */
typedef struct almanac_suggestion {
    uint32_t struct_size; /* sizeof(almanac_suggestion), set by the library */
    uint32_t reserved;    /* 0 */
    almanac_str tool;     /* its name in the catalog; others are dropped */
    almanac_str reason;   /* why, for the agent to read: one sentence, not empty */
    double score;         /* 0 to 1, how strongly: libraries are blended by it. Clamped; NaN is refused. Of equal
                             suggestions, the one pushed first goes first */
} almanac_suggestion;

/* Where suggestions go. Valid during one call of `suggest`, on its thread. */
typedef struct almanac_sink almanac_sink;
struct almanac_sink {
    uint32_t struct_size;
    uint32_t reserved;
    void *context; /* the host's own */

    /* Hands over one suggestion; it is copied before the call returns. ALMANAC_OK: taken. ALMANAC_STOP: no more is
     * wanted, and more will be dropped. ALMANAC_E_INVALID: refused (no UTF-8, empty, NaN, too small a struct); the next
     * one may be fine. Text that is too long is cut. */
    int32_t (*push)(const almanac_sink *sink, const almanac_suggestion *suggestion);
};

/* ---- What the library gives ---- */

/* The functions of a library. `create`, `destroy` and `suggest` are required; the others may be NULL. */
typedef struct almanac_plugin_vtable {
    uint32_t struct_size;
    uint32_t reserved;

    /* Makes an instance and stores it in `*instance`; not NULL on success. `config` is a JSON object ("{}" without a
     * configuration) that the host has not checked against `config_schema`. A host may have several instances at a
     * time. Fails with ALMANAC_E_CONFIG for a configuration that is wrong.
     * [exclusive] */
    int32_t (*create)(const almanac_host *host, almanac_str config, void **instance);

    /* Frees an instance. Called once for each, and last.
     * [exclusive] */
    void (*destroy)(void *instance);

    /* Tells the catalog: once after `create`, and once for each new generation. A library that needs to know tools
     * copies what it needs.
     * [one-at-a-time] */
    int32_t (*on_snapshot)(void *instance, const almanac_snapshot *snapshot);

    /* Proposes what to call next, best first; no proposal is a fine answer. Fast: the host waits for 50 ms by default.
     * [one-at-a-time] */
    int32_t (*suggest)(void *instance, const almanac_request *request, const almanac_sink *sink);

    /* A table of further functions by its name, or NULL. Static. Version 1.0 has none.
     * [thread-safe] */
    const void *(*get_extension)(void *instance, almanac_str id);
} almanac_plugin_vtable;

/* Bits of `flags`. None exists in version 1.0. A host ignores unknown bits of the lower half, and refuses a library
 * with unknown bits of the upper half: those change what the other fields mean. */
#define ALMANAC_FLAGS_MUST_KNOW UINT64_C(0xffffffff00000000)

/* What a library is. Static, and never changed. */
typedef struct almanac_plugin_descriptor {
    uint32_t struct_size;
    uint32_t abi_minor;        /* ALMANAC_ABI_MINOR of the header it was built with */
    uint64_t flags;
    almanac_str id;            /* reverse DNS: 1 to 127 of a-z 0-9 - _ . such as "org.example.rules" */
    almanac_str name;          /* for people */
    almanac_str version;       /* of the library: 1 to 63 bytes of printable ASCII, such as "1.2.0" */
    almanac_str vendor;        /* may be empty */
    almanac_str url;           /* may be empty */
    almanac_str config_schema; /* JSON Schema of its configuration; empty if it has none */
    const almanac_plugin_vtable *vtable;
} almanac_plugin_descriptor;

/* The one function that a library exports. It returns a static descriptor; it neither allocates nor starts threads.
 * [exclusive] */
ALMANAC_EXPORT const almanac_plugin_descriptor *almanac_plugin_entry_v1(void);

#define ALMANAC_ENTRY_SYMBOL "almanac_plugin_entry_v1"

/* ---- The note ---- */

/* What a library is, readable without running any of it: an ELF note, in a section of type SHT_NOTE and so in a segment
 * of type PT_NOTE. A host refuses a library without one, and one whose note says something else than its descriptor.
 * Integers are in the byte order of the ELF file; texts are padded with NUL. */
#define ALMANAC_NOTE_SECTION ".note.almanac"
#define ALMANAC_NOTE_OWNER "Almanac"
#define ALMANAC_NOTE_TYPE 0x414c4d31 /* "ALM1" */
#define ALMANAC_NOTE_ID_SIZE 128
#define ALMANAC_NOTE_VERSION_SIZE 64

typedef struct almanac_plugin_note {
    uint32_t owner_size;                          /* 8 */
    uint32_t desc_size;                           /* 200: what follows `owner`; more in later minors */
    uint32_t kind;                                /* the note's type: ALMANAC_NOTE_TYPE */
    char owner[8];                                /* ALMANAC_NOTE_OWNER with its NUL */
    uint32_t abi_major;                           /* desc + 0 */
    uint32_t abi_minor;                           /* desc + 4 */
    char id[ALMANAC_NOTE_ID_SIZE];                /* desc + 8 */
    char version[ALMANAC_NOTE_VERSION_SIZE];      /* desc + 136 */
} almanac_plugin_note;

#ifdef __cplusplus
}
#define ALMANAC_STATIC_ASSERT(condition, message) static_assert(condition, message)
#else
#define ALMANAC_STATIC_ASSERT(condition, message) _Static_assert(condition, message)
#endif

/* Puts the note into the library. Once, at file scope, with string literals, and a semicolon behind it:
 *   ALMANAC_PLUGIN_NOTE("org.example.rules", "1.2.0"); */
#define ALMANAC_PLUGIN_NOTE(id_literal, version_literal)                                                            \
    ALMANAC_STATIC_ASSERT(sizeof(id_literal) > 1 && sizeof(id_literal) <= ALMANAC_NOTE_ID_SIZE,                     \
                          "1 to 127 bytes of id");                                                                  \
    ALMANAC_STATIC_ASSERT(sizeof(version_literal) > 1 && sizeof(version_literal) <= ALMANAC_NOTE_VERSION_SIZE,      \
                          "1 to 63 bytes of version");                                                              \
    __attribute__((section(ALMANAC_NOTE_SECTION), used, aligned(4))) static const almanac_plugin_note               \
        almanac_plugin_note_of_this_library = {                                                                     \
            8, 200, ALMANAC_NOTE_TYPE, ALMANAC_NOTE_OWNER, ALMANAC_ABI_MAJOR, ALMANAC_ABI_MINOR, id_literal,        \
            version_literal,                                                                                        \
    }

/* Text from a string literal, in C. */
#define ALMANAC_STR(literal) {(literal), sizeof(literal) - 1}

#endif /* ALMANAC_PLUGIN_H */

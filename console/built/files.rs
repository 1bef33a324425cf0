// Made by `make console`; edits are lost.
&[
    File {
        name: "console.css",
        content_type: "text/css; charset=utf-8",
        sum: "45e674588c28cf0ecb19681cb2fd45e5",
        plain: include_bytes!("console.css"),
        gzip: include_bytes!("console.css.gz"),
    },
    File {
        name: "console.js",
        content_type: "text/javascript; charset=utf-8",
        sum: "bb8f92cb8626141a584fe49e9e1b31ff",
        plain: include_bytes!("console.js"),
        gzip: include_bytes!("console.js.gz"),
    },
    File {
        name: "index.html",
        content_type: "text/html; charset=utf-8",
        sum: "5cd77275391cf2ef65cb1e141c4c39d0",
        plain: include_bytes!("index.html"),
        gzip: include_bytes!("index.html.gz"),
    },
    File {
        name: "licences.txt",
        content_type: "text/plain; charset=utf-8",
        sum: "36e65042392b335ef2aa68f027abc2ec",
        plain: include_bytes!("licences.txt"),
        gzip: include_bytes!("licences.txt.gz"),
    },
    File {
        name: "map-layout.js",
        content_type: "text/javascript; charset=utf-8",
        sum: "3437a93b743f65a2d1aebf83a580aafe",
        plain: include_bytes!("map-layout.js"),
        gzip: include_bytes!("map-layout.js.gz"),
    },
    File {
        name: "map-view.js",
        content_type: "text/javascript; charset=utf-8",
        sum: "8ddafad562ec39169b6b962cbbdce362",
        plain: include_bytes!("map-view.js"),
        gzip: include_bytes!("map-view.js.gz"),
    },
]

// Made by `make console`; edits are lost.
&[
    File {
        name: "console.css",
        content_type: "text/css; charset=utf-8",
        sum: "6e3aeb962059d5d8cdc381ffcb761e2d",
        plain: include_bytes!("console.css"),
        gzip: include_bytes!("console.css.gz"),
    },
    File {
        name: "console.js",
        content_type: "text/javascript; charset=utf-8",
        sum: "1901dfaa558a92e1aad2306efabe0dfc",
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
        sum: "6ca5c4634665c5a3205e7c98bfb94e93",
        plain: include_bytes!("licences.txt"),
        gzip: include_bytes!("licences.txt.gz"),
    },
]

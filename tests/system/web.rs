//! An HTTP server under test's own control: each request is answered by a function, and noted.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

/// A request as it came.
#[derive(Debug, Clone)]
pub struct Asked {
    pub method: String,
    pub path: String,
    /// All headers, one a line, their names in lower case.
    pub headers: String,
    pub body: String,
}

/// What is answered.
pub enum Page {
    /// A status line's end, further headers, and a body.
    Answer(&'static str, String, String),
    /// Nothing, and the connection stays.
    Stall,
    /// A body without an end.
    Flood,
}

/// The server; it lives as long as the test's process.
#[derive(Clone)]
pub struct Web {
    /// Without a path.
    pub url: String,
    seen: Arc<Mutex<Vec<Asked>>>,
}

impl Asked {
    /// The value of a header.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).map(str::trim)
    }
}

impl Page {
    /// A document.
    pub fn json(value: &serde_json::Value) -> Self {
        Self::Answer("200 OK", "content-type: application/json\r\n".to_owned(), value.to_string())
    }

    /// An answer without a body.
    pub fn status(status: &'static str) -> Self {
        Self::Answer(status, String::new(), String::new())
    }
}

impl Web {
    /// Begins to answer; the function knows the server's URL.
    pub fn start(answer: impl Fn(&str, &Asked) -> Page + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let web = Self { url: format!("http://{}", listener.local_addr().unwrap()), seen: Arc::default() };
        let (kept, answer) = (web.clone(), Arc::new(answer));
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let (web, answer) = (kept.clone(), Arc::clone(&answer));
                thread::spawn(move || while web.serve(&stream, &*answer).is_some() {});
            }
        });
        web
    }

    /// Requests for this path so far.
    pub fn asked(&self, path: &str) -> Vec<Asked> {
        self.seen.lock().unwrap().iter().filter(|asked| asked.path == path).cloned().collect()
    }

    fn serve(&self, mut stream: &TcpStream, answer: &dyn Fn(&str, &Asked) -> Page) -> Option<()> {
        let mut reader = BufReader::new(stream);
        let (mut first, mut headers, mut line) = (String::new(), String::new(), String::new());
        reader.read_line(&mut first).ok()?;
        while reader.read_line(&mut line).ok()? > 2 {
            let (name, value) = line.split_once(':')?;
            headers.push_str(&format!("{}:{value}", name.to_ascii_lowercase()));
            line.clear();
        }
        let mut words = first.split(' ');
        let (method, path) = (words.next()?.to_owned(), words.next()?.to_owned());
        let mut asked = Asked { method, path, headers, body: String::new() };
        let mut body = vec![0; asked.header("content-length").map_or(0, |length| length.parse().unwrap())];
        reader.read_exact(&mut body).ok()?;
        asked.body = String::from_utf8(body).ok()?;
        self.seen.lock().unwrap().push(asked.clone());
        match answer(&self.url, &asked) {
            Page::Answer(status, headers, body) => {
                let head = format!("HTTP/1.1 {status}\r\n{headers}content-length: {}\r\n\r\n{body}", body.len());
                stream.write_all(head.as_bytes()).ok()
            }
            Page::Stall => {
                // Until the peer gives up.
                let _ = reader.read(&mut [0]);
                None
            }
            Page::Flood => {
                stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").ok()?;
                while stream.write_all(&[b' '; 4096]).is_ok() {}
                None
            }
        }
    }
}

//! What every kind of process that the daemon starts needs: whom a program may belong to, and what it prints.

pub mod output;
pub mod trust;

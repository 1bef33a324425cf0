//! What the daemon is measured against.

pub(crate) mod bare_hyper;
pub(crate) mod epoll;
pub(crate) mod inotify;
pub(crate) mod locked;
pub(crate) mod nginx;
pub(crate) mod own;
pub(crate) mod postgres;

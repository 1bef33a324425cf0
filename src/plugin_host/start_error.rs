//! Why a library that is there cannot be used.

use super::instance::InstanceError;
use super::sandbox::SandboxError;
use super::wire::Refusal;

#[derive(Debug, thiserror::Error)]
pub(super) enum StartError {
    #[error("the daemon's socket broke")]
    Daemon(#[source] std::io::Error),
    #[error(transparent)]
    Sandbox(#[from] SandboxError),
    #[error(transparent)]
    Instance(#[from] InstanceError),
    #[error("it did not take the catalog")]
    Catalog(#[source] Refusal),
    #[error("it failed at its first call")]
    FirstCall(#[source] Refusal),
}

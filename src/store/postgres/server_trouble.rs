//! Why a server does not do what it is asked, as far as people are told.

use std::mem::Discriminant;

use super::fault::DatabaseFault;

/// What is in the way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ServerTrouble {
    /// Faults of one kind differ in details alone, such as a port or a time.
    pub(super) kind: Discriminant<DatabaseFault>,
    pub(super) why: String,
}

impl From<&DatabaseFault> for ServerTrouble {
    fn from(fault: &DatabaseFault) -> Self {
        Self { kind: std::mem::discriminant(fault), why: fault.to_string() }
    }
}

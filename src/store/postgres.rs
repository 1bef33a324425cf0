//! What a store on PostgreSQL stands on: where the server is, how it is reached, and what is kept there.
//!
//! Replication, failover and backup are PostgreSQL's. What is ours is that a group of records is stored once, however
//! often it is sent: each group moves the row of its writer in the same transaction.

pub mod address;
pub mod audit;
pub mod fault;
pub mod forwarder;
pub mod group;
pub mod migrations;
pub mod outbox;
pub mod partitions;
pub mod password_file;
pub mod session;
pub mod spool;
#[cfg(test)]
mod test_server;
mod tls;

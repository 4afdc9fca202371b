//! Settings: checked at the edge; inside, every value is usable as it is.

use bigfleet_net::Tls;
use bigfleet_operator_core::OperatorConfig;
use std::path::PathBuf;
use std::sync::Arc;

/// Which process of several is the one that acts (OP-11).
#[derive(Clone, Debug)]
pub struct Leading {
    /// Whether others may be there; otherwise this one leads.
    pub elect: bool,
    /// The namespace of the lease.
    pub namespace: String,
    /// The name of the lease.
    pub lease: String,
    /// The name of this process; no other has it.
    pub holder: String,
}

/// How an operator is set up.
#[derive(Clone, Debug)]
pub struct OperatorSettings {
    /// What the core is set up with.
    pub core: OperatorConfig,
    /// The shard: host:port.
    pub shard_addr: String,
    /// Certificates towards the shard; `None` for plaintext.
    pub tls: Option<Arc<Tls>>,
    /// Which process acts.
    pub leading: Leading,
    /// The template file, to be read again when it changes.
    pub template_file: Option<PathBuf>,
}

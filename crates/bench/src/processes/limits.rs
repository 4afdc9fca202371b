//! Limits: how many files, and so connections, this process and its children may have open.

use rustix::process::{Resource, getrlimit, setrlimit};

/// Raises the limit as far as is allowed; what it is then. `None` is no limit.
pub(crate) fn raise_open_files() -> Option<u64> {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    // Refused where the bound is not ours to move: then the old one is what there is.
    let _ = setrlimit(Resource::Nofile, limit);
    getrlimit(Resource::Nofile).current
}

//! Place: where the Kubernetes parts of a user are kept, for `cargo xtask kube` and for whatever starts them.
//!
//! ```text
//! $KUBEBUILDER_ASSETS                          a folder of somebody else's, if it has what is needed
//! <cache>/bigfleet/kube/<hash>/{kube,etcd,…}   ours: one program, and a link per name
//! ```
//!
//! The hash is that of `main.go` and `go.sum`: another version is another folder, and a fresh clone builds nothing that
//! another clone of the same version has built. This file is part of two crates, since `xtask` imports none of ours.

use std::path::PathBuf;

const SOURCES: [&[u8]; 2] = [include_bytes!("main.go"), include_bytes!("go.sum")];

/// The cache of this user; `None` for a user without a home.
pub(crate) fn cache() -> Option<PathBuf> {
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    let cache = set("XDG_CACHE_HOME").map(PathBuf::from);
    let cache = cache.or_else(|| Some(PathBuf::from(set("HOME")?).join(".cache")));
    cache.map(|cache| cache.join("bigfleet"))
}

/// Where this version of the parts is, or will be.
pub(crate) fn built() -> Option<PathBuf> {
    Some(cache()?.join("kube").join(version()))
}

/// A number for the sources, as 16 hex digits (FNV-1a).
fn version() -> String {
    let bytes = SOURCES.iter().copied().flatten();
    let hash = bytes.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3)
    });
    format!("{hash:016x}")
}

/// The program of this name: somebody else's where they say so, otherwise ours; `None` if it is in neither place.
pub(crate) fn program(name: &str) -> Option<PathBuf> {
    let assets = std::env::var_os("KUBEBUILDER_ASSETS").filter(|value| !value.is_empty());
    let places = assets.map(PathBuf::from).into_iter().chain(built());
    places
        .map(|place| place.join(name))
        .find(|program| program.is_file())
}

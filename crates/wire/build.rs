//! Compiles `proto/` with protox, so that no `protoc` is needed, and keeps the descriptors for
//! reflection and for the contract test.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::{env, fs};

use prost::Message;

const FILES: [&str; 5] = ["capacity", "provider", "shard", "coordinator", "shardread"];

fn main() -> Result<(), Box<dyn Error>> {
    let root = Path::new("../../proto");
    println!("cargo::rerun-if-changed={}", root.display());
    let files = FILES.map(|name| format!("bigfleet/v1alpha1/{name}.proto"));
    let descriptors = protox::compile(files, [root])?;

    let out = PathBuf::from(env::var("OUT_DIR")?);
    fs::write(out.join("descriptors.bin"), descriptors.encode_to_vec())?;
    // Ordered maps: the order of a map field can then never reach a decision or a text.
    tonic_prost_build::configure()
        .btree_map(".")
        .compile_fds(descriptors)?;
    Ok(())
}

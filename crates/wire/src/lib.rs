//! The wire: the generated messages of `bigfleet.v1alpha1`.

/// The generated messages, clients and servers; `proto/` is their documentation.
pub mod v1alpha1 {
    #![expect(
        clippy::large_enum_variant,
        reason = "a frame is built, encoded and dropped"
    )]
    tonic::include_proto!("bigfleet.v1alpha1");
}

/// The encoded descriptors of all five files, for reflection.
pub const FILE_DESCRIPTOR_SET: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/descriptors.bin"));

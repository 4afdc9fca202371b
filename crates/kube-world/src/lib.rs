//! A real Kubernetes of one's own, for tests and for people who want to watch: no containers, no root, loopback only.
//!
//! ```text
//! certificates, tokens ─▶ etcd ─▶ kube-apiserver ─▶ kube-controller-manager? ─▶ kube-scheduler?
//!                                      └─ kubeconfig                    stopped in reverse, the folder removed
//! ```
//!
//! The programs are those of `KUBEBUILDER_ASSETS`, or those that `cargo xtask kube` built. There is no kubelet: that one part needs
//! containers, and `hollow-kubelet` stands for it.

mod credentials;
mod part;
mod world;

#[path = "../../xtask/kube/place.rs"]
mod place;

pub use part::PartRefused;
pub use world::{Parts, StartRefused, World};

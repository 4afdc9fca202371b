//! `bigfleet certs`: what it makes is enough to run a shard, a provider and every verb over TLS.

use std::net::SocketAddr;

use crate::called::{Called, call};
use crate::shard_scene::{Folder, Process, provider, shard, until};

struct Certs {
    folder: Folder,
}

impl Certs {
    fn new(name: &str) -> Self {
        let folder = Folder::new(name);
        let certs = Self { folder };
        let made = call(&["certs", "init", &certs.dir()]);
        assert_eq!(made.status, Some(0), "{made:?}");
        certs
    }

    fn dir(&self) -> String {
        format!("--dir={}", self.folder.file("certs").display())
    }

    /// The flags that `issue` prints.
    fn issue(&self, args: &[&str]) -> Vec<String> {
        let dir = self.dir();
        let issued = call(&[&["certs", "issue"], args, &[&dir]].concat()).done();
        let words: Vec<&str> = issued.split_whitespace().collect();
        let flags = words.chunks(2).map(|pair| pair.join("="));
        flags.collect()
    }

    fn call_as(&self, role: &str, shard: SocketAddr, args: &[&str]) -> Called {
        let flags = self.issue(&[role, "me"]);
        let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
        let shard = format!("--shard={shard}");
        call(&[args, &flags, &[&shard]].concat())
    }
}

fn started(certs: &Certs) -> (Process, Process) {
    let of_provider = certs.issue(&["provider", "cloud"]);
    let of_provider: Vec<&str> = of_provider.iter().map(String::as_str).collect();
    let of_shard = certs.issue(&["shard", "s1"]);
    let of_shard: Vec<&str> = of_shard.iter().map(String::as_str).collect();
    let provider = provider(&of_provider);
    let shard = shard(&certs.folder.file("data"), provider.addr, &of_shard);
    (provider, shard)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_shard_a_provider_and_verbs_run_on_what_was_issued() {
    let certs = Certs::new("certs-run");
    let (_provider, shard) = started(&certs);
    // The provider accepts the shard, and the shard the provider.
    until("machines are listed", async || {
        let listed = certs.call_as("reader", shard.addr, &["get", "machines", "--limit=1"]);
        (listed.status == Some(0) && !listed.out.is_empty(), listed)
    })
    .await;
    let denied = certs.call_as("reader", shard.addr, &["pause", "--reason=x"]);
    assert!(denied.undone().contains("does not let you pause"));
    certs
        .call_as("admin", shard.addr, &["pause", "--reason=x"])
        .done();
    certs
        .call_as("coordinator", shard.addr, &["resume", "--reason=x"])
        .done();
    let nobody = certs.call_as("provider", shard.addr, &["get", "machines"]);
    assert_ne!(nobody.status, Some(0), "{nobody:?}");
}

#[test]
fn an_authority_is_made_once_and_names_are_checked() {
    let certs = Certs::new("certs-once");
    let again = call(&["certs", "init", &certs.dir()]).undone();
    assert!(again.contains("exists already"), "{again}");
    let odd = call(&["certs", "issue", "shard", "../x", &certs.dir()]).refused();
    assert!(odd.contains("has to be letters, digits"), "{odd}");
    let nowhere = format!("--dir={}", certs.folder.file("nowhere").display());
    let none = call(&["certs", "issue", "shard", "s1", &nowhere]).undone();
    assert!(none.contains("bigfleet certs init"), "{none}");
}

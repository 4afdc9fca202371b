//! Certificates whose time is over: the shard's own, and its provider's.

use std::path::PathBuf;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bigfleet_net::TlsFiles;
use bigfleet_net::testing::Authority;

use super::{Drill, Watched, is_well};
use crate::shard_scene::{Folder, Process, provider, shard};

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// A shard and a provider that trust one authority, and somebody who reads.
struct Secured {
    folder: Folder,
    authority: Authority,
    provider: Process,
    shard: Process,
    of_provider: Vec<String>,
    reader: Vec<String>,
}

impl Watched for Secured {
    fn shard(&self) -> &Process {
        &self.shard
    }

    fn audit(&self) -> PathBuf {
        self.folder.file("data.audit")
    }

    fn flags(&self) -> Vec<&str> {
        words(&self.reader)
    }
}

fn words(flags: &[String]) -> Vec<&str> {
    flags.iter().map(String::as_str).collect()
}

fn flags(files: &TlsFiles) -> Vec<String> {
    vec![
        format!("--tls-cert={}", files.cert.display()),
        format!("--tls-key={}", files.key.display()),
        format!("--tls-ca={}", files.ca.display()),
    ]
}

impl Secured {
    async fn new(name: &str) -> Self {
        let folder = Folder::new(name);
        let authority = Authority::new("fleet").unwrap();
        let of = |who: &str, uri: &str| {
            let leaf = authority.leaf(&[uri]).unwrap();
            flags(&leaf.write(&folder.file(who), &authority.pem).unwrap())
        };
        let of_provider = of("provider", "bigfleet://shard/s1");
        let of_shard = of("shard", "bigfleet://shard/s1");
        let reader = of("reader", "bigfleet://readonly");
        let provider = provider(&words(&of_provider));
        let shard = shard(&folder.file("data"), provider.addr, &words(&of_shard));
        let secured = Self {
            folder,
            authority,
            provider,
            shard,
            of_provider,
            reader,
        };
        is_well(&secured).await;
        secured
    }

    /// The time of somebody's certificate is over.
    fn expires(&self, who: &str, uri: &str) {
        let expired = self.authority.expired(&[uri]).unwrap();
        expired
            .write(&self.folder.file(who), &self.authority.pem)
            .unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_shards_certificate_that_has_expired_is_said_by_all() {
    let secured = Secured::new("drill-certificate").await;
    let drill = Drill::begins("certificate of the shard expired");
    secured.expires("shard", "bigfleet://shard/s1");
    // Nobody new can connect, and is told why.
    let what =
        "its certificate has expired; issue it a new one with `bigfleet certs issue shard ID`";
    drill.status(&secured, "shard", what).await;
    drill.verb(&secured, &["get", "machines"], what).await;
    drill.verb(&secured, &["explain", "a"], what).await;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let ends = "bigfleet_shard_tls_expires_timestamp_seconds";
    drill
        .metric(&secured, ends, |ends| ends < now.as_secs_f64())
        .await;
    let what = "the shard's certificate has expired: nobody new can connect";
    drill
        .audit(&secured, &["--kind=certificate-expired"], what)
        .await;
    drill.is_told_by_all();
    // Issued anew in place, all is well without a restart.
    let leaf = secured
        .authority
        .ending(&["bigfleet://shard/s1"], now + 30 * DAY)
        .unwrap();
    leaf.write(&secured.folder.file("shard"), &secured.authority.pem)
        .unwrap();
    is_well(&secured).await;
    let back = Drill::begins("certificate of the shard issued anew");
    back.verb(
        &secured,
        &["get", "events"],
        "no more: the shard's certificate has expired",
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_providers_certificate_that_has_expired_is_named_by_all() {
    let mut secured = Secured::new("drill-provider-certificate").await;
    secured.expires("provider", "bigfleet://shard/s1");
    // The connection that is there lasts; whoever connects anew is shown the new one.
    let addr = format!("--addr={}", secured.provider.addr);
    let drill = Drill::begins("certificate of the provider expired");
    secured.provider.end();
    let mut flags = secured.of_provider.clone();
    flags.extend([addr, "--metrics-addr=127.0.0.1:0".to_owned()]);
    secured.provider = Process::start(&["provider", "fake"], &flags);
    let what = "cannot be reached securely: its certificate has expired";
    drill.status(&secured, "provider", what).await;
    for list in [&["get", "clusters"][..], &["get", "machines"]] {
        let said = drill.verb(&secured, list, what).await;
        assert!(said.starts_with("PROVIDER LOST for "), "{list:?}: {said}");
    }
    let lost = "bigfleet_shard_provider_lost_seconds";
    drill.metric(&secured, lost, |seconds| 0.0 < seconds).await;
    drill
        .audit(&secured, &["--kind=provider-lost"], "the provider ")
        .await;
}

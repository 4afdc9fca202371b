use super::*;
use std::os::unix::fs::PermissionsExt;
use x509_parser::prelude::{FromDer, GeneralName, X509Certificate};

const NOW: Duration = Duration::from_secs(1_800_000_000);
const YEAR: Duration = Duration::from_secs(365 * 24 * 60 * 60);

fn authority() -> Authority {
    Authority::new("test", Validity::lasting(NOW, 10 * YEAR)).unwrap()
}

fn names(leaf: &Leaf) -> (Vec<String>, Vec<String>) {
    let (_, pem) = x509_parser::pem::parse_x509_pem(leaf.cert.as_bytes()).unwrap();
    let (_, certificate) = X509Certificate::from_der(&pem.contents).unwrap();
    let (mut uris, mut hosts) = (Vec::new(), Vec::new());
    let names = certificate.subject_alternative_name().unwrap();
    for name in names.iter().flat_map(|names| &names.value.general_names) {
        match name {
            GeneralName::URI(uri) => uris.push((*uri).to_owned()),
            GeneralName::DNSName(host) => hosts.push((*host).to_owned()),
            GeneralName::IPAddress(bytes) => hosts.push(format!("{} bytes", bytes.len())),
            other => panic!("{other:?}"),
        }
    }
    (uris, hosts)
}

#[test]
fn each_role_says_who_it_is_and_where_it_is_dialled() {
    let authority = authority();
    let here = ["localhost", "4 bytes", "16 bytes"].map(str::to_owned);
    for (role, uri, is_dialled) in [
        (Role::Shard, Some("bigfleet://shard/x-1"), true),
        (Role::Operator, Some("bigfleet://cluster/x-1"), false),
        (Role::Provider, None, true),
        (Role::Coordinator, Some("bigfleet://admin"), true),
        (Role::Admin, Some("bigfleet://admin"), false),
        (Role::Reader, Some("bigfleet://readonly"), false),
    ] {
        let wanted = Wanted {
            role,
            name: "x-1",
            hosts: &["host.example".to_owned()],
            validity: Validity::lasting(NOW, YEAR),
        };
        let (uris, hosts) = names(&authority.issue(&wanted).unwrap());
        assert_eq!(uris, Vec::from_iter(uri.map(str::to_owned)), "{role:?}");
        assert_eq!(hosts[0], "host.example");
        let expected: &[String] = if is_dialled { &here } else { &[] };
        assert_eq!(&hosts[1..], expected, "{role:?}");
    }
}

#[test]
fn a_name_that_is_no_id_is_refused() {
    for name in ["", "..", ".x", "-x", "a/b", "a b", "ü"] {
        let wanted = Wanted {
            role: Role::Reader,
            name,
            hosts: &[],
            validity: Validity::lasting(NOW, YEAR),
        };
        let refused = authority().issue(&wanted).unwrap_err();
        assert!(matches!(refused, CertsRefused::Name(_)), "{refused}");
    }
}

#[test]
fn an_authority_is_kept_by_its_owner_and_made_once() {
    let folder = std::env::temp_dir().join(format!("bigfleet-certs-{}", std::process::id()));
    assert!(matches!(
        Authority::open(&folder),
        Err(CertsRefused::NoAuthority(_))
    ));
    let made = authority();
    made.save(&folder).unwrap();
    assert!(matches!(
        authority().save(&folder),
        Err(CertsRefused::Exists(_))
    ));
    let opened = Authority::open(&folder).unwrap();
    assert_eq!(opened.pem, made.pem);
    let wanted = Wanted {
        role: Role::Shard,
        name: "s",
        hosts: &[],
        validity: Validity::lasting(NOW, YEAR),
    };
    let leaf = opened.issue(&wanted).unwrap();
    let files = leaf.write(&folder.join("shard/s"), &opened.pem).unwrap();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    for path in [
        &folder.join(CA),
        &folder.join(CA_KEY),
        &files.cert,
        &files.key,
    ] {
        assert_eq!(mode(path), 0o600, "{}", path.display());
    }
    assert_eq!(mode(&folder), 0o700);
    crate::Tls::load(files).unwrap();
    fs::remove_dir_all(folder).unwrap();
}

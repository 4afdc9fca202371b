//! Secrets: tokens with which a machine may join (OP-46).

use bigfleet_k8s::{Call, Cluster, seconds_text};
use bigfleet_model::Time;
use bigfleet_operator_core::JoinToken;
use ring::rand::{SecureRandom, SystemRandom};
use serde_json::{Value, json};

const FOLDER: &str = "/api/v1/namespaces/kube-system/secrets";
const LETTERS: &[u8; 32] = b"abcdefghijkmnpqrstuvwxyz23456789";
const SECRET_LETTERS: usize = 16;

/// Makes the token of this id, or finds the one another process of this cluster made.
pub(crate) async fn join_token(
    cluster: &Cluster,
    id: &str,
    expires: Time,
) -> Result<JoinToken, String> {
    let secret = secret()?;
    let name = format!("bootstrap-token-{id}");
    let body = json!({
        "apiVersion": "v1", "kind": "Secret", "type": "bootstrap.kubernetes.io/token",
        "metadata": { "name": name, "namespace": "kube-system" },
        "stringData": {
            "token-id": id,
            "token-secret": secret,
            "expiration": seconds_text(expires.nanos()),
            "usage-bootstrap-authentication": "true",
            "auth-extra-groups": "system:bootstrappers:bigfleet",
            "description": "machines of BigFleet join with this",
        },
    });
    let made = cluster.done(Call::create(FOLDER, &body)).await;
    match made {
        Ok(()) => Ok(JoinToken {
            text: format!("{id}.{secret}"),
            expires,
        }),
        Err(refused) if refused.code() == Some(409) => {
            let path = format!("{FOLDER}/{name}");
            // Its secret is unknown to this process: it is made anew, and blobs that are out keep their time.
            let removed = cluster.done(Call::delete(&path, None)).await;
            removed.map_err(|why| why.to_string())?;
            cluster
                .call::<Value>(Call::create(FOLDER, &body))
                .await
                .map_err(|why| why.to_string())?;
            Ok(JoinToken {
                text: format!("{id}.{secret}"),
                expires,
            })
        }
        Err(refused) => Err(refused.to_string()),
    }
}

fn secret() -> Result<String, String> {
    let mut bytes = [0_u8; SECRET_LETTERS];
    let filled = SystemRandom::new().fill(&mut bytes);
    filled.map_err(|_| "this computer has no random numbers".to_owned())?;
    let letter = |byte: &u8| char::from(LETTERS[usize::from(*byte) % LETTERS.len()]);
    Ok(bytes.iter().map(letter).collect())
}

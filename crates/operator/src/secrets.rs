//! Secrets: tokens with which a machine may join (OP-46).

use base64::Engine;
use bigfleet_k8s::{Call, Cluster, Refused, nanos, seconds_text};
use bigfleet_model::Time;
use bigfleet_operator_core::JoinToken;
use ring::rand::{SecureRandom, SystemRandom};
use serde_json::{Value, json};

const FOLDER: &str = "/api/v1/namespaces/kube-system/secrets";
const LETTERS: &[u8; 32] = b"abcdefghijkmnpqrstuvwxyz23456789";
const SECRET_LETTERS: usize = 16;

/// Makes the token of this id, or reads the one that a process of this cluster made before.
pub(crate) async fn join_token(
    cluster: &Cluster,
    id: &str,
    expires: Time,
) -> Result<JoinToken, String> {
    let said = |refused: Refused| refused.to_string();
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
    let path = format!("{FOLDER}/{name}");
    match cluster.done(Call::create(FOLDER, &body)).await {
        Ok(()) => {}
        Err(refused) if refused.code() == Some(409) => {
            let there: Value = cluster.call(Call::get(&path)).await.map_err(said)?;
            if let Some(token) = read(&there, id) {
                return Ok(token);
            }
            // It is nothing a machine could join with.
            cluster
                .done(Call::delete(&path, None))
                .await
                .map_err(said)?;
            cluster
                .done(Call::create(FOLDER, &body))
                .await
                .map_err(said)?;
        }
        Err(refused) => return Err(said(refused)),
    }
    Ok(JoinToken {
        text: format!("{id}.{secret}"),
        expires,
    })
}

/// The token in a Secret.
fn read(secret: &Value, id: &str) -> Option<JoinToken> {
    let text = |name: &str| {
        let data = secret["data"][name].as_str()?;
        let bytes = base64::engine::general_purpose::STANDARD
            .decode(data)
            .ok()?;
        String::from_utf8(bytes).ok()
    };
    Some(JoinToken {
        text: format!("{id}.{}", text("token-secret")?),
        expires: Time::from_nanos(nanos(&text("expiration")?)?),
    })
}

fn secret() -> Result<String, String> {
    let mut bytes = [0_u8; SECRET_LETTERS];
    let filled = SystemRandom::new().fill(&mut bytes);
    filled.map_err(|_| "this computer has no random numbers".to_owned())?;
    let letter = |byte: &u8| char::from(LETTERS[usize::from(*byte) % LETTERS.len()]);
    Ok(bytes.iter().map(letter).collect())
}

//! TLS problems: what a handshake that failed says about either side, in kinds that advice can be given for.

use std::io;

use rustls::{AlertDescription, CertificateError, Error};

use crate::answered::connection_error;
use crate::identity::shown;

/// Why two sides did not accept each other.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TlsProblem {
    /// The time of the peer's certificate is over, or has not begun.
    #[error("its certificate has expired")]
    PeerExpired,
    /// Nobody we trust has signed the peer's certificate.
    #[error("its certificate is not signed by the authority that is trusted here (--tls-ca)")]
    PeerUnknown,
    /// The peer's certificate is for another name than the one that was dialled.
    #[error("its certificate is for another name than the one that was dialled")]
    PeerName,
    /// The peer says that the time of ours is over.
    #[error("it says that our certificate has expired")]
    OwnExpired,
    /// The peer does not accept ours, and why.
    #[error("it refuses our certificate ({})", shown(.0))]
    OwnRefused(String),
    /// The peer does not speak TLS.
    #[error("it speaks without TLS")]
    NotTls,
    /// Something else, in the library's words.
    #[error("{}", shown(.0))]
    Other(String),
}

impl TlsProblem {
    /// What a call ended with says; `None` if it has nothing to do with TLS.
    pub fn of_status(status: &tonic::Status) -> Option<Self> {
        let error = connection_error(status)?;
        // HTTP/2 keeps the words of an alert that came after the handshake, and nothing else of it.
        let text = error.to_string();
        let alert = text
            .split_once("received fatal alert: ")
            .map(|(_, alert)| alert);
        Self::of(error).or_else(|| match alert? {
            alert if alert.starts_with("CertificateExpired") => Some(Self::OwnExpired),
            alert => Some(Self::OwnRefused(alert.to_owned())),
        })
    }

    /// What an error of a connection says; `None` if it has nothing to do with TLS.
    pub fn of(error: &io::Error) -> Option<Self> {
        let error = error.get_ref()?.downcast_ref::<Error>()?;
        Some(match error {
            Error::InvalidCertificate(
                CertificateError::Expired
                | CertificateError::ExpiredContext { .. }
                | CertificateError::NotValidYet
                | CertificateError::NotValidYetContext { .. },
            ) => Self::PeerExpired,
            Error::InvalidCertificate(CertificateError::UnknownIssuer) => Self::PeerUnknown,
            Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            ) => Self::PeerName,
            Error::AlertReceived(AlertDescription::CertificateExpired) => Self::OwnExpired,
            Error::AlertReceived(
                alert @ (AlertDescription::UnknownCA
                | AlertDescription::BadCertificate
                | AlertDescription::CertificateRequired
                | AlertDescription::CertificateUnknown
                | AlertDescription::AccessDenied
                | AlertDescription::DecryptError),
            ) => Self::OwnRefused(format!("{alert:?}")),
            Error::InvalidMessage(_) => Self::NotTls,
            other => Self::Other(other.to_string()),
        })
    }
}

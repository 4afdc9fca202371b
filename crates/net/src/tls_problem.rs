//! TLS problems: what a handshake that failed says about either side, in kinds that advice can be given for.

use std::io;

use rustls::{AlertDescription, CertificateError, Error};

/// Why two sides did not accept each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TlsProblem {
    /// The time of the peer's certificate is over, or has not begun.
    PeerExpired,
    /// Nobody we trust has signed the peer's certificate.
    PeerUnknown,
    /// The peer's certificate is for another name than the one that was dialled.
    PeerName,
    /// The peer says that the time of ours is over.
    OwnExpired,
    /// The peer does not accept ours, and why.
    OwnRefused(String),
    /// The peer does not speak TLS.
    NotTls,
    /// Something else, in the library's words.
    Other(String),
}

impl TlsProblem {
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

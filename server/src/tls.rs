//! Encryption: certificate and key from PEM files.

use crate::settings::Tls;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use thiserror::Error;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

/// Certificate or key cannot be used.
#[derive(Debug, Error)]
#[error("{}: {message}", path.display())]
pub struct TlsError {
    /// The file.
    pub path: PathBuf,
    /// Why.
    pub message: String,
}

/// What accepts encrypted connections.
///
/// # Errors
/// A file is not what it should be, or the two do not belong together.
pub fn acceptor(tls: &Tls) -> Result<TlsAcceptor, TlsError> {
    let error = |path: &Path, message: String| TlsError {
        path: path.to_owned(),
        message,
    };
    let chain = CertificateDer::pem_file_iter(&tls.certificate)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(|e| error(&tls.certificate, format!("no certificates in PEM: {e}")))?;
    if chain.is_empty() {
        return Err(error(&tls.certificate, "no certificates in PEM".to_owned()));
    }
    let key = PrivateKeyDer::from_pem_file(&tls.key)
        .map_err(|e| error(&tls.key, format!("no private key in PEM: {e}")))?;
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .and_then(|builder| builder.with_no_client_auth().with_single_cert(chain, key))
        .map_err(|e| {
            error(
                &tls.key,
                format!("does not go with {}: {e}", tls.certificate.display()),
            )
        })?;
    Ok(TlsAcceptor::from(Arc::new(config)))
}

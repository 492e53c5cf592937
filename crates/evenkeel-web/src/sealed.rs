//! Encrypts the contents of cookies.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use evenkeel_core::chance::Chance;
use evenkeel_core::{Span, Timestamp};
use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::hmac;

/// Encrypts texts for one purpose, with the time of encryption. A text that was sealed for another
/// purpose can't be opened.
pub(crate) struct Sealer {
    cipher: Option<LessSafeKey>,
    chance: Arc<dyn Chance>,
}

impl Sealer {
    /// `key` has 32 bytes.
    pub(crate) fn new(key: &hmac::Tag, chance: Arc<dyn Chance>) -> Self {
        let cipher = UnboundKey::new(&CHACHA20_POLY1305, key.as_ref());
        Self { cipher: cipher.ok().map(LessSafeKey::new), chance }
    }

    pub(crate) fn seal(&self, text: &str, now: Timestamp) -> Option<String> {
        let mut nonce = [0; NONCE_LEN];
        for part in nonce.chunks_mut(8) {
            part.copy_from_slice(&self.chance.bits().to_le_bytes()[..part.len()]);
        }
        let mut sealed = now.as_micros().to_le_bytes().to_vec();
        sealed.extend_from_slice(text.as_bytes());
        let nonce_of_text = Nonce::assume_unique_for_key(nonce);
        let cipher = self.cipher.as_ref()?;
        cipher.seal_in_place_append_tag(nonce_of_text, Aad::empty(), &mut sealed).ok()?;
        Some(URL_SAFE_NO_PAD.encode([&nonce[..], &sealed].concat()))
    }

    /// Returns the text, unless it was sealed `max_age` ago or earlier.
    pub(crate) fn open(&self, sealed: &str, max_age: Span, now: Timestamp) -> Option<String> {
        let bytes = URL_SAFE_NO_PAD.decode(sealed).ok()?;
        let (nonce, sealed) = bytes.split_at_checked(NONCE_LEN)?;
        let nonce = Nonce::try_assume_unique_for_key(nonce).ok()?;
        let mut sealed = sealed.to_vec();
        let opened = self.cipher.as_ref()?.open_in_place(nonce, Aad::empty(), &mut sealed).ok()?;
        let (sealed_at, text) = opened.split_first_chunk()?;
        let sealed_at = Timestamp::from_micros(i64::from_le_bytes(*sealed_at));
        let is_valid = now < sealed_at.saturating_add(max_age);
        is_valid.then(|| String::from_utf8(text.to_vec()).ok()).flatten()
    }
}

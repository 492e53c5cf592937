//! The keyring: the keys that encrypt and decrypt secrets.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD};
use evenkeel_core::TenantNo;
use evenkeel_core::chance::Chance;
use evenkeel_store::Sealed;
use ring::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::digest;

const KEY_BYTES: usize = 32;

/// Maximum number of keys in a keyring, which is more than a key rotation needs.
const KEYS_MAX: usize = 16;

/// Keys for AES-256-GCM. The first key encrypts new secret values; the other keys only decrypt
/// older values.
pub struct Keyring(Vec<Key>);

struct Key {
    id: String,
    key: LessSafeKey,
}

/// Why a text does not contain valid keys. The error message does not quote the text, because the
/// text may be part of a key.
#[derive(Copy, Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum KeyError {
    #[error("it holds no key")]
    None,
    #[error("key {0} is not 32 bytes in Base64 (44 characters) or hexadecimal (64 characters)")]
    Malformed(usize),
    #[error("key {0} is the same as one before it")]
    Repeated(usize),
    #[error("it holds more than 16 keys")]
    TooMany,
}

/// Why the value of a secret cannot be decrypted.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum OpenError {
    #[error(
        "it is encrypted with the key {0}, which this server does not have; add that key, or set the \
         secret again"
    )]
    UnknownKey(String),
    #[error("its stored value was changed or belongs to another secret; set it again")]
    Tampered,
}

impl Keyring {
    /// Reads encryption keys separated by line breaks or commas; the newest key comes first. Empty
    /// lines and lines that begin with `#` are ignored.
    pub fn read(text: &str) -> Result<Self, KeyError> {
        let lines = text.lines().map(str::trim).filter(|line| !line.starts_with('#'));
        let parts = lines.flat_map(|line| line.split(',')).map(str::trim);
        let mut keys: Vec<Key> = Vec::new();
        for (n, part) in parts.filter(|part| !part.is_empty()).enumerate() {
            let key = Key::read(part).ok_or(KeyError::Malformed(n + 1))?;
            if keys.iter().any(|other| other.id == key.id) {
                return Err(KeyError::Repeated(n + 1));
            }
            if keys.len() == KEYS_MAX {
                return Err(KeyError::TooMany);
            }
            keys.push(key);
        }
        if keys.is_empty() { Err(KeyError::None) } else { Ok(Self(keys)) }
    }

    /// Generates an encryption key in the form that [`read`](Self::read) accepts.
    pub fn draw(chance: &dyn Chance) -> String {
        let mut bytes = [0; KEY_BYTES];
        for part in bytes.chunks_mut(8) {
            part.copy_from_slice(&chance.bits().to_le_bytes());
        }
        STANDARD.encode(bytes)
    }

    /// Returns the id of the key that encrypts new secret values.
    pub fn newest(&self) -> &str {
        &self.0[0].id
    }

    /// Encrypts the value of a secret. The encrypted value can be decrypted only with the same
    /// tenant and secret name.
    pub fn seal(&self, tenant: TenantNo, name: &str, value: &str, chance: &dyn Chance) -> Sealed {
        let mut nonce = [0; NONCE_LEN];
        nonce[..8].copy_from_slice(&chance.bits().to_le_bytes());
        nonce[8..].copy_from_slice(&chance.bits().to_le_bytes()[..4]);
        let mut bytes = value.as_bytes().to_vec();
        let once = Nonce::assume_unique_for_key(nonce);
        let Key { id, key } = &self.0[0];
        // AES-GCM encryption fails only for values beyond 64 GiB.
        if key
            .seal_in_place_append_tag(once, Aad::from(bound_to(tenant, name)), &mut bytes)
            .is_err()
        {
            bytes.clear();
        }
        Sealed { key_id: id.clone(), nonce: nonce.to_vec(), ciphertext: bytes }
    }

    /// Decrypts the value of a secret that belongs to this tenant and has this name.
    pub fn open(&self, tenant: TenantNo, name: &str, sealed: &Sealed) -> Result<String, OpenError> {
        let known = self.0.iter().find(|key| key.id == sealed.key_id);
        let Key { key, .. } = known.ok_or_else(|| OpenError::UnknownKey(sealed.key_id.clone()))?;
        let nonce = Nonce::try_assume_unique_for_key(&sealed.nonce);
        let mut bytes = sealed.ciphertext.clone();
        let opened = nonce
            .and_then(|nonce| {
                key.open_in_place(nonce, Aad::from(bound_to(tenant, name)), &mut bytes)
            })
            .map_err(|_| OpenError::Tampered)?;
        let value = std::str::from_utf8(opened).map_err(|_| OpenError::Tampered)?;
        Ok(value.to_owned())
    }
}

impl Key {
    fn read(word: &str) -> Option<Self> {
        let bytes = match word.len() {
            64 => unhex(word)?,
            43 => STANDARD_NO_PAD.decode(word).ok()?,
            _ => STANDARD.decode(word).ok()?,
        };
        let key = LessSafeKey::new(UnboundKey::new(&AES_256_GCM, &bytes).ok()?);
        // Clients that may list secrets see the id of the encryption key. The id is a hash, so it
        // reveals nothing about the key.
        let mut hashed = digest::Context::new(&digest::SHA256);
        hashed.update(b"evenkeel secret key ");
        hashed.update(&bytes);
        let id = hashed.finish().as_ref()[..8].iter().map(|byte| format!("{byte:02x}")).collect();
        Some(Self { id, key })
    }
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    let pair = |at: usize| u8::from_str_radix(text.get(at..at + 2)?, 16).ok();
    (0..text.len()).step_by(2).map(pair).collect()
}

/// Returns the additional data that binds an encrypted value to its tenant and secret name. The
/// tenant number has a fixed length, so different tenants or names give different data.
fn bound_to(tenant: TenantNo, name: &str) -> Vec<u8> {
    [b"evenkeel secret ", &tenant.0.to_be_bytes()[..], name.as_bytes()].concat()
}

impl fmt::Debug for Keyring {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0.iter().map(|key| &key.id)).finish()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use proptest::prelude::*;

    use super::*;

    struct Counting(AtomicU64);

    impl Chance for Counting {
        fn bits(&self) -> u64 {
            self.0.fetch_add(1, Ordering::Relaxed)
        }
    }

    fn chance() -> Counting {
        Counting(AtomicU64::new(7))
    }

    const TENANT: TenantNo = TenantNo(1);

    #[test]
    fn keys_are_read_in_all_formats() {
        let base = STANDARD.encode([1; 32]);
        let hex = "02".repeat(32);
        let both = Keyring::read(&format!("# newest\n{base}\n\n{hex}\n")).unwrap();
        let comma = Keyring::read(&format!("{base}, {hex}")).unwrap();
        assert_eq!(format!("{both:?}"), format!("{comma:?}"));
        assert_eq!(both.newest(), Keyring::read(base.trim_end_matches('=')).unwrap().newest());
        assert_eq!(Keyring::read("#\n").unwrap_err(), KeyError::None);
        assert_eq!(Keyring::read(&format!("{base},hunter2")).unwrap_err(), KeyError::Malformed(2));
        assert_eq!(Keyring::read(&format!("{base},{base}")).unwrap_err(), KeyError::Repeated(2));
        assert_eq!(Keyring::read(&"é".repeat(32)).unwrap_err(), KeyError::Malformed(1));
        let drawn = Keyring::draw(&chance());
        assert!(Keyring::read(&drawn).is_ok() && !format!("{both:?}").contains(&base));
    }

    #[test]
    fn value_cannot_be_moved_to_another_tenant_or_name() {
        let keys = Keyring::read(&STANDARD.encode([1; 32])).unwrap();
        let sealed = keys.seal(TENANT, "a", "value", &chance());
        assert_eq!(keys.open(TENANT, "a", &sealed).as_deref(), Ok("value"));
        assert_eq!(keys.open(TenantNo(2), "a", &sealed), Err(OpenError::Tampered));
        assert_eq!(keys.open(TENANT, "b", &sealed), Err(OpenError::Tampered));
        let mut changed = sealed;
        changed.ciphertext[0] ^= 1;
        assert_eq!(keys.open(TENANT, "a", &changed), Err(OpenError::Tampered));
        changed.nonce = Vec::new();
        assert_eq!(keys.open(TENANT, "a", &changed), Err(OpenError::Tampered));
    }

    #[test]
    fn older_keys_decrypt_and_a_missing_key_is_named() {
        let (old, new) = (STANDARD.encode([1; 32]), STANDARD.encode([2; 32]));
        let before = Keyring::read(&old).unwrap();
        let sealed = before.seal(TENANT, "a", "value", &chance());
        let both = Keyring::read(&format!("{new}\n{old}")).unwrap();
        assert_eq!(both.open(TENANT, "a", &sealed).as_deref(), Ok("value"));
        assert_ne!(both.seal(TENANT, "a", "value", &chance()).key_id, sealed.key_id);
        let message =
            Keyring::read(&new).unwrap().open(TENANT, "a", &sealed).unwrap_err().to_string();
        assert!(message.contains(before.newest()), "{message}");
    }

    proptest! {
        #[test]
        fn encrypted_value_is_decrypted_unchanged(value in any::<String>(), name in "[a-z]{1,9}") {
            let keys = Keyring::read(&STANDARD.encode([1; 32])).unwrap();
            let chance = chance();
            let sealed = keys.seal(TENANT, &name, &value, &chance);
            prop_assert_eq!(&keys.open(TENANT, &name, &sealed).unwrap(), &value);
            prop_assert_ne!(keys.seal(TENANT, &name, &value, &chance).nonce, sealed.nonce);
        }
    }
}

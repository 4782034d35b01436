//! A text as a vault text, and as what is encrypted.

use windlass::value::Secret;
use windlass::value::vault::{self, Keyring};

pub(super) fn run(input: &[u8]) {
    let password = Secret::new("a password");
    let keyring = Keyring::new(vec![("default".into(), password.clone()), ("other".into(), Secret::new(""))]);
    let Ok(text) = std::str::from_utf8(input) else {
        // What is encrypted comes back.
        let sealed = vault::encrypt(input, &password, Some("default"));
        assert_eq!(keyring.decrypt(&sealed).as_deref(), Ok(input));
        return;
    };
    if let Ok(opened) = keyring.decrypt_text(text) {
        assert!(vault::is_vault(text) && opened.plain.len() < text.len());
    }
    assert!(Keyring::default().decrypt_text(text).is_err());
}

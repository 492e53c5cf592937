//! What of a job's configuration not everybody may see.

use evenkeel_store::Role;
use serde_json::Value;

use super::JobView;

/// Stands for a value that is there and not shown.
const VEILED: &str = "…";

impl JobView {
    /// As `role` may see it: headers of calls and variables of programs often hold credentials, and
    /// so do addresses; who may not change the job need not know them.
    pub(crate) fn for_role(mut self, role: Role) -> Self {
        if role >= Role::Operator {
            return self;
        }
        for field in ["headers", "env"] {
            let values = self.executor_config.get_mut(field).and_then(Value::as_object_mut);
            values.into_iter().flatten().for_each(|(_, value)| *value = VEILED.into());
        }
        if let Some(Value::String(url)) = self.executor_config.get_mut("url") {
            veil_credentials(url);
        }
        self
    }
}

/// Takes the user and password out of an address, as far as it has them.
fn veil_credentials(url: &mut String) {
    let Some(start) = url.find("://").map(|at| at + 3) else { return };
    let end = url[start..].find(['/', '?', '#']).map_or(url.len(), |at| start + at);
    if let Some(at) = url[start..end].rfind('@') {
        url.replace_range(start..start + at, VEILED);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_of_an_address_are_veiled_and_nothing_else() {
        for (url, shown) in [
            ("https://ann:pw@example.com/a@b", "https://…@example.com/a@b"),
            ("https://example.com/?x=a@b", "https://example.com/?x=a@b"),
            ("https://example.com", "https://example.com"),
        ] {
            let mut text = url.to_owned();
            veil_credentials(&mut text);
            assert_eq!(text, shown);
        }
    }
}

//! Templates in the start URLs of a crawl.

use evenkeel_outbound::reqwest::Url;
use serde_json::Value;

use crate::ConfigFault;
use crate::template::{Escape, Template, Values};

/// Refuses start URLs that contain credentials, because a crawl would not send these credentials
/// and users could read them in the job.
pub(super) fn refuse_credentials(config: &Value) -> Result<(), ConfigFault> {
    let url = config.get("url").map(|url| ("url".to_owned(), url));
    let starts = config.get("start_urls").and_then(Value::as_array).into_iter().flatten();
    let starts = starts.enumerate().map(|(at, url)| (format!("start_urls.{at}"), url));
    for (field, value) in url.into_iter().chain(starts) {
        let url = value.as_str().and_then(|text| text.trim().parse::<Url>().ok());
        if url.is_some_and(|url| !url.username().is_empty() || url.password().is_some()) {
            let message = "holds a user or a password, which a crawl does not send; take it out";
            return Err(ConfigFault::new(&field, message));
        }
    }
    Ok(())
}

pub(super) fn fill(config: &Value, values: &Values<'_>) -> Result<Value, ConfigFault> {
    let mut config = config.clone();
    if let Some(url) = config.get_mut("url") {
        fill_one("url", url, values)?;
    }
    if let Some(Value::Array(starts)) = config.get_mut("start_urls") {
        for (at, url) in starts.iter_mut().enumerate() {
            fill_one(&format!("start_urls.{at}"), url, values)?;
        }
    }
    Ok(config)
}

fn fill_one(field: &str, value: &mut Value, values: &Values<'_>) -> Result<(), ConfigFault> {
    if let Value::String(text) = value
        && text.contains("{{")
    {
        let filled = Template::parse(text).and_then(|t| t.fill(values, Escape::Url));
        *text = filled.map_err(|message| ConfigFault::new(field, message))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn credentials_are_refused_in_every_start_url() {
        let field = |config: Value| refuse_credentials(&config).err().map(|fault| fault.field);
        let (bad, good) = ("https://ann:pw@e.com/", "https://e.com/?x=a@b");
        assert_eq!(field(json!({"url": bad})).as_deref(), Some("executor_config.url"));
        assert_eq!(
            field(json!({"url": "http://ann@e.com"})).as_deref(),
            Some("executor_config.url")
        );
        let second = field(json!({"start_urls": [good, bad]}));
        assert_eq!(second.as_deref(), Some("executor_config.start_urls.1"));
        assert_eq!(field(json!({"url": good, "start_urls": [good]})), None);
    }
}

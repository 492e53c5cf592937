//! The export file of a crawl, with one JSON object per line for each page.

use std::io;
use std::path::{Path, PathBuf};

use evenkeel_core::page::PageContent;
use serde_json::json;
use tokio::fs::{File, OpenOptions};
use tokio::io::AsyncWriteExt;

/// Writes new and changed pages to the export file. The export file is called `NAME.ndjson.part`
/// until the crawl has ended, and `NAME.ndjson` afterwards. A crawl that resumes after a crash
/// appends to the export file, so a page may be in the file twice; the later line counts.
#[derive(Debug)]
pub(crate) struct Export {
    file: File,
    part: PathBuf,
    whole: PathBuf,
    bytes_left: u64,
}

impl Export {
    pub(crate) async fn open(dir: &Path, name: &str, bytes_max: u64) -> io::Result<Self> {
        let legal = |c: char| c.is_ascii_alphanumeric() || c == '-';
        if name.is_empty() || !name.chars().all(legal) {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a file's name"));
        }
        let part = dir.join(format!("{name}.ndjson.part"));
        let whole = dir.join(format!("{name}.ndjson"));
        // If an attempt is repeated because its result was not stored, it appends to the export
        // file of its first execution.
        if !tokio::fs::try_exists(&part).await? {
            match tokio::fs::rename(&whole, &part).await {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        let file = OpenOptions::new().create(true).append(true).open(&part).await?;
        let bytes_left = bytes_max.saturating_sub(file.metadata().await?.len());
        Ok(Self { file, part, whole, bytes_left })
    }

    /// Appends pages to the file. Returns false if some pages do not fit into the export file.
    pub(crate) async fn write(&mut self, pages: &[&PageContent]) -> io::Result<bool> {
        let mut lines = Vec::new();
        let mut all = true;
        for page in pages {
            let line = json!({
                "id": page.id, "url": page.url, "status": page.status,
                "content_type": page.content_type, "depth": page.depth, "title": page.title,
                "text": page.text, "links": page.links, "metadata": page.metadata,
                "fields": page.fields,
            });
            let line = line.to_string();
            if (lines.len() + line.len() + 1) as u64 > self.bytes_left {
                all = false;
                break;
            }
            lines.extend(line.as_bytes());
            lines.push(b'\n');
        }
        self.file.write_all(&lines).await?;
        self.file.flush().await?;
        self.bytes_left -= lines.len() as u64;
        Ok(all)
    }

    /// Gives the export file its final name.
    pub(crate) async fn complete(self) -> io::Result<()> {
        self.file.sync_all().await?;
        tokio::fs::rename(&self.part, &self.whole).await
    }
}

#[cfg(test)]
mod tests {
    use evenkeel_core::{JobNo, PageId};
    use serde_json::Value;

    use super::*;

    fn page(url: &str) -> PageContent {
        PageContent {
            id: PageId::of(JobNo(1), url),
            url: url.into(),
            status: 200,
            content_type: "text/html".into(),
            etag: None,
            last_modified: None,
            content_hash: [0; 32],
            depth: 1,
            title: None,
            text: "a\nb".into(),
            links: Vec::new(),
            metadata: json!({}),
            fields: json!({"price": "1"}),
        }
    }

    #[tokio::test]
    async fn export_gets_its_final_name_when_it_is_complete() {
        let dir = tempfile::tempdir().unwrap();
        for url in ["http://a/1", "http://a/2"] {
            let mut export = Export::open(dir.path(), "run-7", 10_000).await.unwrap();
            assert!(export.write(&[&page(url)]).await.unwrap());
        }
        assert!(!dir.path().join("run-7.ndjson").exists());
        let export = Export::open(dir.path(), "run-7", 10_000).await.unwrap();
        export.complete().await.unwrap();
        let text = std::fs::read_to_string(dir.path().join("run-7.ndjson")).unwrap();
        let read = |line| serde_json::from_str::<Value>(line).unwrap()["url"].clone();
        assert_eq!(text.lines().map(read).collect::<Vec<_>>(), ["http://a/1", "http://a/2"]);
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
        // Repeating the same run without new pages keeps the content of the export file.
        let export = Export::open(dir.path(), "run-7", 10_000).await.unwrap();
        export.complete().await.unwrap();
        assert_eq!(std::fs::read_to_string(dir.path().join("run-7.ndjson")).unwrap(), text);
    }

    #[tokio::test]
    async fn full_export_takes_no_more_pages() {
        let dir = tempfile::tempdir().unwrap();
        let mut export = Export::open(dir.path(), "x", 300).await.unwrap();
        assert!(!export.write(&[&page("http://a/1"), &page("http://a/2")]).await.unwrap());
        drop(export);
        let text = std::fs::read_to_string(dir.path().join("x.ndjson.part")).unwrap();
        assert!(text.len() <= 300 && text.lines().count() == 1);
        assert!(Export::open(dir.path(), "../x", 300).await.is_err());
    }
}

//! Uploads: small objects at once, large ones in parts.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use super::requests::Call;
use super::{Bucket, S3Error, ServerSideEncryption, answers};

impl Bucket {
    /// Writes a new object with the content of a file. It appears when all of it has arrived. The content is not read back.
    ///
    /// # Errors
    /// There is an object with this key, or it cannot be written.
    pub async fn upload_object(&self, key: &str, path: &Path) -> Result<(), S3Error> {
        let what = format!("cannot write {}", self.object_address(key));
        let unreadable = |error: std::io::Error| S3Error::other(&what, &format!("{}: {error}", path.display()));
        let mut file = File::open(path).map_err(unreadable)?;
        let first = self.next_part(&mut file).map_err(unreadable)?;
        if first.len() < self.part {
            let headers = [self.encryption_headers(), new_only()].concat();
            return self.create(&what, &Call { method: "PUT", key, headers, body: first, ..Call::default() }).await;
        }
        let (query, headers) = (vec![("uploads", String::new())], self.encryption_headers());
        let begin = Call { method: "POST", key, query, headers, ..Call::default() };
        let (answer, _) = self.perform(&what, &begin, &[]).await?;
        let id = answers::parse_upload(&answer.body).map_err(|why| S3Error::other(&what, &why))?;
        let uploaded =
            self.upload_parts(&what, key, &id, first, || self.next_part(&mut file).map_err(unreadable)).await;
        if uploaded.is_err() {
            // Parts cost money until they are removed. What is wrong is known already.
            let query = vec![("uploadId", id)];
            drop(self.perform(&what, &Call { method: "DELETE", key, query, ..Call::default() }, &[404]).await);
        }
        uploaded
    }

    async fn upload_parts(
        &self,
        what: &str,
        key: &str,
        id: &str,
        first: Vec<u8>,
        mut next: impl FnMut() -> Result<Vec<u8>, S3Error>,
    ) -> Result<(), S3Error> {
        let (mut body, mut parts) = (first, Vec::new());
        while !body.is_empty() {
            let number = parts.len() + 1;
            let query = vec![("partNumber", number.to_string()), ("uploadId", id.to_owned())];
            let (answer, _) =
                self.perform(what, &Call { method: "PUT", key, query, body, ..Call::default() }, &[]).await?;
            let tag = answer.header("etag").ok_or_else(|| S3Error::other(what, "the server gave a part no ETag"))?;
            let tag = tag.replace('&', "&amp;").replace('<', "&lt;");
            parts.push(format!("<Part><PartNumber>{number}</PartNumber><ETag>{tag}</ETag></Part>"));
            body = next()?;
        }
        let body = format!("<CompleteMultipartUpload>{}</CompleteMultipartUpload>", parts.concat()).into_bytes();
        let query = vec![("uploadId", id.to_owned())];
        self.create(what, &Call { method: "POST", key, query, headers: new_only(), body }).await
    }

    /// Sends a request that creates an object.
    async fn create(&self, what: &str, call: &Call<'_>) -> Result<(), S3Error> {
        let mut pauses = (0..self.attempts - 1).map(|number| self.pause * 2_u32.pow(number));
        let mut is_repeated = false;
        loop {
            let (answer, attempts) = self.perform(what, call, &[404, 412]).await?;
            is_repeated |= attempts > 1;
            return match answer.status {
                // An attempt whose answer was lost may have created it.
                404 | 412 if is_repeated => Ok(()),
                404 | 412 => Err(S3Error::of_answer(what, &answer)),
                _ if call.method != "POST" || answers::parse_completed(&answer.body).is_ok() => Ok(()),
                // The end of an upload in parts may fail with the status 200.
                _ => match pauses.next() {
                    Some(pause)
                        if ["InternalError", "SlowDown"].contains(&answers::parse_error(&answer.body).0.as_str()) =>
                    {
                        tokio::time::sleep(pause).await;
                        is_repeated = true;
                        continue;
                    }
                    _ => Err(S3Error::of_answer(what, &answer)),
                },
            };
        }
    }

    fn next_part(&self, file: &mut File) -> std::io::Result<Vec<u8>> {
        let mut part = Vec::new();
        file.take(self.part as u64).read_to_end(&mut part)?;
        Ok(part)
    }

    fn encryption_headers(&self) -> Vec<(String, String)> {
        let header = |name: &str, value: &str| (format!("x-amz-server-side-encryption{name}"), value.to_owned());
        match &self.encryption {
            None => Vec::new(),
            Some(ServerSideEncryption::Aes256) => vec![header("", "AES256")],
            Some(ServerSideEncryption::Kms(None)) => vec![header("", "aws:kms")],
            Some(ServerSideEncryption::Kms(Some(key))) => {
                vec![header("", "aws:kms"), header("-aws-kms-key-id", key)]
            }
        }
    }
}

/// Nothing that exists is replaced.
fn new_only() -> Vec<(String, String)> {
    vec![("if-none-match".to_owned(), "*".to_owned())]
}

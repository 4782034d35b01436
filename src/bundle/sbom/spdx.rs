//! SPDX 2.3, as JSON: <https://spdx.github.io/spdx-spec/v2.3/>.

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::{BillOfMaterials, package_url};
use crate::bundle::bytes_to_hex;

/// The bill of materials of a bundle with this name. `created`: when, as RFC 3339 in UTC.
pub fn spdx(bill: &BillOfMaterials, name: &str, created: &str) -> Value {
    const BUNDLE: &str = "SPDXRef-Bundle";
    let modules: Vec<_> = bill.modules().into_iter().collect();
    let module_reference = |index: usize| format!("SPDXRef-Module-{index}");
    let file_reference = |index: usize| format!("SPDXRef-File-{index}");
    let package = |reference: &str, name: &str, version: Option<&str>, url: Option<String>| {
        let mut package = json!({
            "SPDXID": reference,
            "name": name,
            "downloadLocation": "NOASSERTION",
            "filesAnalyzed": false,
            "licenseConcluded": "NOASSERTION",
            "licenseDeclared": "NOASSERTION",
            "copyrightText": "NOASSERTION",
        });
        if let Some(version) = version {
            package["versionInfo"] = version.into();
        }
        if let Some(url) = url {
            package["externalRefs"] =
                json!([{"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl", "referenceLocator": url}]);
        }
        package
    };
    let relation = |from: &str, kind: &str, to: &str| json!({"spdxElementId": from, "relationshipType": kind, "relatedSpdxElement": to});
    let mut packages = vec![package(BUNDLE, name, None, None)];
    let mut relations = vec![relation("SPDXRef-DOCUMENT", "DESCRIBES", BUNDLE)];
    for (index, part) in bill.parts.iter().enumerate() {
        let reference = file_reference(index);
        let mut described = package(&reference, part.name(), Some(&part.version()), package_url::of_part(part));
        described["packageFileName"] = part.item.file.as_str().into();
        described["checksums"] = json!([{"algorithm": "SHA256", "checksumValue": part.item.sha256}]);
        if let Some(address) = part.address() {
            described["downloadLocation"] = address.into();
        }
        described["comment"] = format!("architecture: {}", part.item.architecture).into();
        packages.push(described);
        relations.push(relation(BUNDLE, "CONTAINS", &reference));
        for module in part.modules() {
            if let Ok(found) = modules.binary_search(&module) {
                relations.push(relation(&reference, "DEPENDS_ON", &module_reference(found)));
            }
        }
    }
    for (index, module) in modules.iter().enumerate() {
        let url = Some(package_url::of_module(module));
        packages.push(package(&module_reference(index), &module.path, module.version.as_deref(), url));
    }
    json!({
        "spdxVersion": "SPDX-2.3",
        "dataLicense": "CC0-1.0",
        "SPDXID": "SPDXRef-DOCUMENT",
        "name": name,
        "documentNamespace": format!("urn:windlass:bundle:sha256:{}", namespace(bill, name, created)),
        "creationInfo": {"created": created, "creators": [format!("Tool: windlass-{}", env!("CARGO_PKG_VERSION"))]},
        "packages": packages,
        "relationships": relations,
    })
}

/// Of everything that makes a document another one.
fn namespace(bill: &BillOfMaterials, name: &str, created: &str) -> String {
    let all = [bill.digest.as_str(), name, created, env!("CARGO_PKG_VERSION")].join("\n");
    bytes_to_hex(&Sha256::digest(all.as_bytes()))
}

//! CycloneDX 1.6, as JSON: <https://cyclonedx.org/docs/1.6/json/>.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{BillOfMaterials, package_url};

/// The bill of materials of a bundle with this name.
pub fn cyclonedx(bill: &BillOfMaterials, name: &str) -> Value {
    let reference = |index: usize| format!("file-{index}");
    let module_reference = |index: usize| format!("module-{index}");
    let files = bill.parts.iter().enumerate().map(|(index, part)| {
        let item = &part.item;
        let mut component = json!({
            "type": match item.component.as_str() { "crds" => "data", "packages" => "library", _ => "application" },
            "bom-ref": reference(index),
            "name": part.name(),
            "version": part.version(),
            "hashes": [{"alg": "SHA-256", "content": item.sha256}],
        });
        if let Some(url) = package_url::of_part(part) {
            component["purl"] = url.into();
        }
        if let Some(address) = part.address() {
            component["externalReferences"] = json!([{"type": "distribution", "url": address}]);
        }
        component["properties"] = json!([
            {"name": "windlass:architecture", "value": item.architecture},
            {"name": "windlass:file", "value": item.file},
        ]);
        component
    });
    let all: Vec<_> = bill.modules().into_iter().collect();
    let modules = all.iter().enumerate().map(|(index, module)| {
        let mut component = json!({"type": "library", "bom-ref": module_reference(index), "name": module.path});
        if let Some(version) = &module.version {
            component["version"] = version.as_str().into();
        }
        component["purl"] = package_url::of_module(module).into();
        component
    });
    let whole: Vec<String> = (0..bill.parts.len()).map(reference).collect();
    let mut dependencies = vec![json!({"ref": "bundle", "dependsOn": whole})];
    dependencies.extend(bill.parts.iter().enumerate().filter(|(_, part)| !part.modules().is_empty()).map(
        |(index, part)| {
            let of_part: BTreeSet<_> = part.modules().into_iter().collect();
            let found = of_part.iter().filter_map(|module| all.binary_search(module).ok());
            json!({"ref": reference(index), "dependsOn": found.map(module_reference).collect::<Vec<_>>()})
        },
    ));
    let mut document = json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "tools": {"components": [{"type": "application", "name": "windlass", "version": env!("CARGO_PKG_VERSION")}]},
            "component": {
                "type": "application",
                "bom-ref": "bundle",
                "name": name,
                "hashes": [{"alg": "SHA-256", "content": bill.digest}],
            },
        },
        "components": files.chain(modules).collect::<Vec<_>>(),
        "dependencies": dependencies,
    });
    let silent = bill.silent_programs();
    if !silent.is_empty() {
        let silent = bill.parts.iter().enumerate().filter(|(_, part)| silent.contains(&part.item.file.as_str()));
        let silent: Vec<String> = silent.map(|(index, _)| reference(index)).collect();
        document["compositions"] = json!([{"aggregate": "unknown", "dependencies": silent}]);
    }
    document
}

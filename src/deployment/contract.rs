//! What this program and its own playbooks agree on, each with a layout number. A playbook of another layout is refused.

use serde::Deserialize;

use crate::value::Value;

/// Something that a playbook reports in a variable of its own.
pub trait Reported: serde::de::DeserializeOwned {
    /// The playbook that reports it.
    const PLAYBOOK: &'static str;
    /// The variable (`set_fact`) that holds it on each host.
    const VARIABLE: &'static str;
    /// The layout that this program reads.
    const LAYOUT: u32;

    /// Reads it.
    ///
    /// # Errors
    /// It is of another layout, or has not the fields of this one.
    fn read(value: &Value) -> Result<Self, String> {
        let layout = value.get_attr("layout").ok().and_then(|layout| u32::try_from(layout).ok());
        if layout != Some(Self::LAYOUT) {
            let found = layout.map_or_else(|| "no layout".to_owned(), |layout| format!("layout {layout}"));
            return Err(format!(
                "{} reports {found} in {}; this windlass reads layout {}\nhint: use the playbooks that belong to this \
                 version of windlass",
                Self::PLAYBOOK,
                Self::VARIABLE,
                Self::LAYOUT
            ));
        }
        Self::deserialize(value.clone())
            .map_err(|error| format!("cannot read what {} reports in {}: {error}", Self::PLAYBOOK, Self::VARIABLE))
    }
}

/// What a play of `observe.yml` found on a host. A play reports the fields that it observes.
#[derive(Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Observation {
    pub layout: u32,
    /// Configuration files, as `sha256sum` prints them: `DIGEST  PATH`.
    pub files: Vec<String>,
    /// Programs and links: `MODE:SIZE:TIME  'PATH'` or `MODE:SIZE:TIME  'LINK' -> 'TARGET'`.
    pub programs: Vec<String>,
    /// systemd units: `UNIT LOAD ACTIVE SUB DESCRIPTION`.
    pub units: Vec<String>,
    pub etcd_members: Vec<EtcdMember>,
    pub member_clusters: Vec<MemberCluster>,
}

impl Reported for Observation {
    const PLAYBOOK: &'static str = "observe.yml";
    const VARIABLE: &'static str = "windlass_observation";
    const LAYOUT: u32 = 1;
}

#[derive(Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EtcdMember {
    pub name: String,
    /// In hexadecimal.
    pub id: String,
}

#[derive(Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MemberCluster {
    pub name: String,
    pub generation: i64,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(json: serde_json::Value) -> Value {
        Value::from(minijinja::value::Serde(json))
    }

    #[test]
    fn another_layout_or_another_form_is_refused() {
        let read = |json| Observation::read(&value(json));
        let own =
            serde_json::json!({"layout": 1, "files": ["ab  /etc/x"], "etcd_members": [{"name": "h1", "id": "8e9e"}]});
        assert_eq!(read(own).unwrap().etcd_members, [EtcdMember { name: "h1".into(), id: "8e9e".into() }]);
        for (json, why) in [
            (
                serde_json::json!({"layout": 2}),
                "reports layout 2 in windlass_observation; this windlass reads layout 1",
            ),
            (serde_json::json!({"files": []}), "reports no layout"),
            (serde_json::json!("text"), "reports no layout"),
            (serde_json::json!({"layout": 1, "links": []}), "unknown field `links`"),
            (serde_json::json!({"layout": 1, "files": "one text"}), "cannot read what observe.yml reports"),
        ] {
            let error = read(json).unwrap_err();
            assert!(error.contains(why), "{why}: {error}");
        }
    }

    /// The playbook as it is shipped says the layout and the fields of this program, and nothing else.
    #[test]
    fn the_playbook_reports_what_this_program_reads() {
        let text = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/playbooks/observe.yml")).unwrap();
        let plays: serde_yaml::Value = serde_yaml::from_str(&text).unwrap();
        let mut fields = std::collections::BTreeSet::new();
        for play in plays.as_sequence().unwrap() {
            let reports =
                |task: &&serde_yaml::Value| task["ansible.builtin.set_fact"].get(Observation::VARIABLE).is_some();
            let task = play["tasks"].as_sequence().unwrap().iter().rfind(reports);
            let task = task.unwrap_or_else(|| panic!("{:?} reports nothing", play["name"]));
            let reported = task["ansible.builtin.set_fact"][Observation::VARIABLE].as_mapping().unwrap();
            fields.extend(reported.keys().map(|key| key.as_str().unwrap().to_owned()));
            assert_eq!(reported["layout"], Observation::LAYOUT, "{:?}", play["name"]);
        }
        let known = ["layout", "files", "programs", "units", "etcd_members", "member_clusters"];
        assert_eq!(fields, known.map(String::from).into());
        // Every one of them is a field.
        let all = known
            .iter()
            .map(|name| ((*name).to_owned(), if *name == "layout" { 1.into() } else { serde_json::json!([]) }));
        assert_eq!(Observation::read(&value(serde_json::Value::Object(all.collect()))).unwrap().layout, 1);
    }
}

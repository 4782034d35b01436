//! Members as hosts of the inventory, with what the roles for members read.

use std::path::Path;

use super::secrets::Secrets;
use super::variables::Manifests;
use super::{WHOLE, extend, put_group};
use crate::inventory::Inventory;
use crate::resource::{Deployment, Member, MemberAddon, SyncMode, TaintEffect, Workloads};
use crate::value::{Value, Vars, mapping};

/// Puts the members into the inventory. Which of them are to be added or removed, only the control plane can tell.
pub(super) fn put(inventory: &mut Inventory, deployment: &Deployment, secrets: &Secrets, file: Option<&Path>) {
    ["members", "add_member", "del_member"].into_iter().for_each(|group| put_group(inventory, group, Vec::new()));
    for member in &deployment.spec.members {
        inventory.put_host(WHOLE, &member.name, None, file);
        inventory.join("members", &member.name);
        let mut vars = way(inventory, member);
        vars.extend(of(member, secrets));
        extend(inventory, &member.name, vars);
    }
}

/// How tasks for it run: here, or on the host that has its kubeconfig, which is reached as that host is.
fn way(inventory: &Inventory, member: &Member) -> Vars {
    let Some(there) = &member.kubeconfig_on_host else {
        return [("ansible_connection".into(), Value::from("local"))].into();
    };
    let host = inventory.hosts.get(there.host.as_str()).expect("a rule says that it is there");
    let reached = host.vars.iter().filter(|(name, _)| name.starts_with("ansible_"));
    reached.map(|(name, value)| (name.clone(), value.clone())).collect()
}

fn of(member: &Member, secrets: &Secrets) -> Vars {
    let mut vars = Vars::new();
    let mut set = |name: &str, value: Value| drop(vars.insert(name.into(), value));
    set("member_name", text(&member.name));
    set(
        "member_sync_mode",
        text(match member.sync_mode {
            SyncMode::Push => "Push",
            SyncMode::Pull => "Pull",
        }),
    );
    match (&member.kubeconfig, &member.kubeconfig_on_host) {
        (Some(kubeconfig), _) => match &kubeconfig.file {
            Some(file) => set("member_kubeconfig", text(&secrets.path(file).to_string_lossy())),
            None => set("member_kubeconfig_content", secrets.kubeconfig(kubeconfig)),
        },
        (None, Some(there)) => {
            set("member_kubeconfig", text(&there.path));
            set("member_kubeconfig_on_host", Value::from(true));
        }
        (None, None) => {}
    }
    for (name, given) in [
        ("member_context", &member.context),
        ("member_api_endpoint", &member.api_endpoint),
        ("member_provider", &member.provider),
        ("member_region", &member.region),
    ] {
        if let Some(given) = given {
            set(name, text(given));
        }
    }
    if !member.zones.is_empty() {
        set("member_zones", member.zones.iter().map(|zone| text(zone)).collect());
    }
    if !member.labels.is_empty() {
        set("member_labels", mapping(member.labels.iter().map(|(key, value)| (key, text(value)))));
    }
    if !member.taints.is_empty() {
        set("member_taints", taints(member));
    }
    if let Some(agent) = &member.agent {
        let given = [("host", &agent.host), ("image", &agent.image)];
        set("member_agent", mapping(given.into_iter().filter_map(|(key, value)| Some((key, text(value.as_ref()?))))));
    }
    set(
        "member_workloads",
        text(match member.workloads {
            Workloads::Keep => "keep",
            Workloads::Remove => "remove",
        }),
    );
    set("member_force", Value::from(member.force));
    set("member_estimator", Value::from(member.estimator));
    if !member.addons.is_empty() {
        set("member_addons", member.addons.iter().map(|addon| manifests(addon, &member.name)).collect());
    }
    vars
}

fn text(text: &str) -> Value {
    Value::from(text)
}

fn taints(member: &Member) -> Value {
    let one = |taint: &crate::resource::Taint| {
        let effect = match taint.effect {
            TaintEffect::NoSchedule => "NoSchedule",
            TaintEffect::PreferNoSchedule => "PreferNoSchedule",
            TaintEffect::NoExecute => "NoExecute",
        };
        let mut pairs = vec![("key", text(&taint.key))];
        pairs.extend(taint.value.as_deref().map(|value| ("value", text(value))));
        pairs.push(("effect", text(effect)));
        mapping(pairs)
    };
    member.taints.iter().map(one).collect()
}

/// An add-on as those of the control plane are: for the member itself by its name.
fn manifests(addon: &MemberAddon, member: &str) -> Value {
    let place = |place: &String| text(if place == "member" { member } else { place });
    let given = Manifests {
        name: &addon.name,
        to: addon.to.iter().map(place).collect(),
        src: &addon.src,
        namespace: addon.namespace.as_deref(),
        state: addon.state,
        wait: addon.wait,
        force: addon.force,
    };
    given.value()
}

//! Members as hosts of the inventory, with what the roles for members read.

use std::path::Path;

use super::secrets::Secrets;
use super::variables::Manifests;
use super::{extend, put_group};
use crate::inventory::Inventory;
use crate::resource::names::{group, variable};
use crate::resource::{Deployment, Member, MemberAddon, SyncMode, TaintEffect, Workloads};
use crate::value::{Value, Vars, mapping};

/// Puts the members into the inventory. Which of them are to be added or removed, only the control plane can tell.
pub(super) fn put_members(inventory: &mut Inventory, deployment: &Deployment, secrets: &Secrets, file: Option<&Path>) {
    [group::MEMBERS, group::ADD_MEMBER, group::DEL_MEMBER]
        .into_iter()
        .for_each(|group| put_group(inventory, group, Vec::new()));
    for member in &deployment.spec.members {
        inventory.put_host(group::DEPLOYMENT, &member.name, None, file);
        inventory.add_host_to_group(group::MEMBERS, &member.name);
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
    let host = inventory.hosts.get(there.host.as_str()).expect("a validation rule requires it");
    let reached = host.vars.iter().filter(|(name, _)| name.starts_with("ansible_"));
    reached.map(|(name, value)| (name.clone(), value.clone())).collect()
}

fn of(member: &Member, secrets: &Secrets) -> Vars {
    let mut vars = Vars::new();
    let mut set = |name: &str, value: Value| drop(vars.insert(name.into(), value));
    set(variable::MEMBER_NAME, text(&member.name));
    set(
        variable::MEMBER_SYNC_MODE,
        text(match member.sync_mode {
            SyncMode::Push => "Push",
            SyncMode::Pull => "Pull",
        }),
    );
    match (&member.kubeconfig, &member.kubeconfig_on_host) {
        (Some(kubeconfig), _) => match &kubeconfig.file {
            Some(file) => set(variable::MEMBER_KUBECONFIG, text(&secrets.secret_path(file).to_string_lossy())),
            None => set(variable::MEMBER_KUBECONFIG_CONTENT, secrets.kubeconfig(kubeconfig)),
        },
        (None, Some(there)) => {
            set(variable::MEMBER_KUBECONFIG, text(&there.path));
            set(variable::MEMBER_KUBECONFIG_ON_HOST, Value::from(true));
        }
        (None, None) => {}
    }
    for (name, given) in [
        (variable::MEMBER_CONTEXT, &member.context),
        (variable::MEMBER_API_ENDPOINT, &member.api_endpoint),
        (variable::MEMBER_PROVIDER, &member.provider),
        (variable::MEMBER_REGION, &member.region),
    ] {
        if let Some(given) = given {
            set(name, text(given));
        }
    }
    if !member.zones.is_empty() {
        set(variable::MEMBER_ZONES, member.zones.iter().map(|zone| text(zone)).collect());
    }
    if !member.labels.is_empty() {
        set(variable::MEMBER_LABELS, mapping(member.labels.iter().map(|(key, value)| (key, text(value)))));
    }
    if !member.taints.is_empty() {
        set(variable::MEMBER_TAINTS, taints(member));
    }
    if let Some(agent) = &member.agent {
        let given = [("host", &agent.host), ("image", &agent.image)];
        set(
            variable::MEMBER_AGENT,
            mapping(given.into_iter().filter_map(|(key, value)| Some((key, text(value.as_ref()?))))),
        );
    }
    set(
        variable::MEMBER_WORKLOADS,
        text(match member.workloads {
            Workloads::Keep => "keep",
            Workloads::Remove => "remove",
        }),
    );
    set(variable::MEMBER_FORCE, Value::from(member.force));
    set(variable::MEMBER_ESTIMATOR, Value::from(member.estimator));
    if !member.addons.is_empty() {
        set(variable::MEMBER_ADDONS, member.addons.iter().map(|addon| manifests(addon, &member.name)).collect());
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
    given.manifests_value()
}

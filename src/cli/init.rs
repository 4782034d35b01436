//! `windlass init`: a resource to begin with.

use anyhow::anyhow;
use clap::Args;

use super::{CliError, ExitCode, print};
use crate::connection::SshAddress;
use crate::resource::TABLE;

#[derive(Debug, Args)]
pub(super) struct InitArgs {
    /// The name of the deployment
    #[arg(long, value_name = "NAME", default_value = "production")]
    name: String,
    /// Hosts of the control plane: ADDRESS, USER@ADDRESS, ADDRESS:PORT
    #[arg(value_name = "HOST")]
    hosts: Vec<String>,
}

/// Prints a KarmadaDeployment with comments, as a starting point.
pub(super) fn print_new_deployment(args: &InitArgs) -> Result<ExitCode, CliError> {
    let hosts: Vec<SshAddress<'_>> = match args.hosts.is_empty() {
        true => ["192.0.2.11", "192.0.2.12", "192.0.2.13"]
            .map(|address| SshAddress { user: Some("root"), address, port: None })
            .into(),
        false => args.hosts.iter().map(|text| host(text)).collect::<Result<_, _>>()?,
    };
    print(skeleton(&args.name, &hosts, args.hosts.is_empty()))?;
    Ok(ExitCode::Ok)
}

fn host(text: &str) -> Result<SshAddress<'_>, CliError> {
    let wrong = || anyhow!("invalid host {text:?}: write ADDRESS, USER@ADDRESS, ADDRESS:PORT or [ADDRESS]:PORT");
    Ok(SshAddress::parse_address(text).ok_or_else(wrong)?)
}

fn skeleton(name: &str, hosts: &[SshAddress<'_>], placeholders: bool) -> String {
    let names: Vec<String> = (1..=hosts.len()).map(|number| format!("cp-{number}")).collect();
    // An odd number of members, and no more than five: more are slower and hardly safer.
    let members = match hosts.len().min(5) {
        even if even.is_multiple_of(2) => even - 1,
        odd => odd,
    };
    let lines: String = names.iter().zip(hosts).map(|(name, host)| host_line(name, host)).collect();
    let note = if placeholders { "   # put your own addresses here" } else { "" };
    let endpoint = match hosts.len() {
        1 => String::new(),
        _ => "    # Without any of these, clients use the first host. An unused address, which the hosts hold, with a load\n    \
              # balancer that windlass installs; or your own virtual address or name in front of all API servers.\n    \
              # loadBalancer: {virtualAddress: 192.0.2.10}\n    \
              # endpoint: karmada.example.com:5443\n"
            .to_owned(),
    };
    let optional = TABLE.iter().filter(|entry| entry.optional);
    let optional: Vec<String> = optional.map(|entry| format!("  #   {}: {{}}\n", entry.field)).collect();
    format!(
        "\
# A Karmada control plane on bare hosts, and the clusters that are its members: docs/reference/custom-resource.md
#     windlass plan -f karmada.yaml       # what would change
#     windlass apply -f karmada.yaml      # makes the changes
apiVersion: windlass.dev/v1alpha1
kind: KarmadaDeployment
metadata:
  name: {name}
spec:
  # The programs: a directory or an archive on this machine (docs/how-to/bundle.md).
  bundle: karmada.tar.zst
  # The version of Karmada, where the bundle has several.
  # version: \"1.18\"

  hosts:{note}
{lines}
  ssh:
    # Without any of these: the keys of your SSH agent and of ~/.ssh. Do not write secrets here; say where they are:
    # file, env, vault, command or secret.
    # privateKey: {{file: ~/.ssh/id_ed25519}}
    # becomePassword: {{env: SUDO_PASSWORD}}
    # knownHosts: [known_hosts]
    hostKeys: strict                 # or accept-new, which records the key of a new host unchecked

  controlPlane:
    hosts: [{all}]
{endpoint}
  etcd:
    managed:
      hosts: [{etcd}]

  # Optional components: installed if listed.
  # components:
{optional}
  # The clusters that run the workloads. To remove one from the control plane, delete it here and apply again.
  # members:
  #   - name: member-1
  #     kubeconfig: {{file: members/member-1.kubeconfig}}
  #   - name: member-2
  #     syncMode: Pull
  #     kubeconfig: {{file: members/member-2.kubeconfig}}
  #     agent: {{image: docker.io/karmada/karmada-agent:v1.18.2}}
  #     workloads: keep              # keep the workloads when the member is removed; the default removes them
",
        optional = optional.concat(),
        all = names.join(", "),
        etcd = names[..members].join(", "),
    )
}

fn host_line(name: &str, host: &SshAddress<'_>) -> String {
    let address = if host.address.contains(':') { format!("\"{}\"", host.address) } else { host.address.to_owned() };
    let mut line = format!("    - {{name: {name}, address: {address}");
    if let Some(port) = host.port {
        line.push_str(&format!(", port: {port}"));
    }
    if let Some(user) = host.user {
        line.push_str(&format!(", user: {user}"));
    }
    line + "}\n"
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::resource;
    use crate::value::Source;

    fn taken(text: &str) {
        let source = Arc::new(Source::new("karmada.yaml", text));
        let (resources, _) =
            resource::of_source(&source, resource::Trust::Own, &resource::ForeignResourceLimits::default())
                .unwrap_or_else(|reported| panic!("{reported:?}\n{text}"));
        assert_eq!(resources.len(), 1);
    }

    #[test]
    fn what_is_printed_is_a_valid_resource_for_any_number_of_hosts() {
        for number in 1..=7 {
            let addresses: Vec<String> = (1..=number).map(|n| format!("10.0.0.{n}")).collect();
            let hosts: Vec<SshAddress<'_>> =
                addresses.iter().map(|address| SshAddress { user: Some("root"), address, port: Some(2222) }).collect();
            taken(&skeleton("production", &hosts, false));
        }
    }

    /// With every commented-out field enabled.
    #[test]
    fn what_is_commented_out_is_valid_too() {
        let hosts = [host("root@10.0.0.1").unwrap(), host("10.0.0.2").unwrap(), host("[2001:db8::1]:22").unwrap()];
        let text = skeleton("production", &hosts, false);
        let is_field = |line: &str| {
            let line = line.trim_start_matches("- ");
            line.split_once(':').is_some_and(|(key, _)| key.bytes().all(|b| b.is_ascii_alphanumeric()))
        };
        let shown = |line: &str| match line.trim_start().strip_prefix("# ") {
            Some(rest) if line.starts_with(' ') && is_field(rest.trim_start()) => line.replacen("# ", "", 1),
            _ => line.to_owned(),
        };
        let whole: String = text.lines().map(|line| shown(line) + "\n").collect();
        assert!(whole.contains("\n    becomePassword: {env") && whole.contains("\n  members:\n"), "{whole}");
        taken(&whole);
    }
}

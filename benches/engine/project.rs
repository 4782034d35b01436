//! Writes the large project that loading is measured with: 500 files, 5,000 tasks, in the shapes that roles have.

use std::fmt::Write;
use std::path::{Path, PathBuf};

const ROLES: usize = 40;
/// Files that `main.yml` of a role imports, with so many tasks in each; `main.yml` has some of its own.
const PARTS: usize = 7;
const TASKS: usize = 17;
const OWN_TASKS: usize = 6;
const PLAYBOOKS: usize = 10;
const GROUPS: usize = 4;
const HOSTS: usize = 4;

pub(crate) const ALL_TASKS: usize = ROLES * (PARTS * TASKS + OWN_TASKS);
pub(crate) const ALL_FILES: usize = ROLES * (PARTS + 5) + PLAYBOOKS + GROUPS + HOSTS + 2;

/// Writes the project into `root`, and gives its playbook and its inventory.
pub(crate) fn write(root: &Path) -> std::io::Result<(PathBuf, PathBuf)> {
    let mut files = 0;
    let mut save = |path: String, text: String| {
        let path = root.join(path);
        std::fs::create_dir_all(path.parent().expect("it is below the root"))?;
        files += 1;
        std::fs::write(&path, text)
    };
    for role in 0..ROLES {
        for (file, text) in role_files(role) {
            save(format!("roles/service{role}/{file}"), text)?;
        }
    }
    let mut site = String::new();
    for playbook in 0..PLAYBOOKS {
        writeln!(site, "- import_playbook: play{playbook}.yml").expect("a String takes it");
        save(format!("play{playbook}.yml"), play(playbook))?;
    }
    let mut inventory = String::new();
    for group in 0..GROUPS {
        writeln!(inventory, "[tier{group}]\nhost{group} ansible_connection=local\n").expect("a String takes it");
        save(format!("group_vars/tier{group}.yml"), variables("tier", group))?;
        save(format!("host_vars/host{group}.yml"), variables("host", group))?;
    }
    save("site.yml".into(), site)?;
    save("hosts.ini".into(), inventory)?;
    assert_eq!(files, ALL_FILES, "the project has as many files as it says");
    Ok((root.join("site.yml"), root.join("hosts.ini")))
}

fn play(number: usize) -> String {
    let mut text =
        format!("- name: Services of tier {number}\n  hosts: tier{}\n  become: true\n  roles:\n", number % GROUPS);
    let share = ROLES / PLAYBOOKS;
    for role in number * share..(number + 1) * share {
        write!(text, "    - role: service{role}\n      tags: [service{role}]\n").expect("a String takes it");
    }
    text
}

fn variables(what: &str, number: usize) -> String {
    let mut text = String::from("---\n");
    for variable in 0..20 {
        writeln!(text, "{what}_setting_{variable}: \"{{{{ inventory_hostname }}}}-{number}-{variable}\"")
            .expect("a String takes it");
    }
    text
}

fn role_files(role: usize) -> Vec<(String, String)> {
    let name = format!("service{role}");
    let mut files = vec![
        ("meta/main.yml".to_owned(), "---\ndependencies: []\n".to_owned()),
        ("handlers/main.yml".to_owned(), handlers(&name)),
        ("defaults/main.yml".to_owned(), defaults(&name)),
        ("vars/main.yml".to_owned(), format!("---\n{name}_unit: {name}.service\n{name}_owner: {name}\n")),
    ];
    let mut main = String::from("---\n");
    for part in 0..PARTS {
        write!(main, "- name: Part {part}\n  ansible.builtin.import_tasks: part{part}.yml\n")
            .expect("a String takes it");
        let tasks = (0..TASKS).map(|number| task(&name, part * TASKS + number)).collect::<String>();
        files.push((format!("tasks/part{part}.yml"), format!("---\n{tasks}")));
    }
    main.extend((0..OWN_TASKS).map(|number| task(&name, PARTS * TASKS + number)));
    files.push(("tasks/main.yml".to_owned(), main));
    files
}

fn handlers(name: &str) -> String {
    format!(
        "---\n- name: Restart {name}\n  ansible.builtin.systemd_service:\n    name: \"{{{{ {name}_unit }}}}\"\n    \
         state: restarted\n    daemon_reload: true\n"
    )
}

fn defaults(name: &str) -> String {
    let mut text =
        format!("---\n# Where it is kept.\n{name}_home: /opt/{name}\n{name}_packages:\n  - {name}\n  - {name}-tools\n");
    for number in 0..12 {
        write!(text, "# Setting {number}.\n{name}_option_{number}: \"{{{{ {name}_home }}}}/{number}\"\n")
            .expect("a String takes it");
    }
    text
}

/// One of six usual kinds of task.
fn task(name: &str, number: usize) -> String {
    let option = number % 12;
    match number % 6 {
        0 => format!(
            "- name: Make directory {number} of {name}\n  ansible.builtin.file:\n    \
             path: \"{{{{ {name}_home }}}}/dir{number}\"\n    state: directory\n    owner: \"{{{{ {name}_owner }}}}\"\n    \
             mode: \"0750\"\n"
        ),
        1 => format!(
            "- name: Write configuration {number} of {name}\n  ansible.builtin.template:\n    src: config.j2\n    \
             dest: \"{{{{ {name}_option_{option} }}}}/config{number}.yml\"\n    mode: \"0640\"\n  \
             when: {name}_option_{option} is defined and inventory_hostname in groups['all']\n  \
             notify: Restart {name}\n"
        ),
        2 => format!(
            "- name: Ask for version {number} of {name}\n  ansible.builtin.command:\n    \
             cmd: \"{{{{ {name}_home }}}}/bin/{name} --version {number}\"\n  register: {name}_version_{number}\n  \
             changed_when: false\n  failed_when: {name}_version_{number}.rc not in [0, 3]\n"
        ),
        3 => format!(
            "- name: Install packages {number} of {name}\n  ansible.builtin.package:\n    name: \"{{{{ item }}}}\"\n    \
             state: present\n  loop: \"{{{{ {name}_packages | unique | sort }}}}\"\n  tags: [packages, number{number}]\n"
        ),
        4 => format!(
            "- name: Settle setting {number} of {name}\n  ansible.builtin.set_fact:\n    \
             {name}_setting_{number}: \"{{{{ {name}_option_{option} | default('none') | upper }}}}-{number}\"\n  \
             when:\n    - {name}_option_{option} | length > 0\n    - not (ansible_check_mode | bool)\n"
        ),
        _ => format!(
            "- name: Keep line {number} of {name}\n  ansible.builtin.lineinfile:\n    \
             path: \"{{{{ {name}_home }}}}/{name}.conf\"\n    regexp: \"^option{number}\\\\s*=\"\n    \
             line: \"option{number} = {{{{ {name}_option_{option} }}}}\"\n    create: true\n    mode: \"0644\"\n"
        ),
    }
}

//! Foreign text in systemd's unit and environment files, and in the configuration of other services: the one place that
//! quotes it, or refuses what cannot be quoted. A line break would start a new directive, which systemd executes as root.

/// Directives that limit what a service may use. None of them names a program, a file, a user or another unit.
pub const LIMITS: &[&str] = &[
    "AllowedCPUs",
    "AllowedMemoryNodes",
    "CPUAccounting",
    "CPUAffinity",
    "CPUQuota",
    "CPUQuotaPeriodSec",
    "CPUSchedulingPolicy",
    "CPUSchedulingPriority",
    "CPUShares",
    "CPUWeight",
    "DefaultMemoryLow",
    "DefaultMemoryMin",
    "IOAccounting",
    "IODeviceLatencyTargetSec",
    "IODeviceWeight",
    "IOReadBandwidthMax",
    "IOReadIOPSMax",
    "IOSchedulingClass",
    "IOSchedulingPriority",
    "IOWeight",
    "IOWriteBandwidthMax",
    "IOWriteIOPSMax",
    "LimitAS",
    "LimitCORE",
    "LimitCPU",
    "LimitDATA",
    "LimitFSIZE",
    "LimitLOCKS",
    "LimitMEMLOCK",
    "LimitMSGQUEUE",
    "LimitNICE",
    "LimitNOFILE",
    "LimitNPROC",
    "LimitRSS",
    "LimitRTPRIO",
    "LimitRTTIME",
    "LimitSIGPENDING",
    "LimitSTACK",
    "MemoryAccounting",
    "MemoryHigh",
    "MemoryLimit",
    "MemoryLow",
    "MemoryMax",
    "MemoryMin",
    "MemorySwapMax",
    "MemoryZSwapMax",
    "Nice",
    "OOMPolicy",
    "OOMScoreAdjust",
    "StartupCPUWeight",
    "StartupIOWeight",
    "StartupMemoryHigh",
    "StartupMemoryLow",
    "StartupMemoryMax",
    "StartupMemorySwapMax",
    "StartupMemoryZSwapMax",
    "TasksAccounting",
    "TasksMax",
];

/// Text that needs no quoting anywhere: in a unit, a shell, a path or another configuration file. It is not empty.
pub fn plain_word(text: &str) -> Result<&str, String> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_.:/@+,=[]-".contains(c);
    match text.chars().find(|c| !plain(*c)) {
        Some(bad) => Err(format!("{text:?} contains {bad:?}: only letters, digits and _.:/@+,=[]- are allowed here")),
        None if text.is_empty() => Err("the text must not be empty".to_owned()),
        None if text.starts_with('-') => Err(format!("{text:?} must not start with a dash, as options do")),
        None => Ok(text),
    }
}

/// The value of a directive that takes all of its line as it is.
pub fn unit_value(text: &str) -> Result<String, String> {
    let text = one_line(text)?;
    match text.ends_with('\\') {
        true => Err(format!("{text:?} ends with a backslash, which joins the next line to this one")),
        false => Ok(text.replace('%', "%%")),
    }
}

/// One argument of a program in a unit's `Exec` line.
pub fn exec_argument(text: &str) -> Result<String, String> {
    let escaped = escaped(one_line(text)?).replace('%', "%%").replace('$', "$$");
    Ok(format!("\"{escaped}\""))
}

/// The value of a variable in an `EnvironmentFile`.
pub fn environment_value(text: &str) -> Result<String, String> {
    Ok(format!("\"{}\"", escaped(one_line(text)?)))
}

/// A limit as a line of a unit.
pub fn limit(name: &str, value: &str) -> Result<String, String> {
    if !LIMITS.contains(&name) {
        let hint = super::nearest::did_you_mean(name, LIMITS.iter().copied());
        let hint = hint.map(|hint| format!(" ({hint})")).unwrap_or_default();
        return Err(format!("{name:?} is not a service limit of systemd{hint}"));
    }
    let fits = |c: char| c.is_ascii_alphanumeric() || "%:./ _,-".contains(c);
    match value.chars().find(|c| !fits(*c)) {
        Some(bad) => Err(format!("the limit {name} {value:?} contains {bad:?}")),
        None if value.trim().is_empty() => Err(format!("the limit {name} has no value")),
        None => Ok(format!("{name}={value}")),
    }
}

fn one_line(text: &str) -> Result<&str, String> {
    match text.chars().find(|c| c.is_control()) {
        Some(bad) => Err(format!("{text:?} contains {bad:?}: it must be one line without control characters")),
        None => Ok(text),
    }
}

fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_break_or_another_control_character_is_refused_everywhere() {
        for text in ["/data\nExecStartPre=/bin/id", "a\rb", "a\0b", "a\u{1b}b", "a\u{85}b"] {
            assert!(plain_word(text).is_err(), "{text:?}");
            assert!(unit_value(text).is_err(), "{text:?}");
            assert!(exec_argument(text).is_err(), "{text:?}");
            assert!(environment_value(text).is_err(), "{text:?}");
            assert!(limit("MemoryMax", text).is_err(), "{text:?}");
        }
        let error = plain_word("/data'; id #").unwrap_err();
        assert_eq!(error, "\"/data'; id #\" contains '\\'': only letters, digits and _.:/@+,=[]- are allowed here");
    }

    #[test]
    fn what_systemd_would_expand_is_escaped() {
        assert_eq!(unit_value("100% of $HOME").unwrap(), "100%% of $HOME");
        assert!(unit_value("ends \\").is_err());
        assert_eq!(exec_argument(r#"--a=%h $HOME "\x""#).unwrap(), r#""--a=%%h $$HOME \"\\x\"""#);
        assert_eq!(environment_value(r#"a"b\c $d %e"#).unwrap(), r#""a\"b\\c $d %e""#);
    }

    #[test]
    fn only_limits_are_limits() {
        assert_eq!(limit("CPUQuota", "200%").unwrap(), "CPUQuota=200%");
        assert_eq!(limit("IOWriteBandwidthMax", "/dev/sda 5M").unwrap(), "IOWriteBandwidthMax=/dev/sda 5M");
        for name in ["ExecStartPre", "User", "Environment", "memorymax", "MemoryMax=1\nExecStart", ""] {
            assert!(limit(name, "1").is_err(), "{name}");
        }
        let error = limit("MemoryMx", "1G").unwrap_err();
        assert_eq!(error, "\"MemoryMx\" is not a service limit of systemd (did you mean \"MemoryMax\"?)");
    }

    #[test]
    fn limits_are_sorted() {
        assert!(LIMITS.is_sorted());
    }
}

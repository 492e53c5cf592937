//! Tests of import plans for crontabs.

use super::*;

fn options() -> CrontabOptions {
    CrontabOptions {
        zone: Zone::get("Europe/Berlin").unwrap(),
        system: false,
        user: None,
        cwd: None,
        executors: evenkeel_executors::CATALOG,
    }
}

fn planned(text: &str) -> CrontabPlan {
    plan(text, &options())
}

/// Returns the planned job of a crontab with one entry.
fn job(text: &str) -> Value {
    let plan = planned(text);
    let made: Vec<_> = plan.entries.into_iter().filter_map(|entry| entry.document).collect();
    let [job] = &made[..] else { panic!("{made:?}") };
    job.clone()
}

#[test]
fn entry_becomes_an_equivalent_job() {
    assert_eq!(
        job("# Nightly backup\n30  2 * * 1-5\t/usr/local/bin/backup.sh --full\n"),
        json!({
            "name": "Nightly backup",
            "schedule": {"kind": "cron", "expression": "30 2 * * 1-5"},
            "timezone": "Europe/Berlin",
            "executor_type": "shell",
            "executor_config": {
                "argv": ["/bin/sh", "-c", "/usr/local/bin/backup.sh --full"], "stdin": "none",
                "cwd": "~", "env": {"PATH": "/usr/bin:/bin", "SHELL": "/bin/sh"},
            },
            "max_retries": 0, "misfire": "skip", "overlap": "allow", "timeout_sec": 2_592_000,
        })
    );
}

#[test]
fn variables_apply_to_the_lines_below() {
    let text = "0 1 * * * one\nSHELL=/bin/bash\nPATH = \"/opt/bin:/usr/bin\"\nHOME=/srv/app\n\
                CRON_TZ=America/Toronto\n0 2 * * * two\n";
    let entries = planned(text).entries;
    let [one, two] = &entries[..] else { panic!("{entries:?}") };
    let (one, two) = (one.document.as_ref().unwrap(), two.document.as_ref().unwrap());
    assert_eq!(one["timezone"], "Europe/Berlin");
    assert_eq!(one["executor_config"]["env"], json!({"PATH": "/usr/bin:/bin", "SHELL": "/bin/sh"}));
    assert_eq!(two["timezone"], "America/Toronto");
    assert_eq!(
        two["executor_config"],
        json!({"argv": ["/bin/bash", "-c", "two"], "stdin": "none", "cwd": "/srv/app",
               "env": {"PATH": "/opt/bin:/usr/bin", "HOME": "/srv/app", "SHELL": "/bin/bash"}})
    );
}

#[test]
fn empty_zone_restores_the_default() {
    let text = "CRON_TZ=America/Toronto\n0 1 * * * one\nCRON_TZ=\n0 2 * * * two\n\
                CRON_TZ=\"\"\n0 3 * * * three\n";
    let zones: Vec<Value> = planned(text)
        .entries
        .into_iter()
        .map(|entry| entry.document.map_or(Value::Null, |job| job["timezone"].clone()))
        .collect();
    assert_eq!(zones, ["America/Toronto", "Europe/Berlin", "Europe/Berlin"]);
}

#[test]
fn random_times_become_hashed_times() {
    let plan = planned("0~59 3 * * * backup\n");
    let entry = &plan.entries[0];
    assert_eq!(entry.document.as_ref().unwrap()["schedule"]["expression"], "H 3 * * *");
    assert_eq!(entry.was.as_deref(), Some("0~59 3 * * *"));
    assert!(entry.notes.iter().any(|note| note.starts_with("~ becomes H")), "{:?}", entry.notes);
}

#[test]
fn percent_sign_separates_command_and_input() {
    let job = job(r"0 9 * * * mail -s 'at 100\%' bob%Hello Bob,%bye\%");
    assert_eq!(job["payload"], "Hello Bob,\nbye%\n");
    let config = &job["executor_config"];
    assert_eq!(
        (&config["argv"][2], &config["stdin"]),
        (&json!("mail -s 'at 100%' bob"), &json!("text"))
    );
}

#[test]
fn commands_that_look_like_templates_are_unchanged() {
    let job = job("0 9 * * * docker ps --format '{{.Names}}'");
    assert_eq!(job["executor_config"]["argv"][2], "docker ps --format '{{.Names}}'");
}

#[test]
fn system_crontab_names_users() {
    let options = CrontabOptions { system: true, ..options() };
    let plan = plan("17 *\t* * *\troot    cd / && run-parts --report /etc/cron.hourly\n", &options);
    let entry = &plan.entries[0];
    assert_eq!(entry.name, "run-parts");
    assert!(entry.notes[0].contains("--shell-users root"), "{:?}", entry.notes);
    let config = &entry.document.as_ref().unwrap()["executor_config"];
    assert_eq!(config["user"], "root");
    assert_eq!(entry.document.as_ref().unwrap()["metadata"], json!({"crontab_user": "root"}));
    assert_eq!(config["argv"][2], "cd / && run-parts --report /etc/cron.hourly");
}

#[test]
fn user_column_is_checked_and_a_missing_flag_is_suggested() {
    let options = CrontabOptions { system: true, ..options() };
    let entry = &plan("17 * * * * \"$HOME/bin/x\" y\n", &options).entries[0];
    assert_eq!((entry.disposition, entry.code), (Disposition::Person, "unreadable_line"));
    assert!(entry.why.contains("--system=false"), "{}", entry.why);
    let remarks = |text: &str| planned(text).remarks.join("\n");
    assert!(remarks("0 1 * * * root a\n0 2 * * * root b\n").contains("use --system"));
    assert!(!remarks("0 1 * * * root a\n0 2 * * * b\n").contains("use --system"));
}

#[test]
fn entries_without_an_equivalent_need_review() {
    for (text, code) in [
        ("@reboot /usr/bin/start-it", "at_boot"),
        ("0 9 30 2 * never", "unreadable_schedule"),
        ("61 9 * * * late", "unreadable_schedule"),
        ("0~70 9 * * * perhaps", "unreadable_schedule"),
        ("0 9 * * * echo {{ payload.x }}", "placeholder"),
        ("@fortnightly x", "unreadable_schedule"),
        ("0 9 * *", "unreadable_line"),
        ("0 9 * * *", "no_command"),
        ("what is this", "unreadable_line"),
        ("CRON_TZ=Mars/Olympus\n0 9 * * * x", "unknown_zone"),
    ] {
        let entries = planned(text).entries;
        let [entry] = &entries[..] else { panic!("{entries:?}") };
        assert_eq!(
            (entry.disposition, entry.code),
            (Disposition::Person, code),
            "{text}: {}",
            entry.why
        );
        assert!(entry.document.is_none() && !entry.why.is_empty());
    }
}

#[test]
fn mail_settings_are_remarked_once() {
    let remarks = planned("MAILTO=ops@example.com\nMAILTO=ops@example.com\n0 9 * * * x\n").remarks;
    let mail = remarks.iter().filter(|remark| remark.starts_with("MAILTO=ops@example.com"));
    assert_eq!(mail.count(), 1, "{remarks:?}");
    assert!(!planned("MAILTO=\"\"\n0 9 * * * x\n").remarks.iter().any(|it| it.contains("MAILTO")));
}

#[test]
fn names_are_comments_or_programs_and_unique() {
    let text = "\
# m h  dom mon dow   command
0 1 * * * /opt/a/sync.sh

# 0 5 * * * tar -zcf /var/backups/home.tgz /home/
0 2 * * * /opt/b/sync.sh
# ----------
# Reports
0 3 * * * FOO=1 nice -n 10 /usr/bin/report --all
@daily /usr/bin/report
# a comment with nothing below it

@weekly   ";
    let entries = planned(text).entries;
    let names: Vec<_> = entries.iter().map(|entry| entry.name.as_str()).collect();
    assert_eq!(names, ["sync.sh", "sync.sh 2", "Reports", "report", "cron job"]);
    let described = entries[2].document.as_ref().unwrap();
    assert_eq!(described["description"], "----------\nReports");
}

#[test]
fn lines_are_counted_from_one() {
    let entries = planned("# x\n\n0 1 * * * a\r\n0 2 * * * b").entries;
    assert_eq!(entries.iter().map(|entry| entry.line).collect::<Vec<_>>(), [3, 4]);
    assert_eq!(entries[0].document.as_ref().unwrap()["executor_config"]["argv"][2], "a");
}

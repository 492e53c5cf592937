//! Programs that try to outlive their attempt, and a search for their remaining processes.
//!
//! The search recognises a process by its environment, its command line or its directory; few
//! programs change all three.

use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use evenkeel_core::Span;
use evenkeel_executors::Invocation;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::{eventually, invocation, is_alive, pid_in, with};

/// Names and scripts of programs that try to outlive their attempt. Each program creates the file
/// `ready` once all its processes run. Before that, the main process writes its process id to the
/// file `main`. All programs exit on their own after 100 seconds, and the [`Watchdog`] kills
/// stopped processes, so that a failing test does not block the machine.
pub const KINDS: [(&str, &str); 16] = [
    ("stays", ": >ready; exec sleep 100"),
    (
        "ignores signals",
        "trap '' TERM HUP INT QUIT; : >ready; for i in $(seq 100); do sleep 1; done",
    ),
    ("forks", "for i in 1 2 3 4 5; do sleep 100 & done; : >ready; wait"),
    ("forks twice", "( ( trap '' TERM; sleep 100 & : >ready ) & ); exec sleep 100"),
    (
        "leaves its session",
        "setsid sh -c 'trap \"\" TERM HUP; : >ready; for i in $(seq 100); do sleep 1; done' &
            exec sleep 100",
    ),
    (
        "daemonises",
        "perl -MPOSIX -e 'exit if fork; POSIX::setsid(); exit if fork; chdir \"/\"; umask 0;
            $SIG{$_} = \"IGNORE\" for qw(TERM HUP INT); open F, \">$ENV{READY}\"; close F;
            open STDIN, \"</dev/null\"; open STDOUT, \">/dev/null\"; open STDERR, \">&STDOUT\";
            sleep 100'; exec sleep 100",
    ),
    (
        "holds the pipes",
        "setsid sh -c 'trap \"\" TERM PIPE; : >ready; for i in $(seq 100); do
                echo noise; echo noise >&2; sleep 1; done' & exec sleep 100 >/dev/null 2>&1",
    ),
    (
        "forks in a storm",
        "exec perl -e 'for (1..20) {
                my $c = fork; last unless defined $c; next if $c;
                $SIG{TERM} = \"IGNORE\"; while (time - $^T < 100) { my $p = fork;
                    if (!defined $p) { sleep 1; next }
                    if (!$p) { select undef, undef, undef, 0.01; exit } waitpid $p, 0 }
                exit }
            open F, \">ready\"; close F; sleep 100'",
    ),
    (
        "hops from process to process",
        "setsid perl -e '$SIG{TERM} = \"IGNORE\"; my $n = 0;
            while (time - $^T < 100) { my $p = fork; exit if $p; sleep 1 unless defined $p;
            if (++$n == 50) { open F, \">ready\"; close F } select undef, undef, undef, 0.0005 }' &
            exec sleep 100",
    ),
    (
        "closes all descriptors",
        "setsid perl -MPOSIX -e 'open F, \">ready\"; close F; POSIX::close($_) for 0..1023;
            $SIG{TERM} = \"IGNORE\"; sleep 100' & exec sleep 100",
    ),
    (
        "is stopped under a tracer",
        "exec perl -MPOSIX -e 'my $ptrace = (POSIX::uname())[4] eq \"x86_64\" ? 101 : 117;
            my $p = fork; if (!$p) { syscall $ptrace, 0, 0, 0, 0; kill STOP => $$; sleep 100; exit }
            waitpid $p, WUNTRACED; open F, \">ready\"; close F; sleep 100'",
    ),
    ("stops itself", "setsid sh -c ': >ready; kill -STOP $$; sleep 100' & : ; kill -STOP $$"),
    (
        "forgets its environment",
        "cd /; env -i setsid perl -e 'open F, \">$ARGV[0]\"; close F; sleep 100' \\
            \"$READY\" \"$MARK\" &
            exec sleep 100",
    ),
    ("becomes another program", ": >ready; exec perl -e 'exec \"sleep\", \"100\"'"),
    (
        "disguises itself",
        "setsid perl -e '$0 = \") Z 1 (\"; $SIG{TERM} = \"IGNORE\"; open F, \">ready\"; close F;
            sleep 100' & exec sleep 100",
    ),
    (
        "takes in orphans of its own",
        "exec perl -e 'my $prctl = `uname -m` =~ /x86_64/ ? 157 : 167; syscall $prctl, 36, 1, 0, 0, 0;
            if (!fork) { if (!fork) { $SIG{TERM} = \"IGNORE\"; open F, \">ready\"; close F;
                sleep 100 } exit } sleep 100'",
    ),
];

pub struct Escapee {
    pub kind: &'static str,
    script: &'static str,
    mark: String,
    _watchdog: Watchdog,
    folder: TempDir,
}

/// An external process that kills all marked processes when it is dropped, when the test process
/// has ended for any reason, and at the latest after 100 seconds.
struct Watchdog(Child);

/// Reads the mark and the directory to watch from standard input, so that the watchdog's command
/// line does not contain the mark. The watchdog's standard input closes when the test process ends.
const WATCH: &str = "chomp(my $mark = <STDIN>); chomp(my $folder = <STDIN>);
    my $bits = ''; vec($bits, 0, 1) = 1; select $bits, undef, undef, 100;
    for (1..100) {
        my $left = 0;
        for my $pid (map { m{(\\d+)} } glob '/proc/[0-9]*') {
            my $marked = index((readlink(\"/proc/$pid/cwd\") // ''), $folder) == 0;
            for my $file ('environ', 'cmdline') {
                open my $f, '<', \"/proc/$pid/$file\" or next;
                local $/; $marked ||= index((<$f> // ''), $mark) >= 0;
            }
            $left += kill KILL => $pid if $marked && $pid != $$;
        }
        last unless $left;
        select undef, undef, undef, 0.02;
    }";

impl Watchdog {
    fn over(mark: &str, folder: &Path) -> Self {
        let mut child = Command::new("perl")
            .args(["-e", WATCH])
            .current_dir("/")
            .stdin(Stdio::piped())
            // A signal to the test's process group must not kill the watchdog.
            .process_group(0)
            .spawn()
            .unwrap();
        let mut whom = child.stdin.take().unwrap();
        writeln!(whom, "{mark}\n{}", folder.display()).unwrap();
        child.stdin = Some(whom);
        Self(child)
    }
}

impl Drop for Watchdog {
    /// `wait` closes the watchdog's standard input first, and the watchdog then kills all marked
    /// processes.
    fn drop(&mut self) {
        let _ = self.0.wait();
    }
}

impl Escapee {
    pub fn new(n: usize, of: &str) -> Self {
        let (kind, script) = KINDS[n];
        let folder = TempDir::with_prefix("escapee-").unwrap();
        // In a sandbox, a node that runs as root runs its program as another user.
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o777)).unwrap();
        fs::create_dir(folder.path().join("hidden")).unwrap();
        let mark = format!("{}-{of}-{n}", folder.path().file_name().unwrap().to_string_lossy());
        let _watchdog = Watchdog::over(&mark, folder.path());
        Self { kind, script, mark, _watchdog, folder }
    }

    pub fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn config(&self) -> Value {
        let script = format!("echo $$ >main; {}", self.script);
        json!({"argv": ["sh", "-c", script], "cwd": self.folder.path(),
               "env": {"MARK": self.mark, "READY": self.file("ready")}})
    }

    pub fn invocation(&self) -> Invocation {
        with(invocation("shell", self.config()), |d| d.timeout = Span::from_secs(90))
    }

    /// Waits until all processes of the program run. Returns the id that the main process has
    /// outside its PID namespace.
    pub async fn ready(&self) -> i32 {
        let inside = pid_in(&self.file("main")).await;
        let what = format!("a body that {} is ready", self.kind);
        eventually(&what, || self.file("ready").exists()).await;
        let mut all = self.processes().into_iter();
        let main = all.find(|pid| pid_inside(*pid) == Some(inside));
        main.unwrap_or_else(|| panic!("a body that {} can't be found", self.kind))
    }

    pub fn processes(&self) -> Vec<i32> {
        let folder = self.folder.path();
        fs::read_dir("/proc")
            .unwrap()
            .flatten()
            .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
            .filter(|pid| is_marked(*pid, &self.mark, folder) && is_alive(*pid))
            .collect()
    }

    pub fn has_no_survivors(&self, when: &str) {
        let left = self.processes();
        assert!(left.is_empty(), "a body that {} has survived {when}: {left:?}", self.kind);
    }
}

/// Returns the id that a process has inside its PID namespace.
fn pid_inside(pid: i32) -> Option<i32> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let numbers = status.lines().find_map(|line| line.strip_prefix("NSpid:"))?;
    numbers.split_ascii_whitespace().last()?.parse().ok()
}

fn is_marked(pid: i32, mark: &str, folder: &Path) -> bool {
    let holds = |file: &str| {
        let bytes = fs::read(format!("/proc/{pid}/{file}")).unwrap_or_default();
        bytes.windows(mark.len()).any(|window| window == mark.as_bytes())
    };
    let is_there =
        fs::read_link(format!("/proc/{pid}/cwd")).is_ok_and(|cwd| cwd.starts_with(folder));
    is_there || holds("environ") || holds("cmdline")
}
